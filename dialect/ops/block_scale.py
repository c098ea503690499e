"""Ops of the tensor core on block-scaled operands."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, integer, string
from tcir.dialect.cta_pair import columns_of, cta_group_of, wrong_n
from tcir.dialect.limits import CP_SHAPES, MMA_K_BYTES, MMA_KINDS
from tcir.dialect.operation import Op
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.rules import Broken, one_of, same_rules, verify
from tcir.dialect.types import SmemType, TmemType

SOURCE = "PTX ISA 9.7.16.10.7"
SHAPES = "PTX ISA 9.7.16.2, table 39"

ELEMENTS = {
    "mxf8f6f4": ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"),
    "mxf4": ("e2m1",),
    "mxf4nvf4": ("e2m1",),
}
"""Kind -> element types of A and B, in PTX's names (PTX ISA 9.7.16.2, table 39)."""

SCALE_BLOCKS = {
    ("mxf8f6f4", "ue8m0"): (32,),
    ("mxf4", "ue8m0"): (32,),
    ("mxf4nvf4", "ue8m0"): (16, 32),
    ("mxf4nvf4", "ue4m3"): (16,),
}
"""(kind, scale type) -> values of k to a scale (PTX ISA 9.7.16.10.7, tables 56 and 57)."""

SCALE_IDS = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}
"""Scales per row of one instruction -> byte of a 32-bit column where they may begin (9.7.16.10.7).
"""

SCALE_ROWS, SCALE_ROW_BYTES = CP_SHAPES["32x128b"][:2]
"""Rows and bytes copied by one ``tc.cp_scales``: a block of 128 rows times 4 scales."""

SCALE_COLUMNS = SCALE_ROW_BYTES // 4
"""Tensor-memory columns of such a block, and of SFA of 128 rows in one instruction."""

ROWS_PER_COLUMN = 32
"""Rows of A, or columns of D, whose scales share one column (PTX ISA 9.7.16.10.7)."""


@dataclass(frozen=True)
class ScaledStep:
    """One block-scaled mma instruction. Its K covers 32 bytes of a row of A or B; a padded fp4 or
    fp6 element takes one byte."""

    kind: str
    block: int

    @property
    def k(self) -> int:
        """Number of elements along K that one instruction multiplies."""
        return MMA_KINDS[self.kind].k

    @property
    def scales(self) -> int:
        """Number of scales per row that one instruction reads: 1, 2 or 4 (scale_vec::1X, ::2X,
        ::4X)."""
        return self.k // self.block


class MmaBlockScaleOp(
    Op,
    name="mma_block_scale",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma.kind.block_scale``: one K step with a scale per block of k.

    ``D = (A_slice * SFA) * (B_slice * SFB)^T (+ D)``. ``d`` is a 128 x N f32 tensor-memory tile;
    ``a`` (128 rows) and ``b`` (N rows) are K-major tiles of bytes in shared memory, whose bytes
    ``[32 * slice, +32)`` the step reads: 64 packed fp4 (kinds ``mxf4`` and ``mxf4nvf4``), or 32 fp8
    or 32 padded fp6 or fp4 (kind ``mxf8f6f4``: 16 elements lie packed at the start of 16 bytes).
    ``a`` may be in tensor memory, row i in lane i, where each fp6 and fp4 of kind ``mxf8f6f4`` has
    a byte of its own, as ``tc.cp_rows`` with ``format`` writes it (PTX ISA 9.7.16.10.4).
    ``a_type`` and ``b_type`` name the element types, ``scale_type`` is ``"ue8m0"`` or ``"ue4m3"``,
    and ``block`` is the number of values of k per scale.

    ``sfa`` and ``sfb`` are tiles of scale factors in tensor memory. The scales of row r are in the
    column ``r / 32`` after ``sfa_column`` (``sfb_column``), in lane ``r mod 32`` of every
    sub-partition, in the bytes from ``sfa_id`` (``sfb_id``) on (PTX ISA 9.7.16.10.7). One thread
    issues the op; it completes asynchronously.

    With ``cta_group = 2`` it multiplies for a CTA pair, and M is 256. Each CTA has 128 rows of A
    and D and half of B's rows, as in ``tc.mma``; it has the scales of its own rows of A and of all
    rows of B. ``collector`` has the meaning that it has in ``tc.mma``.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 16>, f32>
    !a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
    !b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
    !sf = !tc.tmem<array<i64: 128, 64>, i8>
    func.func @example(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %accumulate: i1) {
      "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %accumulate) {kind = "mxf4nvf4", a_type = "e2m1",
          b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64,
          b_slice = 1 : i64, sfa_column = 4 : i64, sfb_column = 4 : i64,
          sfa_id = 0 : i64, sfb_id = 0 : i64}
          : (!d, !a, !b, !sf, !sf, i1) -> ()
      return
    }
    """
    form = (
        "{d}, {a}[j={a_slice}], {b}[j={b_slice}] "
        "scales {sfa}[{sfa_column}:{sfa_id}], {sfb}[{sfb_column}:{sfb_id}] acc={accumulate} "
        "{kind} ({a_type} x {b_type}, {scale_type} / {block})"
    )

    d: ext.Operand[TmemType]
    a: ext.Operand[SmemType | TmemType]
    b: ext.Operand[SmemType]
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
    sfa_column: ir.IntegerAttr
    sfb_column: ir.IntegerAttr
    sfa_id: ir.IntegerAttr
    sfb_id: ir.IntegerAttr


class CpScalesOp(
    Op,
    name="cp_scales",
    issued_by="thread",
    role="mma",
    reads_shared=("source",),
    completed_by="tc.commit",
):
    """``tcgen05.cp.32x128b.warpx4``: copies a block of scale factors into tensor memory, once for
    each sub-partition.

    Copies rows ``[32 * block, +32)`` of ``source``, 16 bytes each, to the 4 columns from ``column``
    of ``target``: row i to lane i of every sub-partition (PTX ISA 9.7.16.9). A 128x4 block
    (byte ``4 * c + s`` of row i is scale s of row ``32 * c + i``) becomes the scale factors of one
    set of columns for ``tc.mma_block_scale``. One thread issues the op; it completes
    asynchronously.

    With ``cta_group = 2`` each CTA of the pair copies from its own ``source`` to its own
    ``target``.
    """

    example = """
    !source = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
    !target = !tc.tmem<array<i64: 128, 64>, i8>
    func.func @example(%source: !source, %target: !target, %column: index) {
      "tc.cp_scales"(%source, %target, %column) {block = 3 : i64} : (!source, !target, index) -> ()
      return
    }
    """
    form = "{source}[block={block}] -> {target}[column={column}]"

    source: ext.Operand[SmemType]
    target: ext.Operand[TmemType]
    column: ext.Operand[ir.IndexType]
    block: ir.IntegerAttr


def scaled_step(op: ir.OpView) -> ScaledStep:
    """The kind and the scale block of a verified block-scaled mma op."""
    return ScaledStep(string(op, "kind"), integer(op, "block"))


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(str, names))


same_rules(
    MmaBlockScaleOp,
    MmaOp,
    {"collector": {"sfb_id = 0 : i64": 'sfb_id = 0 : i64, collector = "keep"'}},
    {"collector": {"sfb_id = 0 : i64": 'sfb_id = 0 : i64, collector = "lastuse"'}},
)


@verify(
    MmaBlockScaleOp,
    "kind",
    SOURCE,
    "kind must be one of {legal}, got {got}",
    bad={'kind = "mxf4nvf4"': 'kind = "f16"'},
)
def _(op: MmaBlockScaleOp) -> Broken:
    return one_of(op, "kind", ELEMENTS)


@verify(
    MmaBlockScaleOp,
    "accumulate-type",
    "PTX ISA 9.7.16.10.9",
    "accumulate must be i1 (it becomes the predicate enable-input-d), got {got}",
    bad={"i1": "index"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    got = op.accumulate.type
    return None if got == ir.IntegerType.get_signless(1, op.context) else {"got": got}


@verify(
    MmaBlockScaleOp,
    "types",
    SHAPES,
    "a_type and b_type must be {legal} for kind {kind}, got {a} and {b}",
    bad={'a_type = "e2m1"': 'a_type = "e4m3"'},
    good={
        'kind = "mxf4nvf4"': 'kind = "mxf8f6f4"',
        'a_type = "e2m1"': 'a_type = "e4m3"',
        'scale_type = "ue4m3"': 'scale_type = "ue8m0"',
        "block = 16": "block = 32",
    },
)
def _(op: MmaBlockScaleOp) -> Broken:
    kind, a, b = (string(op, name) for name in ("kind", "a_type", "b_type"))
    legal = ELEMENTS[kind]
    if a in legal and b in legal:
        return None
    return {"legal": " or ".join(legal), "kind": kind, "a": a, "b": b}


@verify(
    MmaBlockScaleOp,
    "scale-type",
    SOURCE,
    "scale_type must be {legal} for kind {kind}, got {got}",
    bad={'kind = "mxf4nvf4"': 'kind = "mxf4"'},
)
def _(op: MmaBlockScaleOp) -> Broken:
    kind, got = string(op, "kind"), string(op, "scale_type")
    legal = [scale for of, scale in SCALE_BLOCKS if of == kind]
    return None if got in legal else {"legal": " or ".join(legal), "kind": kind, "got": got}


@verify(
    MmaBlockScaleOp,
    "block",
    SOURCE,
    "block must be {legal} for kind {kind} with {scale} scales, got {got}: the scale vector sizes "
    "that the kind has",
    bad={"block = 16": "block = 32"},
    good={'scale_type = "ue4m3"': 'scale_type = "ue8m0"', "block = 16": "block = 32"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    kind, scale, got = string(op, "kind"), string(op, "scale_type"), integer(op, "block")
    legal = SCALE_BLOCKS[kind, scale]
    values = {"kind": kind, "scale": scale, "got": got}
    return None if got in legal else {"legal": " or ".join(map(str, legal)), **values}


@verify(
    MmaBlockScaleOp,
    "operands",
    "PTX ISA 9.7.16.10.5",
    "A and B must be K-major tiles of i8, got {got}: 4- and 6-bit elements cannot be transposed, "
    "and the op's types say what the bytes are",
    bad=(
        {'128>, i8, "K"': '64>, f16, "K"'},
        {"!a = !tc.smem": "!a = !tc.tmem", 'i64: 128, 128>, i8, "K", "128B"': "i64: 128, 64>, f16"},
    ),
    good={"!a = !tc.smem": "!a = !tc.tmem", '128, 128>, i8, "K", "128B"': "128, 128>, i8"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    for type_ in (op.a.type, op.b.type):
        transposed = isinstance(type_, SmemType) and type_.major != "K"
        if str(type_.element) != "i8" or transposed:
            return {"got": type_}
    return None


@verify(
    MmaBlockScaleOp,
    "d-type",
    SHAPES,
    "D must be f32, got {got}: block-scaled kinds accumulate in f32",
    bad={"f32": "f16"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    got = str(op.d.type.element)
    return None if got == "f32" else {"got": got}


@verify(
    MmaBlockScaleOp,
    "m",
    SHAPES,
    "A must have 128 rows, got {got}: block-scaled kinds have no other M with cta_group::1, and a "
    "CTA of a pair has half of M = 256; fill up with zeros",
    bad={"array<i64: 128, 128>": "array<i64: 64, 128>"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    got = op.a.type.shape[0]
    return None if got == 128 else {"got": got}


@verify(
    MmaBlockScaleOp,
    "n-range",
    SHAPES,
    "N must be {legal} for M = {m}, cta_group::{group}, got {got}: the instruction descriptor "
    "holds N/8; nearest legal: {nearest}",
    bad={"array<i64: 16, 128>": "array<i64: 264, 128>"},
    good={"array<i64: 128, 16>": "array<i64: 128, 8>", "array<i64: 16, 128>": "array<i64: 8, 128>"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    group = cta_group_of(op)
    legal, n = MMA_KINDS[string(op, "kind")].n[group], columns_of(op)
    return None if n in legal else wrong_n(legal, n, group)


@verify(
    MmaBlockScaleOp,
    "n-of-d",
    "PTX ISA 9.7.16.10.5",
    "D must have as many columns as B has rows (N), both halves with cta_group = 2, got {d} "
    "columns and N = {n}",
    bad={"array<i64: 128, 16>": "array<i64: 128, 32>"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    d, n = op.d.type.shape[1], columns_of(op)
    return None if d == n else {"d": d, "n": n}


@verify(
    MmaBlockScaleOp,
    "slices",
    SHAPES,
    "a_slice and b_slice must be in [0, {a}) and [0, {b}), got {got_a} and {got_b}: an instruction "
    "reads 32 bytes of every row",
    bad={"a_slice = 1": "a_slice = 3", "b_slice = 1": "b_slice = 4"},
    good={"a_slice = 1": "a_slice = 3", "b_slice = 1": "b_slice = 3"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    return wrong_slices(op, MMA_K_BYTES)


def wrong_slices(op: ir.OpView, step_of_b: int) -> Broken:
    """Values for the error message if a slice lies outside A or B; else None. A step reads 32 bytes
    of each row of A and `step_of_b` bytes of each row of B."""
    a, b = op.a.type.shape[1] // MMA_K_BYTES, op.b.type.shape[1] // step_of_b
    got_a, got_b = integer(op, "a_slice"), integer(op, "b_slice")
    if 0 <= got_a < a and 0 <= got_b < b:
        return None
    return {"a": a, "b": b, "got_a": got_a, "got_b": got_b}


@verify(
    MmaBlockScaleOp,
    "scale-element",
    SOURCE,
    "SFA and SFB must be tiles of i8 in tensor memory, got {got}: a scale is a byte",
    bad={"64>, i8": "16>, f32"},
)
def _(op: MmaBlockScaleOp) -> Broken:
    got = next((v.type for v in (op.sfa, op.sfb) if str(v.type.element) != "i8"), None)
    return None if got is None else {"got": got}


@verify(
    MmaBlockScaleOp,
    "scale-ids",
    SOURCE,
    "sfa_id and sfb_id must be {legal} for {scales} scales per row (kind {kind}, block {block}), "
    "got {a} and {b}: they name the byte of the column where the step's scales begin",
    bad={"sfb_id = 0": "sfb_id = 1"},
    good={
        'scale_type = "ue4m3"': 'scale_type = "ue8m0"',
        "block = 16": "block = 32",
        "sfb_id = 0": "sfb_id = 2",
    },
)
def _(op: MmaBlockScaleOp) -> Broken:
    step, a, b = scaled_step(op), integer(op, "sfa_id"), integer(op, "sfb_id")
    legal = SCALE_IDS[step.scales]
    if a in legal and b in legal:
        return None
    values = {"scales": step.scales, "kind": step.kind, "block": step.block, "a": a, "b": b}
    return {"legal": " or ".join(map(str, legal)), **values}


@verify(
    MmaBlockScaleOp,
    "scale-columns",
    SOURCE,
    "{name} must have columns [{begin}, {end}) for the scales of {rows} rows, got {got} columns: "
    "32 rows share a column",
    bad={"array<i64: 128, 64>": "array<i64: 128, 16>", "sfa_column = 4": "sfa_column = 1"},
    good=(
        {"sfa_column = 4": "sfa_column = 12"},
        {
            "array<i64: 128, 64>": "array<i64: 128, 16>",
            "sfa_column = 4": "sfa_column = 0",
            "sfb_column = 4": "sfb_column = 2",
        },
    ),
)
def _(op: MmaBlockScaleOp) -> Broken:
    rows = {"sfa": (op.sfa, op.a.type.shape[0]), "sfb": (op.sfb, columns_of(op))}
    for name, (tile, count) in rows.items():
        begin, got = integer(op, f"{name}_column"), tile.type.columns
        end = begin + -(-count // ROWS_PER_COLUMN)
        if begin < 0 or end > got:
            return {"name": name, "begin": begin, "end": end, "rows": count, "got": got}
    return None


@verify(
    CpScalesOp,
    "source",
    "PTX ISA 9.7.16.9",
    "source must be a K-major tile of i8 with k = 16 and no swizzle, got {got}: "
    "tcgen05.cp.32x128b copies rows of 16 bytes, and scales lie as 8 rows after each other",
    bad={"array<i64: 128, 16>": "array<i64: 128, 32>", '"NONE"': '"32B"'},
)
def _(op: CpScalesOp) -> Broken:
    type_ = op.source.type
    fits = str(type_.element) == "i8" and type_.major == "K" and type_.swizzle == "NONE"
    return None if fits and type_.shape[1] == SCALE_ROW_BYTES else {"got": type_}


@verify(
    CpScalesOp,
    "target",
    SOURCE,
    "target must be a tile of i8 in tensor memory, got {got}: a scale is a byte",
    bad={"64>, i8": "16>, f32"},
)
def _(op: CpScalesOp) -> Broken:
    got = op.target.type
    return None if str(got.element) == "i8" else {"got": got}


@verify(
    CpScalesOp,
    "block",
    "PTX ISA 9.7.16.9",
    "block must be in [0, {blocks}), got {got}: source has {rows} rows, and one copy takes 32",
    bad={"block = 3": "block = 4"},
)
def _(op: CpScalesOp) -> Broken:
    rows, got = op.source.type.shape[0], integer(op, "block")
    blocks = rows // SCALE_ROWS
    return None if 0 <= got < blocks else {"blocks": blocks, "got": got, "rows": rows}


@verify(
    CpScalesOp,
    "columns",
    "PTX ISA 9.7.16.9",
    "target must have columns [{begin}, {end}) for this block, got {got} columns",
    bad={"!target, %column: index) {": "!target) { %column = arith.constant 13 : index"},
    good={"!target, %column: index) {": "!target) { %column = arith.constant 12 : index"},
)
def _(op: CpScalesOp) -> Broken:
    begin, got = constant_of(op.column), op.target.type.columns
    if begin is None:
        begin = 0  # unknown until it runs, but even column 0 has to fit
    end = begin + SCALE_COLUMNS
    return None if begin >= 0 and end <= got else {"begin": begin, "end": end, "got": got}
