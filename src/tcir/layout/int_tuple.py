"""Nested tuples of ints ("int tuples"), the shapes, strides and coordinates of layouts.

Coordinates count column-major as in CuTe: the first mode is the fastest.
"""

from __future__ import annotations

from math import prod

from tcir.errors import InputError

IntTuple = int | tuple["IntTuple", ...]


class LayoutError(InputError, ValueError):
    """Raised if a layout operation is undefined for its arguments; the message shows the part that
    is the reason.
    """


def flatten(value: IntTuple) -> tuple[int, ...]:
    """Leaves of ``value`` from left to right."""
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, tuple | list):
        raise LayoutError(f"expected an int or a tuple of ints, nested or not, got {value!r}")
    return tuple(leaf for item in value for leaf in flatten(item))


def unflatten(leaves: tuple[int, ...], profile: IntTuple) -> IntTuple:
    """Nests ``leaves`` like ``profile``; inverse of `flatten`."""
    rest = iter(leaves)

    def build(item: IntTuple) -> IntTuple:
        return next(rest) if isinstance(item, int) else tuple(build(part) for part in item)

    return build(profile)


def size(value: IntTuple) -> int:
    """Product of all leaves."""
    return prod(flatten(value))


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether ``a`` and ``b`` have the same nesting."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(congruent(x, y) for x, y in zip(a, b, strict=True))


def compact_strides(shape: IntTuple) -> IntTuple:
    """Strides of the compact column-major layout of ``shape``."""
    strides, step = [], 1
    for extent in flatten(shape):
        strides.append(step)
        step *= extent
    return unflatten(tuple(strides), shape)


def index_to_coordinate(index: int, shape: IntTuple) -> IntTuple:
    """Returns the natural coordinate of ``shape`` at linear index ``index``."""
    leaves = []
    for extent in flatten(shape):
        leaves.append(index % extent)
        index //= extent
    return unflatten(tuple(leaves), shape)


def offset(coordinate: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    """Inner product of a coordinate with strides.

    ``coordinate`` may be less nested than ``shape``: an int is a linear index into its mode.
    """
    if isinstance(coordinate, tuple):
        if isinstance(shape, int) or isinstance(stride, int) or len(coordinate) != len(shape):
            raise LayoutError(f"expected a coordinate that fits shape {shape}, got {coordinate}")
        return sum(offset(c, s, d) for c, s, d in zip(coordinate, shape, stride, strict=True))
    if isinstance(shape, tuple):
        assert isinstance(stride, tuple)
        total = 0
        for extent, step in zip(shape[:-1], stride[:-1], strict=True):
            total += offset(coordinate % size(extent), extent, step)
            coordinate //= size(extent)
        return total + (offset(coordinate, shape[-1], stride[-1]) if shape else 0)
    assert isinstance(stride, int)
    return coordinate * stride
