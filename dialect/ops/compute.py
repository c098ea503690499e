"""Ops of the tensor core."""

from functools import partial
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, optional_integer, string
from tcir.dialect.cta_pair import columns_of, cta_group_of, wrong_n
from tcir.dialect.limits import MMA_K_BYTES, MMA_KIND_OF, MMA_KINDS, TMEM_LANES, Legal, MmaKind
from tcir.dialect.operation import Names, Op
from tcir.dialect.rules import Broken, one_of, unsigned_problem, verify
from tcir.dialect.types import SmemType, TmemType, element_bytes


class MmaOp(
    Op,
    name="mma",
    issued_by="thread",
    role="mma",
    reads_shared=("a", "b"),
    completed_by="tc.commit",
):
    """``tcgen05.mma``: one K step, ``D = A_slice * B_slice^T (+ D)``.

    ``d`` is a 128 x N tensor-memory tile, ``a`` is a 128 x K tile in tensor memory or shared
    memory, and ``b`` is an N x K tile in shared memory. The step multiplies 32 bytes of A's K from
    ``32*a_slice`` on by 32 bytes of B's K from ``32*b_slice`` on. The element type determines the
    kind: f16 for f16 and bf16, tf32 for f32, f8f6f4 for the f8 types, i8 for i8 (signed, unless
    ``unsigned = array<i64: a, b>`` says otherwise). D is i32 for kind i8, else f32. Old D is
    ignored unless ``accumulate`` is true. With ``ashift`` (A in tensor memory only) the 8 columns
    of the slice move one lane down *after* the multiplication: ``A[i] = A[i+1]`` except lanes 31,
    63, 95, 127, which keep their value (PTX ISA 9.7.16.10.9). With ``a_row`` A in shared memory
    starts at that row: row i of A is row ``a_row + i`` of each 16-byte core-matrix column; rows
    past the end of a column are rows of the next column. With ``scale_d`` old D is first divided by
    ``2**scale_d`` (scale-input-d). ``collector`` controls A's collector buffer: ``"fill"`` keeps A
    there, ``"use"`` and ``"lastuse"`` read the same A from there, ``"discard"`` is the default. One
    thread issues the op; it completes asynchronously.

    With ``cta_group = 2`` it multiplies for a CTA pair, and M is 256: each CTA's ``a`` has 128 rows
    of A, its ``d`` the same rows of D, and its ``b`` half the rows of B, so ``d`` has twice as many
    columns as ``b`` has rows.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 64>, f32>
    !a = !tc.tmem<array<i64: 128, 64>, f16>
    !b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
    func.func @example(%d: !d, %a: !a, %b: !b, %accumulate: i1) {
      "tc.mma"(%d, %a, %b, %accumulate) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
          : (!d, !a, !b, i1) -> ()
      return
    }
    """

    d: ext.Operand[TmemType]
    a: ext.Operand[SmemType | TmemType]
    b: ext.Operand[SmemType]
    accumulate: ext.Operand[Any]  # i1
    a_slice: ir.IntegerAttr
    b_slice: ir.IntegerAttr
    ashift: ir.IntegerAttr  # i1

    @staticmethod
    def form(n: Names) -> str:
        """The short printed form of the op; it contains ``.ashift`` only if the flag is set."""
        a, b = f"{n['a']}[j={n['a_slice']}]", f"{n['b']}[j={n['b_slice']}]"
        shift = " .ashift" if n["ashift"] == "true" else ""
        return f"{n['d']}, {a}, {b} acc={n['accumulate']}{shift}"


def first_row(op: MmaOp) -> int:
    """``a_row``: the row of A's tile that is row 0 of the product. The attribute is optional, so
    the class does not declare it."""
    return integer(op, "a_row") if "a_row" in op.attributes else 0


COLLECTOR = ("fill", "use", "lastuse", "discard")
"""What ``.collector::…`` does with the buffer (PTX ISA 9.7.16.10.9)."""

SCALE_D = Legal(range(16), "", "PTX ISA 9.7.16.10.9")
"""scale-input-d: D is multiplied by 2 to the power of -``scale_d``."""


def collector_of(op: ir.OpView) -> str:
    """``collector``. The attribute is optional, so the class does not declare it."""
    return string(op, "collector") if "collector" in op.attributes else "discard"


def scale_of(op: ir.OpView) -> int | None:
    """``scale_d``. The attribute is optional, so the class does not declare it."""
    return optional_integer(op, "scale_d")


@verify(
    MmaOp,
    "accumulate-type",
    "PTX ISA 9.7.16.10.9",
    "accumulate must be i1 (it becomes the predicate enable-input-d), got {got}",
    bad={"i1": "i32"},
)
def _(op: MmaOp) -> Broken:
    got = op.accumulate.type
    return None if got == ir.IntegerType.get_signless(1, op.context) else {"got": got}


@verify(
    MmaOp,
    "ashift-type",
    "tc",
    "ashift must be true or false, got {got}",
    bad={"ashift = true": "ashift = 1 : i64"},
)
def _(op: MmaOp) -> Broken:
    return None if isinstance(op.ashift, ir.BoolAttr) else {"got": op.ashift}


def kind_of(op: ir.OpView) -> str:
    """The kind of the mma instruction (f16, tf32, f8f6f4 or i8): see `MMA_KIND_OF`."""
    return MMA_KIND_OF[str(op.b.type.element)]


def _limits(op: MmaOp) -> MmaKind:
    return MMA_KINDS[kind_of(op)]


@verify(
    MmaOp,
    "operand-types",
    "PTX ISA 9.7.16.2, table 39",
    "A and B must be {legal}, got {a} and {b}: tcgen05.mma without block scales reads no other "
    "types",
    bad={"array<i64: 128, 64>, f16": "array<i64: 128, 64>, i32"},
    good={
        "array<i64: 128, 64>, f16": "array<i64: 128, 64>, bf16",
        "array<i64: 64, 64>, f16": "array<i64: 64, 64>, bf16",
    },
)
def _(op: MmaOp) -> Broken:
    a, b = str(op.a.type.element), str(op.b.type.element)
    if a in MMA_KIND_OF and b in MMA_KIND_OF:
        return None
    return {"legal": " or ".join(MMA_KIND_OF), "a": a, "b": b}


@verify(
    MmaOp,
    "same-types",
    "PTX ISA 9.7.16.2, table 39",
    "A and B must have the same element type, or both be f8, got {a} and {b}: no kind mixes them; "
    "convert one operand first",
    bad={"array<i64: 128, 64>, f16": "array<i64: 128, 64>, bf16"},
)
def _(op: MmaOp) -> Broken:
    a, b = str(op.a.type.element), str(op.b.type.element)
    if a == b or MMA_KIND_OF[a] == MMA_KIND_OF[b] == "f8f6f4":
        return None
    return {"a": a, "b": b}


@verify(
    MmaOp,
    "unsigned",
    "PTX ISA 9.7.16.2, table 39",
    "unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got {got} on {element}: only "
    "kind::i8 has unsigned operands",
    bad={"ashift = true": "ashift = false, unsigned = array<i64: 1, 0>"},
    good={
        "f32": "i32",
        "array<i64: 128, 64>, f16": "array<i64: 128, 64>, i8",
        "array<i64: 64, 64>, f16": "array<i64: 64, 64>, i8",
        "ashift = true": "ashift = false, unsigned = array<i64: 1, 0>",
    },
)
def _(op: MmaOp) -> Broken:
    return unsigned_problem(op, str(op.b.type.element))


@verify(
    MmaOp,
    "d-type",
    "PTX ISA 9.7.16.2, table 39",
    "D must be {want} for {element}, got {got}: tc accumulates in 32 bits and rounds in the "
    "epilogue",
    bad={"f32": "f16"},
)
def _(op: MmaOp) -> Broken:
    got, want = str(op.d.type.element), _limits(op).d_types[0]
    return None if got == want else {"got": got, "want": want, "element": op.b.type.element}


@verify(
    MmaOp,
    "m",
    "PTX ISA 9.7.16.2, table 39",
    "A in shared memory must have 128 rows, got {got}: tc issues M = 128, and a CTA of a pair has "
    "half of M = 256; pad A to 128 rows",
    bad={
        "!a = !tc.tmem<array<i64: 128, 64>, f16>": (
            '!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">'
        ),
        "ashift = true": "ashift = false",
    },
    good={
        "!a = !tc.tmem<array<i64: 128, 64>, f16>": (
            '!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">'
        ),
        "ashift = true": "ashift = false",
    },
)
def _(op: MmaOp) -> Broken:
    rows = op.a.type.shape[0]
    return None if rows == 128 or "a_row" in op.attributes else {"got": rows}


@verify(
    MmaOp,
    "n-range",
    "PTX ISA 9.7.16.2, table 39",
    "N must be {legal} for M = {m}, cta_group::{group}, got {got}: the instruction descriptor "
    "holds N/8 and the tensor core takes no other N; nearest legal: {nearest}",
    bad=(
        {
            "array<i64: 64, 64>": "array<i64: 136, 64>",
            "%accumulate) {": "%accumulate) {cta_group = 2 : i64,",
        },
        {"array<i64: 64, 64>": "array<i64: 20, 64>"},
    ),
    good={
        "!d = !tc.tmem<array<i64: 128, 64>": "!d = !tc.tmem<array<i64: 128, 256>",
        "array<i64: 64, 64>": "array<i64: 256, 64>",
    },
)
def _(op: MmaOp) -> Broken:
    group = cta_group_of(op)
    legal, n = _limits(op).n[group], columns_of(op)
    return None if n in legal else wrong_n(legal, n, group)


@verify(
    MmaOp,
    "n-of-d",
    "PTX ISA 9.7.16.10.5",
    "D must have as many columns as B has rows (N), both halves with cta_group = 2, got {d} "
    "columns and N = {n}",
    bad=(
        {
            "array<i64: 128, 64>": "array<i64: 128, 16>",
            "array<i64: 64, 64>": "array<i64: 16, 64>",
            "%accumulate) {": "%accumulate) {cta_group = 2 : i64,",
        },
        {"array<i64: 128, 64>": "array<i64: 128, 32>", "array<i64: 64, 64>": "array<i64: 24, 64>"},
    ),
    good={
        "!d = !tc.tmem<array<i64: 128, 64>": "!d = !tc.tmem<array<i64: 128, 24>",
        "array<i64: 64, 64>": "array<i64: 24, 64>",
    },
)
def _(op: MmaOp) -> Broken:
    d, n = op.d.type.shape[1], columns_of(op)
    return None if d == n else {"d": d, "n": n}


def _slices(type_: SmemType | TmemType) -> int:
    return type_.shape[1] * element_bytes(type_.element) // MMA_K_BYTES


def _outside(operand: str, op: MmaOp) -> Broken:
    """None if the slice of an operand is in its tile."""
    got, type_ = integer(op, f"{operand}_slice"), getattr(op, operand).type
    slices = _slices(type_)
    return None if 0 <= got < slices else {"slices": slices, "got": got, "k": type_.shape[1]}


for _name, _bad in (("a", 4), ("b", -1)):
    verify(
        MmaOp,
        f"{_name}-slice",
        "PTX ISA 9.7.16.2",
        f"{_name}_slice must be in [0, {{slices}}), got {{got}}: {_name.upper()} has K = {{k}}, "
        "and one instruction reads 32 bytes of it",
        bad={f"{_name}_slice = 0": f"{_name}_slice = {_bad}"},
        good={f"{_name}_slice = 0": f"{_name}_slice = 3"},
    )(partial(_outside, _name))


@verify(
    MmaOp,
    "a-row-operand",
    "PTX ISA 9.7.16.10.5",
    'a_row needs A in shared memory, K-major, swizzle "NONE", got {got}: only there are all rows '
    "of a column 16 bytes apart, so a descriptor may start at any of them",
    bad={
        "!a = !tc.tmem<array<i64: 128, 64>, f16>": (
            '!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">'
        ),
        "ashift = true": "ashift = false, a_row = 3 : i64",
    },
    good={
        "!a = !tc.tmem<array<i64: 128, 64>, f16>": (
            '!a = !tc.smem<array<i64: 128, 64>, f16, "K", "NONE">'
        ),
        "ashift = true": "ashift = false, a_row = 3 : i64",
    },
)
def _(op: MmaOp) -> Broken:
    a = op.a.type
    uniform = isinstance(a, SmemType) and a.major == "K" and a.swizzle == "NONE"
    return None if "a_row" not in op.attributes or uniform else {"got": a}


@verify(
    MmaOp,
    "a-row-range",
    "PTX ISA 9.7.16.10.5",
    "the 128 rows from a_row must lie in the tile: a_row must be in [0, {end}) for slice {slice} "
    "of {mn} rows per column and {rows} in all, got {got}",
    bad={
        "!a = !tc.tmem<array<i64: 128, 64>, f16>": (
            '!a = !tc.smem<array<i64: 134, 64>, f16, "K", "NONE">'
        ),
        "a_slice = 0": "a_slice = 3",
        "ashift = true": "ashift = false, a_row = 7 : i64",
    },
)
def _(op: MmaOp) -> Broken:
    if "a_row" not in op.attributes:
        return None
    a, got, slice_ = op.a.type, integer(op, "a_row"), integer(op, "a_slice")
    mn = a.shape[0]
    last_column = (slice_ + 1) * MMA_K_BYTES // a.span - 1
    end = a.rows - last_column * mn - TMEM_LANES + 1
    if 0 <= got < end:
        return None
    return {"end": max(end, 0), "slice": slice_, "mn": mn, "rows": a.rows, "got": got}


@verify(
    MmaOp,
    "ashift-operand",
    "PTX ISA 9.7.16.10.9",
    "ashift needs A in tensor memory, got {got}: .ashift moves lanes of tensor memory; copy A "
    "there with tc.cp",
    bad={
        "!a = !tc.tmem<array<i64: 128, 64>, f16>": (
            '!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">'
        )
    },
)
def _(op: MmaOp) -> Broken:
    if not op.ashift.value or isinstance(op.a.type, TmemType):
        return None
    return {"got": op.a.type}


@verify(
    MmaOp,
    "collector",
    "PTX ISA 9.7.16.10.9",
    "collector must be one of {legal}, got {got}",
    bad={"ashift = true": 'ashift = false, collector = "keep"'},
    good={"ashift = true": 'ashift = false, collector = "lastuse"'},
)
def _(op: MmaOp) -> Broken:
    return one_of(op, "collector", COLLECTOR)


@verify(
    MmaOp,
    "ashift-collector",
    "PTX ISA 9.7.16.10.9",
    'collector must not be "{got}" with ashift: A changes after the multiplication',
    bad={"true": 'true, collector = "use"'},
    good={"true": 'true, collector = "lastuse"'},
)
def _(op: MmaOp) -> Broken:
    got = collector_of(op)
    return {"got": got} if op.ashift.value and got in ("fill", "use") else None


@verify(
    MmaOp,
    "scale-d",
    SCALE_D.source,
    "scale_d must be {legal} on operands of kind f16 or tf32, got {got} on kind {kind}: the other "
    "kinds have no scale-input-d",
    bad={"f16": "f8E4M3FN", "ashift = true": "ashift = true, scale_d = 1 : i64"},
    good={
        "!a = !tc.tmem<array<i64: 128, 64>, f16>": (
            '!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">'
        ),
        "ashift = true": "ashift = false, scale_d = 15 : i64",
    },
)
def _(op: MmaOp) -> Broken:
    if "scale_d" not in op.attributes:
        return None
    kind, got = kind_of(op), op.attributes["scale_d"]
    if isinstance(got, ir.IntegerAttr) and got.value in SCALE_D and kind in ("f16", "tf32"):
        return None
    return {"legal": SCALE_D, "got": got, "kind": kind}
