"""Addresses of tiles and barriers: planned or, before memory is planned, chosen here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, optional_integer
from tcir.dialect.limits import LANE_MASK_BYTES, MBARRIER_BYTES, SMEM_TILE_ALIGNMENT, TMEM_COLUMNS
from tcir.dialect.walk import nested
from tcir.errors import IncompleteError
from tcir.interp.rules import site_of
from tcir.interp.tile.addresses import TileLayout


def members(type_: ir.Type) -> tuple[int, Any]:
    """Number of slots and type of one, for a ring or a single object."""
    return (type_.count, type_.of) if isinstance(type_, tc.RingType) else (1, type_)


def layout_of(type_: ir.Type) -> TileLayout:
    """Plain data of a `!tc.smem` type."""
    mn, k = type_.shape
    return TileLayout(mn, k, tc.element_bytes(type_.element), type_.major, type_.swizzle)


@dataclass
class Places:
    """Shared-memory bytes and tensor-memory columns of every object, by op.

    An object without a planned address gets one of its own for the whole kernel: each execution of
    its op makes the memory undefined again, so no value of the previous one survives. This models
    a new tile as long as tiles do not outlive the loop iteration that created them.
    """

    shared: dict[Any, int] = field(default_factory=dict)
    columns: dict[Any, int] = field(default_factory=dict)
    planned: set[Any] = field(default_factory=set)
    dynamic_smem: int = 0
    own_allocation: int = 0
    """Columns the interpreter allocates if the program does not do so yet; 0: none."""
    scratch: int = 0
    """Byte offset of the interpreter's own 16 bytes: its mbarrier, then the TMEM address."""

    @staticmethod
    def of(function: ir.Operation) -> Places:
        """Addresses of all objects of a kernel; IncompleteError if tensor memory is too small."""
        places = Places()
        ops = [op.operation for op in nested(function)]
        has_alloc = any(op.name == "tc.tmem_alloc" for op in ops)
        shared = [op for op in ops if op.name in _IN_SHARED]
        end = optional_integer(function, "tc.smem_bytes") or 0
        for op in shared:
            offset = optional_integer(op, "offset")
            if offset is not None:
                places.shared[op] = offset
                places.planned.add(op)
                end = max(end, offset + _shared_bytes(op))
        top = _columns(places, ops)
        for op in sorted((op for op in shared if op not in places.planned), key=_barriers_last):
            alignment = _IN_SHARED[op.name]
            places.shared[op] = end = -(-end // alignment) * alignment
            end += _shared_bytes(op)
        if top and not has_alloc:
            places.own_allocation = TMEM_COLUMNS
        if "tc.async" not in function.attributes or places.own_allocation:
            places.scratch = -(-end // MBARRIER_BYTES) * MBARRIER_BYTES
            end = places.scratch + 16
        places.dynamic_smem = end
        return places


_IN_SHARED = {
    tc.SmemTileOp.OPERATION_NAME: SMEM_TILE_ALIGNMENT,
    tc.MbarrierInitOp.OPERATION_NAME: MBARRIER_BYTES,
    tc.LaneMasksOp.OPERATION_NAME: LANE_MASK_BYTES,
}
"""Ops whose objects are in shared memory, with their alignments."""


def _barriers_last(op: ir.OpView) -> int:
    return -_IN_SHARED[op.name]


def _shared_bytes(op: ir.OpView) -> int:
    if op.name == "tc.lane_masks":
        return LANE_MASK_BYTES * integer(op, "count")
    count, member = members(op.results[0].type)
    return count * (MBARRIER_BYTES if isinstance(member, tc.MbarrierType) else member.nbytes)


def _columns(places: Places, ops: list[Any]) -> int:
    top = 0
    for op in ops:
        if op.name != "tc.tmem_tile":
            continue
        count, member = members(op.results[0].type)
        column = optional_integer(op, "column")
        if column is None:
            places.columns[op] = top
            top += count * member.columns
        else:
            places.columns[op] = column
            places.planned.add(op)
    if top > TMEM_COLUMNS:
        raise IncompleteError(
            f"{site_of(ops[0])}: the kernel's tiles need {top} tensor-memory columns, "
            f"the machine has {TMEM_COLUMNS}; use smaller tiles or fewer stages"
        )
    return top
