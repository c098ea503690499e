"""Weight-stationary and sparse tensor-core ops."""

from __future__ import annotations

from tcir._mlir import ir, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.ops.compute import collector_of, kind_of
from tcir.dialect.ops.mma_ws import buffer_of

from .compute import descriptor_of, matrix_a, scale_operand, slice_descriptor
from .converter import Converter, SmemTile, TmemTile, lower, require_role
from .structure import tmem_pointer

B_SLICES = 2
"""Slices of 32 bytes of B that a sparse instruction reads."""


@lower(tc.MmaWsOp)
def convert_mma_ws(converter: Converter, op: tc.MmaWsOp) -> None:
    """``tcgen05.mma.ws.cta_group::1``, with A in tensor memory or shared memory."""
    _weight_stationary(converter, op)


@lower(tc.MmaWsSparseOp)
def convert_mma_ws_sparse(converter: Converter, op: tc.MmaWsSparseOp) -> None:
    """``tcgen05.mma.ws.sp.cta_group::1``, with A in tensor memory or shared memory."""
    _weight_stationary(converter, op, integer(op, "selector"))


def _weight_stationary(
    converter: Converter, op: tc.MmaWsOp | tc.MmaWsSparseOp, selector: int | None = None
) -> None:
    """`selector`: that of the metadata of a sparse A."""
    require_role(converter, op)
    width = 1 if selector is None else B_SLICES
    d, b = converter.record(op.d, TmemTile), converter.record(op.b, SmemTile)
    nvvm.tcgen05.mma_ws(
        kind_of(op),
        tmem_pointer(converter.tmem_columns(d)),
        (
            matrix_a(converter, converter.value(op.a), integer(op, "a_slice")),
            slice_descriptor(converter, b, width * integer(op, "b_slice")),
        ),
        converter.constant(descriptor_of(op, op.a.type.shape[0], selector)),
        converter.ssa(op.accumulate),
        buffer=buffer_of(op),
        collector=collector_of(op),
        metadata=None if selector is None else metadata_of(converter, op),
    )


def metadata_of(converter: Converter, op: ir.OpView) -> ir.Value:
    """The address of the metadata of a sparse A."""
    metadata = converter.record(op.metadata, TmemTile)
    return tmem_pointer(converter.tmem_columns(metadata, integer(op, "metadata_column")))


@lower(tc.MmaSparseOp)
def convert_mma_sparse(converter: Converter, op: tc.MmaSparseOp) -> None:
    """``tcgen05.mma.sp.cta_group::1``, with A in tensor memory or shared memory."""
    require_role(converter, op)
    d, b = converter.record(op.d, TmemTile), converter.record(op.b, SmemTile)
    nvvm.tcgen05.mma(
        kind_of(op),
        tmem_pointer(converter.tmem_columns(d)),
        (
            matrix_a(converter, converter.value(op.a), integer(op, "a_slice")),
            slice_descriptor(converter, b, B_SLICES * integer(op, "b_slice")),
        ),
        converter.constant(descriptor_of(op, d.type.shape[0], integer(op, "selector"))),
        converter.ssa(op.accumulate),
        nvvm.tcgen05.MmaForm(
            disable_output_lane=d.disabled,
            scale_input_d=scale_operand(converter, op),
            collector=collector_of(op),
            metadata=metadata_of(converter, op),
        ),
    )
