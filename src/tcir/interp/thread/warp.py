"""Ops of `nvvm` for whole warps and per-thread asynchronous copies, from the PTX ISA."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.thread.nvvm import address
from tcir.interp.thread.speller import Speller, expect, only, spelling


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


@spelling("nvvm.cp.async.commit.group")
def _commit(speller: Speller, op: ir.Operation) -> None:
    """Spells ``cp.async.commit_group`` (PTX ISA 9.7.9.25.3.2)."""
    only(op)
    speller.emit("cp.async.commit_group")


@spelling("nvvm.cp.async.wait.group")
def _wait(speller: Speller, op: ir.Operation) -> None:
    """Spells ``cp.async.wait_group`` (PTX ISA 9.7.9.25.3.3)."""
    only(op, "n")
    if "n" not in op.attributes:
        raise IncompleteError("no rule for a wait without a number of groups")
    speller.emit(f"cp.async.wait_group {op.attributes['n'].value}")
