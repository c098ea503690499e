"""Tensor core, sparse."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer
from tcir.dialect.limits import MMA_K_BYTES, Legal
from tcir.dialect.operation import Op
from tcir.dialect.ops.compute import MmaOp, kind_of
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.types import SmemType, TmemType, element_bytes

SOURCE = "PTX ISA 9.7.16.10.8"
SPARSE_B_BYTES = 2 * MMA_K_BYTES
"""Bytes of K of B that a sparse instruction reads: A stores every second element."""
SELECTORS = {
    "f16": Legal((0, 1, 2, 3), "", "PTX ISA 9.7.16.10.8.4"),
    "tf32": Legal((0, 1, 2, 3), "", "PTX ISA 9.7.16.10.8.4"),
    "f8f6f4": Legal((0,), "", "PTX ISA 9.7.16.10.8.4"),
    "i8": Legal((0,), "", "PTX ISA 9.7.16.10.8.4"),
}
"""Sparsity selector: which column of the metadata the step reads. The 8-bit kinds read two."""


class MmaSparseOp(
    Op,
    name="mma_sparse",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma.sp``: one K step with a sparse A, ``D = A_slice * B_slice^T (+ D)``.

    As ``tc.mma``, but A stores half of its elements: of two neighbours one (f32 as tf32), of four
    two (16- and 8-bit types); a step reads 32 bytes of each row of A from ``32*a_slice`` on, and 64
    of B from ``64*b_slice`` on. ``metadata`` is a tile of i32 in tensor memory that says which:
    4 bits per stored pair (f32: per element), row m in lane ``m`` of the two columns from
    ``metadata_column`` on (8-bit types), or, for 16- and 32-bit types, in column
    ``metadata_column + selector`` as PTX ISA 9.7.16.10.8 places it. ``scale_d`` and ``collector``
    as in ``tc.mma``. Issued by one thread, asynchronous.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 64>, f32>
    !a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    !b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
    !e = !tc.tmem<array<i64: 128, 8>, i32>
    func.func @example(%d: !d, %a: !a, %b: !b, %e: !e, %accumulate: i1) {
      "tc.mma_sparse"(%d, %a, %b, %e, %accumulate) {a_slice = 1 : i64, b_slice = 1 : i64,
          metadata_column = 0 : i64, selector = 1 : i64} : (!d, !a, !b, !e, i1) -> ()
      return
    }
    """
    form = (
        "{d}, {a}[j={a_slice}], {b}[j={b_slice}] metadata {metadata}[{metadata_column}:{selector}] "
        "acc={accumulate}"
    )

    d: ext.Operand[TmemType]
    a: ext.Operand[SmemType | TmemType]
    b: ext.Operand[SmemType]
    metadata: ext.Operand[TmemType]
    accumulate: ext.Operand[ir.IntegerType]
    a_slice: ir.IntegerAttr
    b_slice: ir.IntegerAttr
    metadata_column: ir.IntegerAttr
    selector: ir.IntegerAttr


same_rules(
    MmaSparseOp, MmaOp, "accumulate-type", "operand-types", "same-types", "unsigned", "d-type", "m",
    "n-range", "n-of-d", "a-slice",
)  # fmt: skip


@verify(
    MmaSparseOp,
    "b-slice",
    SOURCE,
    "b_slice must be in [0, {slices}), got {got}: B has K = {k}, and one sparse instruction reads "
    "64 bytes of it",
)
def _(op: MmaSparseOp) -> Broken:
    type_, got = op.b.type, integer(op, "b_slice")
    slices = type_.shape[1] * element_bytes(type_.element) // SPARSE_B_BYTES
    return None if 0 <= got < slices else {"slices": slices, "got": got, "k": type_.shape[1]}


@verify(
    MmaSparseOp,
    "b-span",
    "PTX ISA 9.7.16.4.1",
    'a K-major B must not have swizzle "32B": the 64 bytes of a step would be in two columns, and '
    "a swizzled descriptor has no distance for them",
)
def _(op: MmaSparseOp) -> Broken:
    type_ = op.b.type
    return {} if type_.major == "K" and type_.swizzle == "32B" else None


@verify(
    MmaSparseOp,
    "selector",
    "PTX ISA 9.7.16.10.8.4",
    "selector must be {legal} for kind {kind}, got {got}",
)
def _(op: MmaSparseOp) -> Broken:
    kind, got = kind_of(op), integer(op, "selector")
    legal = SELECTORS[kind]
    return None if got in legal else {"legal": legal, "kind": kind, "got": got}


@verify(
    MmaSparseOp,
    "metadata",
    SOURCE,
    "metadata must be a tile of i32 with columns [{begin}, {end}), from a multiple of {step}, got "
    "{got}",
)
def _(op: MmaSparseOp) -> Broken:
    selector = integer(op, "selector")
    columns = selector + 1 if kind_of(op) in ("f16", "tf32") else 2
    return wrong_metadata(op, columns, 4 if selector > 1 else 2)


def wrong_metadata(op: ir.OpView, columns: int, step: int) -> Broken:
    """None if ``metadata`` has `columns` of i32 from ``metadata_column``, a multiple of `step`."""
    begin, type_ = integer(op, "metadata_column"), op.metadata.type
    end = begin + columns
    fits = 0 <= begin and end <= type_.columns and begin % step == 0
    if fits and str(type_.element) == "i32":
        return None
    return {"begin": begin, "end": end, "step": step, "got": type_}


same_rules(MmaSparseOp, MmaOp, "collector", "scale-d")
