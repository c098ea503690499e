"""Decompositions of adaptive pools: each window of the input becomes a slice, whose mean or maximum
is computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tcir.torch.aten import Decompositions, aten, wide

MOST = 16
"""Maximum number of windows along a dimension; pools with more are left as they are."""


def _ends(extent: int, count: int) -> list[tuple[int, int]]:
    """Begin and end of each window along a dimension."""
    return [(n * extent // count, -(-(n + 1) * extent // count)) for n in range(count)]


def _adaptive(x: torch.Tensor, size: Sequence[int]) -> object:
    """Adaptive average pool. A window is the product of windows along each dimension, so its mean
    is taken along one dimension after the other."""
    if max(size) > MOST or min(size) < 1:
        return NotImplemented
    result = wide(x)
    dims = list(range(x.dim() - len(size), x.dim()))
    if max(size) == 1:
        return result.mean(dims, keepdim=True).to(x.dtype)
    for dim, count in zip(dims, size, strict=True):
        parts = [
            result.narrow(dim, a, b - a).mean(dim, keepdim=True)
            for a, b in _ends(x.shape[dim], count)
        ]
        result = torch.cat(parts, dim)
    return result.to(x.dtype)


def _adaptive_max(x: torch.Tensor, size: Sequence[int]) -> object:
    """The largest element of each window and its index in the image, found along one dimension
    after the other, the last dimension first."""
    if max(size) > MOST or min(size) < 1:
        return NotImplemented
    values, place = x, None
    for dim, count in reversed(list(enumerate(size, x.dim() - len(size)))):
        found = [
            (start, *torch.max(values.narrow(dim, start, end - start), dim, keepdim=True))
            for start, end in _ends(x.shape[dim], count)
        ]
        values = torch.cat([largest for _, largest, _ in found], dim)
        at = torch.cat([index + start for start, _, index in found], dim)
        if place is not None:  # the column that the row has
            at = at * x.shape[dim + 1] + torch.gather(place, dim, at)
        place = at
    return values, place


POOLS: Decompositions = {
    aten.adaptive_avg_pool1d.default: _adaptive,
    aten.adaptive_avg_pool2d.default: _adaptive,
    aten._adaptive_avg_pool2d.default: _adaptive,
    aten.adaptive_avg_pool3d.default: _adaptive,
    aten._adaptive_avg_pool3d.default: _adaptive,
    aten.adaptive_max_pool1d.default: _adaptive_max,
    aten.adaptive_max_pool2d.default: _adaptive_max,
}
"""The decompositions of this file, by overload."""
