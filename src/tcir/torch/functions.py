"""Decompositions of functions that torch-mlir does not lower to linalg, or that would need
instructions which the pipelines do not have.

Signs of zeros, infinities and NaN are those of C, as in PyTorch.
"""

from __future__ import annotations

import math

import torch

from tcir.errors import InputError
from tcir.torch.aten import Decompositions, aten, wide

ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip
"""Coefficients of the polynomial in t = 1 / (1 + x / 2) for ln(erfc(x) / t) + x^2, for x >= 0; the
relative error of erfc is 1.2e-7 (Numerical Recipes, 6.2)."""


def is_negative(x: torch.Tensor) -> torch.Tensor:
    """Whether each element is negative or -0; false for NaN."""
    return (x < 0) | (aten.reciprocal.default(x) < 0)


def pair(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.dtype]:
    """Returns two tensors converted to the type in which to compute, and the type of the result."""
    kind = torch.promote_types(a.dtype, b.dtype)
    if not kind.is_floating_point:
        kind = torch.get_default_dtype()
    return wide(a.to(kind)), wide(b.to(kind)), kind


def _atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """atan2, from the arc tangent of the smaller magnitude over the larger, which is at most
    pi / 4, and the octant."""
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
    """hypot, from the quotient of the smaller and the larger magnitude, so that squares do not
    overflow."""
    a, b, kind = pair(a, b)
    a, b = a.abs(), b.abs()
    large, small = torch.maximum(a, b), torch.minimum(a, b)
    quotient = torch.where(large == 0, large, small / large)
    result = large * torch.sqrt(1 + quotient * quotient)
    infinite = (a == torch.inf) | (b == torch.inf)
    return torch.where(infinite, torch.full_like(result, torch.inf), result).to(kind)


def _erfc(x: torch.Tensor) -> torch.Tensor:
    """erfc. For |x| >= 1 a polynomial keeps the relative error small, which 1 - erf does not."""
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


def _of_bits(x: torch.Tensor) -> InputError:
    """Error that leaves the sign of floats to PyTorch: NaN also has a sign."""
    return InputError(
        f"expected integers, got {str(x.dtype).removeprefix('torch.')}: NaN also has a sign, which "
        "only its bits show"
    )


def _signbit(x: torch.Tensor) -> torch.Tensor:
    """Sign bits of integers. InputError for floats."""
    if x.is_floating_point():
        raise _of_bits(x)
    return x < 0


def _copysign(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The magnitude of `a` with the sign of `b`, which are integers. InputError for a float
    `b`."""
    if b.is_floating_point():
        raise _of_bits(b)
    kind = a.dtype if a.is_floating_point() else torch.get_default_dtype()
    size = a.to(kind).abs()
    return torch.where(b < 0, -size, size)


def _copysign_of_number(a: torch.Tensor, b: float) -> object:
    if not a.is_floating_point():
        return NotImplemented
    return -a.abs() if math.copysign(1, b) < 0 else a.abs()


CENTRE = (
    (0.886226899, -1.645349621, 0.914624893, -0.140543331),
    (1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801),
)
TAIL = ((-1.970840454, -1.624906493, 3.429567803, 1.641345311), (1.0, 3.543889200, 1.637067800))
"""Numerators and denominators of erfinv: `CENTRE` for |x| <= 0.7 is erfinv(x) / x in x^2; `TAIL`
beyond is erfinv in sqrt(-ln((1 - |x|) / 2)). Two Newton steps follow (Giles, and PyTorch's
`calc_erfinv`)."""


def _quotient(factors: tuple[tuple[float, ...], ...], x: torch.Tensor) -> torch.Tensor:
    sums = []
    for row in factors:
        total = torch.full_like(x, row[-1])
        for factor in reversed(row[:-1]):
            total = total * x + factor
        sums.append(total)
    return sums[0] / sums[1]


def _erfinv(x: torch.Tensor) -> torch.Tensor:
    """Inverse of erf; infinite at 1 and -1, NaN beyond."""
    a = wide(x)
    size = a.abs()
    root = torch.sqrt(-torch.log((1 - size) / 2))
    tail = _quotient(TAIL, root)
    result = torch.where(size <= 0.7, a * _quotient(CENTRE, a * a), torch.where(a < 0, -tail, tail))
    for _ in range(2):
        slope = 2 / math.sqrt(math.pi) * torch.exp(-result * result)
        result = result - (torch.erf(result) - a) / slope
    result = torch.where(size == 1, a * torch.inf, result)
    return torch.where(size > 1, torch.full_like(result, torch.nan), result).to(x.dtype)


FUNCTIONS: Decompositions = {
    aten.__lshift__.Tensor: aten.bitwise_left_shift.Tensor,
    aten.__rshift__.Tensor: aten.bitwise_right_shift.Tensor,
    aten.signbit.default: _signbit,
    aten.copysign.Tensor: _copysign,
    aten.copysign.Scalar: _copysign_of_number,
    aten.erfinv.default: _erfinv,
    aten.atan2.default: _atan2,
    aten.hypot.default: _hypot,
    aten.erfc.default: _erfc,
    aten.special_erfc.default: _erfc,
    aten.asinh.default: _asinh,
    aten.acosh.default: _acosh,
    aten.atanh.default: _atanh,
}
"""The decompositions of this file, by overload."""
