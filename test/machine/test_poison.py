"""What tcgen05.mma makes of operands that nothing wrote: NaN, undefined, where they reach.

That is no error: kernels with M = 32 leave rows of A unwritten (DeepGEMM). Reading them is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .test_sparse_shapes import A_AT, A_TMEM, B_AT, META, SFA, SFB, Case, D, Form, run

ROW, COLUMN = 37, 5
F16 = Form("f16")
SCALED = Form("mxf4nvf4", scales=4)


def shared(at: int) -> Callable[[Any], None]:
    def change(cta: Any) -> None:
        cta.smem.data[at : at + 16] = 0xCB
        cta.smem.defined[at : at + 16] = False

    return change


def tensor(lane: Any, column: int) -> Callable[[Any], None]:
    def change(cta: Any) -> None:
        cta.tmem.words[lane, column] = 0x7FFFCBCB
        cta.tmem.defined[lane, column] = False

    return change


def accumulator(cta: Any) -> None:
    cta.tmem.words[:, D : D + 64] = 0
    cta.tmem.defined[:, D : D + 64] = True
    tensor(ROW, D + COLUMN)(cta)


# Of f16 the metadata of row 37 lie on lanes 37 (37 % 8 + 16 · 2, k below 16) and 45; rows 32..47
# share these lanes in pairs, eight apart.
CASES: list[tuple[str, Form, Any, str, Any, Any]] = [
    ("A", F16, shared(A_AT + 16 * ROW), "shared memory", [ROW], slice(None)),
    ("A, second half", F16, shared(A_AT + 16 * (128 + ROW)), "shared memory", [ROW], slice(None)),
    ("A in tensor memory", Form("f16", in_tmem=True), tensor(ROW, A_TMEM + 3), "A in tensor memory",
     [ROW], slice(None)),
    ("a copy of A", Form("f16", 64, ws=True, in_tmem=True), tensor(64 + ROW, A_TMEM),
     "A in tensor memory", [ROW], slice(None)),
    ("B", F16, shared(B_AT + 16 * COLUMN), "shared memory", slice(None), [COLUMN]),
    ("D", F16, accumulator, "accumulator", [ROW], [COLUMN]),
    ("metadata", F16, tensor(ROW, META), "metadata in tensor memory", [ROW, ROW + 8], slice(None)),
    ("SFA", SCALED, tensor(ROW % 32, SFA + 1), "SFA in tensor memory", [ROW], slice(None)),
    ("SFB", SCALED, tensor(64 + COLUMN, SFB), "SFB in tensor memory", slice(None), [COLUMN]),
]  # fmt: skip


@pytest.mark.parametrize("hazards", ["report", "off"])
@pytest.mark.parametrize(("name", "form", "change", "place", "rows", "columns"), CASES)
def test_undefined_operands(
    name: str, form: Form, change: Any, place: str, rows: Any, columns: Any, hazards: str
) -> None:
    case = Case(form)
    machine, d = run(case, change=change, accumulate=change is accumulator, hazards=hazards)
    reached = np.zeros(d.shape, bool)
    reached[rows, columns] = True
    assert np.isnan(d[reached]).all()
    np.testing.assert_array_equal(d[~reached], 2 * case.product[~reached])
    assert not machine.findings
    np.testing.assert_array_equal(case.lost, reached)
    assert case.origins == {place}
    clean, d = run(case, change=None)
    assert not clean.findings and (d == 2 * case.product).all()


class Half(Case):
    """The same with a D of f16."""

    @property
    def idesc(self) -> int:
        return super().idesc & ~(3 << 4)


def test_a_half_has_its_nan_too() -> None:
    _, d = run(Half(F16), change=shared(A_AT + 16 * ROW))
    words = d.view(np.uint32)
    assert (words[ROW] & 0xFFFF == 0x7FFF).all() and (words[ROW + 1] & 0xFFFF != 0x7FFF).all()
