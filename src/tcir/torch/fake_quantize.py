"""Decompositions of fake quantisation: numbers are rounded to values of a quantised type, in f32 as
PyTorch does.

torch-mlir multiplies f16 by the inverse of the scale in f16, which can round to another number.
"""

from __future__ import annotations

from typing import TypeAlias

import torch

from tcir.torch.aten import Decompositions, aten, wide

Scale: TypeAlias = "torch.Tensor | float"


def _rounded(
    x: torch.Tensor, scale: Scale, zero: torch.Tensor | int, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The quantised and dequantised numbers, and whether each was inside the range `low` to
    `high`."""
    number = torch.round(wide(x) * (1 / scale)) + zero
    inside = (number >= low) & (number <= high)
    return ((number.clamp(low, high) - zero) * scale).to(x.dtype), inside


def _per_tensor(x: torch.Tensor, scale: float, zero: int, low: int, high: int) -> torch.Tensor:
    return _rounded(x, scale, zero, low, high)[0]


def _per_tensor_with_mask(
    x: torch.Tensor, scale: float, zero: int, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    return _rounded(x, scale, zero, low, high)


def _by_channel(x: torch.Tensor, each: torch.Tensor, axis: int) -> torch.Tensor:
    return each.view([-1 if d == axis else 1 for d in range(x.dim())]).to(torch.float32)


def _per_channel_with_mask(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int, low: int, high: int
) -> tuple[torch.Tensor, torch.Tensor]:
    scales, zeros = _by_channel(x, scale, axis % x.dim()), _by_channel(x, zero, axis % x.dim())
    return _rounded(x, scales, zeros, low, high)


def _per_channel(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, axis: int, low: int, high: int
) -> torch.Tensor:
    return _per_channel_with_mask(x, scale, zero, axis, low, high)[0]


FAKE_QUANTIZE: Decompositions = {
    aten.fake_quantize_per_tensor_affine.default: _per_tensor,
    aten.fake_quantize_per_tensor_affine_cachemask.default: _per_tensor_with_mask,
    aten.fake_quantize_per_channel_affine.default: _per_channel,
    aten.fake_quantize_per_channel_affine_cachemask.default: _per_channel_with_mask,
}
"""The decompositions of this file, by overload."""
