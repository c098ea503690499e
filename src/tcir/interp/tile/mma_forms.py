"""Rules of the weight-stationary and the sparse tensor-core ops."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.ops.compute import collector_of, scale_of
from tcir.dialect.ops.mma_ws import buffer_of
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.compute import instruction_of
from tcir.interp.tile.operands import matrix_a, metadata_of, slice_of
from tcir.interp.tile.values import TmemTile
from tcir.machine import InstructionDescriptor, MmaOptions


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
) -> Step:
    """Multiplies D, A, B and whether to accumulate, by their slots; `metadata_`: that of the
    metadata of a sparse A."""
    d_, a_, b_, accumulate_ = operands
    a_slice, b_slice = integer(op, "a_slice"), integer(op, "b_slice")
    metadata, width = metadata_of(op, metadata_), 1 + instruction.sparse
    scale, collector, ws = scale_of(op), collector_of(op), instruction.ws
    buffer = buffer_of(op) if ws else "a"
    site, sequential = compiler.site(op), compiler.sequential

    def multiply(frame: Frame) -> None:
        if not frame.elected():
            return
        v = frame.values
        d: TmemTile = v[d_]
        options = MmaOptions(
            bool(v[accumulate_]),
            disable_lanes=None if ws else d.disabled,
            scale_input_d=scale,
            collector=collector,
            collector_buffer=buffer,
            metadata=metadata(frame),
        )
        frame.agent.tensor_core.mma(
            d.origin(frame) + d.column,
            matrix_a(frame, v[a_], a_slice),
            slice_of(frame, v[b_], b_slice, width),
            instruction,
            options,
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return multiply
