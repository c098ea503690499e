"""Grouped, depthwise, 1-D and 3-D convolutions as PyTorch's importer writes them (`layers/*.mlir`).

Each goes through all levels and, from PTX, against numpy: on tensor cores, or on CUDA cores where
an mma has nothing to sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import arith

from .breaking import Edit, change_operand, run_broken, set_attribute
from .conv_kinds_text import NAMED, ON_TENSOR_CORES, Named
from .layers_text import grouped_pair, separable

Array = np.ndarray[Any, Any]
LAYERS = Path(__file__).parent / "layers"


@dataclass(frozen=True)
class Layer:
    """A layer: shapes of input and filter as in PyTorch; launches: kernels that it becomes."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    groups: int = 1
    stride: int = 1
    pad: int = 0
    dilation: int = 1
    dtype: Any = np.float16
    relu: bool = False
    launches: int = 1

    def inputs(self) -> list[Array]:
        """Small whole numbers but 0: every sum is exact."""
        shapes = (self.x, self.w, self.w[:1])
        return [whole(shape, seed).astype(self.dtype) for seed, shape in enumerate(shapes)]

    def want(self, x: Array, w: Array, b: Array) -> Array:
        """numpy's, group by group, rounded once."""
        ends = [(self.pad, self.pad)] * (len(self.x) - 2)
        x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *ends])
        window = [(n - 1) * self.dilation + 1 for n in self.w[2:]]
        axes = tuple(range(2, x.ndim))
        taps = np.lib.stride_tricks.sliding_window_view(x, window, axis=axes)
        at = [slice(None, None, self.stride)] * len(axes)
        tap = [slice(None, None, self.dilation)] * len(axes)
        taps = taps[(slice(None), slice(None), *at, *tap)]
        summed = (1, *range(2 + len(axes), 2 + 2 * len(axes))), (1, *axes)
        parts = zip(np.split(taps, self.groups, 1), np.split(w.astype(np.float64), self.groups))
        out = np.concatenate([np.tensordot(v, f, summed) for v, f in parts], axis=-1)
        out = np.moveaxis(out + b.astype(np.float64), -1, 1).astype(self.dtype)
        return np.maximum(out, 0) if self.relu else out


def whole(shape: tuple[int, ...], seed: int) -> Array:
    """Whole numbers from 1 to 3, of either sign."""
    generator = np.random.default_rng(seed)
    return generator.integers(1, 4, shape) * generator.choice([-1, 1], shape)


BF16 = ml_dtypes.bfloat16
TENSOR_CORES = {  # images, filter and result are repacked, channels last
    "conv1d": Layer((2, 8, 20), (16, 8, 3), pad=1, launches=4),
    "conv1d_dilated_bf16_relu": Layer(
        (1, 16, 37), (32, 16, 3), stride=2, dilation=2, dtype=BF16, relu=True, launches=4
    ),
    "conv_grouped": Layer((1, 16, 9, 9), (32, 8, 3, 3), 2, launches=4),
    "conv_grouped_padded_relu": Layer(
        (2, 32, 9, 9), (64, 16, 3, 3), 2, stride=2, pad=1, dtype=BF16, relu=True, launches=4
    ),
}
CUDA_CORES = {
    "conv_depthwise": Layer((1, 16, 9, 9), (16, 1, 3, 3), 16),
    "conv_depthwise_stride2_relu_f32": Layer(
        (1, 16, 9, 9), (16, 1, 3, 3), 16, stride=2, pad=1, dtype=np.float32, relu=True
    ),
    "conv_depthwise_multiplier": Layer((1, 8, 9, 9), (16, 1, 3, 3), 8, dilation=2),
    "conv_thin_groups": Layer((1, 16, 7, 7), (16, 4, 3, 3), 4, pad=1, relu=True),
    "conv1d_depthwise": Layer((1, 16, 20), (16, 1, 3), 16),
    "conv3d": Layer((1, 4, 3, 5, 5), (8, 4, 3, 3, 3), pad=1),
    "conv3d_stride2_relu": Layer((2, 4, 5, 7, 7), (8, 4, 3, 3, 3), stride=2, relu=True),
}
KINDS = TENSOR_CORES | CUDA_CORES
REAL = {
    "resnext50_conv5": Layer((1, 1024, 7, 7), (1024, 32, 3, 3), 32, pad=1, relu=True, launches=4),
    "mobilenet_depthwise": Layer((1, 512, 14, 14), (512, 1, 3, 3), 512, pad=1, relu=True),
}


def text(name: str) -> str:
    """The layer as imported."""
    return (LAYERS / f"{name}.mlir").read_text()


@pytest.mark.parametrize("name", [*KINDS, "conv_grouped_residual"])
def test_every_level(name: str) -> None:
    report = tcir.validate(text(name), "conv", orders=1, strict=True)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} <= {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings], str(report)


@pytest.mark.parametrize("name", KINDS | REAL)
def test_against_numpy(name: str) -> None:
    layer = (KINDS | REAL)[name]
    inputs = layer.inputs()
    want = layer.want(*inputs)
    out = np.zeros_like(want)
    kernel = tcir.compile(text(name), "conv")
    assert len(kernel.launches.launches) == layer.launches
    report = kernel(*inputs, out)
    assert not report.findings
    assert out.tobytes() == want.tobytes()
    assert bool(report.counters["mma"]) == (name in (*TENSOR_CORES, "resnext50_conv5"))


def test_residual_of_a_grouped_convolution() -> None:
    layer = Layer((1, 32, 9, 9), (32, 16, 3, 3), 2, pad=1)
    x, w, b = layer.inputs()
    r = whole(layer.x, 3).astype(np.float16)
    want = np.maximum(layer.want(x, w, b) + r, 0)
    out = np.zeros_like(want)
    assert not tcir.compile(text("conv_grouped_residual"), "conv")(x, r, w, b, out).findings
    assert out.tobytes() == want.tobytes()


NARROW = [(named, "i8") for named in NAMED] + [(named, "f8E4M3FN") for named in NAMED]
WIDE = [(named, element) for named in NAMED for element in ("f16", "bf16", "f32")]


@pytest.mark.parametrize("case", WIDE + NARROW, ids=lambda case: f"{case[0]}-{case[1]}")
def test_named_ops(case: tuple[Named, str]) -> None:
    """Channels last and first, with padding, stride, dilation, bias, relu, in every type."""
    named, element = case
    inputs = named.inputs(element)
    want = named.want(*inputs, element)
    out = np.zeros_like(want)
    report = tcir.compile(named.text(element), "conv")(*inputs, out)
    assert not report.findings
    assert out.tobytes() == want.tobytes()
    assert bool(report.counters["mma"]) == (named in NAMED[:ON_TENSOR_CORES])


@pytest.mark.parametrize(
    "case", list(zip(NAMED, ("f16", "bf16", "f32") * 3)), ids=lambda case: f"{case[0]}-{case[1]}"
)
def test_named_ops_at_every_level(case: tuple[Named, str]) -> None:
    named, element = case
    report = tcir.validate(named.text(element), "conv", orders=1, strict=True)
    assert report.ok, str(report)


def relu(sums: Array, bias: Array) -> Array:
    """Rounded to bf16."""
    return np.maximum(sums.astype(np.float32) + bias, 0).astype(BF16)


def windows(x: Array) -> Array:
    """3 x 3, of the image with zeros around it: taps last."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (1, 1), (1, 1), *[(0, 0)] * (x.ndim - 3)])
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))


def mobilenet(x: Array, w: Array, b: Array, v: Array, d: Array) -> Array:
    """Depthwise and 1 x 1."""
    h = relu(np.einsum("nhwcrs,rsc->nhwc", windows(x), w.astype(np.float64)), b)
    return relu(h.astype(np.float64) @ v[0, 0].astype(np.float64), d)


def resnext(x: Array, w: Array, b: Array, v: Array, d: Array) -> Array:
    """1 x 1 and grouped."""
    h = relu(x.astype(np.float64) @ w[0, 0].astype(np.float64), b)
    taps = windows(h.reshape(*h.shape[:3], v.shape[0], -1))
    sums = np.einsum("nhwgcrs,gkrsc->nhwgk", taps, v.astype(np.float64))
    return relu(sums.reshape(h.shape), d)


BLOCKS: dict[str, tuple[str, list[tuple[int, ...]], Any, bool]] = {
    "mobilenet": (separable(5, 16, 32), [(3, 3, 16), (16,), (1, 1, 16, 32), (32,)], mobilenet,
                  False),
    "resnext": (grouped_pair(5, 16, 2, 16), [(1, 1, 16, 32), (32,), (2, 16, 3, 3, 16), (32,)],
                resnext, True),
    "resnext, thin": (grouped_pair(5, 16, 4, 4), [(1, 1, 16, 16), (16,), (4, 4, 3, 3, 4), (16,)],
                      resnext, False),
}  # fmt: skip
"""Text, shapes behind the image, numpy's result; whether all products are on tensor cores."""


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    """Kinds in one function: each launch where it belongs, at every level and against numpy."""
    program, shapes, oracle, all_on_tensor_cores = BLOCKS[name]
    inputs = [
        whole(shape, seed).astype(BF16 if len(shape) > 1 else np.float32)
        for seed, shape in enumerate([(1, 5, 5, 16), *shapes])
    ]
    want = oracle(*inputs)
    out = np.zeros_like(want)
    kernel = tcir.compile(program, "conv", validate=True)
    assert kernel.report.ok, str(kernel.report)
    assert kernel.ptx.count("tcgen05.alloc") == 1 + all_on_tensor_cores
    assert not kernel(*inputs, out).findings
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("pipeline", "options"),
    [
        ("conv", {}),
        ("conv-implicit-gemm", {}),
        ("conv-smem-offset", {}),
        ("conv-shift-reuse", {"tiling": "packed"}),
        ("conv-shift-reuse", {"tiling": "linear"}),
    ],
)
def test_groups_do_not_mix(pipeline: str, options: dict[str, Any]) -> None:
    """inf and NaN in the channels of one group are in no sum of the other, by any schedule.

    A filter with zeros for the other groups would multiply them by 0.
    """
    layer = KINDS["conv_grouped"]
    x, w, b = layer.inputs()
    x[:, 8:] = np.inf
    x[:, 8::2] = np.nan
    want = layer.want(x, w, b)
    assert np.isfinite(want[:, :16]).all() and np.isnan(want[:, 16:]).all()
    out = np.zeros_like(want)
    assert not tcir.compile(text("conv_grouped"), pipeline, **options)(x, w, b, out).findings
    assert np.isnan(out[:, 16:]).all()
    assert out[:, :16].tobytes() == want[:, :16].tobytes()


@pytest.mark.parametrize(
    ("name", "at", "edit"),
    [
        pytest.param(
            "conv_grouped",
            "tile-conv",
            change_operand("tc.tma_load", 1, lambda channel: arith.subi(channel, channel)),
            id="every group loads the channels of the first",
        ),
        pytest.param(
            "conv_grouped",
            "raise-to-tc",
            set_attribute("tc.repack", "permutation", "array<i64: 0, 4, 3, 1, 2>"),
            id="rows and columns exchanged where a group is padded",
        ),
        pytest.param(
            "conv1d",
            "raise-to-tc",
            set_attribute("tc.conv2d", "pads", "array<i64: 0, 0, 2, 0>"),
            id="padding of one dimension all on the left",
        ),
        pytest.param(
            "conv_depthwise",
            "convert-to-simt",
            change_operand("arith.truncf", 0, lambda taps: taps.owner.operands[0]),
            id="a thread misses the last tap",
        ),
    ],
)
def test_breaks(name: str, at: str, edit: Edit) -> None:
    caught = run_broken(text(name), tcir.named_pipeline("conv"), at, edit)
    assert caught and (caught.at, caught.by) == (at, "difference"), caught
