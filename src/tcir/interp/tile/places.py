"""Addresses of tiles and barriers: those that memory planning chose or, before memory is planned,
addresses chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import optional_integer
from tcir.dialect.limits import MBARRIER_BYTES, TMEM_COLUMNS
from tcir.dialect.operation import traits_of
from tcir.dialect.ops.memory import first_columns
from tcir.dialect.walk import nested
from tcir.errors import IncompleteError
from tcir.interp.rules import site_of
from tcir.interp.tile.addresses import TileLayout


def layout_of(type_: ir.Type) -> TileLayout:
    """Returns the parameters of a `!tc.smem` type as plain data."""
    mn, k = type_.shape
    return TileLayout(mn, k, tc.element_bytes(type_.element), type_.major, type_.swizzle)


@dataclass
class Places:
    """Addresses of every object by the op that creates it, in bytes of shared memory or columns of
    tensor memory.

    An object without a planned address gets separate memory for the whole kernel. Each execution of
    its op makes this memory undefined again, so no value from the previous execution survives. This
    is equivalent to a new tile each time, as long as tiles do not outlive the loop iteration that
    created them.
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
        """Returns the addresses of all objects of a kernel; IncompleteError if tensor memory is too
        small.
        """
        places = Places()
        ops = [op.operation for op in nested(function)]
        has_alloc = any(op.name == "tc.tmem_alloc" for op in ops)
        shared = [op.opview for op in ops if traits_of(op).in_shared]
        end = optional_integer(function, "tc.smem_bytes") or 0
        for op in shared:
            offset = optional_integer(op, "offset")
            if offset is not None:
                places.shared[op.operation] = offset
                places.planned.add(op.operation)
                end = max(end, offset + op.nbytes)
        top = _columns(places, ops)
        new = [op for op in shared if op.operation not in places.planned]
        for op in sorted(new, key=lambda op: -traits_of(op).in_shared):
            alignment = traits_of(op).in_shared
            places.shared[op.operation] = end = -(-end // alignment) * alignment
            end += op.nbytes
        if top and not has_alloc:
            places.own_allocation = TMEM_COLUMNS
        if "tc.async" not in function.attributes or places.own_allocation:
            places.scratch = -(-end // MBARRIER_BYTES) * MBARRIER_BYTES
            end = places.scratch + 16
        places.dynamic_smem = end
        return places


def _columns(places: Places, ops: list[Any]) -> int:
    tiles = [op for op in ops if op.name == "tc.tmem_tile"]
    new = [op for op in tiles if optional_integer(op, "column") is None]
    for op in tiles:
        if (column := optional_integer(op, "column")) is not None:
            places.columns[op] = column
            places.planned.add(op)
    columns, top = first_columns([op.opview for op in new])
    places.columns.update(zip(new, columns, strict=True))
    if top > TMEM_COLUMNS:
        raise IncompleteError(
            f"{site_of(ops[0])}: the kernel's tiles need {top} tensor-memory columns, "
            f"the machine has {TMEM_COLUMNS}; use smaller tiles or fewer stages"
        )
    return top
