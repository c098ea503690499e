"""Rules of the block-scaled tensor-core ops."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import columns_of, cta_group_of
from tcir.dialect.ops.compute import collector_of
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.operands import matrix_a, metadata_of, slice_of
from tcir.interp.tile.values import TmemTile
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
    descriptor, site = _descriptor(op, sparse), compiler.site(op)

    def multiply(frame: Frame) -> None:
        v = frame.values
        d: TmemTile = v[d_]
        sfa: TmemTile = v[sfa_]
        sfb: TmemTile = v[sfb_]
        frame.agent.tensor_core.mma_block_scale(
            d.address(frame),
            matrix_a(frame, v[a_], a_slice),
            slice_of(frame, v[b_], b_slice, 1 + sparse),
            descriptor,
            sfa.address(frame, sfa_column),
            sfb.address(frame, sfb_column),
            MmaOptions(
                enable_input_d=bool(v[accumulate_]),
                collector=collector_of(op),
                metadata=metadata(frame),
            ),
            site=site,
        )

    return compiler.issues(op, multiply)
