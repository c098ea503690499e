"""Tensor memory in all shapes: registers of a warp, and rows of a shared tile."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import cta_group_of
from tcir.dialect.ops.cp_rows import format_of, lane_of
from tcir.dialect.ops.tmem_words import HALF_LANES, split_of

from .compute import tile_descriptor
from .converter import Converter, Loading, SmemTile, TmemTile, i32, lower, require_role
from .movement import LANE_SHIFT, quarter_address
from .structure import tmem_pointer


@lower(tc.TmemLdWordsOp)
def convert_ld(converter: Converter, op: tc.TmemLdWordsOp) -> None:
    """``tcgen05.ld``."""
    require_role(converter, op)
    count = ir.VectorType(op.value.type).shape[1]
    kind = ir.VectorType.get([count], i32()) if count > 1 else i32()
    raw = nvvm.tcgen05.ld(
        kind,
        _pointer(converter, op, op.source),
        string(op, "shape"),
        pack=bool(integer(op, "pack")),
        split=_split(converter, op),
    )
    converter.values[op.value] = Loading(raw)
    converter.pending.append(op.value)


@lower(tc.TmemStWordsOp)
def convert_st(converter: Converter, op: tc.TmemStWordsOp) -> None:
    """``tcgen05.st``."""
    require_role(converter, op)
    count = ir.VectorType(op.value.type).shape[1]
    kind = ir.VectorType.get([count], i32()) if count > 1 else i32()
    nvvm.tcgen05.st(
        _pointer(converter, op, op.target),
        llvm.bitcast(kind, converter.ssa(op.value)),
        string(op, "shape"),
        unpack=bool(integer(op, "pack")),
        split=_split(converter, op),
    )


def _pointer(
    converter: Converter, op: tc.TmemLdWordsOp | tc.TmemStWordsOp, tile: ir.Value
) -> ir.Value:
    address = quarter_address(converter, tile, op.quarter, op.column)
    return tmem_pointer(converter.add(address, bool(integer(op, "upper")) * _UPPER))


_UPPER = HALF_LANES << LANE_SHIFT


def _split(converter: Converter, op: tc.TmemLdWordsOp | tc.TmemStWordsOp) -> ir.Value | None:
    split = split_of(op)
    return None if split is None else converter.constant(split, 64)


@lower(tc.CpRowsOp)
def convert_cp_rows(converter: Converter, op: tc.CpRowsOp) -> None:
    """``tcgen05.cp``."""
    require_role(converter, op)
    source, target = converter.record(op.source, SmemTile), converter.record(op.target, TmemTile)
    kind = source.type
    column, inside = divmod(integer(op, "byte"), kind.span)
    start = (column * kind.shape[0] + integer(op, "row")) * kind.span + inside
    descriptor = tile_descriptor(converter, source)
    if start:
        descriptor = arith.AddIOp(descriptor, converter.constant(start >> 4, 64)).result
    first = converter.tmem_columns(target, integer(op, "column"))
    nvvm.tcgen05.cp(
        string(op, "shape"),
        tmem_pointer(converter.add(first, lane_of(op) << LANE_SHIFT)),
        descriptor,
        string(op, "multicast") or None,
        format_of(op),
        cta_group_of(op),
    )
