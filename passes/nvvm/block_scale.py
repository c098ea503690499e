"""Lowering of the block-scaled tensor-core ops, and of the copy that brings scale factors to tensor
memory."""

from __future__ import annotations

from tcir._mlir import arith, ir, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import columns_of, cta_group_of
from tcir.dialect.ops.block_scale import SCALE_ROW_BYTES, SCALE_ROWS, scaled_step
from tcir.dialect.ops.compute import collector_of

from .block_scale_descriptor import scaled_instruction_descriptor
from .compute import B_SLICES, matrix_a, metadata_of, slice_descriptor, tile_descriptor
from .converter import Converter, SmemTile, TmemTile, lower
from .structure import tmem_pointer


@lower(tc.MmaBlockScaleOp)
def convert_mma_block_scale(converter: Converter, op: tc.MmaBlockScaleOp) -> None:
    """Lowers to ``tcgen05.mma.kind.block_scale.blockN``, with A in tensor memory or shared
    memory."""
    _convert(converter, op)


@lower(tc.MmaBlockScaleSparseOp)
def convert_mma_block_scale_sparse(converter: Converter, op: tc.MmaBlockScaleSparseOp) -> None:
    """Lowers to ``tcgen05.mma.sp.kind.block_scale.blockN``."""
    _convert(converter, op, metadata_of(converter, op))


def _convert(
    converter: Converter,
    op: tc.MmaBlockScaleOp | tc.MmaBlockScaleSparseOp,
    metadata: ir.Value | None = None,
) -> None:
    """The instruction; `metadata`: address of that of a sparse A."""
    d = converter.record(op.d, TmemTile)
    a, b = converter.value(op.a), converter.record(op.b, SmemTile)
    sfa, sfb = converter.record(op.sfa, TmemTile), converter.record(op.sfb, TmemTile)
    step, cta_group = scaled_step(op), cta_group_of(op)
    idesc = scaled_instruction_descriptor(
        kind=step.kind,
        m=d.type.shape[0] * cta_group,
        n=columns_of(op),
        a=string(op, "a_type"),
        b=string(op, "b_type"),
        scale=string(op, "scale_type"),
        scale_ids=(integer(op, "sfa_id"), integer(op, "sfb_id")),
        sparse=metadata is not None,
    )
    width = 1 if metadata is None else B_SLICES
    signed = idesc - (1 << 32) if idesc >> 31 else idesc
    nvvm.tcgen05.mma_block_scale(
        step.kind,
        step.block,
        tmem_pointer(converter.tmem_columns(d)),
        (
            matrix_a(converter, a, integer(op, "a_slice")),
            slice_descriptor(converter, b, width * integer(op, "b_slice")),
        ),
        converter.constant(signed),
        converter.ssa(op.accumulate),
        (
            tmem_pointer(converter.tmem_columns(sfa, integer(op, "sfa_column"))),
            tmem_pointer(converter.tmem_columns(sfb, integer(op, "sfb_column"))),
        ),
        nvvm.tcgen05.MmaForm(cta_group=cta_group, collector=collector_of(op), metadata=metadata),
    )


@lower(tc.CpScalesOp)
def convert_cp_scales(converter: Converter, op: tc.CpScalesOp) -> None:
    """Lowers to ``tcgen05.cp.32x128b.warpx4``."""
    source = converter.record(op.source, SmemTile)
    target = converter.record(op.target, TmemTile)
    descriptor = tile_descriptor(converter, source)
    offset = integer(op, "block") * SCALE_ROWS * SCALE_ROW_BYTES >> 4
    if offset:
        descriptor = arith.AddIOp(descriptor, converter.constant(offset, 64)).result
    first = arith.AddIOp(converter.tmem_columns(target), converter.ssa(op.column)).result
    nvvm.tcgen05.cp(
        "32x128b",
        tmem_pointer(first),
        descriptor,
        multicast="warpx4",
        cta_group=cta_group_of(op),
    )
