"""Decompositions of scatters, and of ops that move elements to positions given by a mask or shape.

As in `tcir.torch.places`, each op is a gather, found by comparing all pairs of positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch

from tcir.torch.aten import Decompositions, aten, wide
from tcir.torch.places import MOST, inside, places, scatters

ROWS = 64
"""Maximum number of rows of a triangle."""
TAPS = 64
"""Maximum number of elements of a window; they are added one by one."""
_OF_ALL: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda terms: terms.sum(-1),
    "mean": lambda terms: terms.sum(-1),
    "prod": lambda terms: terms.prod(-1),
    "amax": lambda terms: terms.amax(-1),
    "amin": lambda terms: terms.amin(-1),
}
_OF_TWO: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add,
    "mean": torch.add,
    "prod": torch.mul,
    "amax": torch.maximum,
    "amin": torch.minimum,
}
_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -torch.inf, "amin": torch.inf}


def _scatter_reduce(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> object:
    """Reduces each element of `x` with all elements of `source` whose index names its position.
    Floats only.

    include_self: if false, a position that an index names leaves out its element of `x`
    """
    if not scatters(x, dim, index) or not x.is_floating_point():
        return NotImplemented
    source = source[tuple(slice(0, size) for size in index.shape)]
    moved, given = (wide(each).movedim(dim, -1) for each in (x, source))
    at = inside(index.movedim(dim, -1), x.shape[dim])
    hit = at.unsqueeze(-2) == places(x.shape[dim], x)[:, None]
    neutral = torch.full((), _NEUTRAL[reduce], dtype=moved.dtype, device=x.device)
    total = _OF_ALL[reduce](torch.where(hit, given.unsqueeze(-2), neutral))
    count = hit.to(torch.int64).sum(-1)
    if include_self:
        total, count = _OF_TWO[reduce](moved, total), count + 1
    if reduce == "mean":
        total = total / count.clamp(min=1).to(total.dtype)
    result = total if include_self else torch.where(count > 0, total, moved)
    return result.to(x.dtype).movedim(-1, dim).contiguous()


def _masked_scatter(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> object:
    """`x` with the elements of `source`, in order, where the mask is true."""
    if not source.numel() or x.numel() ** 2 > MOST:
        return NotImplemented
    chosen = mask.expand(x.shape).reshape(-1)
    rank = (chosen.to(torch.int64).cumsum(0) - 1).clamp(min=0)
    found = source.reshape(-1).index_select(0, rank).view(x.shape)
    return torch.where(mask, found, x)


def _nonzero_static(x: torch.Tensor, *, size: int, fill_value: int = -1) -> object:
    """The indices of the first `size` elements that are not 0, padded with `fill_value`."""
    if x.dim() == 0 or not size or x.numel() * max(size, x.numel()) > MOST:
        return NotImplemented
    chosen = (x != 0).reshape(-1)
    place = places(x.numel(), x)
    rank = chosen.to(torch.int64).cumsum(0)
    hit = chosen & (rank == places(size, x)[:, None] + 1)
    number = torch.where(hit, place, 0).sum(-1)
    fill = torch.full((), fill_value, dtype=torch.int64, device=x.device)
    is_there = places(size, x) < rank[-1]
    found = list[torch.Tensor]()
    for extent in reversed(x.shape):
        rest = torch.div(number, extent, rounding_mode="floor")
        found.insert(0, torch.where(is_there, number - rest * extent, fill))
        number = rest
    return torch.stack(found, -1)


def _diagonal_scatter(
    x: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    """`x` with its diagonal replaced by `source`."""
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = (places(n, x) for n in moved.shape[-2:])
    is_it = rows[:, None] + offset == columns
    along = (rows if offset >= 0 else columns).clamp(max=source.shape[-1] - 1)
    given = source.index_select(-1, along).unsqueeze(-1 if offset >= 0 else -2)
    return torch.where(is_it, given, moved).movedim((-2, -1), (dim1, dim2)).contiguous()


def _as_strided_scatter(
    x: torch.Tensor,
    source: torch.Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> object:
    """`x`, which is contiguous, with `source` at the elements of its memory that size, stride and
    offset select."""
    if not x.is_contiguous() or x.numel() * source.numel() > MOST or not source.numel():
        return NotImplemented
    at = torch.full((), storage_offset or 0, dtype=torch.int64, device=x.device)
    for count, step in zip(size, stride, strict=True):
        at = at.unsqueeze(-1) + places(count, x) * step
    flat = aten.scatter.src(x.reshape(-1), 0, at.reshape(-1), source.reshape(-1))
    return flat.view(x.shape)


def _col2im(
    x: torch.Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> object:
    """Sums at each pixel the elements of all windows that cover it, one element of the windows
    after another."""
    if kernel_size[0] * kernel_size[1] > TAPS:
        return NotImplemented
    if x.dim() == 2:
        return aten.col2im.default(
            x.unsqueeze(0), output_size, kernel_size, dilation, padding, stride
        ).squeeze(0)
    windows = [
        (extent + 2 * p - d * (k - 1) - 1) // s + 1
        for extent, k, d, p, s in zip(
            output_size, kernel_size, dilation, padding, stride, strict=True
        )
    ]
    channels = x.shape[1] // (kernel_size[0] * kernel_size[1])
    parts = wide(x).reshape(x.shape[0], channels, *kernel_size, *windows)
    total = torch.zeros((x.shape[0], channels, *output_size), dtype=parts.dtype, device=x.device)
    zero = torch.zeros((), dtype=parts.dtype, device=x.device)
    for tap in range(kernel_size[0] * kernel_size[1]):
        taps = divmod(tap, kernel_size[1])
        found = parts[:, :, taps[0], taps[1]]
        both = []
        for axis in range(2):
            first = places(output_size[axis], x) + padding[axis] - taps[axis] * dilation[axis]
            number = torch.div(first, stride[axis], rounding_mode="floor")
            fits = (number * stride[axis] == first) & (number >= 0) & (number < windows[axis])
            found = found.index_select(2 + axis, torch.where(fits, number, 0))
            both.append(fits)
        total = total + torch.where(both[0][:, None] & both[1], found, zero)
    return total.to(x.dtype)


def _triangle(rows: int, columns: int, offset: int, lower: bool) -> object:
    """Row and column indices of a triangle, row by row. The row of each position is the number of
    rows that end before it."""
    if not 0 < rows <= ROWS:
        return NotImplemented
    ends = [min(max(row + offset + lower, 0), columns) for row in range(rows)]
    spans = [(0, end) if lower else (end, columns) for end in ends]
    count = sum(end - first for first, end in spans)
    place = torch.arange(count)
    row, column = torch.zeros_like(place), place + spans[0][0]
    begin = 0
    for (first, end), (following, _) in pairwise(spans):
        begin += end - first
        is_behind = (place >= begin).to(torch.int64)
        row = row + is_behind
        column = column + is_behind * (following - end)
    return torch.stack((row, column))


def _histc(x: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> object:
    """Counts of elements from each edge to the next, in a given range; the last edge is part of the
    last bin. Edges are those of `torch.linspace` in f32, as in PyTorch's kernel on the CPU."""
    exact = x.dtype in (torch.float32, torch.int32, torch.int64)
    if not exact or not -(2**24) < min < max < 2**24 or x.numel() * bins > MOST:
        return NotImplemented
    place, step = places(bins + 1, x).to(torch.float32), (max - min) / bins
    edges = torch.where(place < (bins + 1) // 2, min + step * place, max - step * (bins - place))
    values = x.reshape(-1, 1).to(torch.float32)
    below = (values < edges).to(torch.int64).sum(0)  # of all edges
    above = (values > max).to(torch.int64).sum()
    ends = torch.where(place == bins, x.numel() - above, below)
    return (ends[1:] - ends[:-1]).to(x.dtype)


def _tril_indices(rows: int, columns: int, offset: int = 0, **_: object) -> object:
    return _triangle(rows, columns, offset, True)


def _triu_indices(rows: int, columns: int, offset: int = 0, **_: object) -> object:
    return _triangle(rows, columns, offset, False)


SCATTERS: Decompositions = {
    aten.tril_indices.default: _tril_indices,
    aten.triu_indices.default: _triu_indices,
    aten.scatter_reduce.two: _scatter_reduce,
    aten.masked_scatter.default: _masked_scatter,
    aten.nonzero_static.default: _nonzero_static,
    aten.diagonal_scatter.default: _diagonal_scatter,
    aten.as_strided_scatter.default: _as_strided_scatter,
    aten.col2im.default: _col2im,
    aten.histc.default: _histc,
}
"""The decompositions of this file, by overload."""
