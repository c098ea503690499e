"""Decompositions of functions that torch-mlir has no linalg for, or pipelines no instructions.

Signs of zeros, infinities and NaN are those of C, as PyTorch's are.
"""

from __future__ import annotations

import math

import torch

from tcir.torch.aten import Decompositions, aten, wide

ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip
"""Of ln(erfc(x) / t) + x^2 in t = 1 / (1 + x / 2), from x = 0 on: erfc is off by 1.2e-7 of itself
(Numerical Recipes, 6.2)."""


def is_negative(x: torch.Tensor) -> torch.Tensor:
    """Whether the sign is minus, that of -0 too; of no NaN."""
    return (x < 0) | (aten.reciprocal.default(x) < 0)


def pair(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.dtype]:
    """Both in the type that they are computed in, and that of the result."""
    kind = torch.promote_types(a.dtype, b.dtype)
    if not kind.is_floating_point:
        kind = torch.get_default_dtype()
    return wide(a.to(kind)), wide(b.to(kind)), kind


def _atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The arc tangent of the smaller over the larger, at most pi / 4, and where that is."""
    y, x, kind = pair(y, x)
    size, other = y.abs(), x.abs()
    large, small = torch.maximum(size, other), torch.minimum(size, other)
    one = torch.ones_like(large)
    quotient = torch.where(large == 0, small, small / large)
    quotient = torch.where((small == large) & (large == torch.inf), one, quotient)
    angle = torch.atan(quotient)
    angle = torch.where(size > other, math.pi / 2 - angle, angle)
    angle = torch.where(is_negative(x), math.pi - angle, angle)
    return torch.where(is_negative(y), -angle, angle).to(kind)


def _hypot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """By the quotient of the smaller and the larger, so that squares do not overflow."""
    a, b, kind = pair(a, b)
    a, b = a.abs(), b.abs()
    large, small = torch.maximum(a, b), torch.minimum(a, b)
    quotient = torch.where(large == 0, large, small / large)
    result = large * torch.sqrt(1 + quotient * quotient)
    infinite = (a == torch.inf) | (b == torch.inf)
    return torch.where(infinite, torch.full_like(result, torch.inf), result).to(kind)


def _erfc(x: torch.Tensor) -> torch.Tensor:
    """From 1 on it is right to its own size, unlike 1 - erf."""
    a = wide(x)
    size = a.abs().clamp(max=30)  # where it is 0: inf - inf is none
    t = 1 / (1 + 0.5 * size)
    total = torch.full_like(t, ERFC[-1])
    for factor in reversed(ERFC[:-1]):
        total = total * t + factor
    result = t * torch.exp(total - size * size)
    result = torch.where(a < 0, 2 - result, result)
    return torch.where(size < 1, 1 - torch.erf(a), result).to(x.dtype)


def _asinh(x: torch.Tensor) -> torch.Tensor:
    a = wide(x)
    size = a.abs()
    near = torch.log1p(size + size * size / (1 + torch.sqrt(size * size + 1)))
    result = torch.where(size > 1e9, torch.log(size) + math.log(2), near)
    return torch.where(is_negative(a), -result, result).to(x.dtype)


def _acosh(x: torch.Tensor) -> torch.Tensor:
    a = wide(x)
    more = a - 1
    near = torch.log1p(more + torch.sqrt(more * (a + 1)))
    return torch.where(a > 1e9, torch.log(a) + math.log(2), near).to(x.dtype)


def _atanh(x: torch.Tensor) -> torch.Tensor:
    a = wide(x)
    size = a.abs()
    result = 0.5 * torch.log1p(2 * size / (1 - size))
    return torch.where(is_negative(a), -result, result).to(x.dtype)


def _shifted_left(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """``x << by``, which torch-mlir knows by its other name."""
    return aten.bitwise_left_shift.Tensor(x, by)


def _shifted_right(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """``x >> by``, which torch-mlir knows by its other name."""
    return aten.bitwise_right_shift.Tensor(x, by)


FUNCTIONS: Decompositions = {
    aten.__lshift__.Tensor: _shifted_left,
    aten.__rshift__.Tensor: _shifted_right,
    aten.atan2.default: _atan2,
    aten.hypot.default: _hypot,
    aten.erfc.default: _erfc,
    aten.special_erfc.default: _erfc,
    aten.asinh.default: _asinh,
    aten.acosh.default: _acosh,
    aten.atanh.default: _atanh,
}
"""By overload."""
