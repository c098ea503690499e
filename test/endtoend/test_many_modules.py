"""Kinds of layers, types, layouts and epilogues, run from PTX beside numpy.

Inputs are whole numbers: but for exp, tanh and erf, and what they are part of, every result has
numpy's bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import tcir

from . import block_scaled_oracle as scaled
from .block_scaled_text import F4, F6A, F8A, F8B, UE8M0, BlockScaled
from .computed import Computed, finished, outcome
from .module_cases import CASES, Case

MX = {"scale": UE8M0, "block": 32}
BLOCK_SCALED = [
    ("gemv-padded-n", BlockScaled(m=40, k=256)),
    ("gemv-padded-n", BlockScaled(m=33, k=512, batch=2, out="f16")),
    ("gemv-padded-n", BlockScaled(m=24, k=256, a=F8A, b=F8B, **MX)),
    ("gemv-simt", BlockScaled(m=40, k=256, alpha="after")),
    ("gemv-simt", BlockScaled(m=24, k=256, b=F4, **MX)),
    ("gemm", BlockScaled(m=40, n=48, k=256, out="bf16")),
    ("gemm", BlockScaled(m=136, n=24, k=256, alpha="in")),
    ("gemm", BlockScaled(m=40, n=48, k=256, a=F8A, b=F8A, **MX)),
    ("gemm", BlockScaled(m=40, n=48, k=256, a=F6A, b=F6A, **MX, out="f16")),
    ("gemm", BlockScaled(m=40, n=24, k=256, batch=2, swapped=True)),
]


def test_there_are_enough() -> None:
    names = {*map(str, CASES), *map(str, BLOCK_SCALED)}
    assert len(names) == len(CASES) + len(BLOCK_SCALED) >= 80


@pytest.mark.parametrize(
    ("case", "normal"),
    [
        pytest.param(case, normal, id=f"{case}-{'normal' if normal else 'whole'}")
        for case in CASES
        for normal in (False, True)
        if not (normal and case.deep)
    ],
)
def test_module(case: Case, normal: bool) -> None:
    program = Computed(generator=np.random.default_rng(len(case.name)), normal=normal)
    text, arrays, wanted = finished(program, case.build(program))
    exact = not any(number.error.any() for number in wanted.values())
    assert exact or normal or any(word in text for word in ("math.", "divf"))
    found = outcome(text, arrays, wanted, case.pipeline)
    assert found == ("equal" if exact else "within bound"), found


@pytest.mark.parametrize(("pipeline", "case"), BLOCK_SCALED, ids=str)
def test_block_scaled(pipeline: str, case: BlockScaled) -> None:
    arrays = scaled.inputs_of(case)
    want = scaled.product(case, **arrays)
    out = np.full_like(want, 77)
    names = [name for name, *_ in case.operands()] + ["ga", "gb"] * (case.alpha != "no")
    kernel = tcir.compile(case.linalg(), pipeline)
    assert not kernel(*(arrays[name] for name in names), out).findings
    assert out.tobytes() == want.tobytes()


def test_a_wrong_element_is_noticed() -> None:
    """The oracle is told of another number than the module has."""
    case = CASES[5]
    program = Computed(generator=np.random.default_rng(0))
    text, arrays, wanted = finished(program, case.build(program))
    arrays[1][3, 4] = -arrays[1][3, 4]
    with pytest.raises(AssertionError, match="40 of 1920 elements; at"):
        outcome(text, arrays, wanted, case.pipeline)
