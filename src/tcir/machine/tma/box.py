"""The words that one tensor copy touches, checked for its direction (PTX ISA 9.7.9.27.1.1)."""

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
class TensorOperand:
    """What a tensor copy names in global memory: a tensor map, coordinates, and how they are read.

    mode: as PTX spells it. im2col_offsets: of im2col, or wHalo and wOffset. map_at: global address
    of the tensor map; None: it lies in kernel parameters, which no kernel writes.
    """

    tensor_map: DecodedMap
    coords: Sequence[int]
    mode: str = "tile"
    im2col_offsets: Sequence[int] = ()
    map_at: int | None = None


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
    tensor: TensorOperand,
    target: int,
    assumptions: Assumptions,
    site: object,
) -> Box:
    """Of cp.async.bulk.tensor to shared memory."""
    try:
        fields = tensor.tensor_map.fields
        if fields.swizzle == "128B_ATOM_64B" and assumptions.atom_64b_load == "refused":
            raise TensorMapError("swizzle", fields.swizzle, "another for a load", "B200 (assumed)")
        walk = _walk(tensor, assumptions)
    except Refusal as refusal:
        raise MachineError.of(refusal, site) from None
    return _boxed(tensor, walk, target, assumptions)


def store_box(
    tensor: TensorOperand,
    source: int,
    assumptions: Assumptions,
    site: object,
) -> Box:
    """Of cp.async.bulk.tensor and cp.reduce.async.bulk.tensor to global memory."""
    try:
        _check_store(tensor.tensor_map, tensor.coords)
        walk = _walk(_as_load(tensor), assumptions)
    except Refusal as refusal:
        raise MachineError.of(refusal, site) from None
    return _boxed(tensor, walk, source, assumptions)


def _as_load(tensor: TensorOperand) -> TensorOperand:
    """The load that walks over the elements of a store."""
    stored = DecodedMap(_stored(tensor.tensor_map.fields), tensor.tensor_map.address)
    if tensor.mode == "im2col_no_offs":
        offsets = (0,) * (stored.fields.rank - 2)
        return replace(tensor, tensor_map=stored, mode="im2col", im2col_offsets=offsets)
    mode = "tile::gather4" if tensor.mode == "tile::scatter4" else tensor.mode
    return replace(tensor, tensor_map=stored, mode=mode)


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


def _walk(tensor: TensorOperand, assumptions: Assumptions) -> tuple[Index, Index]:
    tensor_map, coords, mode, info = (
        tensor.tensor_map, tensor.coords, tensor.mode, tensor.im2col_offsets
    )  # fmt: skip
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
    tensor: TensorOperand,
    walk: tuple[Index, Index],
    start: int,
    assumptions: Assumptions,
) -> Box:
    f = tensor.tensor_map.fields
    unit = f.unit
    addresses, offsets = walk
    units = len(addresses) // unit.pieces
    if tensor.mode in _WIDE and assumptions.im2col_w_bytes == "main":
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
