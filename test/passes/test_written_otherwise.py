"""Ops that are other spellings of what pipelines take, or products that no tensor core takes,
against numpy, and through all levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A function; kinds: of its inputs; expected: its result, by numpy in float64 or int64."""

    name: str
    text: str
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    result: tuple[tuple[int, ...], str]
    expected: Callable[..., Array]

    def drawn(self) -> list[Array]:
        draw = np.random.default_rng(0)
        own = {"e4": ml_dtypes.float8_e4m3fn}
        return [draw.integers(-4, 5, n).astype(own.get(kind, kind)) for n, kind in self.inputs]


def windows(x: Array, w: Array) -> Array:
    seen = np.lib.stride_tricks.sliding_window_view(x.astype(float), w.shape)
    return np.einsum(seen, [*range(2 * w.ndim)], w.astype(float), [*range(w.ndim, 2 * w.ndim)])


def convolved(x: Array, w: Array) -> Array:
    seen = np.lib.stride_tricks.sliding_window_view(x.astype(float), (3, 3), (1, 2))
    return np.einsum("npqcrs,krsc->npqk", seen, w.astype(float))


def padded_conv(x: Array, w: Array) -> Array:
    wide = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=-1)
    return convolved(wide, w)


def packed(x: Array, value: float = 0.0) -> Array:
    wide = np.full((32, 64), value)
    wide[: x.shape[0], : x.shape[1]] = x
    return wide.reshape(4, 8, 4, 16)


CASES = [
    Case("conv_1d", """
  %z = arith.constant dense<0.0> : tensor<32xf32>
  %y = linalg.conv_1d ins(%0, %1 : tensor<34xf16>, tensor<3xf16>) outs(%z : tensor<32xf32>)
    -> tensor<32xf32>""",
        (((34,), "f2"), ((3,), "f2")), ((32,), "f4"), windows),
    Case("conv_2d", """
  %z = arith.constant dense<0.0> : tensor<8x32xf32>
  %y = linalg.conv_2d ins(%0, %1 : tensor<10x34xf16>, tensor<3x3xf16>)
    outs(%z : tensor<8x32xf32>) -> tensor<8x32xf32>""",
        (((10, 34), "f2"), ((3, 3), "f2")), ((8, 32), "f4"), windows),
    Case("mmt4d", """
  %z = arith.constant dense<0.0> : tensor<2x3x8x8xf32>
  %y = linalg.mmt4d ins(%0, %1 : tensor<2x4x8x16xf16>, tensor<3x4x8x16xf16>)
    outs(%z : tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>""",
        (((2, 4, 8, 16), "f2"), ((3, 4, 8, 16), "f2")), ((2, 3, 8, 8), "f4"),
        lambda a, b: np.einsum("mkac,nkbc->mnab", a.astype(float), b.astype(float))),
    Case("a vector for all rows", """
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%0, %1 : tensor<64xf16>, tensor<64x16xf16>) outs(%z : tensor<8x16xf32>)
    -> tensor<8x16xf32>""",
        (((64,), "f2"), ((64, 16), "f2")), ((8, 16), "f4"),
        lambda a, b: np.tile(a.astype(float) @ b.astype(float), (8, 1))),
    Case("pack", """
  %e = tensor.empty() : tensor<4x4x8x16xf32>
  %y = linalg.pack %0 inner_dims_pos = [0, 1] inner_tiles = [8, 16] into %e
    : tensor<32x64xf32> -> tensor<4x4x8x16xf32>""",
        (((32, 64), "f4"),), ((4, 4, 8, 16), "f4"), lambda x: packed(x).transpose(0, 2, 1, 3)),
    Case("pack with padding", """
  %p = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4x4x16x8xf32>
  %y = linalg.pack %0 padding_value(%p : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
    inner_tiles = [16, 8] into %e : tensor<30x60xf32> -> tensor<4x4x16x8xf32>""",
        (((30, 60), "f4"),), ((4, 4, 16, 8), "f4"), lambda x: packed(x, 2.0).transpose(2, 0, 3, 1)),
    Case("unpack", """
  %e = tensor.empty() : tensor<30x60xf32>
  %y = linalg.unpack %0 outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [16, 8]
    into %e : tensor<4x4x16x8xf32> -> tensor<30x60xf32>""",
        (((4, 4, 16, 8), "f4"),), ((30, 60), "f4"),
        lambda x: x.transpose(1, 3, 0, 2).reshape(32, 64)[:30, :60]),
    Case("tiles of rows", """
  %e = tensor.empty() : tensor<4x6x8xf32>
  %y = linalg.pack %0 inner_dims_pos = [0] inner_tiles = [8] into %e
    : tensor<32x6xf32> -> tensor<4x6x8xf32>""",
        (((32, 6), "f4"),), ((4, 6, 8), "f4"), lambda x: x.reshape(4, 8, 6).transpose(0, 2, 1)),
    Case("a cast and back", """
  %d = tensor.cast %0 : tensor<8x64xf16> to tensor<?x64xf16>
  %b = tensor.cast %d : tensor<?x64xf16> to tensor<8x64xf16>
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %y = linalg.matmul ins(%b, %1 : tensor<8x64xf16>, tensor<64x16xf16>)
    outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>""",
        (((8, 64), "f2"), ((64, 16), "f2")), ((8, 16), "f4"),
        lambda a, b: a.astype(float) @ b.astype(float)),
    Case("padding with -1", """
  %n = arith.constant -1.0 : f16
  %p = tensor.pad %0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %n : f16
  } : tensor<1x8x8x16xf16> to tensor<1x10x10x16xf16>
  %z = arith.constant dense<0.0> : tensor<1x8x8x16xf32>
  %y = linalg.conv_2d_nhwc_fhwc ins(%p, %1 : tensor<1x10x10x16xf16>, tensor<16x3x3x16xf16>)
    outs(%z : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>""",
        (((1, 8, 8, 16), "f2"), ((16, 3, 3, 16), "f2")), ((1, 8, 8, 16), "f4"), padded_conv),
    Case("a padded product", """
  %n = arith.constant 0.0 : f16
  %p = tensor.pad %0 low[0, 2] high[3, 6] {
  ^bb0(%i0: index, %i1: index):
    tensor.yield %n : f16
  } : tensor<5x56xf16> to tensor<8x64xf16>
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %y = linalg.matmul ins(%p, %1 : tensor<8x64xf16>, tensor<64x16xf16>)
    outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>""",
        (((5, 56), "f2"), ((64, 16), "f2")), ((8, 16), "f4"),
        lambda a, b: np.pad(a.astype(float), [(0, 3), (2, 6)]) @ b.astype(float)),
    Case("reflect padding", """
  %l = tensor.extract_slice %0[0, 0, 1, 0] [1, 8, 1, 16] [1, 1, 1, 1]
    : tensor<1x8x8x16xf16> to tensor<1x8x1x16xf16>
  %r = tensor.extract_slice %0[0, 0, 6, 0] [1, 8, 1, 16] [1, 1, 1, 1]
    : tensor<1x8x8x16xf16> to tensor<1x8x1x16xf16>
  %e = tensor.empty() : tensor<1x8x10x16xf16>
  %a = tensor.insert_slice %l into %e[0, 0, 0, 0] [1, 8, 1, 16] [1, 1, 1, 1]
    : tensor<1x8x1x16xf16> into tensor<1x8x10x16xf16>
  %b = tensor.insert_slice %0 into %a[0, 0, 1, 0] [1, 8, 8, 16] [1, 1, 1, 1]
    : tensor<1x8x8x16xf16> into tensor<1x8x10x16xf16>
  %p = tensor.insert_slice %r into %b[0, 0, 9, 0] [1, 8, 1, 16] [1, 1, 1, 1]
    : tensor<1x8x1x16xf16> into tensor<1x8x10x16xf16>
  %z = arith.constant dense<0.0> : tensor<1x6x8x16xf32>
  %y = linalg.conv_2d_nhwc_fhwc ins(%p, %1 : tensor<1x8x10x16xf16>, tensor<16x3x3x16xf16>)
    outs(%z : tensor<1x6x8x16xf32>) -> tensor<1x6x8x16xf32>""",
        (((1, 8, 8, 16), "f2"), ((16, 3, 3, 16), "f2")), ((1, 6, 8, 16), "f4"),
        lambda x, w: convolved(np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)], "reflect"), w)),
    Case("a filter with zeros between", """
  %n = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<16x3x3x16xf16>
  %k = linalg.fill ins(%n : f16) outs(%e : tensor<16x3x3x16xf16>) -> tensor<16x3x3x16xf16>
  %v = tensor.insert_slice %1 into %k[0, 0, 0, 0] [16, 2, 2, 16] [1, 2, 2, 1]
    : tensor<16x2x2x16xf16> into tensor<16x3x3x16xf16>
  %z = arith.constant dense<0.0> : tensor<1x6x6x16xf32>
  %y = linalg.conv_2d_nhwc_fhwc ins(%0, %v : tensor<1x8x8x16xf16>, tensor<16x3x3x16xf16>)
    outs(%z : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>""",
        (((1, 8, 8, 16), "f2"), ((16, 2, 2, 16), "f2")), ((1, 6, 6, 16), "f4"),
        lambda x, w: convolved(x, np.insert(np.insert(w, 1, 0, 1), 1, 0, 2))),
    Case("a cache that is written", """
  %c = tensor.insert_slice %1 into %0[0, 7, 0] [2, 1, 64] [1, 1, 1]
    : tensor<2x1x64xf16> into tensor<2x32x64xf16>
  %e = tensor.empty() : tensor<2x64x32xf16>
  %t = linalg.transpose ins(%c : tensor<2x32x64xf16>) outs(%e : tensor<2x64x32xf16>)
    permutation = [0, 2, 1]
  %z = arith.constant dense<0.0> : tensor<2x8x32xf32>
  %y = linalg.batch_matmul ins(%2, %t : tensor<2x8x64xf16>, tensor<2x64x32xf16>)
    outs(%z : tensor<2x8x32xf32>) -> tensor<2x8x32xf32>""",
        (((2, 32, 64), "f2"), ((2, 1, 64), "f2"), ((2, 8, 64), "f2")), ((2, 8, 32), "f4"),
        lambda c, new, q: q.astype(float)
        @ np.concatenate([c[:, :7], new, c[:, 8:]], 1).astype(float).transpose(0, 2, 1)),
    Case("zero points of tensors", """
  %a = tensor.extract %2[] : tensor<i32>
  %b = tensor.extract %3[] : tensor<i32>
  %c = arith.muli %b, %b : i32
  %z = arith.constant dense<0> : tensor<8x16xi32>
  %y = linalg.quantized_matmul ins(%0, %1, %a, %c : tensor<8x64xi8>, tensor<64x16xi8>, i32, i32)
    outs(%z : tensor<8x16xi32>) -> tensor<8x16xi32>""",
        (((8, 64), "i1"), ((64, 16), "i1"), ((), "i4"), ((), "i4")), ((8, 16), "i4"),
        lambda a, b, az, bz: (a.astype(int) - az) @ (b.astype(int) - bz * bz)),
    Case("scales of f32 for 128", """
  %z = arith.constant dense<0.0> : tensor<8x2x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, b, n, g, k) -> (m, g, k)>,
      affine_map<(m, b, n, g, k) -> (m, g)>, affine_map<(m, b, n, g, k) -> (b, n, g, k)>,
      affine_map<(m, b, n, g, k) -> (b, g)>, affine_map<(m, b, n, g, k) -> (m, b, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%0, %1, %2, %3 : tensor<8x2x128xf8E4M3FN>, tensor<8x2xf32>, tensor<2x16x2x128xf8E4M3FN>,
      tensor<2x2xf32>) outs(%z : tensor<8x2x16xf32>) {
  ^bb0(%a: f8E4M3FN, %s: f32, %b: f8E4M3FN, %t: f32, %o: f32):
    %c = arith.extf %a : f8E4M3FN to f32
    %d = arith.extf %b : f8E4M3FN to f32
    %e = arith.mulf %c, %s : f32
    %f = arith.mulf %d, %t : f32
    %g = arith.mulf %e, %f : f32
    %h = arith.addf %o, %g : f32
    linalg.yield %h : f32
  } -> tensor<8x2x16xf32>""",
        (((8, 2, 128), "e4"), ((8, 2), "f4"), ((2, 16, 2, 128), "e4"), ((2, 2), "f4")),
        ((8, 2, 16), "f4"),
        lambda *each: np.einsum("mgk,mg,bngk,bg->mbn", *(a.astype(float) for a in each))),
    Case("scales of f32 for 16 x 32", """
  %z = arith.constant dense<0.0> : tensor<8x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (m, k floordiv 32)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (n floordiv 16, k floordiv 32)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%0, %1, %2, %3 : tensor<8x64xf8E4M3FN>, tensor<8x2xf32>, tensor<32x64xf8E4M3FN>,
      tensor<2x2xf32>) outs(%z : tensor<8x32xf32>) {
  ^bb0(%a: f8E4M3FN, %s: f32, %b: f8E4M3FN, %t: f32, %o: f32):
    %c = arith.extf %a : f8E4M3FN to f32
    %d = arith.extf %b : f8E4M3FN to f32
    %e = arith.mulf %c, %s : f32
    %f = arith.mulf %d, %t : f32
    %g = arith.mulf %e, %f : f32
    %h = arith.addf %o, %g : f32
    linalg.yield %h : f32
  } -> tensor<8x32xf32>""",
        (((8, 64), "e4"), ((8, 2), "f4"), ((32, 64), "e4"), ((2, 2), "f4")), ((8, 32), "f4"),
        lambda x, s, w, t: (x.astype(float) * s.repeat(32, 1))
        @ (w.astype(float) * t.repeat(16, 0).repeat(32, 1)).T),
    Case("a number in a body", """
  %a = tensor.extract %1[] : tensor<f32>
  %b = arith.addf %a, %a : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.mulf %i, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x16xf32>""",
        (((8, 16), "f4"), ((), "f4")), ((8, 16), "f4"), lambda x, s: x * 2 * s),
]  # fmt: skip
TYPES = {"f2": "f16", "f4": "f32", "i1": "i8", "i4": "i32", "e4": "f8E4M3FN"}


def kind(shape: tuple[int, ...], dtype: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{TYPES[dtype]}>"


def text(case: Case) -> str:
    names = [f"%{n}" for n in range(len(case.inputs))]
    body = case.text
    for name in names:
        body = body.replace(name, f"%arg{name[1:]}")
    given = ", ".join(f"%arg{n}: {kind(*each)}" for n, each in enumerate(case.inputs))
    result = kind(*case.result)
    return f"func.func @f({given}) -> {result} {{{body}\n  return %y : {result}\n}}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_kernel(case: Case) -> None:
    inputs = case.drawn()
    made = tcir.compile(text(case), "layers").run(*inputs)
    np.testing.assert_array_equal(made, case.expected(*inputs))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_level(case: Case) -> None:
    report = tcir.validate(text(case), "layers")
    assert report.verdict == "held", report


def test_elements_that_nothing_writes() -> None:
    """Slices into a tensor without values have to be all of it."""
    text = """
func.func @f(%x: tensor<4xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %a = tensor.insert_slice %x into %e[0] [4] [1] : tensor<4xf32> into tensor<9xf32>
  %y = tensor.insert_slice %x into %a[5] [4] [1] : tensor<4xf32> into tensor<9xf32>
  return %y : tensor<9xf32>
}"""
    with pytest.raises(tcir.PassError, match=r"got tensor\.empty"):
        tcir.compile(text, "simt-elementwise")
