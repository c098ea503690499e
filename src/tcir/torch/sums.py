"""Decompositions of long sums of f32 elements. If the result is f32, partial sums are f64.

Eager PyTorch sums f32 in blocks, and its error grows with the logarithm of the number of elements.
The imported program adds one element after the other, and its error grows linearly with that
number. If the result is f16 or bf16, partial sums in f32 are accurate enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from tcir.torch.aten import Decompositions, Dims, aten, dims_of, wide

LONG = 16
"""Minimum number of elements of a sum whose partial sums are f64."""
_PARTIAL: ContextVar[torch.dtype] = ContextVar("partial", default=torch.float64)


@contextmanager
def partial_sums(kind: torch.dtype) -> Iterator[None]:
    """Context in which the partial sums of long f32 sums have this type."""
    token = _PARTIAL.set(kind)
    try:
        yield
    finally:
        _PARTIAL.reset(token)


def _partial(x: torch.Tensor) -> torch.Tensor:
    """A tensor in the type of partial sums."""
    return x.to(_PARTIAL.get())


def _count(x: torch.Tensor, dim: Dims) -> int:
    """Number of elements in each sum."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return int(x.numel())
    dims = [dim] if isinstance(dim, int) else dim
    return math.prod(x.shape[each] for each in dims) if x.dim() else 1


def _is_long(x: torch.Tensor, dim: Dims, dtype: torch.dtype | None) -> bool:
    return x.dtype == torch.float32 and dtype in (None, x.dtype) and _count(x, dim) >= LONG


def total(
    x: torch.Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> object:
    """The sum of f32 elements; from `LONG` elements on, partial sums have a wider type."""
    if not _is_long(x, dim, dtype) or _PARTIAL.get() == x.dtype:
        return NotImplemented
    dims = dims_of(x, dim)
    return _partial(x).sum(dims, keepdim).to(x.dtype)


def mean(
    x: torch.Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> object:
    """The mean of f32 elements; from `LONG` elements on, partial sums have a wider type."""
    if not _is_long(x, dim, dtype):
        return NotImplemented
    dims = dims_of(x, dim)
    return (_partial(x).sum(dims, keepdim) / _count(x, dim)).to(x.dtype)


def vector_norm(
    x: torch.Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> object:
    """The 2-norm, with partial sums of a wider type; other norms are left unchanged."""
    if ord != 2 or not _is_long(x, dim, dtype):
        return NotImplemented
    given = _partial(x)
    dims = dims_of(x, dim)
    return (given * given).sum(dims, keepdim).to(x.dtype).sqrt()


def _moments(x: torch.Tensor, dim: Dims) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean, differences from it, and the sum of their squares, in the type of partial sums; reduced
    dimensions are kept."""
    dims = dims_of(x, dim)
    given = _partial(x)
    average = given.sum(dims, True) / _count(x, dim)
    centered = given - average
    return average, centered, (centered * centered).sum(dims, True)


def _squeezed(x: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    if keepdim:
        return x
    return x.squeeze(dims_of(x, dim))


def _var(
    x: torch.Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> object:
    if not _is_long(x, dim, None):
        return NotImplemented
    *_, squares = _moments(x, dim)
    count = _count(x, dim) - (1 if correction is None else correction)
    return _squeezed((squares / count).to(x.dtype), dim, keepdim)


def _std(
    x: torch.Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> object:
    variance = _var(x, dim, correction=correction, keepdim=keepdim)
    return variance.sqrt() if isinstance(variance, torch.Tensor) else variance


def _var_mean(
    x: torch.Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> object:
    variance = _var(x, dim, correction=correction, keepdim=keepdim)
    if not isinstance(variance, torch.Tensor):
        return variance
    return variance, mean(x, dim, keepdim)


def _cosine_similarity(x: torch.Tensor, y: torch.Tensor, dim: int = 1, eps: float = 1e-8) -> object:
    if not _is_long(x, dim, None) or y.dtype != x.dtype:
        return NotImplemented
    sizes = [(each * each).sum(dim).sqrt().clamp(min=eps) for each in (x, y)]
    return (x * y).sum(dim) / (sizes[0] * sizes[1])


def _layer_norm(
    x: torch.Tensor,
    shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    *_: bool,
) -> object:
    """Layer norm whose mean and variance are computed in the type of partial sums."""
    dims = list(range(x.dim() - len(shape), x.dim()))
    if not _is_long(x, dims, None):
        return NotImplemented
    result = _normalised(x, dims, eps)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def _normalised(x: torch.Tensor, dims: Sequence[int], eps: float) -> torch.Tensor:
    """Differences from the mean along `dims`, divided by the standard deviation."""
    _, centered, squares = _moments(x, dims)
    variance = squares / _count(x, dims)
    return centered.to(x.dtype) * torch.rsqrt((variance + eps).to(x.dtype))


def _group_norm(
    x: torch.Tensor,
    groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    *_: bool,
) -> object:
    """Group norm as a norm of rows, rounded before the reshape, so that it is one kernel; PyTorch's
    decomposition gathers the factors of channels."""
    batch, channels = x.shape[:2]
    grouped = wide(x.reshape(batch, groups, channels // groups, -1))
    if not _is_long(grouped, [2, 3], None):
        return NotImplemented
    result = _normalised(grouped, [2, 3], eps)
    for factor, combine in ((weight, torch.mul), (bias, torch.add)):
        if factor is not None:
            result = combine(result, factor.reshape(1, groups, channels // groups, 1))
    return result.to(x.dtype).reshape(x.shape)


SUMS: Decompositions = {
    aten.sum.default: total,
    aten.sum.dim_IntList: total,
    aten.mean.default: mean,
    aten.mean.dim: mean,
    aten.linalg_vector_norm.default: vector_norm,
    aten.layer_norm.default: _layer_norm,
    aten.var.correction: _var,
    aten.std.correction: _std,
    aten.var_mean.correction: _var_mean,
    aten.cosine_similarity.default: _cosine_similarity,
}
"""The decompositions of this file, by overload; they apply to f32."""
GROUPS: Decompositions = {aten.group_norm.default: _group_norm}
"""Decompositions that also apply to f16 and bf16."""
