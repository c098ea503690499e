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
from tcir.machine import MmaOptions


@execute(tc.MmaWsOp)
def mma_ws(compiler: Compiler, op: tc.MmaWsOp) -> Step:
    return _weight_stationary(compiler, op, compiler.operands(op))


@execute(tc.MmaWsSparseOp)
def mma_ws_sparse(compiler: Compiler, op: tc.MmaWsSparseOp) -> Step:
    d, a, b, metadata, accumulate = compiler.operands(op)
    return _weight_stationary(compiler, op, [d, a, b, accumulate], metadata)


def _weight_stationary(
    compiler: Compiler, op: ir.OpView, operands: Sequence[int], metadata_: int | None = None
) -> Step:
    """Multiplies in weight-stationary form. `metadata_`: slot of the metadata of a sparse A."""
    d_, a_, b_, accumulate_ = operands
    a_slice, b_slice = integer(op, "a_slice"), integer(op, "b_slice")
    sparse = metadata_ is not None
    instruction = instruction_of(
        op,
        op.a.type.shape[0],
        ws=True,
        sparse=sparse,
        sparsity_selector=integer(op, "selector") if sparse else 0,
    )
    metadata = metadata_of(op, metadata_)
    buffer, collector = buffer_of(op), collector_of(op)
    site, sequential = compiler.site(op), compiler.sequential

    def multiply(frame: Frame) -> None:
        if not frame.elected():
            return
        v = frame.values
        d: TmemTile = v[d_]
        options = MmaOptions(
            bool(v[accumulate_]),
            collector=collector,
            collector_buffer=buffer,
            metadata=metadata(frame),
        )
        frame.agent.tensor_core.mma(
            d.origin(frame) + d.column,
            matrix_a(frame, v[a_], a_slice),
            slice_of(frame, v[b_], b_slice, 1 + sparse),
            instruction,
            options,
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return multiply


@execute(tc.MmaSparseOp)
def mma_sparse(compiler: Compiler, op: tc.MmaSparseOp) -> Step:
    d_, a_, b_, metadata_, accumulate_ = compiler.operands(op)
    a_slice, b_slice = integer(op, "a_slice"), integer(op, "b_slice")
    selector, metadata = integer(op, "selector"), metadata_of(op, metadata_)
    instruction = instruction_of(op, op.d.type.shape[0], sparse=True, sparsity_selector=selector)
    scale, collector = scale_of(op), collector_of(op)
    site, sequential = compiler.site(op), compiler.sequential

    def multiply(frame: Frame) -> None:
        if not frame.elected():
            return
        v = frame.values
        d: TmemTile = v[d_]
        options = MmaOptions(
            bool(v[accumulate_]),
            disable_lanes=d.disabled,
            scale_input_d=scale,
            collector=collector,
            metadata=metadata(frame),
        )
        frame.agent.tensor_core.mma(
            d.origin(frame) + d.column,
            matrix_a(frame, v[a_], a_slice),
            slice_of(frame, v[b_], b_slice, 2),
            instruction,
            options,
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return multiply
