"""Decompositions of cumulative products, sums and extremes, and of medians, by comparing all pairs
of positions."""

from __future__ import annotations

import torch

from tcir.torch.aten import Decompositions, aten, wide
from tcir.torch.places import MOST, accumulated, order, places


def _pairs(x: torch.Tensor, dim: int, before: float) -> torch.Tensor | None:
    """For each element of the dimension `dim`, which is moved to the end: the elements up to it in
    a new last dimension, with `before` in place of later ones. None if there are more than `MOST`
    pairs."""
    if x.dim() == 0 or x.numel() * x.shape[dim] > MOST:
        return None
    moved, place = x.movedim(dim, -1), places(x.shape[dim], x)
    other = torch.full((), before, dtype=x.dtype, device=x.device)
    return torch.where(place[:, None] >= place, moved.unsqueeze(-2), other)


def _cumprod(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> object:
    result = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    factors = _pairs(x.to(result).to(accumulated(result)), dim, 1)
    if factors is None:
        return NotImplemented
    return factors.prod(-1).to(result).movedim(-1, dim).contiguous()


def _logcumsumexp(x: torch.Tensor, dim: int) -> object:
    terms = _pairs(wide(x), dim, -torch.inf) if x.is_floating_point() else None
    if terms is None:
        return NotImplemented
    return terms.logsumexp(-1).to(x.dtype).movedim(-1, dim).contiguous()


def _extreme(x: torch.Tensor, dim: int, largest: bool) -> object:
    """The largest or smallest element so far and its position: the last of equal elements, or after
    a NaN, the last NaN."""
    before = -torch.inf if largest else torch.inf
    so_far = _pairs(x, dim, before) if x.is_floating_point() else None
    if so_far is None:
        return NotImplemented
    value = (so_far.amax if largest else so_far.amin)(-1)
    place = places(x.shape[dim], x)
    is_it = (so_far == value.unsqueeze(-1)) | (so_far != so_far)
    last = torch.where(is_it & (place[:, None] >= place), place, 0).amax(-1)
    return value.movedim(-1, dim).contiguous(), last.movedim(-1, dim).contiguous()


def _cummax(x: torch.Tensor, dim: int) -> object:
    return _extreme(x, dim, True)


def _cummin(x: torch.Tensor, dim: int) -> object:
    return _extreme(x, dim, False)


def _median(x: torch.Tensor) -> object:
    """The median of all elements; the lower of the two middle ones; NaN if an element is NaN."""
    found = _median_of(x.reshape(-1), 0)
    return found[0] if isinstance(found, tuple) else found


def _median_of(x: torch.Tensor, dim: int, keepdim: bool = False) -> object:
    """The median along a dimension and its position."""
    if x.dim() == 0 or x.dtype == torch.bool or x.numel() * x.shape[dim] > MOST:
        return NotImplemented
    moved = x.movedim(dim, -1)
    middle = (x.shape[dim] - 1) // 2
    place = order(moved, False, middle + 1).narrow(-1, middle, 1)
    if x.is_floating_point():  # NaN are the largest: the first of them
        nan = moved != moved
        first = torch.where(nan, places(x.shape[dim], x), x.shape[dim]).amin(-1, keepdim=True)
        place = torch.where(first < x.shape[dim], first, place)
    pair = (torch.gather(moved, -1, place), place)
    return tuple(
        each.movedim(-1, dim).contiguous() if keepdim else each.squeeze(-1) for each in pair
    )


def _kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> object:
    """The kth smallest element and its position; NaN is larger than all numbers."""
    if x.dim() == 0 or x.numel() * x.shape[dim] > MOST:
        return NotImplemented
    moved = x.movedim(dim, -1)
    place = order(moved, False, k).narrow(-1, k - 1, 1)
    pair = (torch.gather(moved, -1, place), place)
    return tuple(
        each.movedim(-1, dim).contiguous() if keepdim else each.squeeze(-1) for each in pair
    )


SCANS: Decompositions = {
    aten.cumprod.default: _cumprod,
    aten.cummax.default: _cummax,
    aten.cummin.default: _cummin,
    aten.logcumsumexp.default: _logcumsumexp,
    aten.kthvalue.default: _kthvalue,
    aten.median.default: _median,
    aten.median.dim: _median_of,
}
"""The decompositions of this file, by overload."""
