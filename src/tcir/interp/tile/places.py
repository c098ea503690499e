"""Where tiles and barriers lie: as planned or, before memory is planned, wherever is room."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.errors import IncompleteError
from tcir.interp.rules import nested, site_of
from tcir.interp.tile.addresses import TileLayout

SMEM_ALIGNMENT = 1024
"""Of a shared tile: one period of the 128-byte swizzle (PTX ISA 9.7.16.10.6)."""

TMEM_COLUMNS = 512
"""Columns of tensor memory of one SM (PTX ISA 9.7.16.1)."""


def integer(op: Any, name: str) -> int | None:
    """The integer attribute `name` of `op`, None if it has none."""
    attributes = op.operation.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else None


def members(type_: Any) -> tuple[int, Any]:
    """Number of slots and type of one, for a ring or a single object."""
    return (type_.count, type_.of) if isinstance(type_, tc.RingType) else (1, type_)


def layout_of(type_: Any) -> TileLayout:
    """Plain data of a `!tc.smem` type."""
    mn, k = type_.shape
    return TileLayout(mn, k, tc.element_bytes(type_.element), type_.major, type_.swizzle)


@dataclass
class Places:
    """Shared-memory bytes and tensor-memory columns of every object, by op.

    An object without a planned place gets one of its own for the whole kernel: each execution of
    its op makes the place undefined again, so nothing is left over from the last one. That is what
    "a fresh tile" means as long as tiles do not outlive the loop iteration that made them.
    """

    shared: dict[Any, int] = field(default_factory=dict)
    columns: dict[Any, int] = field(default_factory=dict)
    planned: set[Any] = field(default_factory=set)
    dynamic_smem: int = 0
    own_allocation: int = 0
    """Columns that the interpreter allocates, since the program does not do it yet; 0: none."""
    scratch: int = 0
    """Byte offset of 16 bytes of the interpreter's own: its mbarrier, then the TMEM address."""

    @staticmethod
    def of(function: Any) -> Places:
        """Places for all objects of a kernel; IncompleteError if tensor memory is too small."""
        places = Places()
        ops = list(nested(function))
        has_alloc = any(op.name == "tc.tmem_alloc" for op in ops)
        shared = [op for op in ops if op.name in _IN_SHARED]
        end = integer(function, "tc.smem_bytes") or 0
        for op in shared:
            offset = integer(op, "offset")
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
            places.scratch = -(-end // 8) * 8
            end = places.scratch + 16
        places.dynamic_smem = end
        return places


_IN_SHARED = {"tc.smem_tile": SMEM_ALIGNMENT, "tc.mbarrier_init": 8, "tc.lane_masks": 16}
"""Ops whose objects lie in shared memory, with their alignments."""


def _barriers_last(op: Any) -> int:
    return -_IN_SHARED[op.name]


def _shared_bytes(op: Any) -> int:
    if op.name == "tc.lane_masks":
        return 16 * (integer(op, "count") or 0)
    count, member = members(op.results[0].type)
    return count * (8 if isinstance(member, tc.MbarrierType) else member.nbytes)


def _columns(places: Places, ops: list[Any]) -> int:
    top = 0
    for op in ops:
        if op.name != "tc.tmem_tile":
            continue
        count, member = members(op.results[0].type)
        column = integer(op, "column")
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
