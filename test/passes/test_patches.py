"""Convolutions of patches as products, against numpy's windows, and through all levels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec
from tcir.interp.tensor import run
from tcir.passes.module.rewrites.patches import multiply_patches

Array = np.ndarray[Any, Any]
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


@dataclass(frozen=True)
class Layer:
    """A convolution of 2 images of 3 channels to 16; of each dimension pixels, taps, stride,
    dilation. first: whether channels are first; pads: zeros on all sides."""

    pixels: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...] = ()
    first: bool = True
    element: str = "f16"
    pads: int = 0

    @property
    def steps(self) -> tuple[int, ...]:
        return self.dilations or (1,) * len(self.taps)

    @property
    def wide(self) -> tuple[int, ...]:
        return tuple(n + 2 * self.pads for n in self.pixels)

    @property
    def out(self) -> tuple[int, ...]:
        each = zip(self.wide, self.taps, self.strides, self.steps, strict=True)
        return tuple((n - (k - 1) * d - 1) // s + 1 for n, k, s, d in each)

    def ordered(self, of: tuple[int, ...], *others: int) -> tuple[int, ...]:
        """A shape with its channels first or last; of a filter the last of `others` is its K."""
        if self.first:
            return (*others, *of)
        return (others[0], *of, others[1])

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        filters = (16, 3, *self.taps) if self.first else (*self.taps, 3, 16)
        image, padded, out = (
            self.ordered(n, 2, c) for n, c in ((self.pixels, 3), (self.wide, 3), (self.out, 16))
        )
        return [image, padded, filters, out]

    def text(self) -> str:
        x, p, w = (kind(each, self.element) for each in self.shapes[:3])
        y, rank = kind(self.shapes[3], "f32"), len(self.taps)
        name = {
            (1, True): "conv_1d_ncw_fcw",
            (1, False): "conv_1d_nwc_wcf",
            (2, True): "conv_2d_nchw_fchw",
            (2, False): "conv_2d_nhwc_hwcf",
            (3, True): "conv_3d_ncdhw_fcdhw",
            (3, False): "conv_3d_ndhwc_dhwcf",
        }[rank, self.first]
        sides = words(self.ordered((self.pads,) * rank, 0, 0))
        indices = ", ".join(f"%i{n}: index" for n in range(rank + 2))
        return f"""
func.func @f(%x: {x}, %w: {w}) -> {y} {{
  %n = arith.constant 0.0 : {self.element}
  %p = tensor.pad %x low[{sides}] high[{sides}] {{
  ^bb0({indices}):
    tensor.yield %n : {self.element}
  }} : {x} to {p}
  %z = arith.constant dense<0.0> : {y}
  %y = linalg.{name} {{strides = dense<[{words(self.strides)}]> : tensor<{rank}xi64>,
      dilations = dense<[{words(self.steps)}]> : tensor<{rank}xi64>}}
      ins(%p, %w : {p}, {w}) outs(%z : {y}) -> {y}
  return %y : {y}
}}"""

    def inputs(self) -> list[Array]:
        draw = np.random.default_rng(0)
        shapes = (self.shapes[0], self.shapes[2])
        return [draw.integers(-4, 5, each).astype(TYPES[self.element]) for each in shapes]

    def expected(self, x: Array, w: Array) -> Array:
        x, w = x.astype(float), w.astype(float)
        if not self.first:
            x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
        x = np.pad(x, [(0, 0), (0, 0), *[(self.pads, self.pads)] * len(self.taps)])
        y = np.zeros((2, 16, *self.out))
        for tap in product(*map(range, self.taps)):
            each = zip(tap, self.steps, self.out, self.strides, strict=True)
            where = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in each)
            y += np.einsum("nc...,kc->nk...", x[:, :, *where], w[:, :, *tap])
        return y if self.first else np.moveaxis(y, 1, -1)


def kind(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def words(numbers: Any) -> str:
    return ", ".join(map(str, numbers))


APART = [
    Layer((28, 42), (14, 14), (14, 14)),
    Layer((32, 32), (16, 16), (16, 16), element="bf16"),
    Layer((32, 64), (32, 32), (32, 32), element="f32"),
    Layer((32, 32), (16, 16), (16, 16), first=False),
    Layer((31, 40), (9, 9), (9, 9)),  # pixels behind the last patch
    Layer((23, 18), (5, 9), (12, 9), first=False),  # gaps; the last patch has no whole stride
    Layer((40, 33), (3, 2), (16, 11), (5, 10)),  # dilated within a stride
    Layer((60,), (10,), (10,)),
    Layer((60,), (7,), (10,), first=False),
    Layer((4, 8, 8), (2, 4, 4), (2, 4, 4)),
    Layer((14, 30), (16, 16), (16, 16), pads=1),
]
KEPT = [
    Layer((26, 26), (16, 16), (10, 10)),  # windows overlap
    Layer((24, 24), (8, 8), (8, 8)),  # TMA steps over as many
    Layer((5, 8, 8), (3, 4, 4), (2, 4, 4)),  # overlap in one dimension
    Layer((40, 40), (3, 3), (16, 16), (8, 8)),  # a window of 17
]


def rewritten(layer: Layer) -> tuple[str, Array]:
    """The module behind the rewriting, and its result."""
    with ir.Context() as context:
        tc.load(context)
        module = ir.Module.parse(layer.text())
        with ir.Location.unknown():
            multiply_patches(module)
        assert module.operation.verify()
        spec = OutputSpec(layer.shapes[3], np.dtype(np.float32))
        return str(module), run(module, "f", layer.inputs(), [spec]).outputs[0]


@pytest.mark.parametrize("layer", [*APART, *KEPT], ids=str)
def test_values(layer: Layer) -> None:
    text, result = rewritten(layer)
    assert ("linalg.conv" in text) == (layer in KEPT)
    np.testing.assert_array_equal(result, layer.expected(*layer.inputs()))


@pytest.mark.parametrize("layer", [*APART, *KEPT], ids=str)
def test_the_kernel(layer: Layer) -> None:
    kernel = tcir.compile(layer.text(), "layers")
    inputs, result = layer.inputs(), np.zeros(layer.shapes[3], np.float32)
    kernel(*inputs, result)
    np.testing.assert_array_equal(result, layer.expected(*inputs))
    assert "tcgen05.mma" in kernel.ptx or layer in (KEPT[0], KEPT[2], KEPT[3])


@pytest.mark.parametrize("layer", [APART[0], APART[5], APART[6], APART[8], KEPT[0]], ids=str)
def test_every_level(layer: Layer) -> None:
    report = tcir.validate(layer.text(), "layers", strict=True)
    assert report.verdict == "held", report


def test_of_arrays() -> None:
    layer = APART[3]
    x, w = layer.inputs()
    made = tcir.compile_conv2d(x, w, stride=16)
    np.testing.assert_array_equal(made.run(x, w), layer.expected(x, w))
