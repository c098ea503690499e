"""Verifier rules of the types, checked on every operand and result that has such a type."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir
from tcir.dialect.fragments import MAJORS, PTX_TYPE, ROW
from tcir.dialect.limits import (
    SWIZZLE_ATOM_ROWS,
    SWIZZLE_MAJORNESS,
    SWIZZLE_SPANS,
    TMEM_COLUMNS,
    TMEM_LANES,
)
from tcir.dialect.rules import Broken, verify
from tcir.dialect.types import MbarrierType, RingType, SmemType, TmemType, element_bytes
from tcir.dialect.warp_types import FragmentType, StagedType
from tcir.layout.atoms import MMA_ATOMS, mma_atom

SMEM_ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "i32")
WARP_ATOMS = tuple(name for name, atom in MMA_ATOMS.items() if atom.threads.size == 32)
TMEM_ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "i32")


def _is(attribute: ir.Attribute, kind: Any) -> bool:
    """Whether a type's parameter is of class ``kind``: parameters are plain attributes."""
    return isinstance(attribute.maybe_downcast(), kind)


def _is_list(attribute: ir.Attribute, length: int, least: int) -> bool:
    if not _is(attribute, ir.DenseI64ArrayAttr):
        return False
    values = list(ir.DenseI64ArrayAttr(attribute))
    return len(values) == length and min(values) >= least


@verify(
    SmemType,
    "parameters",
    "tc",
    "expected !tc.smem<array<i64: mn, k>, element, major, swizzle> with mn, k >= 1, got {got}",
    bad={"array<i64: 128, 64>": "array<i64: 0, 64>"},
    good={"array<i64: 128, 64>": "array<i64: 8, 64>"},
)
def _(type_: SmemType) -> Broken:
    well_formed = (
        _is_list(type_.shape_attr, 2, least=1)
        and _is(type_.element_attr, ir.TypeAttr)
        and _is(type_.major_attr, ir.StringAttr)
        and _is(type_.swizzle_attr, ir.StringAttr)
    )
    return None if well_formed else {"got": type_}


@verify(
    SmemType,
    "element",
    "PTX ISA 9.7.16.2, table 39",
    "element must be one of {legal}, got {got}: tcgen05.mma kinds f16 and tf32 read these, the "
    "block-scaled kinds read bytes, and i32 is a result that TMA stores",
    bad={"f16": "f64"},
    good={"f16": "bf16"},
)
def _(type_: SmemType) -> Broken:
    got = str(type_.element)
    return None if got in SMEM_ELEMENTS else {"legal": ", ".join(SMEM_ELEMENTS), "got": got}


@verify(
    SmemType,
    "major",
    "PTX ISA 9.7.16.10.5",
    'major must be "K" or "MN" (which coordinate is contiguous), got "{got}"',
    bad={'"K"': '"N"'},
    good={'"K"': '"MN"'},
)
def _(type_: SmemType) -> Broken:
    return None if type_.major in ("K", "MN") else {"got": type_.major}


@verify(
    SmemType,
    "swizzle",
    "PTX ISA 9.7.16.10.6",
    'swizzle must be one of {legal}, got "{got}": tiles are stacks of swizzled rows',
    bad={'"128B"': '"96B"'},
    good={'"128B"': '"32B"'},
)
def _(type_: SmemType) -> Broken:
    legal = ", ".join(f'"{mode}"' for mode in SWIZZLE_SPANS)
    return None if type_.swizzle in SWIZZLE_SPANS else {"legal": legal, "got": type_.swizzle}


@verify(
    SmemType,
    "swizzle-major",
    "PTX ISA 9.7.16.10.5, table 54",
    '{major}-major {element} cannot have swizzle "{got}", but {legal}: the tensor core reads '
    "MN-major 32-bit elements through the 128-byte swizzle with 32-byte atoms and nothing else "
    "through it, and tiles without a swizzle are K-major here",
    bad=(
        {"f16": "f32", '"128B"': '"128B_ATOM_32B"'},
        {'f16, "K"': 'f32, "MN"'},
        {'"K", "128B"': '"MN", "128B_ATOM_32B"'},
        {'f16, "K", "128B"': 'i8, "MN", "NONE"'},
    ),
    good=(
        {"f16": "f32"},
        {'f16, "K", "128B"': 'f32, "MN", "128B_ATOM_32B"'},
        {'f16, "K"': 'bf16, "MN"'},
        {"f16": "i8", '"128B"': '"NONE"'},
    ),
)
def _(type_: SmemType) -> Broken:
    legal = SWIZZLE_MAJORNESS[element_bytes(type_.element)][type_.major]
    if type_.swizzle in legal:
        return None
    values = {"major": type_.major, "element": type_.element, "got": type_.swizzle}
    return {**values, "legal": ", ".join(legal)}


@verify(
    SmemType,
    "atom",
    "PTX ISA 9.7.16.4.1",
    "{name} of a {major}-major tile must be a multiple of {atom}, got {got}: a swizzle atom is "
    "{atom} rows; nearest legal: {nearest}",
    bad={"array<i64: 128, 64>": "array<i64: 20, 64>"},
    good={"array<i64: 128, 64>": "array<i64: 24, 64>"},
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


@verify(
    TmemType,
    "parameters",
    "tc",
    "expected !tc.tmem<array<i64: lanes, elements>, element> with positive extents, got {got}",
    bad={"array<i64: 128, 64>": "array<i64: 128, 2, 2>"},
    good={"array<i64: 128, 64>": "array<i64: 128, 2>"},
)
def _(type_: TmemType) -> Broken:
    well_formed = _is_list(type_.shape_attr, 2, least=1) and _is(type_.element_attr, ir.TypeAttr)
    return None if well_formed else {"got": type_}


@verify(
    TmemType,
    "lanes",
    "PTX ISA 9.7.16.1",
    "a tile has 128 lanes, got {got}: columns are allocated whole, and M = 128 of cta_group::1 "
    "fills all lanes",
    bad={"array<i64: 128, 64>": "array<i64: 64, 64>"},
)
def _(type_: TmemType) -> Broken:
    return None if type_.shape[0] == TMEM_LANES else {"got": type_.shape[0]}


@verify(
    TmemType,
    "element",
    "PTX ISA 9.7.16.10.4",
    "element must be one of {legal}, got {got}: f32 accumulators, f16/bf16 operands packed two "
    "per column, or scale factors, four bytes per column",
    bad={"f16": "f64"},
    good={"f16": "bf16"},
)
def _(type_: TmemType) -> Broken:
    got = str(type_.element)
    return None if got in TMEM_ELEMENTS else {"legal": ", ".join(TMEM_ELEMENTS), "got": got}


@verify(
    TmemType,
    "whole-columns",
    "PTX ISA 9.7.16.10.4",
    "{element} elements per lane must be a multiple of {step}, got {got}: a column holds {step}; "
    "nearest legal: {nearest}",
    bad={"array<i64: 128, 64>": "array<i64: 128, 17>"},
    good={"array<i64: 128, 64>": "array<i64: 128, 16>"},
)
def _(type_: TmemType) -> Broken:
    got, step = type_.shape[1], 4 // element_bytes(type_.element)
    if got % step == 0:
        return None
    below, above = got // step * step, -(-got // step) * step
    nearest = f"{below} or {above}" if below else above
    return {"element": type_.element, "step": step, "got": got, "nearest": nearest}


@verify(
    TmemType,
    "columns",
    "PTX ISA 9.7.16.1",
    "a tile has at most {most} columns, got {got}: that is all of tensor memory",
    bad={"64>, f16": "513>, f32"},
    good={"64>, f16": "512>, f32"},
)
def _(type_: TmemType) -> Broken:
    if type_.columns <= TMEM_COLUMNS:
        return None
    return {"most": TMEM_COLUMNS, "got": type_.columns}


@verify(
    RingType,
    "parameters",
    "tc",
    "expected !tc.ring<count : i64, !tc.smem | !tc.staged | !tc.tmem | !tc.mbarrier> with count "
    ">= 1, got {got}",
    bad={"!tc.ring<4": "!tc.ring<0"},
    good={"!tc.ring<4": "!tc.ring<1"},
)
def _(type_: RingType) -> Broken:
    well_formed = (
        _is(type_.count_attr, ir.IntegerAttr)
        and type_.count >= 1
        and _is(type_.of_attr, ir.TypeAttr)
        and isinstance(type_.of, SmemType | StagedType | TmemType | MbarrierType)
    )
    return None if well_formed else {"got": type_}


@verify(
    StagedType,
    "parameters",
    "tc",
    "expected !tc.staged<array<i64: mn, k>, element, major, array<i64: bits, base, shift>> with "
    'major "K" or "MN", got {got}',
    bad={'"K"': '"M"'},
)
def _(type_: StagedType) -> Broken:
    well_formed = (
        _is_list(type_.shape_attr, 2, least=1)
        and _is(type_.element_attr, ir.TypeAttr)
        and _is(type_.major_attr, ir.StringAttr)
        and type_.major in MAJORS
        and _is_list(type_.swizzle_attr, 3, least=0)
    )
    return None if well_formed else {"got": type_}


@verify(
    StagedType,
    "element",
    "PTX ISA 9.7.14.5",
    "element must be one of {legal}, got {got}: mma.sync multiplies these here",
    bad={"f16": "f64"},
    good={"f16": "bf16"},
)
def _(type_: StagedType) -> Broken:
    got = str(type_.element)
    return None if got in PTX_TYPE else {"legal": ", ".join(PTX_TYPE), "got": got}


@verify(
    StagedType,
    "rows",
    "PTX ISA 9.7.14.5.15",
    "rows must be a power of two of at least 16 bytes, and so must their number, got {rows} rows "
    "of {got} bytes: ldmatrix reads rows of 16 bytes, and lane addresses are XORs of their bits",
    bad={"array<i64: 32, 32>": "array<i64: 24, 32>"},
)
def _(type_: StagedType) -> Broken:
    pitch, rows = type_.pitch, type_.nbytes // type_.pitch
    if pitch >= 16 and pitch & (pitch - 1) == 0 and rows & (rows - 1) == 0:
        return None
    return {"got": pitch, "rows": rows}


@verify(
    StagedType,
    "swizzle",
    "PTX ISA 9.7.14.5.15",
    "a swizzle must leave pieces of 16 bytes whole and stay inside the tile of {size} bytes, got "
    "bits {bits}, base {base}, shift {shift}",
    bad={"array<i64: 2, 4, 3>": "array<i64: 2, 3, 3>"},
)
def _(type_: StagedType) -> Broken:
    bits, base, shift = type_.swizzle
    inside = 1 << (base + shift + bits) <= max(type_.nbytes, 1)
    if bits == 0 or (base >= 4 and shift >= bits and inside):
        return None
    return {"size": type_.nbytes, "bits": bits, "base": base, "shift": shift}


@verify(
    FragmentType,
    "parameters",
    "tc",
    "expected !tc.fragment<array<i64: rows, columns>, element, operand, atom> with operand "
    '"A", "B", "C" or "row" and an atom of a whole warp ({atoms}), got {got}',
    bad={'"mma.m16n8k16.f16"': '"mma.m8n8k4.f32.tn"'},
)
def _(type_: FragmentType) -> Broken:
    well_formed = (
        _is_list(type_.shape_attr, 2, least=1)
        and _is(type_.element_attr, ir.TypeAttr)
        and _is(type_.operand_attr, ir.StringAttr)
        and type_.operand in ("A", "B", "C", ROW)
        and _is(type_.atom_attr, ir.StringAttr)
        and type_.atom in WARP_ATOMS
    )
    return None if well_formed else {"atoms": ", ".join(WARP_ATOMS), "got": type_}


@verify(
    FragmentType,
    "shape",
    "PTX ISA 9.7.14.5",
    "a fragment of {operand} of {atom} must be whole atoms of {want}, got {got}",
    bad={"array<i64: 32, 16>": "array<i64: 32, 12>"},
)
def _(type_: FragmentType) -> Broken:
    atom, got = mma_atom(type_.atom), type_.shape
    extents = (atom.shape[0], 1) if type_.operand == ROW else atom.operand(type_.operand)[1]
    if type_.operand == ROW and got[1] != 1:
        return {"operand": type_.operand, "atom": type_.atom, "want": list(extents), "got": got}
    if all(g % e == 0 for g, e in zip(got, extents, strict=True)):
        return None
    return {"operand": type_.operand, "atom": type_.atom, "want": list(extents), "got": got}
