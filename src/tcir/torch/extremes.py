"""Decompositions of argmin, argmax, and min and max along a dimension.

torch-mlir searches one element after the other, and a NaN ends its search. PyTorch returns the
first position of the extreme, where NaN counts both as the largest and as the smallest element.
Here one reduction finds the extreme and a second reduction finds its first position. Their results
do not depend on the order of the elements, and a group of threads loads a row only once for the two
reductions. Positions are i32, which CUDA cores compare in one instruction.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tcir.torch.aten import Decomposition, Decompositions, aten

Reduction = Callable[[torch.Tensor, list[int], bool], torch.Tensor]
MOST = (1 << 31) - 1
"""Maximum number of elements whose places are i32."""


def _first(x: torch.Tensor, extreme: torch.Tensor, dim: int) -> torch.Tensor:
    """The first place along `dim` that holds `extreme`, whose size there is 1."""
    count = x.shape[dim]
    shape = [count if d == dim % x.dim() else 1 for d in range(x.dim())]
    place = torch.arange(count, dtype=torch.int32, device=x.device).view(shape)
    holds = x == extreme
    if x.is_floating_point():
        holds = holds | (x != x)
    beyond = torch.full((), count, dtype=torch.int32, device=x.device)
    return aten.amin.default(torch.where(holds, place, beyond), [dim], True).to(torch.int64)


def _place(reduction: Reduction) -> Decomposition:
    """argmax or argmin."""

    def decomposition(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> object:
        if not x.dim() or not 0 < x.numel() <= MOST or x.dtype == torch.bool:
            return NotImplemented
        if dim is None:
            flat = x.reshape(-1)
            found = _first(flat, reduction(flat, [0], True), 0)
            return found.view([1] * x.dim() if keepdim else [])
        found = _first(x, reduction(x, [dim], True), dim)
        return found if keepdim else found.squeeze(dim)

    return decomposition


def _both(reduction: Reduction) -> Decomposition:
    """max or min along a dimension: the elements and their places."""

    def decomposition(x: torch.Tensor, dim: int, keepdim: bool = False) -> object:
        if not x.dim() or not 0 < x.numel() <= MOST or x.dtype == torch.bool:
            return NotImplemented
        values = reduction(x, [dim], True)
        pair = (values, _first(x, values, dim))
        return pair if keepdim else tuple(each.squeeze(dim) for each in pair)

    return decomposition


EXTREMES: Decompositions = {
    aten.argmax.default: _place(aten.amax.default),
    aten.argmin.default: _place(aten.amin.default),
    aten.max.dim: _both(aten.amax.default),
    aten.min.dim: _both(aten.amin.default),
}
"""The decompositions of this file, by overload."""
