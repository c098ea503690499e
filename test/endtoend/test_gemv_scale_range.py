"""ue8m0 scales whose product leaves f32's range: the result is finite wherever its value is."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcir
from tcir._mlir import ir
from tcir.interp import OutputSpec
from tcir.interp.tensor import run as execute
from tcir.passes.simt import decode
from tcir.program.source import mlir_context

from .block_scaled_oracle import DTYPES
from .block_scaled_text import F4, F8B, UE8M0, BlockScaled

CASES, BLOCKS, FILLED = 16, 16, 2
"""Products, blocks of each, and how many of these are not zeros with scales 1."""
TEXTS = {
    of: BlockScaled(batch=CASES, m=1, k=32 * BLOCKS, a=of, b=of, scale=UE8M0, block=32)
    for of in (F4, F8B)
}
NAN, LARGEST, ONE = 255, 254, 127
"""Codes of NaN, 2^127 and 1; code 0 is 2^-127."""
WITNESSES: dict[str, list[tuple[float, float, int, int]]] = {
    F8B: [  # of one block: an element of A, one of B, scale codes of A and B
        (2**-16, 1, 192, 192),  # 2^65 each
        (2**-16, 2**-16, LARGEST, 161),  # 2^129
        (-(2**15), 1, 47, 47),  # 2^-80 each: subnormal
        (2**15, 2**15, 47, 47),
        (2**15, 2**15, 0, 24),  # 2^-230
        (2**-16, 2**-16, 0, LARGEST),
        (np.inf, 1, 0, 0),
        (-np.inf, 1, LARGEST, LARGEST),
        (1, np.nan, ONE, ONE),
        (2**-16, 2**-16, LARGEST, LARGEST),  # beyond f32: infinite
        (-(2**15), 2**15, 0, 0),  # below it: zero
        (0, 0, NAN, 0),
        (0, 0, LARGEST, LARGEST),
    ],
    F4: [
        (0.5, 0.5, 191, 191),  # 2^64 each
        (-0.5, 0.5, LARGEST, ONE),
        (0, 0, LARGEST, LARGEST),  # zeros times 2^254
        (0, 6, LARGEST, LARGEST),
        (6, 6, LARGEST, 0),
        (1, 1, 0, ONE),  # 2^-127: a subnormal
        (-6, 6, 0, 105),  # 2^-149 · 36
        (6, 6, 0, 0),
        (6, 6, 191, 191),
        (0, 0, NAN, LARGEST),
        (1, 1, 0, NAN),
        (1, 1, NAN, NAN),
    ],
}


@cache
def _kernel(of: str, pipeline: str) -> tcir.Kernel:
    options = {"warps": 1} if pipeline == "gemv-simt" else {}
    return tcir.compile(TEXTS[of].op(), pipeline, **options)


def _arrays(of: str, a: Any, b: Any, sa: Any, sb: Any) -> list[np.ndarray]:
    """Inputs from elements [case, block], the first of a block, and scale codes [case, block]."""
    elements = [np.zeros((CASES, BLOCKS, 32), np.float32) for _ in range(2)]
    scales = [np.full((CASES, BLOCKS), ONE, np.uint8) for _ in range(2)]
    for array, values, of_blocks, codes in zip(elements, (a, b), scales, (sa, sb), strict=True):
        array[:, :FILLED, 0], of_blocks[:, :FILLED] = values, codes
    left, right = (array.reshape(CASES, -1).astype(DTYPES[of]) for array in elements)
    of_a, of_b = (codes.view(DTYPES[UE8M0]) for codes in scales)
    return [left[:, None], of_a[:, None], right, of_b]


def _terms(a: Any, b: Any, sa: Any, sb: Any) -> np.ndarray:
    """The products, exact, [case, block]."""
    scales = [np.asarray(codes).astype(np.uint8).view(DTYPES[UE8M0]) for codes in (sa, sb)]
    with np.errstate(invalid="ignore"):
        return np.multiply(a, b) * scales[0].astype(np.float64) * scales[1].astype(np.float64)


def _witnesses(of: str) -> list[np.ndarray]:
    """Their columns [case, block]: a, b, sa, sb; of each the first block."""
    table = np.zeros((4, CASES, FILLED))
    table[2:] = ONE
    for n, witness in enumerate(WITNESSES[of]):
        table[:, n, 0] = witness
    return list(table)


def _run(kernel: tcir.Kernel, arrays: list[np.ndarray]) -> np.ndarray:
    out = np.ones((CASES, 1), np.float32)
    kernel(*arrays, out)
    return out[:, 0]


def _in_f32(terms: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return terms.astype(np.float32)


@pytest.mark.parametrize("of", WITNESSES)
def test_reference(of: str) -> None:
    """The contraction in linalg, and the op."""
    table = _witnesses(of)
    want = _in_f32(_terms(*table).sum(-1))
    for text in (TEXTS[of].linalg(), TEXTS[of].op()):
        outputs = [OutputSpec((CASES, 1), np.dtype(np.float32))]
        with mlir_context():
            module = ir.Module.parse(text)
            (got,) = execute(module, "f", _arrays(of, *table), outputs).outputs
        np.testing.assert_array_equal(got[:, 0], want)


@pytest.mark.parametrize("pipeline", ["gemv-simt", "gemv-padded-n"])
@pytest.mark.parametrize("of", WITNESSES)
def test_witnesses(of: str, pipeline: str) -> None:
    table = _witnesses(of)
    got = _run(_kernel(of, pipeline), _arrays(of, *table))
    np.testing.assert_array_equal(got, _in_f32(_terms(*table).sum(-1)))


_CODES = st.lists(st.integers(0, 255), min_size=CASES * FILLED, max_size=CASES * FILLED)
_ELEMENTS = {
    F4: st.sampled_from([0.0, 0.5, -0.5, 1.0, -1.5, 2.0, -3.0, 4.0, 6.0, -6.0]),
    F8B: st.builds(np.ldexp, st.sampled_from([0.0, 1.0, -1.25, 1.5, -1.75]), st.integers(-14, 15)),
}


@pytest.mark.parametrize("of", _ELEMENTS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_each_term_is_rounded_once(of: str, data: st.DataObject) -> None:
    """A block's product in f32, rounded once; two blocks of two lanes are added in f32."""
    several = st.lists(_ELEMENTS[of], min_size=CASES * FILLED, max_size=CASES * FILLED)
    table = [
        np.array(data.draw(kind)).reshape(CASES, FILLED)
        for kind in (several, several, _CODES, _CODES)
    ]
    terms = _in_f32(_terms(*table))
    with np.errstate(invalid="ignore", over="ignore"):
        want = terms[:, 0] + terms[:, 1]
    np.testing.assert_array_equal(_run(_kernel(of, "gemv-simt"), _arrays(of, *table)), want)


def test_a_product_of_scales_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One factor per scale, as for ue4m3: the witnesses differ."""
    halves = decode._ue8m0
    monkeypatch.setattr(decode, "_ue8m0", lambda code: (decode.arith.MulFOp(*halves(code)).result,))
    _kernel.cache_clear()
    try:
        with pytest.raises(AssertionError, match="Arrays are not equal"):
            test_witnesses(F8B, "gemv-simt")
    finally:
        _kernel.cache_clear()
