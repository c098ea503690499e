"""Rules of the block-scaled tensor-core ops."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import columns_of, cta_group_of
from tcir.dialect.ops.block_scale import SCALE_COLUMNS, SCALE_ROW_BYTES, SCALE_ROWS
from tcir.dialect.ops.compute import collector_of
from tcir.interp.tile.addresses import slice_bytes
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute, of_pair
from tcir.interp.tile.operands import matrix_a, metadata_of, slice_of
from tcir.interp.tile.values import SmemTile, TmemTile
from tcir.machine import MmaOptions
from tcir.machine.tensor_core.instruction_descriptor_scaled import SCALED_K, ScaledDescriptor


def _descriptor(op: ir.OpView, sparse: bool) -> ScaledDescriptor:
    """Returns the instruction descriptor from the op's types and attributes."""
    kind, block = string(op, "kind"), integer(op, "block")
    return ScaledDescriptor(
        kind=kind,
        m=op.d.type.shape[0] * cta_group_of(op),
        n=columns_of(op),
        a_type=string(op, "a_type"),
        b_type=string(op, "b_type"),
        scale_type=string(op, "scale_type"),
        scales=SCALED_K[kind] // block,
        sfa_id=integer(op, "sfa_id"),
        sfb_id=integer(op, "sfb_id"),
        sparse=sparse,
        cta_group=cta_group_of(op),
    )


@execute(tc.MmaBlockScaleOp)
def mma_block_scale(compiler: Compiler, op: tc.MmaBlockScaleOp) -> Step:
    return _multiply(compiler, op, compiler.operands(op))


@execute(tc.MmaBlockScaleSparseOp)
def mma_block_scale_sparse(compiler: Compiler, op: tc.MmaBlockScaleSparseOp) -> Step:
    d, a, b, metadata, *rest = compiler.operands(op)
    return _multiply(compiler, op, [d, a, b, *rest], metadata)


def _multiply(
    compiler: Compiler, op: ir.OpView, operands: Sequence[int], metadata_: int | None = None
) -> Step:
    """Multiplies with block scales. `metadata_`: slot of the metadata of a sparse A."""
    d_, a_, b_, sfa_, sfb_, accumulate_ = operands
    a_slice, b_slice, sfa_column, sfb_column = (
        integer(op, name) for name in ("a_slice", "b_slice", "sfa_column", "sfb_column")
    )
    sparse = metadata_ is not None
    metadata = metadata_of(op, metadata_)
    descriptor, site, sequential = _descriptor(op, sparse), compiler.site(op), compiler.sequential

    def multiply(frame: Frame) -> None:
        if not frame.elected():
            return
        v = frame.values
        d: TmemTile = v[d_]
        sfa: TmemTile = v[sfa_]
        sfb: TmemTile = v[sfb_]
        frame.agent.tensor_core.mma_block_scale(
            d.origin(frame) + d.column,
            matrix_a(frame, v[a_], a_slice),
            slice_of(frame, v[b_], b_slice, 1 + sparse),
            descriptor,
            sfa.origin(frame) + sfa.column + sfa_column,
            sfb.origin(frame) + sfb.column + sfb_column,
            MmaOptions(
                enable_input_d=bool(v[accumulate_]),
                collector=collector_of(op),
                metadata=metadata(frame),
            ),
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return of_pair(multiply, site) if sequential and descriptor.cta_group > 1 else multiply


@execute(tc.CpScalesOp)
def cp_scales(compiler: Compiler, op: tc.CpScalesOp) -> Step:
    source_, target_, column_ = compiler.operands(op)
    block, cta_group = integer(op, "block"), cta_group_of(op)
    site, sequential = compiler.site(op), compiler.sequential
    rows = SCALE_ROWS * block, SCALE_ROWS * (block + 1)

    def copy(frame: Frame) -> None:
        if not frame.elected():
            return
        source: SmemTile = frame.values[source_]
        target: TmemTile = frame.values[target_]
        column = frame.values[column_]
        if not 0 <= column <= target.columns - SCALE_COLUMNS:
            raise frame.cta_run.error(
                "access-outside-tile",
                f"expected 4 columns of the tile's {target.columns}, got those from {column} on",
                site,
            )
        frame.agent.tensor_core.cp(
            target.origin(frame) + target.column + column,
            frame.cta_run.element_operand(
                slice_bytes(source.layout, source.base, 0, SCALE_ROW_BYTES, rows)
            ),
            "32x128b",
            "warpx4",
            cta_group=cta_group,
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return of_pair(copy, site) if sequential and cta_group > 1 else copy
