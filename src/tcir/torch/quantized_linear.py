"""`QuantizedLinear`: a linear layer in NVFP4 or MX whose weights are packed once."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch.fx.node import map_arg

from tcir import formats
from tcir.arrays.epilogue import ACTIVATIONS
from tcir.arrays.kernel import ArrayKernel
from tcir.arrays.quantised_linear import (
    BLOCKED,
    layer_format,
    quantised_linear,
    scale_layout,
    scales_shape,
)
from tcir.errors import InputError
from tcir.kernel import Kernel
from tcir.torch.launching import KernelLauncher
from tcir.torch.lowering import OWN
from tcir.torch.tensors import array_of, target_of

KINDS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
SCALES = {"ue4m3": torch.float8_e4m3fn, "ue8m0": torch.float8_e8m0fnu}
ELEMENTS = {"e2m1": torch.uint8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


class _Layer(NamedTuple):
    """Sizes of a layer, and the types of its result and bias."""

    m: int
    n: int
    k: int
    format: str
    out: str
    bias: str | None
    activation: str


@torch.library.custom_op("tcir::quantized_linear", mutates_args=(), device_types=("cpu", "cuda"))
def quantized_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    alpha: torch.Tensor | None,
    norm: torch.Tensor | None,
    bias: torch.Tensor | None = None,
    format: str = "nvfp4",
    activation: str = "none",
) -> torch.Tensor:
    """Computes act(alpha * (quantise(norm * x) @ weight.T) + bias), on the simulated machine or on
    a GPU.

    x: [..., K] of f16, bf16 or f32, widened to f32 before the launches. The other tensors are the
        buffers of `QuantizedLinear`. Raises InputError for shapes or types that the kernels do not
        support.
    """
    layer = _layer_of(x, weight, weight_scale, alpha, norm, bias, format, activation)
    launcher = _launcher(layer, target_of([x]))
    given = (x.reshape(-1, x.shape[-1]).float(), norm, weight, weight_scale, alpha, bias)
    (result,) = launcher([each for each in given if each is not None])
    return result.reshape(*x.shape[:-1], weight.shape[0])


@quantized_linear.register_fake
def _(x: torch.Tensor, weight: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _lowered(node: torch.fx.Node, target: str) -> tuple[Kernel, str, str]:
    """Kernel of a call in a graph, its program and the text of its pipeline."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    kernel = _compiled(_layer_of(*args, **kwargs), target)
    name = "gemv-padded-n" if "gemv" in kernel.pipeline else "gemm{quantise-apart=true}"
    return kernel, kernel.mlir, name


OWN[torch.ops.tcir.quantized_linear.default] = _lowered


def _layer_of(
    x: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    alpha: torch.Tensor | None,
    norm: torch.Tensor | None,
    bias: torch.Tensor | None = None,
    format: str = "nvfp4",
    activation: str = "none",
) -> _Layer:
    """Properties of the arguments on which the kernel depends; InputError if they do not fit."""
    form = layer_format(format)
    if activation != "none" and activation not in ACTIVATIONS:
        raise InputError(
            f"tcir.quantized_linear: activation: expected none, {', '.join(ACTIVATIONS)}, got "
            f"{activation!r}"
        )
    if x.ndim < 1 or x.dtype not in KINDS:
        raise InputError(
            "tcir.quantized_linear: x: expected [..., K] of float16, bfloat16 or float32, got "
            f"{_words(x)}"
        )
    k = x.shape[-1]
    packed = k * form.elements.bits // 8
    if weight.ndim != 2 or weight.shape[1] != packed or weight.dtype != ELEMENTS[form.element]:
        raise InputError(
            f"tcir.quantized_linear: weight: expected [N, {packed}] of "
            f"{str(ELEMENTS[form.element])[6:]} (one row of packed {form.element} for each output) "
            f"for x of {list(x.shape)}, got a weight of {_words(weight)}"
        )
    n = weight.shape[0]
    shape = scales_shape(n, k, form.block, scale_layout(k))
    if tuple(weight_scale.shape) != shape or weight_scale.dtype != SCALES[form.scale]:
        raise InputError(
            f"tcir.quantized_linear: weight_scale: expected {list(shape)} of "
            f"{str(SCALES[form.scale])[6:]} ({scale_layout(k)}), got a weight_scale of "
            f"{_words(weight_scale)}; tcir.torch.QuantizedLinear.from_linear packs both"
        )
    for name, each in (("alpha", alpha), ("norm", norm)):
        if form.has_global_scale != (each is not None) or not (
            each is None or (each.ndim == 0 and each.dtype == torch.float32)
        ):
            expected = "a float32 tensor of rank 0" if form.has_global_scale else "None"
            raise InputError(
                f"tcir.quantized_linear: {name}: expected {expected} with {format}, got "
                f"{'None' if each is None else f'{name} of {_words(each)}'}"
            )
    if bias is not None and (tuple(bias.shape) != (n,) or bias.dtype not in KINDS):
        raise InputError(
            f"tcir.quantized_linear: bias: expected [{n}] of float16, bfloat16 or float32, got a "
            f"bias of {_words(bias)}"
        )
    return _Layer(
        x.numel() // k if k else 0,
        n,
        k,
        format,
        KINDS[x.dtype],
        None if bias is None else KINDS[bias.dtype],
        activation,
    )


def _words(tensor: torch.Tensor) -> str:
    return f"{list(tensor.shape)} of {str(tensor.dtype)[6:]}"


@lru_cache(maxsize=64)
def _compiled(layer: _Layer, target: str) -> ArrayKernel:
    """The kernel, compiled once for arguments of these shapes and types."""
    return quantised_linear(
        layer.m,
        layer.n,
        layer.k,
        layer.format,
        out=layer.out,
        bias=layer.bias,
        activation=None if layer.activation == "none" else layer.activation,
        target=target,
    )


@lru_cache(maxsize=64)
def _launcher(layer: _Layer, target: str) -> KernelLauncher:
    return KernelLauncher(_compiled(layer, target))


class QuantizedLinear(torch.nn.Module):
    """A linear layer with NVFP4 or MX weights and inputs, followed by an activation.

    Buffers, for K inputs and N outputs:

    weight:       elements: fp4 as uint8 [N, K / 2], two per byte; fp8 unpacked, [N, K]
    weight_scale: scales of the elements. If K is a multiple of 128, they are in blocks of 128 rows
        x 4, the tensor core's layout (`tcir.formats.to_blocked`); otherwise [N, K / block]
    alpha, norm:  NVFP4 only, f32: the product of the global scales of weight and input, and the
                  reciprocal of the global scale of the input
    bias:         [N], or None

    `from_linear` fills the buffers; it quantises the weight once. A launch quantises the input at
    each call. The layer has no gradients.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        format: str = "nvfp4",
        activation: str = "none",
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        form = layer_format(format)
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(size, int):
                raise InputError(f"QuantizedLinear: {name}: expected an integer, got {size!r}")
        if dtype is not None and not isinstance(dtype, torch.dtype):
            raise InputError(f"QuantizedLinear: dtype: expected a torch.dtype, got {dtype!r}")
        if min(in_features, out_features) < 1 or in_features % form.block:
            raise InputError(
                f"QuantizedLinear: in_features must be a multiple of {form.block} (the {format} "
                f"block, whose elements share a scale) and out_features at least 1, got "
                f"in_features={in_features}, out_features={out_features}; pad the inputs with zeros"
            )
        self.in_features, self.out_features = in_features, out_features
        self.format, self.activation = format, activation
        columns = in_features * form.elements.bits // 8
        shape = scales_shape(out_features, in_features, form.block, scale_layout(in_features))
        self.register_buffer(
            "weight", torch.zeros((out_features, columns), dtype=ELEMENTS[form.element])
        )
        codes = torch.zeros(shape, dtype=torch.uint8)
        self.register_buffer("weight_scale", codes.view(SCALES[form.scale]))
        one = torch.ones((), dtype=torch.float32) if form.has_global_scale else None
        self.register_buffer("alpha", one)
        self.register_buffer("norm", None if one is None else one.clone())
        kind = dtype or torch.get_default_dtype()
        self.register_buffer("bias", torch.zeros(out_features, dtype=kind) if bias else None)

    @classmethod
    def from_linear(
        cls,
        linear: torch.nn.Linear,
        format: str = "nvfp4",
        *,
        activation: str = "none",
        input_amax: float | None = None,
    ) -> QuantizedLinear:
        """Quantises and packs `linear`'s weights.

        input_amax: the largest expected magnitude of inputs, which determines NVFP4's global scale
            of the input. If it is left out, this scale is 1: inputs up to 2688 do not saturate, but
            blocks whose largest element is below about 0.05 lose accuracy.
        """
        if not isinstance(linear, torch.nn.Linear):
            raise InputError(
                "QuantizedLinear.from_linear: expected a torch.nn.Linear, got "
                f"{type(linear).__name__}"
            )
        if linear.weight.device.type != "cpu" or linear.weight.dtype not in KINDS:
            raise InputError(
                "QuantizedLinear.from_linear: expected weights on the CPU in float16, bfloat16 or "
                f"float32, got {linear.weight.dtype} on {linear.weight.device}"
            )
        has_bias = linear.bias is not None
        made = cls(
            linear.in_features,
            linear.out_features,
            has_bias,
            format=format,
            activation=activation,
            dtype=linear.weight.dtype,
        )
        form = layer_format(format)
        packed = formats.quantise(array_of(linear.weight), form, nonfinite="error")
        bits = form.elements.bits
        codes = formats.pack(packed.codes, bits) if bits < 8 else packed.codes
        blocked = scale_layout(linear.in_features) == BLOCKED
        scales = formats.to_blocked(packed.scales) if blocked else packed.scales
        made.weight = torch.from_numpy(codes).view(ELEMENTS[form.element])
        made.weight_scale = torch.from_numpy(scales).view(SCALES[form.scale])
        if form.has_global_scale:
            g = np.float32(1) if input_amax is None else _global_scale(input_amax)
            made.alpha = torch.tensor(np.float32(packed.global_scale * g))
            made.norm = torch.tensor(np.float32(1) / g)
        elif input_amax is not None:
            raise InputError(
                f"QuantizedLinear.from_linear: input_amax: expected None with {format}, whose "
                f"scales reach every magnitude, got {input_amax!r}"
            )
        if has_bias:
            made.bias = linear.bias.detach().clone()
        return made.train(linear.training)

    def extra_repr(self) -> str:
        """Text for `repr`."""
        return (
            f"{self.in_features}, {self.out_features}, format={self.format}, "
            f"activation={self.activation}"
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Computes act(x @ weight.T + bias) with quantised x."""
        result = torch.ops.tcir.quantized_linear(
            x,
            self.weight,
            self.weight_scale,
            self.alpha,
            self.norm,
            self.bias,
            self.format,
            self.activation,
        )
        assert isinstance(result, torch.Tensor)
        return result


def _global_scale(amax: float) -> np.float32:
    if not (isinstance(amax, int | float) and 2.0**-100 < amax < 2.0**100):
        raise InputError(
            "QuantizedLinear.from_linear: input_amax: expected a positive number between 2^-100 "
            f"and 2^100, got {amax!r}"
        )
    return formats.nvfp4_global_scale(np.array([amax], np.float32))
