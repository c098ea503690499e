"""Decompositions of ops that move elements to positions found at run time: scans, sorts, scatters.

In a kernel, a thread computes one element of the result from the operands. Therefore each op is
written as a gather: to find the element that moves to a position, all pairs of positions are
compared and the matches are summed. The cost is quadratic in the size of a dimension; ops with more
than `MOST` pairs are left to PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from tcir.torch.aten import Decompositions, aten

MOST = 1 << 24
"""Maximum number of pairs of positions that are compared."""


def places(count: int, like: torch.Tensor) -> torch.Tensor:
    return torch.arange(count, device=like.device)


def inside(index: torch.Tensor, count: int) -> torch.Tensor:
    """Returns the index after a lookup in a table of `count` positions, which checks the bounds of
    the index.
    """
    flat = places(count, index).index_select(0, index.reshape(-1).to(torch.int64))
    return flat.view(index.shape)


def accumulated(kind: torch.dtype) -> torch.dtype:
    """The type in which PyTorch accumulates elements of type `kind` on the CPU."""
    if not kind.is_floating_point:
        return torch.int64
    return torch.float32 if kind in (torch.float16, torch.bfloat16) else torch.float64


def _cumsum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> object:
    if x.dim() == 0 or x.numel() * x.shape[dim] > MOST:
        return NotImplemented
    result = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    moved = x.to(result).to(accumulated(result)).movedim(dim, -1)
    place = places(x.shape[dim], x)
    zero = torch.zeros((), dtype=moved.dtype, device=x.device)
    terms = torch.where(place[:, None] >= place, moved.unsqueeze(-2), zero)
    return terms.sum(-1).to(result).movedim(-1, dim).contiguous()


def order(x: torch.Tensor, descending: bool, count: int) -> torch.Tensor:
    """Positions of the first `count` elements of the sorted last dimension. The sort is stable; NaN
    is larger than all numbers."""
    place = places(x.shape[-1], x)
    mine, other = x.unsqueeze(-1), x.unsqueeze(-2)
    first = (other > mine) if descending else (other < mine)
    same = other == mine
    if x.is_floating_point():
        nan, others = mine != mine, other != other
        first = first | ((others & ~nan) if descending else (nan & ~others))
        same = same | (nan & others)
    rank = (first | (same & (place < place[:, None]))).sum(-1)
    hit = rank.unsqueeze(-2) == place[:count, None]
    return torch.where(hit, place, torch.zeros_like(place)).sum(-1)


def _taken(x: torch.Tensor, dim: int, descending: bool, count: int) -> object:
    if x.dim() == 0 or x.dtype == torch.bool or x.numel() * x.shape[dim] > MOST:
        return NotImplemented
    moved = x.movedim(dim, -1)
    place = order(moved, descending, count)
    pair = (torch.gather(moved, -1, place), place)
    return tuple(each.movedim(-1, dim).contiguous() for each in pair)


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> object:
    return _taken(x, dim, descending, x.shape[dim] if x.dim() else 1)


def _stable_sort(
    x: torch.Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> object:
    return _sort(x, dim, descending)


def _topk(
    x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> object:
    return _taken(x, dim, largest, k)


def _last(index: torch.Tensor, count: int) -> torch.Tensor:
    """For each of `count` positions, the position in the last dimension of `index` of the last
    element that names it, plus 1; 0 if none does."""
    hit = inside(index, count).unsqueeze(-2) == places(count, index)[:, None]
    number = places(index.shape[-1], index) + 1
    return torch.where(hit, number, torch.zeros_like(number)).amax(-1)


def _scatter(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> object:
    """`x` with elements of `source` at the positions in `index`; the last one wins if several name
    a position."""
    if not scatters(x, dim, index):
        return NotImplemented
    source = source[tuple(slice(0, size) for size in index.shape)]
    moved, at, given = (each.movedim(dim, -1) for each in (x, index, source))
    last = _last(at, x.shape[dim])
    found = torch.gather(given, -1, (last - 1).clamp(min=0))
    return torch.where(last > 0, found, moved).movedim(-1, dim).contiguous()


def _scatter_value(x: torch.Tensor, dim: int, index: torch.Tensor, value: float) -> object:
    if not scatters(x, dim, index):
        return NotImplemented
    moved, at = x.movedim(dim, -1), index.movedim(dim, -1)
    number = torch.full((), value, dtype=x.dtype, device=x.device)
    return torch.where(_last(at, x.shape[dim]) > 0, number, moved).movedim(-1, dim).contiguous()


def scatters(x: torch.Tensor, dim: int, index: torch.Tensor) -> bool:
    """Whether `index` has the shape of `x` in all dimensions except `dim`, and at most `MOST` pairs
    are compared.
    """
    if x.dim() == 0 or not index.numel() or index.dtype != torch.int64:
        return False
    same = [n for d, n in enumerate(x.shape) if d != dim % x.dim()]
    other = [n for d, n in enumerate(index.shape) if d != dim % x.dim()]
    return same == other and index.numel() * x.shape[dim] <= MOST


def _index_copy(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> object:
    """`x` with slices of `source` at the positions in `index`; the last one wins if several name a
    position."""
    if x.dim() == 0 or index.dim() != 1 or index.numel() * x.shape[dim] > MOST:
        return NotImplemented
    last = _last(index, x.shape[dim])
    found = source.index_select(dim, (last - 1).clamp(min=0))
    return torch.where(_along(last > 0, dim, x.dim()), found, x)


def _along(values: torch.Tensor, dim: int, rank: int) -> torch.Tensor:
    shape = [1] * rank
    shape[dim] = values.shape[0]
    return values.view(shape)


def _index_add(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: float = 1
) -> object:
    """`x` plus `alpha` times the slices of `source`, each at the position that its index names."""
    if x.dim() == 0 or index.dim() != 1 or source.numel() * x.shape[dim] > MOST:
        return NotImplemented
    at = inside(index, x.shape[dim]).expand(*source.movedim(dim, -1).shape)
    return _added(x, dim, at, source.movedim(dim, -1) * alpha)


def _scatter_add(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> object:
    if not scatters(x, dim, index):
        return NotImplemented
    source = source[tuple(slice(0, size) for size in index.shape)]
    at = inside(index.movedim(dim, -1), x.shape[dim])
    return _added(x, dim, at, source.movedim(dim, -1))


def _added(x: torch.Tensor, dim: int, at: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    kind = torch.promote_types(x.dtype, torch.float32) if x.is_floating_point() else x.dtype
    hit = at.unsqueeze(-2) == places(x.shape[dim], x)[:, None]
    zero = torch.zeros((), dtype=kind, device=x.device)
    total = torch.where(hit, source.to(kind).unsqueeze(-2), zero).sum(-1)
    result = (x.movedim(dim, -1).to(kind) + total).to(x.dtype)
    return result.movedim(-1, dim).contiguous()


def _index_put(
    x: torch.Tensor,
    indices: Sequence[torch.Tensor | None],
    values: torch.Tensor,
    accumulate: bool = False,
) -> object:
    """`x` with slices of `values` along one dimension, at the indices; indices below 0 count from
    the end."""
    dims = [d for d, each in enumerate(indices) if each is not None]
    if len(dims) != 1:
        return NotImplemented
    (dim,) = dims
    index = indices[dim]
    if index is None or index.dim() != 1 or index.dtype != torch.int64:
        return NotImplemented
    shape = [*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :]]
    if math.prod(shape) * x.shape[dim] > MOST:
        return NotImplemented
    index = torch.where(index < 0, index + x.shape[dim], index)
    change = aten.index_add.default if accumulate else aten.index_copy.default
    return change(x, dim, index, values.expand(shape))


def _roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> object:
    """Cuts each dimension into two slices and exchanges them."""
    if not dims:
        return aten.roll.default(x.reshape(-1), shifts, [0]).view(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        count = x.shape[dim]
        if count and (first := shift % count):
            parts = (x.narrow(dim, count - first, first), x.narrow(dim, 0, count - first))
            x = torch.cat(parts, dim)
    return x.clone()


def _pad(
    x: torch.Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> object:
    """Reflected and circular padding, as a gather of elements from other positions."""
    if mode not in ("reflect", "circular") or min(pad) < 0:
        return NotImplemented
    for number in range(0, len(pad), 2):
        dim = x.dim() - 1 - number // 2
        count, (low, high) = x.shape[dim], pad[number : number + 2]
        place = places(low + count + high, x) - low
        if mode == "circular":
            place = torch.where(place < 0, place + count, place)
            place = torch.where(place >= count, place - count, place)
        else:
            place = torch.where(place < 0, -place, place)
            place = torch.where(place >= count, 2 * (count - 1) - place, place)
        x = x.index_select(dim, place)
    return x


PLACES: Decompositions = {
    aten.roll.default: _roll,
    aten.pad.default: _pad,
    aten.cumsum.default: _cumsum,
    aten.sort.default: _sort,
    aten.sort.stable: _stable_sort,
    aten.topk.default: _topk,
    aten.scatter.src: _scatter,
    aten.scatter.value: _scatter_value,
    aten.scatter_add.default: _scatter_add,
    aten.index_copy.default: _index_copy,
    aten.index_add.default: _index_add,
    aten.index_put.default: _index_put,
}
"""The decompositions of this file, by overload."""
