"""Ops of `nvvm` that a whole warp executes, and asynchronous copies of single threads, written from
the PTX ISA.
"""

from __future__ import annotations

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.thread.nvvm import address
from tcir.interp.thread.speller import Speller, bits, expect, only, spelling


@spelling("nvvm.ldmatrix")
def _ldmatrix(speller: Speller, op: ir.Operation) -> None:
    """Spells ``ldmatrix`` (PTX ISA 9.7.14.5.15); the column layout is ``.trans``."""
    only(op, "num", "layout", "shape", "eltType")
    expect(op, "shape", "#nvvm.ld_st_matrix_shape<m = 8, n = 8>")
    expect(op, "eltType", "#nvvm.ld_st_matrix_elt_type<b16>")
    layout = expect(op, "layout", "#nvvm.mma_layout<row>", "#nvvm.mma_layout<col>")
    trans = ".trans" if "col" in layout else ""
    count = op.attributes["num"].value
    registers = speller.define(op.results[0])
    speller.emit(
        f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 "
        f"{{{', '.join(registers)}}}, {address(speller, op.operands[0], 3)}"
    )


@spelling("nvvm.cp.async.shared.global")
def _cp_async(speller: Speller, op: ir.Operation) -> None:
    """Spells ``cp.async`` (PTX ISA 9.7.9.25.3); a third operand is the number of bytes to read."""
    only(op, "size", "modifier")
    modifier = expect(
        op, "modifier", "#nvvm<load_cache_modifier cg>", "#nvvm<load_cache_modifier ca>"
    )
    kind = "cg" if "cg" in modifier else "ca"
    target, source, *rest = op.operands
    size = f", {speller.read_one(rest[0])}" if rest else ""
    speller.emit(
        f"cp.async.{kind}.shared.global {address(speller, target, 3)}, "
        f"{address(speller, source, 1)}, {op.attributes['size'].value}{size}"
    )


@spelling("nvvm.shfl.sync")
def _shuffle_lanes(speller: Speller, op: ir.Operation) -> None:
    """Spells ``shfl.sync`` (PTX ISA 9.7.9.6)."""
    only(op, "kind", "return_value_and_is_valid")
    expect(op, "return_value_and_is_valid", "")
    names = ("bfly", "up", "down", "idx")
    kind = expect(op, "kind", *(f"#nvvm<shfl_kind {name}>" for name in names))
    mask, value, offset, clamp = (speller.read_one(operand) for operand in op.operands)
    if bits(op.operands[1].type) != 32:
        raise IncompleteError(f"no rule for a shuffle of {op.operands[1].type}")
    target = speller.define_one(op.results[0])
    name = kind.split()[1].rstrip(">")
    speller.emit(f"shfl.sync.{name}.b32 {target}, {value}, {offset}, {clamp}, {mask}")
