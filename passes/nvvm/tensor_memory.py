"""Lowering of accesses to tensor memory in all shapes: from and to registers of a warp, and from
rows of a shared tile."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import cta_group_of
from tcir.dialect.limits import launch_registers
from tcir.dialect.ops.cp_rows import format_of, lane_of
from tcir.dialect.ops.tmem_words import HALF_LANES, split_of

from .compute import tile_descriptor
from .converter import Converter, Loading, SmemTile, TmemTile, i32, lower
from .movement import LANE_SHIFT, quarter_address, threads_around
from .structure import tmem_pointer


@lower(tc.TmemLdWordsOp)
def convert_ld(converter: Converter, op: tc.TmemLdWordsOp) -> None:
    """Lowers to ``tcgen05.ld``."""
    count = ir.VectorType(op.value.type).shape[1]
    kind = ir.VectorType.get([count], i32()) if count > 1 else i32()
    raw = nvvm.tcgen05.ld(
        kind,
        tmem_pointer(_address(converter, op, op.source)),
        string(op, "shape"),
        pack=bool(integer(op, "pack")),
        split=_split(converter, op),
    )
    converter.values[op.value] = Loading(raw)
    converter.pending.append(op.value)


@lower(tc.TmemStWordsOp)
def convert_st(converter: Converter, op: tc.TmemStWordsOp) -> None:
    """Lowers to ``tcgen05.st``."""
    count = ir.VectorType(op.value.type).shape[1]
    kind = ir.VectorType.get([count], i32()) if count > 1 else i32()
    words, address = llvm.bitcast(kind, converter.ssa(op.value)), _address(converter, op, op.target)
    shape, pack = string(op, "shape"), bool(integer(op, "pack"))
    if shape == "32x32b" and not pack and 2 * count >= launch_registers(threads_around(op)):
        for first in range(0, count, _PART):  # each as soon as its words are there
            part = llvm.shufflevector(words, range(first, first + _PART))
            nvvm.tcgen05.st(tmem_pointer(converter.add(address, first)), part, shape, unpack=pack)
        return
    split = _split(converter, op)
    nvvm.tcgen05.st(tmem_pointer(address), words, shape, unpack=pack, split=split)


_PART = 16
"""Words of a store in a kernel whose threads have too few registers for all of them at a time."""


def _address(
    converter: Converter, op: tc.TmemLdWordsOp | tc.TmemStWordsOp, tile: ir.Value
) -> ir.Value:
    address = quarter_address(converter, tile, op.quarter, op.column)
    return converter.add(address, bool(integer(op, "upper")) * _UPPER)


_UPPER = HALF_LANES << LANE_SHIFT


def _split(converter: Converter, op: tc.TmemLdWordsOp | tc.TmemStWordsOp) -> ir.Value | None:
    split = split_of(op)
    return None if split is None else converter.constant(split, 64)


@lower(tc.CpRowsOp)
def convert_cp_rows(converter: Converter, op: tc.CpRowsOp) -> None:
    """Lowers to ``tcgen05.cp``."""
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
