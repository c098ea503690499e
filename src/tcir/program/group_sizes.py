"""Draws the sizes of the groups of a ``tc.grouped_matmul`` and the ends of the sequences of a
``tc.attention``. No other inputs decide control flow at run time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tcir.interp import OutputSpec
from tcir.interp.types import Array

TILE = 128
"""Rows of a tile."""
EDGES = (TILE - 1, TILE, TILE + 1, 0, 1, 2 * TILE + 1, 2 * TILE, 2 * TILE - 1)
"""Sizes around whole tiles, and around the largest number of a byte."""


def group_sizes(spec: OutputSpec, seed: int) -> Array:
    """Draws group sizes: one in four is 0, and most others are random parts of the available rows.

    If each group has its own rows, one group fills all of its rows.
    """
    generator = np.random.default_rng(seed)
    each, total = spec.groups or (0, 0)
    count = math.prod(spec.shape)
    empty = generator.random(count) < 1 / 4
    if count * each <= total:
        sizes = generator.integers(0, each, count, endpoint=True)
        sizes[empty] = 0
        sizes[generator.integers(count)] = each
    else:
        left = total - total // 8
        ends = np.sort(generator.integers(0, left, count, endpoint=True))
        ends[empty] = 0
        sizes = np.diff(np.maximum.accumulate(ends), prepend=0)
    return sizes.astype(spec.dtype).reshape(spec.shape)


def sequence_ends(total: int, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Draws the ends of sequences, after a leading 0; the last end is `total`. One in four
    sequences is empty.
    """
    (count,) = shape
    inner = np.sort(generator.integers(0, total, count - 2, endpoint=True))
    inner[generator.random(count - 2) < 1 / 4] = 0
    return np.array([0, *np.maximum.accumulate(inner), total], np.int32)


def special_ends(spec: OutputSpec) -> Iterator[tuple[str, Array]]:
    """Yields descriptions of further executions, each with its ends of sequences: lengths at the
    edges of tiles, and a single sequence of all elements between empty sequences.
    """
    (count,), total = spec.shape, spec.ends or 0
    for words, edges in (("", EDGES), ("more ", EDGES[4:] + EDGES[:4])):
        sizes = _edges(total, total, count - 1, False, edges)
        sizes[-1] += total - sum(sizes)
        yield f"sequences at edges of {words}tiles", np.cumsum([0, *sizes], dtype=np.int32)
    yield (
        "one sequence of all",
        np.where(np.arange(count) <= (count - 1) // 2, 0, total).astype("i4"),
    )


def special_sizes(spec: OutputSpec) -> Iterator[tuple[str, Array]]:
    """Yields descriptions of further executions, each with its group sizes: sizes at the edges of
    tiles, all rows in one group, and sizes above 255, in the first groups and in the last groups.
    """
    each, total = spec.groups or (0, 0)
    count = math.prod(spec.shape)
    apart = count * each <= total
    yield "groups at edges of tiles", _made(spec, _edges(each, total, count, apart, EDGES))
    turned = [*EDGES[4:], *EDGES[:4]]
    last = _edges(each, total, count, apart, turned)[::-1]
    yield "groups at edges of more tiles", _made(spec, last)
    full = [each] * count if apart else [0] * (count // 2) + [total]
    yield "groups with all rows", _made(spec, full)


def _edges(
    each: int, total: int, count: int, apart: bool, edges: tuple[int, ...] | list[int]
) -> list[int]:
    """Returns one edge after the other, limited to the room left."""
    sizes: list[int] = []
    left = total
    for size in (edges * count)[:count]:
        sizes.append(min(size, each if apart else left))
        left -= sizes[-1]
    return sizes


def _made(spec: OutputSpec, sizes: list[int]) -> Array:
    found = np.zeros(math.prod(spec.shape), spec.dtype)
    found[: len(sizes)] = sizes
    return found.reshape(spec.shape)
