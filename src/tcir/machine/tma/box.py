"""The words that one tensor copy reads and writes; each direction has its own checks (PTX ISA
9.7.9.27.1.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

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
from tcir.machine.tma.values import fill, loaded
from tcir.threads import cached_property

Index = NDArray[np.int64]
Words = NDArray[np.unsignedinteger]

LOADS = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")
STORES = ("tile", "tile::scatter4", "im2col_no_offs")
_WIDE = {"im2col::w": "im2col_w", "im2col::w::128": "im2col_w128"}


@dataclass(frozen=True)
class TensorOperand:
    """The global-memory operand of a tensor copy: tensor map, coordinates, and load mode.

    mode: name of the mode in PTX
    im2col_offsets: im2col offsets, or wHalo and wOffset
    map_at: global address of the tensor map; None: the map is a kernel parameter, which no kernel
        writes
    """

    tensor_map: DecodedMap
    coords: Sequence[int]
    mode: str = "tile"
    im2col_offsets: Sequence[int] = ()
    map_at: int | None = None


@dataclass(frozen=True)
class Box:
    """The global address (-1: out of bounds) and the shared address of each word of a tensor copy,
    and the number of bytes.
    """

    fields: MapFields
    outside: Index
    shared: Index
    nbytes: int
    low: int
    high: int
    """Shared bytes [low, high) that the copy may access."""
    gaps: Index | None = None
    """Shared addresses of padding bytes."""

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Mask of the words inside the tensor."""
        return self.outside >= 0

    @cached_property
    def addresses(self) -> Index:
        """Global addresses of the words inside the tensor, from which `inside` selects; the array
        `outside` itself if no word is out of bounds.
        """
        return self.outside if self.inside.all() else self.outside[self.inside]

    @property
    def size(self) -> int:
        """Number of bytes inside the tensor."""
        return self.addresses.size * self.fields.piece_bytes

    def filled(self, words: Words) -> Words:
        """Returns the words that a load writes: the global words at `addresses`, and the fill value
        for each word out of bounds.
        """
        words = loaded(self.fields, words)
        if self.addresses is self.outside:
            return words
        values = np.full(self.outside.size, fill(self.fields), words.dtype)
        values[self.inside] = words
        return values


def load_box(
    tensor: TensorOperand,
    target: int,
    assumptions: Assumptions,
    site: object,
) -> Box:
    """The box of a cp.async.bulk.tensor load, global to shared memory."""
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
    """The box of a cp.async.bulk.tensor store or cp.reduce.async.bulk.tensor, shared to global."""
    try:
        _check_store(tensor.tensor_map, tensor.coords)
        walk = _walk(_as_load(tensor), assumptions)
    except Refusal as refusal:
        raise MachineError.of(refusal, site) from None
    return _boxed(tensor, walk, source, assumptions)


def _as_load(tensor: TensorOperand) -> TensorOperand:
    """The operand of a load that visits the same elements as a store."""
    stored = DecodedMap(_stored(tensor.tensor_map.fields), tensor.tensor_map.address)
    if tensor.mode == "im2col_no_offs":
        offsets = (0,) * (stored.fields.rank - 2)
        return replace(tensor, tensor_map=stored, mode="im2col", im2col_offsets=offsets)
    mode = "tile::gather4" if tensor.mode == "tile::scatter4" else tensor.mode
    return replace(tensor, tensor_map=stored, mode=mode)


@cache
def _stored(fields: MapFields) -> MapFields:
    """The tensor as a store bounds it: rows rounded up to 16 bytes.

    Undocumented, observed on an H200: a store past the end of dimension 0 overwrites the bytes
    after it up to the next multiple of 16. Loads fill element by element.
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
                f"store coordinate {i}",
                c,
                "at least 0",
                "a box to store begins inside the tensor (PTX ISA 9.7.9.27.1.1)",
            )
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
            "mode of the instruction",
            mode,
            tensor_map.fields.mode,
            "the tensor map was encoded for that mode",
        )
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
