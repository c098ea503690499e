"""Lowering of lane masks: a table in shared memory that warps write by ballots and that the thread
which issues the mma reads."""

from __future__ import annotations

from dataclasses import replace

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.limits import LANE_MASK_BYTES
from tcir.passes.emit import simt

from .converter import (
    Converter,
    LaneMasks,
    SharedAddress,
    TmemTile,
    i32,
    integer_attribute,
    lower,
    require_role,
)
from .structure import is_equal

WORD_BYTES = 4


@lower(tc.LaneMasksOp)
def convert_lane_masks(converter: Converter, op: tc.LaneMasksOp) -> None:
    """Lowers to an address in shared memory."""
    address = SharedAddress(converter.smem, integer_attribute(op, "offset"))
    converter.values[op.masks] = LaneMasks(address)


def _entry(converter: Converter, table: ir.Value, entry: ir.Value) -> SharedAddress:
    address = converter.record(table, LaneMasks).address
    offset = arith.MulIOp(converter.ssa(entry), converter.constant(LANE_MASK_BYTES)).result
    return SharedAddress(arith.AddIOp(address.base, offset).result, address.offset)


@lower(tc.WriteLaneMaskOp)
def convert_write_lane_mask(converter: Converter, op: tc.WriteLaneMaskOp) -> None:
    """Emits ``vote.sync.ballot`` and complements its result, which lane 0 stores."""
    every = converter.constant(-1)
    ballot = nvvm.vote_sync_ballot(every, converter.ssa(op.on))
    word = arith.XOrIOp(ballot, every).result
    entry = _entry(converter, op.masks, op.entry)
    column = arith.MulIOp(converter.ssa(op.quarter), converter.constant(WORD_BYTES)).result
    place = SharedAddress(arith.AddIOp(entry.base, column).result, entry.offset)
    with simt.only_if(is_equal(converter, converter.lane, 0)):
        llvm.store(word, converter.shared(place), alignment=WORD_BYTES)


@lower(tc.EnableLanesOp)
def convert_enable_lanes(converter: Converter, op: tc.EnableLanesOp) -> None:
    """Loads the entry, which becomes the mask operand of the mma."""
    require_role(converter, op)
    pointer = converter.shared(_entry(converter, op.masks, op.entry))
    mask = llvm.load(ir.VectorType.get([4], i32()), pointer, alignment=LANE_MASK_BYTES)
    converter.values[op.tile] = replace(converter.record(op.d, TmemTile), disabled=mask)
