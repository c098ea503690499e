"""gemm for sm_90a whose results are quantised to MXFP8: every level, NumPy, and broken ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.errors import PassError
from tcir.passmanager.pipeline import Pass

from . import quantise_oracle as oracle
from .breaking import pick, set_attribute, walk
from .product_text import program
from .quantise_text import SHIFT, Spelling, quantised
from .test_gemm_quantise import E4M3, E5M2, MXFP4, NVFP4, ONE_MORE, Case, hard_rows
from .test_gemm_wgmma import TARGET
from .test_gemm_wgmma_deferred import TILES, counted, unconditional

DEFERRED = Case(E4M3, m=136, n=96, k=256, body=ONE_MORE)
"""Whose tiles' codes and scales wait for the next tile; a block is not there, 32 columns of
scales are padding, as are 120 rows."""
CASES = [
    pytest.param(Case(E4M3, m=24, n=96, body=ONE_MORE).linalg(), {"n_tile": 64}, id="a tail"),
    (Case(E4M3, m=136, n=256).linalg(), {}),
    (Case(E5M2, m=136, n=128, rounding="rceil", element="bf16").linalg(), {}),
    (Case(E4M3, m=200, n=288, rounding="rceil", body=ONE_MORE).linalg(), {}),
    (Case(E4M3, m=40, n=96, row_major=True, body=ONE_MORE).linalg(), {"n_tile": 128}),
    (Case(E5M2, m=40, n=32, element="f32").linalg(), {}),
    (Spelling(E4M3, SHIFT, m=40, n=96).linear(64), {"n_tile": 64}),
    (DEFERRED.linalg(), TILES),
    (replace(DEFERRED, row_major=True, rounding="rceil").linalg(), TILES),
    (replace(DEFERRED, formats=E5M2, start=True, m=264, n=192).linalg(), TILES),
    (quantised(program(72, 96, 80, "f16", batch=2), E4M3), {"n_tile": 64}),
    (quantised(program(136, 96, 256, "f16", batch=2), E5M2, blocked=True), TILES),
    (quantised(program(136, 160, 256, "f8E5M2", "mk", "nk"), E4M3), {}),
    (quantised(program(136, 512, 384, "f8E4M3FN", "mk", "nk"), E4M3, blocked=True),
     {"persistent": True, "ctas": 2, "n_tile": 256, "stages": 2}),
    (quantised(program(136, 288, 136, "bf16"), E4M3, blocked=True),
     {"cluster": "2x2", "n_tile": 64}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options"), CASES)
def test_every_pass_is_executed_and_holds(text: str, options: dict[str, Any]) -> None:
    kernel = tcir.compile(text, "gemm", target=TARGET, validate=True, orders=2, **options)
    kernel.report.check()
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}
    assert "wgmma.mma_async" in kernel.ptx and "shfl.sync.bfly" in kernel.ptx


@pytest.mark.parametrize(
    ("formats", "n", "rounding", "row_major"),
    [
        (E4M3, 224, "", True),
        (E4M3, 224, "rceil", False),
        (E5M2, 160, "rceil", True),
        (E5M2, 256, "", False),
    ],
)
def test_bytes_against_numpy(
    formats: tuple[str, str], n: int, rounding: str, row_major: bool
) -> None:
    """The accumulator's start is quantised: the product adds zeros. negf makes zeros of -0."""
    m = 200
    negated = "%t = arith.negf %u : f32"
    case = Case(formats, m, n, body=negated, start=True, rounding=rounding, row_major=row_major)
    kernel = tcir.compile(case.linalg(), "gemm", target=TARGET)
    x = hard_rows(m, n, *formats, 1.0)
    codes = np.zeros((m, n), oracle.DTYPES[formats[0]])
    shape = (m, n // 32) if row_major else (2, -(-n // 128), 512)
    scales = np.full(shape, 0x55, np.uint8).view(oracle.DTYPES[formats[1]])
    zeros = [np.zeros(shape, np.float16) for shape in ((m, 16), (16, n))]
    kernel(*zeros, np.zeros(n, np.float32), x, codes, scales)
    with np.errstate(all="ignore"):
        want, want_scales = oracle.quantised(
            -(x + np.float32(0)), *formats, 1.0, rounding or "floor"
        )
    assert (codes.view(np.uint8) == want).all(), np.argwhere(codes.view(np.uint8) != want)[:4]
    stored = want_scales if row_major else oracle.blocked(want_scales)
    assert (scales.view(np.uint8) == stored).all()
    assert len(np.unique(want)) >= 200
    assert {0, 0xFF} <= set(np.unique(want_scales)) and len(np.unique(want_scales)) > 40


# --- what is chosen, and what is refused -------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        (DEFERRED, 1),
        (replace(DEFERRED, k=64), 0),  # one step
    ],
)
def test_codes_and_scales_wait_together(case: Case, parts: int) -> None:
    ops = counted(case.linalg(), **TILES)
    assert ops["tc.fragment_part"] == parts
    assert ops["tc.quantise_fragment"] == 1
    assert ops["tc.store_fragment_scales"] == ops["tc.store_fragment"] == 1 + parts


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (Case(NVFP4).linalg(), {}, r"got f4E2M1FN \(cvt to e2m1x2 needs sm_100a"),
        (Case(MXFP4).linalg(), {}, r"got f4E2M1FN \(cvt to e2m1x2 needs sm_100a"),
        (Case(E4M3).linalg(), {"n_tile": 96}, "take n-tile=128; smallest accepted: n-tile=64"),
        (
            quantised(program(40, 96, 128, "f8E4M3FN", "mk", "nk"), E4M3),
            {"n_tile": 224},
            "multiple of 128 to quantise, got 224 .* take n-tile=256",
        ),
    ],
)
def test_refused(text: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PassError, match=words):
        tcir.compile(text, "gemm", target=TARGET, **options)


# --- breaks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Break(Pass):
    """Damages the module."""

    edit: Callable[[Any], None]
    name: ClassVar[str] = "break"

    def run(self, module: Any) -> None:
        self.edit(module)


def _replaced(old: Any, new: Any) -> None:
    for use in list(old.uses):
        use.owner.operands[use.operand_number] = new


def _of_two_threads(module: Any) -> None:
    """The second exchange left out: amax of 16 of 32 columns."""
    for shuffle in list(walk(module, "nvvm.shfl.sync"))[1::2]:
        _replaced(shuffle.results[0], shuffle.operands[1])


def _of_half_its_own(module: Any) -> None:
    """amax of four of a thread's eight numbers."""
    largest = list(walk(module, "arith.maximumf"))
    firsts = [n for n, op in enumerate(largest) if not _is_made_by(op.operands[0], op.name)]
    assert firsts
    for first in firsts:
        own, half = largest[first + 6].results[0], largest[first + 2].results[0]
        _replaced(own, half)


def _is_made_by(value: Any, name: str) -> bool:
    return getattr(value.owner, "name", "") == name


def _lane(module: Any) -> None:
    """Each of the four threads stores its neighbour's byte."""
    shifts = walk(module, "arith.shrui")
    shift = next(op for op in shifts if _is_made_by(op.operands[1], "arith.shli"))
    with ir.InsertionPoint(shift), shift.location:
        kind = shift.operands[1].type
        shift.operands[1] = arith.xori(shift.operands[1], arith.constant(kind, 8))


def _moved(op: str, operand: int, amount: int) -> Callable[[Any], None]:
    def edit(module: Any) -> None:
        found = pick(module, op)
        with ir.InsertionPoint(found), found.location:
            old = found.operands[operand]
            found.operands[operand] = arith.addi(old, arith.constant(old.type, amount))

    return edit


def _stored_before(module: Any) -> None:
    unconditional(pick(module, "scf.if"))


def _rounded_down(module: Any) -> None:
    """A scale of floor where it was to be rounded up."""
    del pick(module, "tc.quantise_fragment").attributes["scale_rounding"]


SMALL = Case(E4M3, m=24, n=96, body=ONE_MORE)
ROW_MAJOR = replace(SMALL, row_major=True)
ROUNDED_UP = replace(SMALL, m=72, rounding="rceil")
CONVERTED = "convert-tc-to-nvvm"
BREAKS: dict[str, tuple[Case, str, Callable[[Any], None]]] = {
    "amax of two of four threads": (SMALL, CONVERTED, _of_two_threads),
    "amax of half of a thread's numbers": (SMALL, CONVERTED, _of_half_its_own),
    "the scale of another thread": (SMALL, CONVERTED, _lane),
    "the scale of another thread, row-major": (ROW_MAJOR, CONVERTED, _lane),
    "scales rounded down": (ROUNDED_UP, "tile-gemm", _rounded_down),
    "scales of other rows": (SMALL, "tile-gemm", _moved("tc.store_fragment_scales", 2, 8)),
    "scales of the blocks beside": (SMALL, "tile-gemm", _moved("tc.store_fragment_scales", 3, 32)),
    "scales between blocks": (ROW_MAJOR, "tile-gemm", _moved("tc.store_fragment_scales", 3, 8)),
    "padding that is not zero": (
        SMALL, "tile-gemm", set_attribute("tc.store_fragment_scales", "rows", "128 : i64"),
    ),
    "scales of columns that are not there": (
        SMALL, "tile-gemm", set_attribute("tc.store_fragment_scales", "scales", "4 : i64"),
    ),
    "scales stored before the first tile": (DEFERRED, "defer-stores", _stored_before),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen_at_once(name: str) -> None:
    case, after, edit = BREAKS[name]
    options = TILES if after == "defer-stores" else {"n_tile": 64}
    pipeline = tcir.named_pipeline("gemm", **options).insert(Break(edit), after=after)
    kernel = tcir.compile(case.linalg(), pipeline, target=TARGET, validate=True)
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    assert failure.name == "break", str(failure)
