"""Products with few rows by weights of int8, int4 or fp8, which warps dequantise in registers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from edited import edit

import tcir

from .weights_text import DTYPES, FP8, Array, Weights, product

NIBBLES = Weights("nibbles", 96, 256, "f16", group=128)
ZEROS = Weights("nibbles", 40, 256, "bf16", group=64, zeros=True)
INT8 = Weights("i8", 96, 128)
FORMS = [
    NIBBLES, ZEROS, INT8, replace(INT8, element="f16"),
    Weights("i8", 72, 192, "f16", group=64, zeros=True),
    Weights("f8E4M3FN", 96, 128, "f16"), Weights("f8E5M2", 40, 128, "bf16", group=64),
    Weights("words", 72, 128, "bf16", group=64, zeros=True),
]  # fmt: skip
ROWS = (1, 3, 16, 32)


def multiply(weights: Weights, m: int, target: str, a: Array, arrays: list[Array]) -> Array:
    """The product, by one launch of mma.sync without findings."""
    kernel = tcir.compile(product(weights, m), "layers", target=target)
    assert len(kernel.launches.launches) == 1 and "mma.sync" in kernel.ptx
    assert "wgmma" not in kernel.ptx and "tcgen05.mma" not in kernel.ptx
    out = np.zeros((m, weights.rows), np.float32)
    report = kernel(a, *arrays, out)
    assert not report.findings, str(report.findings[0])
    return out


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("m", ROWS)
@pytest.mark.parametrize("weights", FORMS, ids=str)
def test_against_f64(weights: Weights, m: int, target: str) -> None:
    """The error is that of f32 sums of exact products."""
    a = np.random.default_rng(1).standard_normal((m, weights.k)).astype(DTYPES[weights.element])
    arrays = weights.arrays(2)
    factors = weights.dequantised(arrays).astype(np.float64).T
    got, wide = multiply(weights, m, target, a, arrays), a.astype(np.float64)
    assert (np.abs(got - wide @ factors) <= 2.0**-21 * (np.abs(wide) @ np.abs(factors))).all()


@pytest.mark.parametrize(("rows", "m"), [(2000, 2), (4100, 16)])
def test_tails_of_tiles(rows: int, m: int) -> None:
    """CTAs of 16 and of 32 rows, the last in part."""
    weights = replace(NIBBLES, rows=rows, k=128)
    a = np.random.default_rng(1).standard_normal((m, weights.k)).astype(np.float16)
    arrays = weights.arrays(2)
    factors = weights.dequantised(arrays).astype(np.float64).T
    got, wide = multiply(weights, m, "sm_90a", a, arrays), a.astype(np.float64)
    assert (np.abs(got - wide @ factors) <= 2.0**-21 * (np.abs(wide) @ np.abs(factors))).all()


def test_few_rows_are_loaded_ahead() -> None:
    """Bytes in CTAs of several tiles: the loop carries the few rows' words of the next chunk."""
    weights = replace(INT8, rows=3970, k=768)
    a = np.random.default_rng(1).standard_normal((17, weights.k)).astype(DTYPES[weights.element])
    arrays = weights.arrays(2)
    factors = weights.dequantised(arrays).astype(np.float64).T
    got, wide = multiply(weights, 17, "sm_90a", a, arrays), a.astype(np.float64)
    assert (np.abs(got - wide @ factors) <= 2.0**-21 * (np.abs(wide) @ np.abs(factors))).all()


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("stored", ["i8", "nibbles", *FP8])
def test_every_code_has_its_number(stored: str, element: str) -> None:
    """Unit vectors select 32 weights of each row: all 256 codes of a byte, NaN and infinity."""
    weights = Weights(stored, 64, 128, element)
    codes = np.arange(64 * (64 if stored == "nibbles" else 128)).astype(np.uint8)
    _, scales = weights.arrays(2)
    arrays = [codes.view(FP8.get(stored, np.int8)).reshape(64, -1), np.ones_like(scales)]
    if stored in FP8:  # a unit vector times infinity is NaN everywhere
        bad = ~np.isfinite(arrays[0].astype(np.float32))
        arrays[0] = np.where(bad, np.zeros_like(arrays[0]), arrays[0])
    made = weights.dequantised(arrays)
    for first in range(0, 128, 32):
        a = np.eye(128, dtype=np.float32)[first : first + 32].astype(DTYPES[element])
        got = multiply(weights, 32, "sm_90a", a, arrays)
        np.testing.assert_array_equal(got, made[:, first : first + 32].T.astype(np.float32))


def test_nan_and_infinity_stay() -> None:
    weights = Weights("f8E5M2", 16, 64, "f16")
    stored, scales = weights.arrays(2)
    codes = stored.view(np.uint8)
    codes[3, 5], codes[7, 9] = 0x7C, 0x7F  # infinity, NaN
    got = multiply(weights, 1, "sm_90a", np.ones((1, 64), np.float16), [stored, scales])[0]
    assert np.isposinf(got[3]) and np.isnan(got[7])
    assert np.isfinite(np.delete(got, [3, 7])).all()


def test_a_torch_like_uint8() -> None:
    """Unsigned bytes, whose eight bits no mantissa of bf16 has."""
    text = product(INT8, 4).replace("arith.sitofp", "arith.uitofp")
    stored, scales = INT8.arrays(3)
    a = np.random.default_rng(1).standard_normal((4, 128)).astype(ml_dtypes.bfloat16)
    made = (stored.view(np.uint8).astype(a.dtype) * scales.reshape(-1, 1)).astype(np.float64).T
    got, wide = tcir.compile(text, "layers", target="sm_90a").run(a, stored, scales), a.astype("f8")
    assert (np.abs(got - wide @ made) <= 2.0**-21 * (np.abs(wide) @ np.abs(made))).all()


OTHERS: list[Any] = [(replace(INT8, k=80), 8), (replace(NIBBLES, k=192, group=64), 8), (INT8, 33)]


@pytest.mark.parametrize(("weights", "m"), OTHERS, ids=str)
def test_others_are_tiles(weights: Weights, m: int) -> None:
    """Rows of no multiple of 64 bytes, which four threads cannot share, and more rows than few."""
    assert "wgmma" in tcir.compile(product(weights, m), "layers", target="sm_90a").ptx


EVERY = [("sm_90a", NIBBLES, 16), ("sm_90a", INT8, 1), ("sm_90a", ZEROS, 5), ("sm_100a", INT8, 20),
         ("sm_90a", Weights("f8E4M3FN", 24, 64, "bf16"), 2)]  # fmt: skip


@pytest.mark.parametrize(("target", "weights", "m"), EVERY, ids=str)
def test_every_level(target: str, weights: Weights, m: int) -> None:
    """convert-to-simt chooses the order of the sums; what follows keeps their bits."""
    report = tcir.validate(product(weights, m), "layers", target=target)
    assert report.verdict == "held", str(report)
    assert not [finding for line in report.passes for finding in line.findings], str(report)


MADE, LOADED = "tcir.passes.simt.dequantise", "tcir.passes.simt.streamed_narrow"


@pytest.mark.parametrize(
    ("what", "weights", "place", "old", "new"),
    [
        ("nibbles exchanged", NIBBLES, f"{MADE}:_Pair._converted", "shift, width = bits",
         "shift, width = 4 - bits[0], bits[1]"),
        ("words of the few in order", NIBBLES, f"{MADE}:Dequantise.alike",
         "a if high == low + 1 else", "a if True else"),
        ("bytes exchanged", INT8, f"{MADE}:_Pair._spread", "low % WORD_BYTES // 2",
         "1 - low % WORD_BYTES // 2"),
        ("the sign counts as 128", INT8, f"{MADE}:_Pair._of_byte", "for mask in (SIGN - 1, SIGN)",
         "for mask in (SIGN - 1, 0)"),
        ("the scale of the group before", NIBBLES, f"{LOADED}:_digit",
         "simt.divide(of, digit.step)", "simt.divide(of, 2 * digit.step)"),
        ("the scale of the first row", INT8, f"{LOADED}:_digit", "row if digit.dim == ROW else",
         "simt.constant(0) if digit.dim == ROW else"),
        ("no zero point", ZEROS, f"{MADE}:_Pair._uniform", "self.beside[node.argument, node.at]",
         "(simt.constant(0) if str(node.element) == 'i8' else "
         "self.beside[node.argument, node.at])"),
        ("the bytes of the next thread", INT8, f"{LOADED}:_NarrowKernel._fetch",
         "simt.mul(unit, ROW_BYTES)", "simt.mul(simt.differing_bits(unit, 1), ROW_BYTES)"),
        ("the chunk before", NIBBLES, f"{LOADED}:_NarrowKernel._few_words",
         "simt.wide(simt.mul(self._unit(chunk, block, given.member), size))",
         "simt.wide(simt.mul(self._unit(given.warp, block, given.member), size))"),
        ("codes of the other half", Weights("f8E4M3FN", 24, 64), f"{MADE}:_Pair._of_codes",
         "8 * (low % WORD_BYTES)", "16 - 8 * (low % WORD_BYTES)"),
    ],
)  # fmt: skip
def test_breaks(
    what: str, weights: Weights, place: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is found after the pass that makes the kernel."""
    if what == "the chunk before":  # more chunks than warps
        weights = replace(weights, rows=16, k=128 * 24)
    with monkeypatch.context() as patch:
        edit(patch, place, old, new)
        report = tcir.validate(product(weights, 4), "layers", target="sm_90a")
    found = next((each.name for each in report.passes if each.index and not each.held), "")
    assert found == "convert-to-simt", str(report)
