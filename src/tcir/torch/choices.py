"""Decompositions of maximum, minimum, clamp and comparisons, where torch-mlir treats NaN
differently from PyTorch.

torch-mlir's maximum, minimum and clamp return the other operand if one is NaN. PyTorch returns NaN.
"""

from __future__ import annotations

from typing import TypeAlias

import torch

from tcir.errors import InputError
from tcir.torch.aten import Decomposition, Decompositions, aten, wide

Bound: TypeAlias = "torch.Tensor | float | None"


def _nan(x: torch.Tensor) -> torch.Tensor:
    return x != x


def _pair(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    kind = torch.promote_types(a.dtype, b.dtype)
    return a.to(kind), b.to(kind)


def maximum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The larger of two numbers; NaN if either is NaN."""
    a, b = _pair(a, b)
    return torch.where((a > b) | _nan(a), a, b)


def minimum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The smaller of two numbers; NaN if either is NaN."""
    a, b = _pair(a, b)
    return torch.where((a < b) | _nan(a), a, b)


def fmax(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The larger of two numbers; if one is NaN, the other."""
    a, b = _pair(a, b)
    return torch.where((a >= b) | _nan(b), a, b)


def fmin(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The smaller of two numbers; if one is NaN, the other."""
    a, b = _pair(a, b)
    return torch.where((a <= b) | _nan(b), a, b)


def clamp(x: torch.Tensor, min: Bound = None, max: Bound = None) -> object:
    """Limits `x` to at least `min`, then to at most `max`. Bounds are numbers or tensors; None:
    unbounded."""
    for bound, choose in ((min, maximum), (max, minimum)):
        if bound is None:
            continue
        if not isinstance(bound, torch.Tensor):
            if not x.is_floating_point() and not isinstance(bound, int):
                return NotImplemented
            bound = torch.full((), bound, dtype=x.dtype, device=x.device)
        x = choose(bound, x)
    return x


def _clamp_min(x: torch.Tensor, min: Bound) -> object:
    return clamp(x, min)


def _clamp_max(x: torch.Tensor, max: Bound) -> object:
    return clamp(x, None, max)


def _hardtanh(x: torch.Tensor, low: float = -1, high: float = 1) -> object:
    return clamp(x, low, high)


def _relu6(x: torch.Tensor) -> object:
    return clamp(x, 0, 6)


def _hardsigmoid(x: torch.Tensor) -> torch.Tensor:
    return (aten.clamp.default(wide(x) + 3, 0, 6) / 6).to(x.dtype)


def _hardswish(x: torch.Tensor) -> torch.Tensor:
    a = wide(x)
    return (a * aten.clamp.default(a + 3, 0, 6) / 6).to(x.dtype)


def _isclose(
    a: torch.Tensor,
    b: torch.Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> object:
    """Computes isclose like PyTorch; torch-mlir's version does not compare infinities."""
    if not a.is_floating_point():
        return NotImplemented
    close = a == b
    if equal_nan:
        close = close | (_nan(a) & _nan(b))
    off = (a - b).abs()
    return close | ((off < torch.inf) & (off <= atol + (rtol * b).abs()))


def _isfinite(x: torch.Tensor) -> object:
    return x.abs() < torch.inf if x.is_floating_point() else NotImplemented


def _logaddexp(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """log(exp(a) + exp(b)), correct also for two infinities."""
    result = torch.promote_types(a.dtype, b.dtype)
    a, b = (wide(each.to(result)) for each in (a, b))
    total = maximum(a, b) + torch.log1p(torch.exp(-(a - b).abs()))
    return torch.where((a == b) & (a.abs() == torch.inf), a, total).to(result)


def _grid_sampler(x: torch.Tensor, *rest: object) -> object:
    """Leaves f32 to PyTorch, because torch-mlir rounds the coordinates once more."""
    if x.dtype != torch.float32:
        return NotImplemented
    raise InputError("expected f16 or bf16, got f32: its coordinates would be rounded twice")


def _lerp(start: torch.Tensor, end: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Interpolates from the nearer end, as PyTorch does."""
    kind = start.dtype
    a, b, w = map(wide, (start, end, weight))
    return torch.where(w.abs() < 0.5, a + w * (b - a), b - (b - a) * (1 - w)).to(kind)


def _with_float(op: torch._ops.OpOverload) -> Decomposition:
    """Decomposition of a comparison of floats with an integer: converts the integer to a float
    tensor.

    For constant floats torch-mlir folds the comparison wrongly: it reads the integer's bits as
    those of a float.
    """

    def decomposition(x: torch.Tensor, number: float) -> object:
        if not x.is_floating_point() or not isinstance(number, int):
            return NotImplemented
        return op(x, torch.full((), number, dtype=x.dtype, device=x.device))

    return decomposition


CHOICES: Decompositions = {
    aten.maximum.default: maximum,
    aten.minimum.default: minimum,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.clamp.default: clamp,
    aten.clamp.Tensor: clamp,
    aten.clamp_min.default: _clamp_min,
    aten.clamp_min.Tensor: _clamp_min,
    aten.clamp_max.default: _clamp_max,
    aten.clamp_max.Tensor: _clamp_max,
    aten.hardtanh.default: _hardtanh,
    aten.relu6.default: _relu6,
    aten.hardsigmoid.default: _hardsigmoid,
    aten.hardswish.default: _hardswish,
    aten.isclose.default: _isclose,
    aten.isfinite.default: _isfinite,
    aten.logaddexp.default: _logaddexp,
    aten.grid_sampler_2d.default: _grid_sampler,
    aten.grid_sampler.default: _grid_sampler,
    aten.lerp.Tensor: _lerp,
    **{
        getattr(aten, name).Scalar: _with_float(getattr(aten, name).Tensor)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}
"""The decompositions of this file, by overload."""
