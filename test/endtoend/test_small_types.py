"""Numbers of less than a byte, and f8E8M0FNU, outside block-scaled products: every code of each
conversion against ml_dtypes, packed, and through all levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir

Array = np.ndarray[Any, Any]
TYPES: dict[str, tuple[Any, int]] = {
    "i2": (ml_dtypes.int2, 2),
    "i4": (ml_dtypes.int4, 4),
    "i8": (np.int8, 8),
    "i32": (np.int32, 32),
    "f16": (np.float16, 16),
    "bf16": (ml_dtypes.bfloat16, 16),
    "f32": (np.float32, 32),
    "f64": (np.float64, 64),
    "f4E2M1FN": (ml_dtypes.float4_e2m1fn, 4),
    "f6E2M3FN": (ml_dtypes.float6_e2m3fn, 6),
    "f6E3M2FN": (ml_dtypes.float6_e3m2fn, 6),
    "f8E8M0FNU": (ml_dtypes.float8_e8m0fnu, 8),
}
NO_NAN = ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN")
SHAPE = (16, 64)


def codes_of(element: str, count: int) -> Array:
    """Every code if there are few, else any, and numbers about 1."""
    dtype, bits = TYPES[element]
    size = np.dtype(f"u{np.dtype(dtype).itemsize}")
    if bits <= 8:
        return np.resize(np.arange(1 << bits, dtype=size), count).view(dtype)
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 1 << bits, count, dtype=size).view(dtype)
    if element.startswith("i"):
        return codes
    near = draw.standard_normal(count) * 2.0 ** draw.integers(-5, 5, count)
    ties = draw.integers(-64, 64, count) / 16
    return np.where(draw.random(count) < 0.3, codes, np.where(near > 0, near, ties)).astype(dtype)


def bits_of(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def unsigned(codes: Array, bits: int) -> Array:
    return bits_of(codes) & ((1 << bits) - 1)


def program(op: str, source: str, result: str) -> str:
    given, made = (f"tensor<{SHAPE[0]}x{SHAPE[1]}x{kind}>" for kind in (source, result))
    return (
        f"func.func @f(%x: {given}) -> {made} {{\n"
        f"  %y = arith.{op} %x : {given} to {made}\n  return %y : {made}\n}}\n"
    )


def expected(op: str, x: Array, source: str, result: str) -> Array:
    """By ml_dtypes; NaN of a format without one is its largest number (PTX ISA 9.7.9.21)."""
    dtype, bits = TYPES[result][0], TYPES[source][1]
    if op == "bitcast":
        return x.view(dtype)
    if op in ("extui", "uitofp"):
        return unsigned(x, bits).astype(dtype)
    if op == "trunci":
        return x.astype(np.int8).astype(dtype)
    if result in NO_NAN:
        x = np.where(np.isnan(x), np.float32(np.inf), x.astype(np.float32))
    return x.astype(dtype)


CONVERSIONS = [
    ("sitofp", "i4", "f16"), ("sitofp", "i2", "bf16"), ("uitofp", "i4", "f32"),
    ("uitofp", "i2", "f16"), ("extsi", "i4", "i8"), ("extui", "i2", "i4"), ("extui", "i4", "i32"),
    ("trunci", "i32", "i4"), ("trunci", "i8", "i2"), ("bitcast", "i4", "f4E2M1FN"),
    ("bitcast", "f4E2M1FN", "i4"), ("bitcast", "f8E8M0FNU", "i8"), ("extf", "f4E2M1FN", "f16"),
    ("extf", "f6E2M3FN", "f32"), ("extf", "f6E3M2FN", "bf16"), ("extf", "f8E8M0FNU", "f32"),
    ("extf", "f8E8M0FNU", "f16"), ("extf", "f8E8M0FNU", "bf16"), ("extf", "f8E8M0FNU", "f64"),
    ("truncf", "f32", "f4E2M1FN"), ("truncf", "f16", "f4E2M1FN"), ("truncf", "f32", "f6E2M3FN"),
    ("truncf", "bf16", "f6E3M2FN"), ("truncf", "f32", "f8E8M0FNU"), ("truncf", "bf16", "f8E8M0FNU"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "source", "result"), CONVERSIONS)
def test_every_code(op: str, source: str, result: str) -> None:
    x = codes_of(source, SHAPE[0] * SHAPE[1]).reshape(SHAPE)
    kernel = tcir.compile(program(op, source, result), "simt-elementwise")
    got, wanted = kernel.run(x), expected(op, x, source, result)
    wrong = bits_of(got) != bits_of(wanted)
    if not result.startswith("i") and result not in NO_NAN:
        wrong &= ~(np.isnan(got) & np.isnan(wanted))
    assert not wrong.any(), (x[wrong][:4], got[wrong][:4], wanted[wrong][:4])


@pytest.mark.parametrize(("op", "source", "result"), CONVERSIONS)
def test_every_level(op: str, source: str, result: str) -> None:
    report = tcir.validate(program(op, source, result), "simt-elementwise")
    assert report.verdict == "held", report


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("source", [*NO_NAN, "f8E8M0FNU"])
def test_codes_are_read_on_every_target(source: str, target: str) -> None:
    x = codes_of(source, SHAPE[0] * SHAPE[1]).reshape(SHAPE)
    text = program("extf", source, "f32")
    got = tcir.compile(text, "simt-elementwise", target=target).run(x)
    assert np.array_equal(got, x.astype(np.float32), equal_nan=True)


def test_rounding_needs_an_instruction() -> None:
    with pytest.raises(tcir.PassError, match=r"no rounding to f4E2M1FN on sm_90a .*take sm_100a"):
        tcir.compile(program("truncf", "f32", "f4E2M1FN"), "simt-elementwise", target="sm_90a")


def test_the_first_element_has_the_low_bits() -> None:
    text = program("extsi", "i4", "i8").replace("16x64", "8")
    packed = np.array([0x21, 0x43, 0xF5, 0x87], np.uint8)
    got = tcir.compile(text, "simt-elementwise").run(packed)
    assert got.tolist() == [1, 2, 3, 4, 5, -1, 7, -8]


def test_rows_that_end_within_a_byte() -> None:
    text = program("extsi", "i4", "i8").replace("16x64", "16x63")
    with pytest.raises(tcir.InputError, match=r"rows of whole bytes, got int4\[16, 63\]"):
        tcir.compile(text, "simt-elementwise").run(np.zeros((16, 63), ml_dtypes.int4))


@dataclass(frozen=True)
class Arithmetic:
    """An op on i4 against int8 of numpy, whose low four bits it has."""

    name: str
    of: Callable[[Array, Array], Array]
    shift: bool = False


ARITHMETIC = [
    Arithmetic("addi", lambda a, b: a + b),
    Arithmetic("subi", lambda a, b: a - b),
    Arithmetic("muli", lambda a, b: a * b),
    Arithmetic("andi", lambda a, b: a & b),
    Arithmetic("xori", lambda a, b: a ^ b),
    Arithmetic("maxsi", np.maximum),
    Arithmetic("minui", lambda a, b: np.minimum(a & 15, b & 15)),
    Arithmetic("shli", lambda a, b: a << b, shift=True),
    Arithmetic("shrsi", lambda a, b: a >> b, shift=True),
    Arithmetic("shrui", lambda a, b: (a & 15) >> b, shift=True),
]


@pytest.mark.parametrize("case", ARITHMETIC, ids=lambda case: case.name)
def test_arithmetic_wraps(case: Arithmetic) -> None:
    a = np.repeat(np.arange(-8, 8), 16).astype(np.int8).reshape(16, 16)
    b = np.tile(np.arange(-8, 8), 16).astype(np.int8).reshape(16, 16)
    b = b & 3 if case.shift else b
    kind, wide = "tensor<16x16xi4>", "tensor<16x16xi8>"
    text = (
        f"func.func @f(%a: {kind}, %b: {kind}) -> {wide} {{\n"
        f"  %r = arith.{case.name} %a, %b : {kind}\n"
        f"  %w = arith.extsi %r : {kind} to {wide}\n  return %w : {wide}\n}}\n"
    )
    got = tcir.compile(text, "simt-elementwise").run(
        a.astype(ml_dtypes.int4), b.astype(ml_dtypes.int4)
    )
    assert np.array_equal(got, case.of(a, b).astype(np.int8).astype(ml_dtypes.int4).astype(np.int8))


def test_a_product_of_i4() -> None:
    """On CUDA cores: sums of products are exact."""
    text = """
func.func @f(%a: tensor<8x32xi4>, %b: tensor<32x16xi4>) -> tensor<8x16xi32> {
  %c = arith.constant dense<0> : tensor<8x16xi32>
  %y = linalg.matmul ins(%a, %b : tensor<8x32xi4>, tensor<32x16xi4>)
    outs(%c : tensor<8x16xi32>) -> tensor<8x16xi32>
  return %y : tensor<8x16xi32>
}
"""
    draw = np.random.default_rng(2)
    a, b = (draw.integers(-8, 8, shape).astype(np.int8) for shape in ((8, 32), (32, 16)))
    kernel = tcir.compile(text, "simt-elementwise")
    got = kernel.run(a.astype(ml_dtypes.int4), b.astype(ml_dtypes.int4))
    assert np.array_equal(got, a.astype(np.int32) @ b.astype(np.int32))
    report = tcir.validate(text, "simt-elementwise")
    assert report.verdict == "held", report


def weight_only(element: str) -> str:
    """x · ((q - z) s)ᵀ with a zero point and a scale for each 32 of K, as iree#12859 has it."""
    return f"""
#q = affine_map<(n, g, k) -> (n, g, k)>
#s = affine_map<(n, g, k) -> (n, g)>
func.func @f(%x: tensor<64x128xf16>, %q: tensor<64x4x32x{element}>, %z: tensor<64x4x{element}>,
    %s: tensor<64x4xf16>) -> tensor<64x64xf32> {{
  %e = tensor.empty() : tensor<64x4x32xf16>
  %w = linalg.generic {{indexing_maps = [#q, #s, #s, #q],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%q, %z, %s : tensor<64x4x32x{element}>, tensor<64x4x{element}>, tensor<64x4xf16>)
      outs(%e : tensor<64x4x32xf16>) {{
  ^bb0(%code: {element}, %zero: {element}, %scale: f16, %o: f16):
    %0 = arith.uitofp %code : {element} to f16
    %1 = arith.uitofp %zero : {element} to f16
    %2 = arith.subf %0, %1 : f16
    %3 = arith.mulf %2, %scale : f16
    linalg.yield %3 : f16
  }} -> tensor<64x4x32xf16>
  %rows = tensor.collapse_shape %w [[0], [1, 2]] : tensor<64x4x32xf16> into tensor<64x128xf16>
  %t = tensor.empty() : tensor<128x64xf16>
  %b = linalg.transpose ins(%rows : tensor<64x128xf16>) outs(%t : tensor<128x64xf16>)
    permutation = [1, 0]
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %b : tensor<64x128xf16>, tensor<128x64xf16>)
    outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}}
"""


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("element", ["i4", "i2"])
def test_weights_in_groups(element: str, target: str) -> None:
    dtype, bits = TYPES[element]
    draw = np.random.default_rng(1)
    q = draw.integers(0, 1 << bits, (64, 4, 32), dtype=np.uint8)
    z = draw.integers(0, 1 << bits, (64, 4), dtype=np.uint8)
    s = draw.standard_normal((64, 4)).astype(np.float16)
    x = draw.standard_normal((64, 128)).astype(np.float16)
    got = tcir.compile(weight_only(element), "layers", target=target).run(
        x, q.view(dtype), z.view(dtype), s
    )
    w = ((q.astype(np.float16) - z[..., None].astype(np.float16)) * s[..., None]).reshape(64, 128)
    wanted = x.astype(np.float64) @ w.astype(np.float64).T
    assert np.abs(got - wanted).max() <= 1e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("element", ["i4", "i2"])
def test_weights_in_groups_at_every_level(element: str) -> None:
    report = tcir.validate(weight_only(element), "layers")
    assert report.verdict == "held", report
