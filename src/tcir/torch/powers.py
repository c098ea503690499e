"""Decompositions of powers with arbitrary base and exponent into a logarithm and an exponential.

Signs of zeros, infinities and NaN are those of C's `pow`, as in PyTorch.
"""

from __future__ import annotations

import math

import torch

from tcir.torch.aten import Decompositions, aten, wide
from tcir.torch.functions import is_negative, pair

CONSTANTS = (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4)
"""Exponents that pipelines compute by products, quotients and roots."""


def _exp(x: torch.Tensor) -> torch.Tensor:
    """The exponential of f64 numbers, in f32. The rounding error of the exponent to f32 is a
    correction factor, since it grows with the exponent's magnitude."""
    near = x.to(torch.float32)
    finite = near.abs() < torch.inf
    rest = torch.where(finite, x - near.to(torch.float64), 0).to(torch.float32)
    result = torch.exp(near)
    return result + torch.where((result < torch.inf) & finite, result * rest, 0)


def _power(base: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """Power of f32 numbers."""
    size = base.abs()
    logarithm = torch.log(size).to(torch.float64)
    result = _exp(logarithm * exponent.to(torch.float64))
    one = torch.ones((), dtype=torch.float32, device=result.device)
    result = torch.where((exponent == 0) | (base == 1), one, result)
    result = torch.where((size == 1) & (exponent.abs() == torch.inf), one, result)
    whole = torch.floor(exponent) == exponent  # infinities, too
    half = exponent * 0.5
    odd = whole & (torch.floor(half) != half)
    result = torch.where(is_negative(base) & odd, -result, result)
    root = (base < 0) & (size < torch.inf) & ~whole & (exponent == exponent)
    return torch.where(root, torch.full_like(result, torch.nan), result)


def _pow(base: torch.Tensor, exponent: torch.Tensor) -> object:
    kind = torch.result_type(base, exponent)
    if not kind.is_floating_point or kind == torch.float64:
        return NotImplemented
    return _power(wide(base.to(kind)), wide(exponent.to(kind))).to(kind)


def _pow_of_number(base: float, exponent: torch.Tensor) -> object:
    if isinstance(base, complex):
        return NotImplemented
    kind = torch.result_type(base, exponent)
    return _pow(torch.full((), base, dtype=kind, device=exponent.device), exponent)


def _pow_by_number(base: torch.Tensor, exponent: float) -> object:
    if isinstance(exponent, complex) or exponent in CONSTANTS:
        return NotImplemented
    kind = torch.result_type(base, exponent)
    return _pow(base, torch.full((), exponent, dtype=kind, device=base.device))


def _exp2(x: torch.Tensor) -> object:
    if not x.is_floating_point() or x.dtype == torch.float64:
        return NotImplemented
    return _exp(x.to(torch.float64) * math.log(2)).to(x.dtype)


def _ldexp(x: torch.Tensor, exponent: torch.Tensor) -> object:
    if not x.is_floating_point() or exponent.is_floating_point():
        return NotImplemented
    return (wide(x) * torch.pow(2.0, exponent)).to(x.dtype)


def _logaddexp2(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b, kind = pair(a, b)
    rest = torch.log1p(_exp((a - b).abs().to(torch.float64) * -math.log(2)))
    result = torch.maximum(a, b) + rest / math.log(2)
    return torch.where((a == b) & (a.abs() == torch.inf), a, result).to(kind)


POWERS: Decompositions = {
    aten.pow.Tensor_Tensor: _pow,
    aten.pow.Scalar: _pow_of_number,
    aten.pow.Tensor_Scalar: _pow_by_number,
    aten.exp2.default: _exp2,
    aten.ldexp.Tensor: _ldexp,
    aten.logaddexp2.default: _logaddexp2,
    aten.special_exp2.default: _exp2,
}
"""The decompositions of this file, by overload."""
