"""Decompositions of remainders and floored quotients of floats; they are computed exactly, in f64.

A quotient of two f32 numbers may have 278 binary digits before the point; rounding the quotient
before it is truncated would give another remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from tcir.torch.aten import Decomposition, Decompositions, aten
from tcir.torch.functions import is_negative, pair

Exact: TypeAlias = Callable[[torch.Tensor, torch.Tensor, torch.dtype], torch.Tensor]
"""A function of two tensors in the type of the computation, and the type of the result."""
DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}
LARGEST = {torch.float16: 41, torch.bfloat16: 262, torch.float32: 278}
"""Binary digits of the numbers of a type (`DIGITS`), and of a quotient of two (`LARGEST`)."""
F64_DIGITS = 53


def _modulo(a: torch.Tensor, b: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """The exact remainder with the sign of `a`, in f64, by long division. Each step takes as many
    digits of the quotient as leave room for their product with `b`. NaN if `a` is infinite or `b`
    is 0."""
    digits = F64_DIGITS - 1 - DIGITS[kind]
    number, divisor = _size(a), _size(b)
    regular = (number < torch.inf) & (divisor < torch.inf) & (divisor != 0)
    one = torch.ones((), dtype=torch.float64, device=a.device)
    rest, step = torch.where(regular, number, one), torch.where(regular, divisor, one)
    for place in reversed(range(0, LARGEST[kind], digits)):
        part = step * 2.0**place
        rest = rest - (rest / part).to(torch.int64).to(torch.float64) * part
        rest = torch.where(rest < 0, rest + part, rest)  # the quotient was rounded up
    nan = torch.full_like(rest, torch.nan)
    same = (number < torch.inf) & (divisor == torch.inf)
    rest = torch.where(regular, rest, torch.where(same, number, nan))
    return torch.where(is_negative(a), -rest, rest)


def _size(x: torch.Tensor) -> torch.Tensor:
    """The magnitude in f64, by a select: kernels have no instruction for it."""
    return torch.where(x < 0, -x, x).double()


def _fmod(a: torch.Tensor, b: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    return _modulo(a, b, kind).to(kind)


def _floored(a: torch.Tensor, b: torch.Tensor, kind: torch.dtype) -> tuple[torch.Tensor, ...]:
    """The remainder with the sign of `a`, and whether it is not 0 and `b` has another sign."""
    rest = _modulo(a, b, kind)
    return rest, (rest != 0) & ((b < 0) != (rest < 0))


def _remainder(a: torch.Tensor, b: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """The remainder with the sign of `b`."""
    rest, other = _floored(a, b, kind)
    return torch.where(other, rest + b.double(), rest).to(kind)


def _floor_divide(a: torch.Tensor, b: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """The floor of the exact quotient, as in Python."""
    rest, other = _floored(a, b, kind)
    quotient = (a.double() - rest) / torch.where(b == 0, torch.ones_like(b), b).double()
    quotient = torch.where(other, quotient - 1, quotient).to(a.dtype)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    plain = a / b
    zero = torch.where(is_negative(plain), -torch.zeros_like(a), torch.zeros_like(a))
    whole = torch.where(quotient == 0, zero, whole)
    return torch.where(b == 0, plain, whole).to(kind)


def _of(function: Exact) -> Decomposition:
    """Decomposition that applies the function to tensors and numbers; integers are left to
    torch-mlir."""

    def decomposition(a: object, b: object) -> object:
        tensors = [each for each in (a, b) if isinstance(each, torch.Tensor)]
        like = tensors[0]
        if not any(each.is_floating_point() for each in tensors):
            return NotImplemented
        first, second = (
            each
            if isinstance(each, torch.Tensor)
            else torch.full((), each, dtype=like.dtype, device=like.device)
            for each in (a, b)
        )
        first, second, kind = pair(first, second)
        return function(first, second, kind) if kind in DIGITS else NotImplemented

    return decomposition


def _floored_quotient(a: object, b: object) -> object:
    """Floored quotient. Integers divided by a number subtract the remainder first; torch-mlir would
    divide f64 numbers and floor the result."""
    result = _of(_floor_divide)(a, b)
    if result is not NotImplemented or not isinstance(a, torch.Tensor) or not isinstance(b, int):
        return result
    return aten.div.Scalar_mode(a - aten.remainder.Scalar(a, b), b, rounding_mode="trunc")


def _div(a: object, b: object, *, rounding_mode: str | None = None) -> object:
    return _floored_quotient(a, b) if rounding_mode == "floor" else NotImplemented


REMAINDERS: Decompositions = {
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), _of(_fmod)),
    **dict.fromkeys(
        (aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor),
        _of(_remainder),
    ),
    **dict.fromkeys((aten.floor_divide.default, aten.floor_divide.Scalar), _floored_quotient),
    **dict.fromkeys((aten.div.Tensor_mode, aten.div.Scalar_mode), _div),
}
"""The decompositions of this file, by overload."""
