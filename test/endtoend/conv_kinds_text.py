"""Named convolutions of `linalg` of every kind: text, and numpy's result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .oracle import DTYPES, Array


@dataclass(frozen=True)
class Named:
    """A named op: padding, bias along its channels, relu, rounded to the type of its operands.

    spatial: dimensions of the input that windows slide over
    einsum:  input with its windows (taps last), filter, result
    x, w:    shapes; padding comes on top, `low` below and `high` above
    """

    op: str
    spatial: tuple[int, ...]
    einsum: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    dilation: int = 1
    low: int = 0
    high: int = 0

    def __str__(self) -> str:
        return f"{self.op} of {'x'.join(map(str, self.x))}"

    @property
    def channels(self) -> tuple[int, ...]:
        """Dimensions of the result that index the bias."""
        taken, result = self.einsum.split(",")[0], self.einsum.partition("->")[2]
        moved = "n" + "".join(taken[d] for d in self.spatial)
        return tuple(d for d, letter in enumerate(result) if letter not in moved)

    def inputs(self, element: str) -> list[Array]:
        """Whole numbers but 0: input, filter, and bias in the accumulator's type."""
        total = "i32" if element == "i8" else "f32"
        shapes = [self.x, self.w, tuple(self.out[d] for d in self.channels)]
        return [
            _whole(shape, seed).astype(DTYPES[kind])
            for seed, (shape, kind) in enumerate(zip(shapes, (element, element, total)))
        ]

    def want(self, x: Array, w: Array, bias: Array, element: str) -> Array:
        """numpy's sum in float64, rounded once."""
        sums = np.einsum(self.einsum, self._windows(x.astype(np.float64)), w.astype(np.float64))
        extents = [n if d in self.channels else 1 for d, n in enumerate(sums.shape)]
        sums = np.maximum(sums + bias.astype(np.float64).reshape(extents), 0)
        return np.asarray(sums).astype(DTYPES[_result(element)])

    @property
    def out(self) -> tuple[int, ...]:
        """Shape of the result."""
        windows = self._windows(np.zeros(self.x))
        return tuple(np.einsum(self.einsum, windows, np.zeros(self.w)).shape)

    def _windows(self, x: Array) -> Array:
        ends = [(self.low, self.high) if d in self.spatial else (0, 0) for d in range(x.ndim)]
        last = self.einsum.split(",")[1].partition("->")[0]
        taps = self.einsum.split(",")[0][len(self.x) :]
        window = [(self.w[last.index(tap)] - 1) * self.dilation + 1 for tap in taps]
        view = np.lib.stride_tricks.sliding_window_view(np.pad(x, ends), window, self.spatial)
        steps = [
            slice(None, None, self.stride) if d in self.spatial else slice(None)
            for d in range(x.ndim)
        ]
        return view[(*steps, *[slice(None, None, self.dilation)] * len(window))]

    def text(self, element: str) -> str:
        """The function."""
        total, result = ("i32" if element == "i8" else "f32"), _result(element)
        zero = "0" if total == "i32" else "0.0"
        rank, grown = len(self.x), self.low + self.high
        padded = tuple(n + grown * (d in self.spatial) for d, n in enumerate(self.x))
        low, high = (
            [end * (d in self.spatial) for d in range(rank)] for end in (self.low, self.high)
        )
        index = ", ".join(f"%i{d}: index" for d in range(rank))
        window = f"vector<{len(self.spatial)}xi64>"
        loops = [f"d{d}" for d in range(len(self.out))]
        same = f"({', '.join(loops)}) -> ({', '.join(loops)})"
        along = f"({', '.join(loops)}) -> ({', '.join(f'd{d}' for d in self.channels)})"
        maps = ", ".join(f"affine_map<{each}>" for each in (same, along, same))
        parallel = ", ".join(['"parallel"'] * len(loops))
        x, w, p = (_tensor(shape, element) for shape in (self.x, self.w, padded))
        b = _tensor(tuple(self.out[d] for d in self.channels), total)
        s, o = _tensor(self.out, total), _tensor(self.out, result)
        kind = "i" if total == "i32" else "f"
        largest = "maxsi" if total == "i32" else "maximumf"
        rounding = f"%t = arith.truncf %r : {total} to {result}"
        rounding, rounded = ("", "%r") if result == total else (rounding, "%t")
        own = "0" if element == "i8" else "0.0"
        return f"""
func.func @f(%x: {x}, %w: {w}, %b: {b}) -> {o} {{
  %own = arith.constant {own} : {element}
  %zero = arith.constant {zero} : {total}
  %p = tensor.pad %x low{low} high{high} {{
  ^bb0({index}):
    tensor.yield %own : {element}
  }} : {x} to {p}
  %z = arith.constant dense<{zero}> : {s}
  %c = linalg.{self.op} {{strides = dense<{self.stride}> : {window},
      dilations = dense<{self.dilation}> : {window}}} ins(%p, %w : {p}, {w}) outs(%z : {s}) -> {s}
  %e = tensor.empty() : {o}
  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}]}}
      ins(%c, %b : {s}, {b}) outs(%e : {o}) {{
  ^bb0(%s: {total}, %v: {total}, %u: {result}):
    %a = arith.add{kind} %s, %v : {total}
    %r = arith.{largest} %a, %zero : {total}
    {rounding}
    linalg.yield {rounded} : {result}
  }} -> {o}
  return %y : {o}
}}
"""


NAMED = [
    Named("conv_1d_nwc_wcf", (1,), "nqcs,sck->nqk", (2, 37, 16), (3, 16, 32), 2, 2, 1, 2),
    Named("conv_2d_nhwgc_gfhwc", (1, 2), "nhwgcrs,gkrsc->nhwgk", (2, 9, 9, 2, 24),
          (2, 48, 3, 3, 24), 2, 1, 1, 1),
    Named("conv_2d_ngchw_fgchw", (3, 4), "ngchwrs,kgcrs->ngkhw", (1, 3, 16, 10, 10),
          (16, 3, 16, 3, 3), 1, 2, 2, 1),
    Named("depthwise_conv_1d_nwc_wc", (1,), "nqcs,sc->nqc", (2, 23, 24), (5, 24), 1, 2, 3, 1),
    Named("depthwise_conv_2d_nhwc_hwc", (1, 2), "nhwcrs,rsc->nhwc", (2, 9, 9, 24), (3, 3, 24), 2,
          1, 1, 1),
    Named("depthwise_conv_2d_nhwc_hwcm", (1, 2), "nhwcrs,rscm->nhwcm", (1, 9, 9, 8), (3, 3, 8, 2),
          1, 2, 2, 1),
    Named("conv_2d_nhwgc_gfhwc", (1, 2), "nhwgcrs,gkrsc->nhwgk", (1, 8, 8, 4, 4), (4, 8, 3, 3, 4),
          1, 1, 1, 1),
    Named("conv_3d_ndhwc_dhwcf", (1, 2, 3), "ndhwctrs,trsck->ndhwk", (1, 3, 4, 4, 2),
          (3, 3, 3, 2, 4), 1, 1, 1, 1),
]  # fmt: skip
"""Named convolutions: the first three run on tensor cores, the others on CUDA cores."""
ON_TENSOR_CORES = 3


def _tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def _result(element: str) -> str:
    return {"i8": "i32", "f8E4M3FN": "f16"}.get(element, element)


def _whole(shape: tuple[int, ...], seed: int) -> Array:
    generator = np.random.default_rng(seed)
    found: np.ndarray[Any, Any] = generator.integers(1, 4, shape)
    return found * generator.choice([-1, 1], shape)
