"""The bytes that one TMA instruction moves in the tile modes: for each word, its global address and
its shared offset.

The functions depend only on a `DecodedMap` and the instruction's coordinates. They enumerate words
of `MapFields.piece_bytes` bytes (an element, or part of an indivisible unit) in shared-memory
order, innermost first; rows are `MapFields.row_pitch` bytes apart. A global address of -1 is out of
bounds: a load writes the fill value for it, a store skips it. The swizzle is not applied here,
because it acts on the absolute shared address: `swizzle_address(destination + offset, mode)`.

Sources: PTX ISA 5.5.3 (tiled mode, gather4 and scatter4), 5.5.6 (interleave). Three rules are
undocumented and were observed on an H200: the first coordinate must be a multiple of 16 bytes; with
a swizzle, rows are one span apart even if they are shorter; an interleaved box has one channel
slice, whatever its extent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.map_fields import DecodedMap, MapFields
from tcir.machine.tma.tensor_limits import ALIGNMENT
from tcir.machine.tma.tensor_types import PADDED, PADDED_INNER, Unit

Index = NDArray[np.int64]

OUTSIDE = -1
"""Global address of a word outside the tensor."""


@cache
def shared_offsets(fields: MapFields, rows: int) -> Index:
    """Byte offset in shared memory of each word of `rows` rows, before swizzling."""
    unit = fields.unit
    starts = np.arange(fields.counts[0], dtype=np.int64) * unit.shared_bytes
    parts = np.arange(0, unit.global_bytes, unit.piece)
    lines = np.arange(rows, dtype=np.int64) * fields.row_pitch
    offsets = (lines[:, None, None] + starts[:, None] + parts).reshape(-1)
    offsets.flags.writeable = False
    return offsets


def words(units: Index, unit: Unit) -> Index:
    """Global addresses of all words of the units at the given addresses."""
    if unit.pieces == 1:
        return units
    parts = units[:, None] + np.arange(0, unit.global_bytes, unit.piece)
    return np.where(units[:, None] == OUTSIDE, OUTSIDE, parts).reshape(-1)


def check_mode(decoded: DecodedMap, mode: str, coords: Sequence[int], count: int) -> None:
    """Raises TensorMapError unless the map has this mode and needs this number of coordinates."""
    f = decoded.fields
    if f.mode != mode:
        raise TensorMapError(
            "mode of the instruction", mode, f.mode, "the tensor map was encoded for that mode"
        )
    if len(coords) != count:
        raise TensorMapError(
            "number of coordinates", len(coords), str(count), "one per dimension of the tensor map"
        )


def first_unit(decoded: DecodedMap, coordinate: int) -> int:
    """Number of the unit along dimension 0 that contains a coordinate given in elements."""
    f = decoded.fields
    if f.interleaved:
        return coordinate
    unit = f.unit
    step = PADDED_INNER if f.dtype in PADDED else ALIGNMENT * unit.elements // unit.global_bytes
    if coordinate % max(step, 1):
        raise TensorMapError(
            "coordinate 0",
            coordinate,
            f"a multiple of {step} ({f.dtype})",
            "the box has to begin at a multiple of 16 bytes"
            if f.dtype not in PADDED
            else "PTX ISA 9.7.9.27.1.1",
        )
    return coordinate // unit.elements


def _steps(fields: MapFields) -> tuple[int, ...]:
    """Distance in elements between neighbours in the box, per dimension."""
    return fields.element_strides if fields.interleaved else (1, *fields.element_strides[1:])


def _along(fields: MapFields, dimension: int) -> list[int]:
    """Shape that broadcasts values along one dimension of a box over the others."""
    shape = [1] * fields.rank
    shape[fields.rank - 1 - dimension] = fields.counts[dimension]
    return shape


@lru_cache(maxsize=256)
def _box_units(fields: MapFields) -> Index:
    """Global addresses of the units of a box, relative to its first."""
    address = np.zeros((1,) * fields.rank, np.int64)
    pitches = (fields.unit.global_bytes, *fields.strides_bytes)
    for i, (step, pitch) in enumerate(zip(_steps(fields), pitches)):
        index = step * np.arange(fields.counts[i], dtype=np.int64)
        address = address + (index * pitch).reshape(_along(fields, i))
    units = address.reshape(-1)
    units.flags.writeable = False
    return units


def tile_elements(decoded: DecodedMap, coords: Sequence[int]) -> tuple[Index, Index]:
    """Returns (global byte addresses, shared byte offsets), int64 [words], of a box in tile mode.

    `coords` are in elements, innermost first, and may be negative or past the end of the tensor.
    """
    f = decoded.fields
    check_mode(decoded, "tiled", coords, f.rank)
    unit = f.unit
    starts = (first_unit(decoded, coords[0]), *coords[1:])
    dims = (f.dims[0] // unit.elements, *f.dims[1:])
    steps, pitches = _steps(f), (unit.global_bytes, *f.strides_bytes)
    # In 64 bits: coordinates far outside may overflow, their addresses are not used.
    units = _box_units(f) + np.dot(np.array(starts), np.array(pitches)) + decoded.address
    inside: NDArray[np.bool_] | None = None
    for i, (start, count, dim) in enumerate(zip(starts, f.counts, dims)):
        if start < 0 or start + steps[i] * (count - 1) >= dim:
            index = start + steps[i] * np.arange(count, dtype=np.int64)
            ok = ((index >= 0) & (index < dim)).reshape(_along(f, i))
            inside = ok if inside is None else inside & ok
    if inside is not None:
        every = np.broadcast_to(inside, f.counts[::-1]).reshape(-1)
        units = np.where(every, units, OUTSIDE)
    return words(units, unit), shared_offsets(f, units.size // f.counts[0])


def whole_boxes(decoded: DecodedMap, coords: Index) -> tuple[Index, NDArray[np.bool_]]:
    """Returns, for boxes in tile mode with coords [boxes, rank], the address of each box's first
    element, and whether each box is legal and inside the tensor. If it is, the other addresses
    follow from the first.

    The second result is all False for an interleaved tensor and for packed elements.
    """
    f = decoded.fields
    pitches = np.array((f.unit.global_bytes, *f.strides_bytes))
    first = coords @ pitches + decoded.address
    if f.mode != "tiled" or f.interleaved or f.unit.elements > 1:
        return first, np.zeros(len(coords), bool)
    reach = np.array(_steps(f)) * (np.array(f.counts) - 1)
    inside = (coords >= 0) & (coords + reach < np.array(f.dims))
    return first, inside.all(axis=1) & (coords[:, 0] * f.unit.global_bytes % ALIGNMENT == 0)


def row_elements(decoded: DecodedMap, coords: Sequence[int]) -> tuple[Index, Index]:
    """Like `tile_elements`, for the four rows of `.tile::gather4` and `.tile::scatter4`.

    `coords`: the column, then four rows in any order, repetitions allowed. The rows are consecutive
    in shared memory.
    """
    f = decoded.fields
    check_mode(decoded, "tiled", coords, 5)
    if f.rank != 2:
        raise TensorMapError("rank", f.rank, "2", "gather4 and scatter4 take rows of a matrix")
    if f.box[1] != 1:
        raise TensorMapError(
            "box[1]", f.box[1], "1", "gather4 and scatter4 name each row (PTX ISA 5.5.3.4.1)"
        )
    if f.dtype in PADDED:
        raise TensorMapError(
            "dtype", f.dtype, "a type without padding", "no document has gathers of padded rows"
        )
    rows = [tile_elements(decoded, (coords[0], row))[0] for row in coords[1:]]
    return np.concatenate(rows), shared_offsets(f, 4)
