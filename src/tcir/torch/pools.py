"""Decompositions of adaptive average pools, whose windows are means of slices."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tcir.torch.aten import Decompositions, aten, wide

MOST = 16
"""Windows along a dimension that are slices."""


def _adaptive(x: torch.Tensor, size: Sequence[int]) -> object:
    """Windows are the products of those along each dimension, so their means are, too."""
    if max(size) > MOST or min(size) < 1:
        return NotImplemented
    result = wide(x)
    dims = list(range(x.dim() - len(size), x.dim()))
    if max(size) == 1:
        return result.mean(dims, keepdim=True).to(x.dtype)
    for dim, count in zip(dims, size, strict=True):
        extent = x.shape[dim]
        ends = [(n * extent // count, -(-(n + 1) * extent // count)) for n in range(count)]
        parts = [result.narrow(dim, a, b - a).mean(dim, keepdim=True) for a, b in ends]
        result = torch.cat(parts, dim)
    return result.to(x.dtype)


POOLS: Decompositions = {
    aten.adaptive_avg_pool1d.default: _adaptive,
    aten.adaptive_avg_pool2d.default: _adaptive,
    aten._adaptive_avg_pool2d.default: _adaptive,
}
"""By overload."""
