"""Lowering of the stand-alone shift, and of the copy of a halo."""

from __future__ import annotations

from tcir._mlir import arith, ir, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.cta_pair import cta_group_of
from tcir.dialect.limits import QUARTER_LANES, SLICE_COLUMNS

from .compute import slice_descriptor
from .converter import Converter, SmemTile, TmemTile, lower
from .movement import LANE_SHIFT
from .structure import tmem_pointer


@lower(tc.ShiftOp)
def convert_shift(converter: Converter, op: tc.ShiftOp) -> None:
    """Lowers to ``tcgen05.shift.down``."""
    tile = converter.record(op.tile, TmemTile)
    column = converter.tmem_columns(tile, SLICE_COLUMNS * integer(op, "slice"))
    lane = QUARTER_LANES * integer(op, "quarter")
    nvvm.tcgen05.shift(tmem_pointer(_at_lane(converter, column, lane)), cta_group_of(op))


@lower(tc.RefreshOp)
def convert_refresh(converter: Converter, op: tc.RefreshOp) -> None:
    """Lowers to ``tcgen05.cp.4x256b``, which writes the last lane of each sub-partition."""
    source = converter.record(op.source, SmemTile)
    target = converter.record(op.target, TmemTile)
    index = integer(op, "slice")
    column = converter.tmem_columns(target, SLICE_COLUMNS * index)
    first = slice_descriptor(converter, source, index)
    rows = integer(op, "row") * source.type.span >> 4
    descriptor = arith.AddIOp(first, converter.constant(rows, 64)).result if rows else first
    lane = _at_lane(converter, column, QUARTER_LANES - 1)
    nvvm.tcgen05.cp("4x256b", tmem_pointer(lane), descriptor, cta_group=cta_group_of(op))


def _at_lane(converter: Converter, address: ir.Value, lane: int) -> ir.Value:
    return converter.add(address, lane << LANE_SHIFT)
