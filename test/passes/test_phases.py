"""Transposed convolutions without zeros between their pixels, against sums over what each pixel
adds to, and through all levels."""

# ruff: noqa: E501  (lines of MLIR)

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec
from tcir.interp.tensor import run
from tcir.passes.module.rewrites.phases import split_phases

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Layer:
    """A transposed convolution of 8 channels a group to 8, channels first; of each dimension the
    pixels, the taps, the stride, the zeros taken away in front, those added behind."""

    pixels: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    more: tuple[int, ...]
    groups: int = 1
    fill: str = "0.0"
    start: str = "0.0"

    @property
    def out(self) -> tuple[int, ...]:
        each = zip(self.pixels, self.taps, self.strides, self.padding, self.more, strict=True)
        return tuple((n - 1) * s + k - 2 * p + m for n, k, s, p, m in each)

    def text(self) -> str:
        rank, groups = len(self.pixels), self.groups
        wide = [n + k - 1 for n, k in zip(self.out, self.taps, strict=True)]
        offsets = [k - 1 - p for k, p in zip(self.taps, self.padding, strict=True)]
        channels = 8 * groups
        x, between = kind(1, channels, *self.pixels), kind(1, channels, *wide)
        w, out = kind(8, 8, *self.taps), kind(1, channels, *self.out, element="f32")
        lead = ", ".join(["1"] * 2)
        slice_ = f"[0, 0, {words(offsets)}] [1, {channels}, {words(self.pixels)}] [{lead}, {words(self.strides)}]"
        name = {1: "conv_1d_ncw_fcw", 2: "conv_2d_nchw_fchw"}[rank]
        if groups == 1:
            conv = f"%y = linalg.{name} ins(%s, %w : {between}, {w}) outs(%i : {out}) -> {out}"
        else:
            w = kind(groups, 8, 8, *self.taps)
            apart, sums = kind(1, groups, 8, *wide), kind(1, groups, 8, *self.out, element="f32")
            split = "[[0], [1, 2], [3], [4]]"
            conv = f"""%sg = tensor.expand_shape %s {split} output_shape [1, {groups}, 8, {words(wide)}] : {between} into {apart}
  %ig = tensor.expand_shape %i {split} output_shape [1, {groups}, 8, {words(self.out)}] : {out} into {sums}
  %yg = linalg.conv_2d_ngchw_gfchw ins(%sg, %w : {apart}, {w}) outs(%ig : {sums}) -> {sums}
  %y = tensor.collapse_shape %yg {split} : {sums} into {out}"""
        return f"""
func.func @f(%x: {x}, %w: {w}) -> {out} {{
  %zero = arith.constant {self.fill} : f16
  %start = arith.constant {self.start} : f32
  %e = tensor.empty() : {between}
  %b = linalg.fill ins(%zero : f16) outs(%e : {between}) -> {between}
  %s = tensor.insert_slice %x into %b{slice_} : {x} into {between}
  %o = tensor.empty() : {out}
  %i = linalg.fill ins(%start : f32) outs(%o : {out}) -> {out}
  {conv}
  return %y : {out}
}}
"""

    def inputs(self) -> tuple[Array, Array]:
        draw = np.random.default_rng(0)
        x = draw.integers(-4, 5, (1, 8 * self.groups, *self.pixels)).astype(np.float16)
        shape = (8, 8, *self.taps) if self.groups == 1 else (self.groups, 8, 8, *self.taps)
        return x, draw.integers(-4, 5, shape).astype(np.float16)

    def expected(self, x: Array, w: Array) -> Array:
        """Each pixel times each tap is added where it belongs; `w` is turned, as in a convolution."""
        x, w = x.astype(float), w.astype(float).reshape(self.groups, 8, 8, *self.taps)
        size = [
            (n - 1) * s + k + m
            for n, k, s, m in zip(self.pixels, self.taps, self.strides, self.more, strict=True)
        ]
        result = np.zeros((1, self.groups, 8, *size))
        parts = x.reshape(1, self.groups, 8, *self.pixels)
        for tap in product(*map(range, self.taps)):
            turned = tuple(k - 1 - t for k, t in zip(self.taps, tap, strict=True))
            where = tuple(
                slice(t, t + (n - 1) * s + 1, s)
                for t, n, s in zip(tap, self.pixels, self.strides, strict=True)
            )
            result[:, :, :, *where] += np.einsum("ngc...,gkc->ngk...", parts, w[:, :, :, *turned])
        cut = tuple(slice(p, p + n) for p, n in zip(self.padding, self.out, strict=True))
        return result[:, :, :, *cut].reshape(1, -1, *self.out) + float(self.start)


def kind(*shape: int, element: str = "f16") -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def words(numbers: Any) -> str:
    return ", ".join(map(str, numbers))


def executed(layer: Layer) -> tuple[str, Array]:
    """The module behind the rewriting, and its result."""
    inputs = list(layer.inputs())
    with ir.Context() as context:
        tc.load(context)
        module = ir.Module.parse(layer.text())
        with ir.Location.unknown():
            split_phases(module)
        module.operation.verify()
        found = run(
            module, "f", inputs, [OutputSpec((1, 8 * layer.groups, *layer.out), np.dtype("f4"))]
        )
        return str(module), found.outputs[0]


EVEN = [
    Layer((5,), (2,), (2,), (0,), (0,)),
    Layer((5,), (4,), (2,), (1,), (0,)),
    Layer((5,), (4,), (2,), (1,), (1,)),
    Layer((5,), (6,), (3,), (2,), (1,)),
    Layer((5,), (6,), (3,), (5,), (2,)),
    Layer((5,), (6,), (2,), (0,), (1,)),
    Layer((5,), (3,), (3,), (1,), (0,), start="2.0"),
    Layer((3, 4), (4, 2), (2, 2), (1, 0), (0, 1)),
    Layer((3, 4), (3, 4), (1, 2), (1, 1), (0, 0)),
    Layer((3, 4), (4, 4), (2, 2), (1, 1), (0, 0), groups=2),
    Layer((2, 3), (2, 2), (2, 2), (0, 0), (0, 0), groups=3),
]
KEPT = [
    Layer((5,), (3,), (2,), (1,), (1,)),  # phases of one tap and of two
    Layer((5,), (3,), (1,), (1,), (0,)),  # nothing between the pixels
    Layer((3, 4), (4, 3), (2, 2), (0, 0), (0, 0)),
    Layer((5,), (4,), (2,), (1,), (0,), fill="1.0"),
    Layer((5,), (4,), (2,), (1,), (0,), fill="-0.0"),
]


@pytest.mark.parametrize("layer", EVEN, ids=str)
def test_no_zeros_are_multiplied(layer: Layer) -> None:
    text, result = executed(layer)
    assert "insert_slice" not in text
    np.testing.assert_array_equal(result, layer.expected(*layer.inputs()))


@pytest.mark.parametrize("layer", KEPT, ids=str)
def test_others_stay(layer: Layer) -> None:
    text, result = executed(layer)
    assert text.count("insert_slice") == 1 and "tensor.extract" not in text
    if float(layer.fill) == 0:
        np.testing.assert_array_equal(result, layer.expected(*layer.inputs()))


@pytest.mark.parametrize("layer", [*EVEN[6:8], *EVEN[9:], KEPT[0], KEPT[2]], ids=str)
def test_every_level(layer: Layer) -> None:
    report = tcir.validate(layer.text(), "layers", strict=True)
    assert report.verdict == "held", report


@pytest.mark.parametrize("layer", [EVEN[4], EVEN[10], KEPT[0]], ids=str)
def test_the_kernel(layer: Layer) -> None:
    kernel = tcir.compile(layer.text(), "layers")
    inputs = layer.inputs()
    result = np.zeros((1, 8 * layer.groups, *layer.out), np.float32)
    kernel(*inputs, result)
    np.testing.assert_array_equal(result, layer.expected(*inputs))
