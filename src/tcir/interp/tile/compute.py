"""Rules of the tensor-core ops: dense products, sparse products, and weight-stationary products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import flag, integer, integers, optional_integer
from tcir.dialect.cta_pair import columns_of, cta_group_of
from tcir.dialect.ops.compute import collector_of, scale_of
from tcir.dialect.ops.mma_ws import buffer_of
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.operands import matrix_a, metadata_of, slice_of
from tcir.interp.tile.values import TmemTile
from tcir.machine import InstructionDescriptor, MmaOptions

KINDS = {
    "f16": ("f16", "f16"), "bf16": ("f16", "bf16"), "f32": ("tf32", "tf32"),
    "f8E4M3FN": ("f8f6f4", "e4m3"), "f8E5M2": ("f8f6f4", "e5m2"), "i8": ("i8", "s8"),
}  # fmt: skip
"""Element type of an operand -> kind of tcgen05.mma and the machine's name of the type (PTX ISA
9.7.16.10.9.1)."""
RESULTS = {"f32": "f32", "i32": "s32"}


def instruction_of(op: ir.OpView, m: int, **more: Any) -> InstructionDescriptor:
    """Returns the instruction descriptor of an mma without block scales. m: number of rows of A in
    one CTA
    """
    kind, b_name = KINDS[str(op.b.type.element)]
    a_name, result = KINDS[str(op.a.type.element)][1], RESULTS[str(op.d.type.element)]
    if "unsigned" in op.operation.attributes:
        a_name, b_name = ("u8" if u else "s8" for u in integers(op, "unsigned"))
    group = cta_group_of(op)
    return InstructionDescriptor(
        kind, m * group, columns_of(op), a_name, b_name, result, cta_group=group, **more
    )


@execute(tc.MmaOp)
def mma(compiler: Compiler, op: tc.MmaOp) -> Step:
    instruction = instruction_of(op, op.d.type.shape[0])
    a_row, ashift = optional_integer(op, "a_row"), flag(op, "ashift")
    return _multiply(compiler, op, compiler.operands(op), instruction, a_row=a_row, ashift=ashift)


@execute(tc.MmaWsOp)
def mma_ws(compiler: Compiler, op: tc.MmaWsOp) -> Step:
    instruction = instruction_of(op, op.a.type.shape[0], ws=True)
    return _multiply(compiler, op, compiler.operands(op), instruction)


@execute(tc.MmaWsSparseOp)
def mma_ws_sparse(compiler: Compiler, op: tc.MmaWsSparseOp) -> Step:
    return _multiply_sparse(compiler, op, op.a.type.shape[0], ws=True)


@execute(tc.MmaSparseOp)
def mma_sparse(compiler: Compiler, op: tc.MmaSparseOp) -> Step:
    return _multiply_sparse(compiler, op, op.d.type.shape[0])


def _multiply_sparse(compiler: Compiler, op: ir.OpView, m: int, ws: bool = False) -> Step:
    """Multiplies a sparse A of `m` rows in a CTA."""
    d, a, b, metadata, accumulate = compiler.operands(op)
    selector = integer(op, "selector")
    instruction = instruction_of(op, m, ws=ws, sparse=True, sparsity_selector=selector)
    return _multiply(compiler, op, [d, a, b, accumulate], instruction, metadata)


def _multiply(
    compiler: Compiler,
    op: ir.OpView,
    operands: Sequence[int],
    instruction: InstructionDescriptor,
    metadata_: int | None = None,
    *,
    a_row: int | None = None,
    ashift: bool = False,
) -> Step:
    """Multiplies D, A, B and whether to accumulate, by their slots.

    metadata_: slot of the metadata of a sparse A; a_row: first row of A in shared memory; ashift:
    whether A moves down by a lane afterwards
    """
    d_, a_, b_, accumulate_ = operands
    a_slice, b_slice = integer(op, "a_slice"), integer(op, "b_slice")
    metadata, width = metadata_of(op, metadata_), 1 + instruction.sparse
    scale, collector, ws = scale_of(op), collector_of(op), instruction.ws
    buffer, site = buffer_of(op) if ws else "a", compiler.site(op)

    def multiply(frame: Frame) -> None:
        v = frame.values
        d: TmemTile = v[d_]
        options = MmaOptions(
            bool(v[accumulate_]),
            disable_lanes=None if ws else d.disabled,
            ashift=ashift,
            scale_input_d=scale,
            collector=collector,
            collector_buffer=buffer,
            metadata=metadata(frame),
        )
        frame.agent.tensor_core.mma(
            d.address(frame),
            matrix_a(frame, v[a_], a_slice, a_row),
            slice_of(frame, v[b_], b_slice, width),
            instruction,
            options,
            site=site,
        )

    return compiler.issues(op, multiply)
