"""Shape:stride layouts: functions from coordinates to indices, and the operations on them.

The definitions are CuTe's (NVIDIA/cutlass, media/docs/cpp/cute/02_layout_algebra.md). Each function
states its definition, and the tests check it for every element of small domains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from .int_tuple import (
    IntTuple,
    LayoutError,
    compact_strides,
    congruent,
    flatten,
    index_to_coordinate,
    offset,
    size,
)


@dataclass(frozen=True)
class Layout:
    """A layout ``shape:stride``; without strides, the compact column-major layout.

    ``layout(i)`` takes a linear index, ``layout(c0, c1)`` or ``layout((c0, c1))`` a coordinate.
    """

    shape: IntTuple
    stride: IntTuple

    def __init__(self, shape: IntTuple, stride: IntTuple | None = None) -> None:
        stride = compact_strides(shape) if stride is None else stride
        for each in (shape, stride):
            flatten(each)  # raises for what is no int tuple
        if not congruent(shape, stride):
            raise LayoutError(f"expected strides nested like shape {shape}, got {stride}")
        if any(extent < 1 for extent in flatten(shape)):
            raise LayoutError(f"expected positive extents, got shape {shape}")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)

    def __call__(self, *coordinate: IntTuple) -> int:
        point = coordinate[0] if len(coordinate) == 1 else coordinate
        return offset(point, self.shape, self.stride)

    def __str__(self) -> str:
        return f"{self.shape}:{self.stride}".replace(" ", "")

    def __len__(self) -> int:
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    def __getitem__(self, mode: int) -> Layout:
        if isinstance(self.shape, int):
            if mode not in (0, -1):
                raise IndexError(mode)
            return self
        assert isinstance(self.stride, tuple)
        return Layout(self.shape[mode], self.stride[mode])

    def __iter__(self) -> Iterator[Layout]:
        return (self[mode] for mode in range(len(self)))

    @property
    def size(self) -> int:
        """Number of coordinates (the domain is ``range(size)``)."""
        return size(self.shape)

    @property
    def cosize(self) -> int:
        """One more than the largest index."""
        return 1 + sum((n - 1) * d for n, d in self.leaves)

    @property
    def leaves(self) -> tuple[tuple[int, int], ...]:
        """``(extent, stride)`` of every leaf, fastest first."""
        return tuple(zip(flatten(self.shape), flatten(self.stride), strict=True))

    def coordinate(self, index: int) -> IntTuple:
        """Returns the natural coordinate at linear index ``index`` of the domain."""
        return index_to_coordinate(index, self.shape)

    def indices(self) -> list[int]:
        """Returns the indices of all coordinates in domain order."""
        found = [0]
        for extent, step in self.leaves:
            found = [i + step * e for e in range(extent) for i in found]
        return found


def from_leaves(leaves: list[tuple[int, int]] | tuple[tuple[int, int], ...]) -> Layout:
    """The flat layout of ``(extent, stride)`` pairs; a single pair gives a rank-1 int layout."""
    if not leaves:
        return Layout(1, 0)
    if len(leaves) == 1:
        return Layout(*leaves[0])
    return Layout(tuple(n for n, _ in leaves), tuple(d for _, d in leaves))


def concatenate(*layouts: Layout) -> Layout:
    """Returns one layout whose modes are ``layouts``."""
    return Layout(tuple(a.shape for a in layouts), tuple(a.stride for a in layouts))


def coalesce(layout: Layout) -> Layout:
    """Returns the layout with the fewest modes that maps each linear index to the same value as
    ``layout``."""
    merged: list[tuple[int, int]] = []
    for extent, step in layout.leaves:
        if extent == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == step:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, step))
    return from_leaves(merged)


def _compose_mode(a: Layout, extent: int, step: int) -> list[tuple[int, int]]:
    """Returns the leaves of ``a`` composed with ``extent:step``: ``i -> a(step * i)`` on
    ``range(extent)``."""
    if step == 0 or extent == 1:
        return [(extent, 0)]
    result, rest, skip = [], extent, step
    leaves = coalesce(a).leaves
    for position, (n, d) in enumerate(leaves):
        last = position == len(leaves) - 1
        if not last and skip >= n:
            if skip % n:
                raise LayoutError(
                    f"composition of {a} with {extent}:{step}: {n} does not divide stride {skip}"
                )
            skip //= n
            continue
        if not last and n % skip:
            raise LayoutError(
                f"composition of {a} with {extent}:{step}: stride {skip} does not divide extent {n}"
            )
        take = rest if last else min(rest, n // skip)
        if rest % take:
            raise LayoutError(
                f"composition of {a} with {extent}:{step}: extent {take} does not divide {rest}"
            )
        result.append((take, d * skip))
        rest, skip = rest // take, 1
        if rest == 1:
            break
    return result


def composition(a: Layout, b: Layout) -> Layout:
    """Returns ``R`` with ``R(c) = a(b(c))`` for every coordinate ``c`` of ``b``, nested like ``b``.

    Raises `LayoutError` if ``b``'s strides do not divide ``a``'s extents.
    """
    if isinstance(b.shape, tuple):
        return concatenate(*(composition(a, mode) for mode in b))
    assert isinstance(b.stride, int)
    return from_leaves(_compose_mode(a, b.shape, b.stride))


def complement(layout: Layout, cosize: int) -> Layout:
    """Returns the indices of ``range(cosize)`` that ``layout`` omits, as a layout ``R``.

    ``R`` is increasing and has only index 0 in common with ``layout``; ``(layout, R)`` covers at
    least ``cosize`` indices. Raises `LayoutError` if ``layout`` overlaps itself.
    """
    rest: list[tuple[int, int]] = []
    filled = 1
    for extent, step in sorted(
        (leaf for leaf in layout.leaves if leaf[0] > 1 and leaf[1] != 0), key=lambda leaf: leaf[1]
    ):
        if step % filled:
            raise LayoutError(
                f"complement of {layout}: stride {step} is not a multiple of {filled}"
            )
        rest.append((step // filled, filled))
        filled = step * extent
    rest.append((-(-cosize // filled), filled))
    return coalesce(from_leaves(rest))


def logical_divide(layout: Layout, tiler: Layout) -> Layout:
    """Returns ``((tile), (rest))``: ``layout`` cut into tiles of ``tiler``.

    The result is ``layout`` composed with ``(tiler, complement(tiler, size(layout)))``.
    """
    return composition(layout, concatenate(tiler, complement(tiler, layout.size)))


def logical_product(layout: Layout, tiler: Layout) -> Layout:
    """Returns ``((layout), (repeat))``: ``layout`` repeated along ``tiler`` without overlap."""
    rest = complement(layout, layout.size * tiler.cosize)
    return concatenate(layout, composition(rest, tiler))


def right_inverse(layout: Layout) -> Layout:
    """Returns the longest ``R`` with ``layout(R(i)) = i`` for all ``i`` in ``range(size(R))``."""
    starts = compact_strides(flatten(layout.shape))
    assert isinstance(starts, tuple)
    by_stride = sorted(
        zip(layout.leaves, flatten(starts), strict=True), key=lambda item: item[0][1]
    )
    result, reach = [], 1
    for (extent, step), start in by_stride:
        if extent == 1 or step == 0:
            continue
        if step != reach:
            break
        result.append((extent, start))
        reach *= extent
    return coalesce(from_leaves(result))


def left_inverse(layout: Layout) -> Layout:
    """Returns ``R`` with ``R(layout(i)) = i`` for all ``i``. The layout must be injective."""
    if not is_injective(layout):
        raise LayoutError(f"left inverse of {layout}: not injective, {collision(layout)}")
    return right_inverse(concatenate(layout, complement(layout, layout.cosize)))


def collision(layout: Layout) -> str:
    """Describes two coordinates of a layout with the same index; "" for an injective layout."""
    seen: dict[int, int] = {}
    for i, index in enumerate(layout.indices()):
        if index in seen:
            first, second = layout.coordinate(seen[index]), layout.coordinate(i)
            return f"coordinates {first} and {second} both map to {index}"
        seen[index] = i
    return ""


def is_injective(layout: Layout) -> bool:
    """Whether no two coordinates share an index."""
    leaves = sorted((leaf for leaf in layout.leaves if leaf[0] > 1), key=lambda leaf: leaf[1])
    if all(d > 0 for _, d in leaves) and all(n * d <= e for (n, d), (_, e) in pairwise(leaves)):
        return True
    return not collision(layout)


def transpose(layout: Layout) -> Layout:
    """Returns the layout with its top-level modes reversed."""
    return concatenate(*reversed(list(layout)))


def with_shape(layout: Layout, shape: IntTuple) -> Layout:
    """Returns the layout of shape ``shape`` that maps each linear index to the same value as
    ``layout``."""
    if size(shape) != layout.size:
        raise LayoutError(f"expected a shape of size {layout.size}, got {shape}")
    return composition(layout, Layout(shape))


__all__ = [
    "Layout",
    "LayoutError",
    "coalesce",
    "collision",
    "complement",
    "composition",
    "concatenate",
    "from_leaves",
    "is_injective",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "right_inverse",
    "transpose",
    "with_shape",
]
