"""The tensor core op with a sparse A."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer
from tcir.dialect.limits import MMA_K_BYTES, Legal
from tcir.dialect.operation import Op
from tcir.dialect.ops.block_scale import MmaBlockScaleOp, wrong_slices
from tcir.dialect.ops.compute import MmaOp, kind_of
from tcir.dialect.ops.mma_ws import SHAPES, MmaWsOp
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
WS_SPARSE_N = Legal((64, 128), "columns", SHAPES)
METADATA_COLUMNS = 2
"""Columns of the metadata of a step: 64 bits for every row (PTX ISA 9.7.16.10.8)."""


class MmaSparseOp(
    Op,
    name="mma_sparse",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma.sp``: one K step with a sparse A, ``D = A_slice * B_slice^T (+ D)``.

    The op is ``tc.mma``, except that A stores half of its elements: one of two neighbours (f32 as
    tf32), or two of four (16- and 8-bit types). A step reads 32 bytes of each row of A from
    ``32*a_slice`` on, and 64 bytes of each row of B from ``64*b_slice`` on. ``metadata`` is a tile
    of i32 in tensor memory that gives the positions of the stored elements: 4 bits per stored pair
    (f32: per element). For 8-bit types row m is in lane ``m`` of the two columns from
    ``metadata_column`` on; for 16- and 32-bit types it is in column ``metadata_column + selector``,
    as PTX ISA 9.7.16.10.8 places it. ``scale_d`` and ``collector`` are as in ``tc.mma``. One thread
    issues the op; it completes asynchronously.
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
    MmaSparseOp,
    MmaOp,
    {
        "accumulate-type": {"i1": "i8"},
        "operand-types": {"array<i64: 64, 128>, f16": "array<i64: 64, 128>, i32"},
        "same-types": {"array<i64: 64, 128>, f16": "array<i64: 64, 128>, bf16"},
        "unsigned": {"selector = 1 : i64": "selector = 1 : i64, unsigned = array<i64: 0, 1>"},
        "d-type": {"f32": "i32"},
        "m": {"tc.smem<array<i64: 128, 64>": "tc.smem<array<i64: 64, 64>"},
        "n-range": {"array<i64: 64, 128>": "array<i64: 264, 128>"},
        "n-of-d": {"array<i64: 128, 64>": "array<i64: 128, 32>"},
        "a-slice": {"a_slice = 1": "a_slice = 4"},
    },
)


@verify(
    MmaSparseOp,
    "b-slice",
    SOURCE,
    "b_slice must be in [0, {slices}), got {got}: B has K = {k}, and one sparse instruction reads "
    "64 bytes of it",
    bad={"b_slice = 1": "b_slice = 4"},
    good={"b_slice = 1": "b_slice = 3"},
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
    bad={'"128B"': '"32B"'},
    good={'"128B"': '"64B"'},
)
def _(op: MmaSparseOp) -> Broken:
    type_ = op.b.type
    return {} if type_.major == "K" and type_.swizzle == "32B" else None


@verify(
    MmaSparseOp,
    "selector",
    "PTX ISA 9.7.16.10.8.4",
    "selector must be {legal} for kind {kind}, got {got}",
    bad={"selector = 1": "selector = 4"},
    good={"selector = 1": "selector = 3"},
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
    bad={"metadata_column = 0": "metadata_column = 6", "selector = 1": "selector = 2"},
    good={"metadata_column = 0": "metadata_column = 6"},
)
def _(op: MmaSparseOp) -> Broken:
    selector = integer(op, "selector")
    columns = selector + 1 if kind_of(op) in ("f16", "tf32") else METADATA_COLUMNS
    return wrong_metadata(op, columns, 4 if selector > 1 else 2)


def wrong_metadata(op: ir.OpView, columns: int, step: int) -> Broken:
    """Values for the error message unless ``metadata`` is i32 and has `columns` columns from
    ``metadata_column`` on, which must be a multiple of `step`."""
    begin, type_ = integer(op, "metadata_column"), op.metadata.type
    end = begin + columns
    fits = 0 <= begin and end <= type_.columns and begin % step == 0
    if fits and str(type_.element) == "i32":
        return None
    return {"begin": begin, "end": end, "step": step, "got": type_}


same_rules(
    MmaSparseOp,
    MmaOp,
    {
        "collector": {"selector = 1 : i64": 'selector = 1 : i64, collector = "keep"'},
        "scale-d": {"selector = 1 : i64": "selector = 1 : i64, scale_d = 16 : i64"},
    },
)


class MmaWsSparseOp(
    Op,
    name="mma_ws_sparse",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma.ws.sp``: one K step with few rows of a sparse A, ``D = A_slice * B_slice^T``.

    Rows and columns of D, ``buffer`` and ``collector`` are as in ``tc.mma_ws``, with N = 64 or 128;
    slices, ``metadata`` and ``selector`` are as in ``tc.mma_sparse``: A stores half of its
    elements, and a step reads 32 bytes of each row of A and 64 bytes of each row of B. With M = 32
    or 64 the metadata of A must be stored 128 / M times, M lanes apart, like the rows of D. Old D
    is added if ``accumulate`` is true (PTX ISA 9.7.16.10.9.3). One thread issues the op; it
    completes asynchronously.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 32>, f32>
    !a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
    !b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
    !e = !tc.tmem<array<i64: 128, 8>, i32>
    func.func @example(%d: !d, %a: !a, %b: !b, %e: !e, %accumulate: i1) {
      "tc.mma_ws_sparse"(%d, %a, %b, %e, %accumulate) {a_slice = 1 : i64, b_slice = 1 : i64,
          metadata_column = 0 : i64, selector = 1 : i64, buffer = "b2", collector = "fill"}
          : (!d, !a, !b, !e, i1) -> ()
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
    MmaWsSparseOp,
    MmaWsOp,
    {
        "accumulate-type": {"i1": "i8"},
        "operand-types": {"array<i64: 128, 128>, f16": "array<i64: 128, 128>, i32"},
        "same-types": {"array<i64: 128, 128>, f16": "array<i64: 128, 128>, bf16"},
        "unsigned": {'buffer = "b2"': 'unsigned = array<i64: 1, 0>, buffer = "b2"'},
        "d-type": {"f32": "i32"},
        "m": {"array<i64: 32, 64>": "array<i64: 16, 64>"},
    },
)


@verify(
    MmaWsSparseOp,
    "n-range",
    SHAPES,
    "N must be {legal}, got {got}: .ws.sp has no other; nearest legal: {nearest}",
    bad={"array<i64: 128, 128>": "array<i64: 256, 128>"},
    good={
        "array<i64: 128, 32>": "array<i64: 128, 16>",
        "array<i64: 128, 128>": "array<i64: 64, 128>",
    },
)
def _(op: MmaWsSparseOp) -> Broken:
    got, legal = op.b.type.shape[0], WS_SPARSE_N
    return None if got in legal else {"legal": legal, "got": got, "nearest": legal.nearest(got)}


same_rules(
    MmaWsSparseOp,
    MmaWsOp,
    {
        "d-columns": {"array<i64: 128, 32>": "array<i64: 128, 128>"},
        "a-slice": {"a_slice = 1": "a_slice = 4"},
    },
)
same_rules(
    MmaWsSparseOp,
    MmaSparseOp,
    {
        "b-slice": {"b_slice = 1": "b_slice = 4"},
        "b-span": {'"128B"': '"32B"'},
        "selector": {"selector = 1": "selector = 4"},
        "metadata": {"metadata_column = 0": "metadata_column = 6", "selector = 1": "selector = 2"},
    },
)
same_rules(
    MmaWsSparseOp,
    MmaWsOp,
    {
        "collector": {'collector = "fill"': 'collector = "keep"'},
        "buffer": {'buffer = "b2"': 'buffer = "b4"'},
    },
)


class MmaBlockScaleSparseOp(
    Op,
    name="mma_block_scale_sparse",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma.sp.kind.block_scale``: one K step with a sparse A and a scale per block of k.

    The op is ``tc.mma_block_scale``, except that A stores half of its elements: two of four
    neighbours (kind ``mxf8f6f4``), or two of four pairs of fp4. A step reads 32 bytes of each row
    of A from ``32*a_slice`` on, and 64 bytes of each row of B from ``64*b_slice`` on. ``metadata``
    is a tile of i32 in tensor memory that gives the positions of the stored elements: 4 bits for
    every four neighbours (pairs), for row m in lane ``m`` of the two columns from
    ``metadata_column`` on, the first in the low bits (PTX ISA 9.7.16.10.8). A step has as many
    scales as a dense step and twice its k: ``block``, 16 or 32 as in the instruction's qualifier,
    counts the stored elements of A, and a scale of A or B is for ``2*block`` values of k. One
    thread issues the op; it completes asynchronously.
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
    accumulate: ext.Operand[ir.IntegerType]
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
    MmaBlockScaleSparseOp,
    MmaBlockScaleOp,
    {
        "kind": {'kind = "mxf4nvf4"': 'kind = "f16"'},
        "accumulate-type": {"i1": "i8"},
        "types": {'a_type = "e2m1"': 'a_type = "e4m3"'},
        "scale-type": {'kind = "mxf4nvf4"': 'kind = "mxf4"'},
        "block": {"block = 16": "block = 32"},
        "operands": {"!a = !tc.smem": "!a = !tc.tmem", 'i8, "K", "64B"': "f16"},
        "d-type": {"f32": "i32"},
        "m": {"tc.smem<array<i64: 128, 64>": "tc.smem<array<i64: 64, 64>"},
        "n-range": {"array<i64: 16, 128>": "array<i64: 264, 128>"},
        "n-of-d": {"array<i64: 128, 16>": "array<i64: 128, 32>"},
    },
)


@verify(
    MmaBlockScaleSparseOp,
    "slices",
    "PTX ISA 9.7.16.2, table 39",
    "a_slice and b_slice must be in [0, {a}) and [0, {b}), got {got_a} and {got_b}: a sparse "
    "instruction reads 32 bytes of every row of A, and 64 of B",
    bad={"b_slice = 1": "b_slice = 2"},
)
def _(op: MmaBlockScaleSparseOp) -> Broken:
    return wrong_slices(op, SPARSE_B_BYTES)


same_rules(MmaBlockScaleSparseOp, MmaSparseOp, {"b-span": {'"128B"': '"32B"'}})


@verify(
    MmaBlockScaleSparseOp,
    "metadata",
    "PTX ISA 9.7.16.10.8",
    "metadata must be a tile of i32 with columns [{begin}, {end}), from a multiple of {step}, got "
    "{got}",
    bad={"array<i64: 128, 4>": "array<i64: 128, 8>", "metadata_column = 2": "metadata_column = 3"},
    good={"array<i64: 128, 4>": "array<i64: 128, 8>", "metadata_column = 2": "metadata_column = 6"},
)
def _(op: MmaBlockScaleSparseOp) -> Broken:
    return wrong_metadata(op, METADATA_COLUMNS, METADATA_COLUMNS)


same_rules(
    MmaBlockScaleSparseOp,
    MmaBlockScaleOp,
    {
        "scale-element": {"tc.tmem<array<i64: 128, 64>, i8": "tc.tmem<array<i64: 128, 64>, f16"},
        "scale-ids": {"sfa_id = 0": "sfa_id = 1"},
        "scale-columns": {"sfa_column = 4": "sfa_column = 13"},
    },
)
