"""Tensor core, block-scaled and sparse."""

from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer
from tcir.dialect.limits import MMA_K_BYTES
from tcir.dialect.operation import Op
from tcir.dialect.ops.block_scale import MmaBlockScaleOp
from tcir.dialect.ops.mma_sparse import SPARSE_B_BYTES, MmaSparseOp, wrong_metadata
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.types import SmemType, TmemType

METADATA_COLUMNS = 2
"""Columns of the metadata of a step: 64 bits for every row (PTX ISA 9.7.16.10.8)."""


class MmaBlockScaleSparseOp(
    Op,
    name="mma_block_scale_sparse",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma.sp.kind.block_scale``: one K step with a sparse A and a scale per block of k.

    As ``tc.mma_block_scale``, but A stores half of its elements: of four neighbours two (kind
    ``mxf8f6f4``), or of four pairs of fp4 two; a step reads 32 bytes of each row of A from
    ``32*a_slice`` on, and 64 of B from ``64*b_slice`` on. ``metadata`` is a tile of i32 in tensor
    memory that says which: 4 bits for every four neighbours (pairs), those of row m in lane ``m``
    of the two columns from ``metadata_column`` on, the first in the low bits (PTX ISA
    9.7.16.10.8). A step has as many scales as a dense one for twice the k: ``block``, 16 or 32 as
    the instruction's qualifier, counts the stored elements of A, and a scale of A or B is for
    ``2*block`` values of k. Issued by one thread, asynchronous.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 16>, f32>
    !a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
    !b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
    !e = !tc.tmem<array<i64: 128, 4>, i32>
    !sf = !tc.tmem<array<i64: 128, 64>, i8>
    func.func @example(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %accumulate: i1) {
      "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %accumulate) {kind = "mxf4nvf4",
          a_type = "e2m1", b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64,
          a_slice = 1 : i64, b_slice = 1 : i64, metadata_column = 2 : i64, sfa_column = 4 : i64,
          sfb_column = 4 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
          : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
      return
    }
    """
    form = (
        "{d}, {a}[j={a_slice}], {b}[j={b_slice}] metadata {metadata}[{metadata_column}] "
        "scales {sfa}[{sfa_column}:{sfa_id}], {sfb}[{sfb_column}:{sfb_id}] acc={accumulate} "
        "{kind} ({a_type} x {b_type}, {scale_type} / {block})"
    )

    d: ext.Operand[TmemType]
    a: ext.Operand[SmemType | TmemType]
    b: ext.Operand[SmemType]
    metadata: ext.Operand[TmemType]
    sfa: ext.Operand[TmemType]
    sfb: ext.Operand[TmemType]
    accumulate: ext.Operand[Any]  # i1
    kind: ir.StringAttr
    a_type: ir.StringAttr
    b_type: ir.StringAttr
    scale_type: ir.StringAttr
    block: ir.IntegerAttr
    a_slice: ir.IntegerAttr
    b_slice: ir.IntegerAttr
    metadata_column: ir.IntegerAttr
    sfa_column: ir.IntegerAttr
    sfb_column: ir.IntegerAttr
    sfa_id: ir.IntegerAttr
    sfb_id: ir.IntegerAttr


same_rules(
    MmaBlockScaleSparseOp, MmaBlockScaleOp, "kind", "accumulate-type", "types", "scale-type",
    "block", "operands", "d-type", "m", "n-range", "n-of-d",
)  # fmt: skip


@verify(
    MmaBlockScaleSparseOp,
    "slices",
    "PTX ISA 9.7.16.2, table 39",
    "a_slice and b_slice must be in [0, {a}) and [0, {b}), got {got_a} and {got_b}: a sparse "
    "instruction reads 32 bytes of every row of A, and 64 of B",
)
def _(op: MmaBlockScaleSparseOp) -> Broken:
    a, b = op.a.type.shape[1] // MMA_K_BYTES, op.b.type.shape[1] // SPARSE_B_BYTES
    got_a, got_b = integer(op, "a_slice"), integer(op, "b_slice")
    if 0 <= got_a < a and 0 <= got_b < b:
        return None
    return {"a": a, "b": b, "got_a": got_a, "got_b": got_b}


same_rules(MmaBlockScaleSparseOp, MmaSparseOp, "b-span")


@verify(
    MmaBlockScaleSparseOp,
    "metadata",
    "PTX ISA 9.7.16.10.8",
    "metadata must be a tile of i32 with columns [{begin}, {end}), from a multiple of {step}, got "
    "{got}",
)
def _(op: MmaBlockScaleSparseOp) -> Broken:
    return wrong_metadata(op, METADATA_COLUMNS, METADATA_COLUMNS)


same_rules(
    MmaBlockScaleSparseOp, MmaBlockScaleOp, "scale-element", "scale-ids", "scale-columns"
)  # fmt: skip
