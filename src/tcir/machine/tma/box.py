"""The words one tensor copy touches, with the refusals of its direction (PTX ISA 9.7.9.27.1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.errors import MachineError
from tcir.machine.memory.swizzle import swizzle_address
from tcir.machine.refusal import Refusal, TensorMapError
from tcir.machine.tma.im2col_walk import im2col_elements, wide_elements
from tcir.machine.tma.map_fields import DecodedMap, MapFields
from tcir.machine.tma.tensor_limits import ALIGNMENT
from tcir.machine.tma.tensor_types import PADDED
from tcir.machine.tma.tensor_walk import row_elements, tile_elements

Index = NDArray[np.int64]

LOADS = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")
STORES = ("tile", "tile::scatter4", "im2col_no_offs")
_WIDE = {"im2col::w": "im2col_w", "im2col::w::128": "im2col_w128"}


@dataclass(frozen=True)
class Box:
    """Global address (or -1: outside) and shared address of each word, and the bytes to count."""

    fields: MapFields
    outside: Index
    shared: Index
    nbytes: int
    low: int
    high: int
    """Shared bytes [low, high) that it may touch."""
    gaps: Index | None = None
    """Shared addresses of padding bytes."""

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Which words lie in the tensor."""
        return self.outside >= 0

    @cached_property
    def addresses(self) -> Index:
        """Global addresses of those; `outside` itself where they are all."""
        return self.outside if self.inside.all() else self.outside[self.inside]


def load_box(
    tensor_map: DecodedMap,
    coords: Sequence[int],
    mode: str,
    info: Sequence[int],
    target: int,
    assumptions: Assumptions,
    site: object,
) -> Box:
    """Of cp.async.bulk.tensor to shared memory; `info`: im2col offsets, or wHalo and wOffset."""
    try:
        fields = tensor_map.fields
        if fields.swizzle == "128B_ATOM_64B" and assumptions.atom_64b_load == "refused":
            raise TensorMapError("swizzle", fields.swizzle, "another for a load", "B200 (assumed)")
        walk = _walk(tensor_map, coords, mode, info, assumptions)
    except Refusal as refusal:
        raise MachineError.of(refusal, site) from None
    return _boxed(tensor_map, walk, mode, target, assumptions)


def store_box(
    tensor_map: DecodedMap,
    coords: Sequence[int],
    mode: str,
    source: int,
    assumptions: Assumptions,
    site: object,
) -> Box:
    """Of cp.async.bulk.tensor and cp.reduce.async.bulk.tensor to global memory."""
    try:
        _check_store(tensor_map, coords)
        walk = _walk(
            DecodedMap(_stored(tensor_map.fields), tensor_map.address),
            coords,
            {"tile::scatter4": "tile::gather4", "im2col_no_offs": "im2col"}.get(mode, mode),
            (0,) * (tensor_map.fields.rank - 2) if mode == "im2col_no_offs" else (),
            assumptions,
        )
    except Refusal as refusal:
        raise MachineError.of(refusal, site) from None
    return _boxed(tensor_map, walk, mode, source, assumptions)


@cache
def _stored(fields: MapFields) -> MapFields:
    """The tensor as a store sees it: rows end at multiples of 16 bytes.

    Seen on an H200, and in no document: a store that crosses the end of dimension 0 overwrites what
    lies behind it up to there. Loads fill by element.
    """
    if fields.interleaved:
        return fields
    unit = fields.unit
    row = fields.dims[0] // unit.elements * unit.global_bytes
    whole = -(-row // ALIGNMENT) * ALIGNMENT // unit.global_bytes * unit.elements
    return replace(fields, dims=(whole, *fields.dims[1:]))


def _check_store(tensor_map: DecodedMap, coords: Sequence[int]) -> None:
    f = tensor_map.fields
    for i, c in enumerate(coords):
        if c < 0:
            raise TensorMapError(
                f"store coordinate {i}", c, "at least 0",
                "a box to store begins inside the tensor (PTX ISA 9.7.9.27.1.1)",
            )  # fmt: skip
    if f.swizzle == "128B_ATOM_32B_FLIP_8B":
        raise TensorMapError("swizzle", f.swizzle, "another for a store", "PTX ISA 5.5.7")
    if f.dtype == "u4_align16b":
        raise TensorMapError("dtype", f.dtype, "another for a store", "PTX ISA 9.7.9.27.1.1")
    for name, corner, ok in (
        ("lower_corner", f.lower_corner, all(c >= 0 for c in f.lower_corner)),
        ("upper_corner", f.upper_corner, all(c <= 0 for c in f.upper_corner)),
    ):
        if not ok:
            raise TensorMapError(
                name, corner, "a bounding box inside the tensor", "stores: PTX ISA 9.7.9.27.1.1"
            )


def _walk(
    tensor_map: DecodedMap,
    coords: Sequence[int],
    mode: str,
    info: Sequence[int],
    assumptions: Assumptions,
) -> tuple[Index, Index]:
    if mode == "tile":
        return tile_elements(tensor_map, coords)
    if mode == "tile::gather4":
        return row_elements(tensor_map, coords)
    if mode == "im2col":
        return im2col_elements(tensor_map, coords, info)
    wanted = _WIDE[mode]
    if tensor_map.fields.mode != wanted:
        raise TensorMapError(
            "mode of the instruction", mode, tensor_map.fields.mode,
            "the tensor map was encoded for that mode",
        )  # fmt: skip
    return wide_elements(tensor_map, coords, info[0], info[1], assumptions)


def _boxed(
    tensor_map: DecodedMap,
    walk: tuple[Index, Index],
    mode: str,
    start: int,
    assumptions: Assumptions,
) -> Box:
    f, unit = tensor_map.fields, tensor_map.fields.unit
    addresses, offsets = walk
    units = len(addresses) // unit.pieces
    if mode in _WIDE and assumptions.im2col_w_bytes == "main":
        units = f.counts[0] * f.counts[1]
    padded = unit.shared_bytes if assumptions.padded_bytes == "padded" else unit.global_bytes
    flipped = int(assumptions.flip_8b_lines == "odd")
    linear = start + offsets
    gaps = None
    if f.dtype in PADDED:
        hole = np.arange(unit.global_bytes, unit.shared_bytes)
        holes = (linear[:: unit.pieces, None] + hole).reshape(-1)
        gaps = swizzle_address(holes, f.swizzle, flipped)
    shared = swizzle_address(linear, f.swizzle, flipped)
    high = int(shared.max()) + unit.piece
    if gaps is not None:
        high = max(high, int(gaps.max()) + 1)
    return Box(f, addresses, shared, units * padded, start, high, gaps)
