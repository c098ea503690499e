"""Rules of the types, checked wherever an op has an operand or result of that type."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir
from tcir.dialect.limits import (
    SWIZZLE_ATOM_ROWS,
    SWIZZLE_MAJORNESS,
    SWIZZLE_SPANS,
    TMEM_COLUMNS,
    TMEM_LANES,
)
from tcir.dialect.rules import Broken, rule
from tcir.dialect.types import MbarrierType, RingType, SmemType, TmemType, element_bytes
from tcir.dialect.warp_types import StagedType

SMEM_ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8")
TMEM_ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "i32")


def _is(attribute: ir.Attribute, kind: Any) -> bool:
    """Whether a type's parameter is of class ``kind``: parameters come as plain attributes."""
    return isinstance(attribute.maybe_downcast(), kind)


def _is_shape(attribute: ir.Attribute) -> bool:
    if not _is(attribute, ir.DenseI64ArrayAttr):
        return False
    extents = list(ir.DenseI64ArrayAttr(attribute))
    return len(extents) == 2 and min(extents) >= 1


@rule(
    "!tc.smem",
    "parameters",
    "tc",
    "expected !tc.smem<array<i64: mn, k>, element, major, swizzle> with mn, k >= 1, got {got}",
)
def _(type_: SmemType) -> Broken:
    well_formed = (
        _is_shape(type_.shape_attr)
        and _is(type_.element_attr, ir.TypeAttr)
        and _is(type_.major_attr, ir.StringAttr)
        and _is(type_.swizzle_attr, ir.StringAttr)
    )
    return None if well_formed else {"got": type_}


@rule(
    "!tc.smem",
    "element",
    "PTX ISA 9.7.16.2, table 39",
    "element must be one of {legal}, got {got}: tcgen05.mma kinds f16 and tf32 read these, the "
    "block-scaled kinds read bytes",
)
def _(type_: SmemType) -> Broken:
    got = str(type_.element)
    return None if got in SMEM_ELEMENTS else {"legal": ", ".join(SMEM_ELEMENTS), "got": got}


@rule(
    "!tc.smem",
    "major",
    "PTX ISA 9.7.16.10.5",
    'major must be "K" or "MN" (which coordinate is contiguous), got "{got}"',
)
def _(type_: SmemType) -> Broken:
    return None if type_.major in ("K", "MN") else {"got": type_.major}


@rule(
    "!tc.smem",
    "swizzle",
    "PTX ISA 9.7.16.10.6",
    'swizzle must be one of {legal}, got "{got}": tiles are stacks of swizzled rows',
)
def _(type_: SmemType) -> Broken:
    legal = ", ".join(f'"{mode}"' for mode in SWIZZLE_SPANS)
    return None if type_.swizzle in SWIZZLE_SPANS else {"legal": legal, "got": type_.swizzle}


@rule(
    "!tc.smem",
    "swizzle-major",
    "PTX ISA 9.7.16.10.5, table 54",
    '{major}-major {element} cannot have swizzle "{got}", but {legal}: the tensor core reads '
    "MN-major 32-bit elements only through 128-byte swizzle with 32-byte atoms, and tiles without "
    "a swizzle are K-major here; load the tile K-major",
)
def _(type_: SmemType) -> Broken:
    legal = SWIZZLE_MAJORNESS[element_bytes(type_.element)][type_.major]
    if type_.swizzle in legal:
        return None
    values = {"major": type_.major, "element": type_.element, "got": type_.swizzle}
    return {**values, "legal": ", ".join(legal) or "none"}


@rule(
    "!tc.smem",
    "atom",
    "PTX ISA 9.7.16.4.1",
    "{name} of a {major}-major tile must be a multiple of {atom}, got {got}: a swizzle atom is "
    "{atom} rows; nearest legal: {nearest}",
)
def _(type_: SmemType) -> Broken:
    mn, k = type_.shape
    name, outer = ("mn", mn) if type_.major == "K" else ("k", k)
    atom = 1 if type_.swizzle == "NONE" and type_.major == "K" else SWIZZLE_ATOM_ROWS
    if outer % atom == 0:
        return None
    below, above = outer // atom * atom, -(-outer // atom) * atom
    nearest = f"{below} or {above}" if below else above
    return {"name": name, "major": type_.major, "atom": atom, "got": outer, "nearest": nearest}


@rule(
    "!tc.tmem",
    "parameters",
    "tc",
    "expected !tc.tmem<array<i64: lanes, elements>, element> with positive extents, got {got}",
)
def _(type_: TmemType) -> Broken:
    well_formed = _is_shape(type_.shape_attr) and _is(type_.element_attr, ir.TypeAttr)
    return None if well_formed else {"got": type_}


@rule(
    "!tc.tmem",
    "lanes",
    "PTX ISA 9.7.16.1",
    "a tile has 128 lanes, got {got}: columns are allocated whole, and M = 128 of cta_group::1 "
    "fills all lanes",
)
def _(type_: TmemType) -> Broken:
    return None if type_.shape[0] == TMEM_LANES else {"got": type_.shape[0]}


@rule(
    "!tc.tmem",
    "element",
    "PTX ISA 9.7.16.10.4",
    "element must be one of {legal}, got {got}: f32 accumulators, f16/bf16 operands packed two "
    "per column, or scale factors, four bytes per column",
)
def _(type_: TmemType) -> Broken:
    got = str(type_.element)
    return None if got in TMEM_ELEMENTS else {"legal": ", ".join(TMEM_ELEMENTS), "got": got}


@rule(
    "!tc.tmem",
    "whole-columns",
    "PTX ISA 9.7.16.10.4",
    "{element} elements per lane must be a multiple of {step}, got {got}: a column holds {step}; "
    "nearest legal: {nearest}",
)
def _(type_: TmemType) -> Broken:
    got, step = type_.shape[1], 4 // element_bytes(type_.element)
    if got % step == 0:
        return None
    below, above = got // step * step, -(-got // step) * step
    nearest = f"{below} or {above}" if below else above
    return {"element": type_.element, "step": step, "got": got, "nearest": nearest}


@rule(
    "!tc.tmem",
    "columns",
    "PTX ISA 9.7.16.1",
    "a tile has at most {most} columns, got {got}: that is all of tensor memory",
)
def _(type_: TmemType) -> Broken:
    if type_.columns <= TMEM_COLUMNS:
        return None
    return {"most": TMEM_COLUMNS, "got": type_.columns}


@rule(
    "!tc.ring",
    "parameters",
    "tc",
    "expected !tc.ring<count : i64, !tc.smem | !tc.staged | !tc.tmem | !tc.mbarrier> with count "
    ">= 1, got {got}",
)
def _(type_: RingType) -> Broken:
    well_formed = (
        _is(type_.count_attr, ir.IntegerAttr)
        and type_.count >= 1
        and _is(type_.of_attr, ir.TypeAttr)
        and isinstance(type_.of, SmemType | StagedType | TmemType | MbarrierType)
    )
    return None if well_formed else {"got": type_}
