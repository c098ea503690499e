"""Tensor-core ops."""

from typing import Any

from tcir._mlir import ext, ir

from .attributes import integer
from .limits import MMA_K_BYTES, MMA_KINDS, TMEM_LANES
from .operation import Op
from .rules import Broken, rule
from .types import SmemType, TmemType, element_bytes

KIND = MMA_KINDS["f16"]
"""The kind of ``tc.mma``."""


class MmaOp(Op, name="mma"):
    """``tcgen05.mma.cta_group::1.kind::f16``: one K step, ``D = A_slice * B_slice^T (+ D)``.

    ``d`` is a 128 x N f32 tensor-memory tile, ``a`` 128 x K in tensor memory or shared memory,
    ``b`` N x K in shared memory; the step multiplies elements ``[16*a_slice, +16)`` of A's K with
    ``[16*b_slice, +16)`` of B's K (32 bytes). ``accumulate`` false ignores old D. With ``ashift``
    (A in tensor memory only) the 8 columns of the slice move one lane down *after* the
    multiplication: ``A[i] = A[i+1]`` except lanes 31, 63, 95, 127, which keep their value
    (PTX ISA 9.7.16.10.9). With ``a_row`` A in shared memory starts that many rows further on: row i
    of A is row ``a_row + i`` of each 16-byte panel, and past a panel's end the rows of the next.
    Issued by one thread, asynchronous.
    """

    d: ext.Operand[TmemType]
    a: ext.Operand[SmemType | TmemType]
    b: ext.Operand[SmemType]
    accumulate: ext.Operand[Any]  # i1
    a_slice: ir.IntegerAttr
    b_slice: ir.IntegerAttr
    ashift: ir.IntegerAttr  # i1


def first_row(op: MmaOp) -> int:
    """``a_row``: row of A's tile that row 0 of the product reads; optional, hence not declared."""
    return integer(op, "a_row") if "a_row" in op.attributes else 0


@rule(
    "tc.mma",
    "accumulate-type",
    "PTX ISA 9.7.16.10.9",
    "accumulate must be i1 (it becomes the predicate enable-input-d), got {got}",
)
def _(op: MmaOp) -> Broken:
    got = op.accumulate.type
    return None if got == ir.IntegerType.get_signless(1, op.context) else {"got": got}


@rule(
    "tc.mma",
    "ashift-type",
    "tc",
    "ashift must be true or false, got {got}",
)
def _(op: MmaOp) -> Broken:
    return None if isinstance(op.ashift, ir.BoolAttr) else {"got": op.ashift}


@rule(
    "tc.mma",
    "operand-types",
    "PTX ISA 9.7.16.2, table 39",
    "A and B must be {legal}, got {a} and {b}: kind::f16 reads no other types",
)
def _(op: MmaOp) -> Broken:
    a, b = str(op.a.type.element), str(op.b.type.element)
    if a in KIND.a_types and b in KIND.a_types:
        return None
    return {"legal": " or ".join(KIND.a_types), "a": a, "b": b}


@rule(
    "tc.mma",
    "same-types",
    "PTX ISA 9.7.16.2, table 39",
    "A and B must have the same element type, got {a} and {b}: kind::f16 does not mix them; "
    "convert one operand first",
)
def _(op: MmaOp) -> Broken:
    a, b = op.a.type.element, op.b.type.element
    return None if a == b else {"a": a, "b": b}


@rule(
    "tc.mma",
    "d-type",
    "PTX ISA 9.7.16.2, table 39",
    "D must be f32, got {got}: tc accumulates in f32 and rounds in the epilogue",
)
def _(op: MmaOp) -> Broken:
    got = str(op.d.type.element)
    return None if got == "f32" else {"got": got}


@rule(
    "tc.mma",
    "m",
    "PTX ISA 9.7.16.2, table 39",
    "A in shared memory must have 128 rows, got {got}: tc issues M = 128, cta_group::1 "
    "(M = 256 needs a CTA pair); pad A to 128 rows",
)
def _(op: MmaOp) -> Broken:
    rows = op.a.type.shape[0]
    return None if rows == 128 or "a_row" in op.attributes else {"got": rows}


@rule(
    "tc.mma",
    "n-range",
    "PTX ISA 9.7.16.2, table 39",
    "N must be {legal} for M = 128, cta_group::1, got {got}: the instruction descriptor holds "
    "N/8 and the tensor core takes no other N; nearest legal: {nearest}",
)
def _(op: MmaOp) -> Broken:
    legal, n = KIND.n[1], op.b.type.shape[0]
    return None if n in legal else {"legal": legal, "got": n, "nearest": legal.nearest(n)}


@rule(
    "tc.mma",
    "n-of-d",
    "PTX ISA 9.7.16.10.5",
    "D must have as many columns as B has rows (N), got {d} columns and N = {n}",
)
def _(op: MmaOp) -> Broken:
    d, n = op.d.type.shape[1], op.b.type.shape[0]
    return None if d == n else {"d": d, "n": n}


def _slices(type_: SmemType | TmemType) -> int:
    return type_.shape[1] * element_bytes(type_.element) // MMA_K_BYTES


@rule(
    "tc.mma",
    "a-slice",
    "PTX ISA 9.7.16.2",
    "a_slice must be in [0, {slices}), got {got}: A has K = {k}, and one instruction reads 16 "
    "elements (32 bytes) of it",
)
def _(op: MmaOp) -> Broken:
    got, slices = integer(op, "a_slice"), _slices(op.a.type)
    return None if 0 <= got < slices else {"slices": slices, "got": got, "k": op.a.type.shape[1]}


@rule(
    "tc.mma",
    "b-slice",
    "PTX ISA 9.7.16.2",
    "b_slice must be in [0, {slices}), got {got}: B has K = {k}, and one instruction reads 16 "
    "elements (32 bytes) of it",
)
def _(op: MmaOp) -> Broken:
    got, slices = integer(op, "b_slice"), _slices(op.b.type)
    return None if 0 <= got < slices else {"slices": slices, "got": got, "k": op.b.type.shape[1]}


@rule(
    "tc.mma",
    "a-row-operand",
    "PTX ISA 9.7.16.10.5",
    'a_row needs A in shared memory, K-major, swizzle "NONE", got {got}: only there are all rows '
    "of a panel 16 bytes apart, so that a descriptor may start at any of them",
)
def _(op: MmaOp) -> Broken:
    a = op.a.type
    uniform = isinstance(a, SmemType) and a.major == "K" and a.swizzle == "NONE"
    return None if "a_row" not in op.attributes or uniform else {"got": a}


@rule(
    "tc.mma",
    "a-row-range",
    "PTX ISA 9.7.16.10.5",
    "the 128 rows from a_row must lie in the tile: a_row must be in [0, {end}) for slice {slice} "
    "of {mn} rows a panel and {rows} in all, got {got}",
)
def _(op: MmaOp) -> Broken:
    if "a_row" not in op.attributes:
        return None
    a, got, slice_ = op.a.type, integer(op, "a_row"), integer(op, "a_slice")
    mn = a.shape[0]
    last_panel = (slice_ + 1) * MMA_K_BYTES // a.span - 1
    end = a.rows - last_panel * mn - TMEM_LANES + 1
    if 0 <= got < end:
        return None
    return {"end": max(end, 0), "slice": slice_, "mn": mn, "rows": a.rows, "got": got}


@rule(
    "tc.mma",
    "ashift-operand",
    "PTX ISA 9.7.16.10.9",
    "ashift needs A in tensor memory, got {got}: .ashift moves lanes of tensor memory; copy A "
    "there with tc.cp",
)
def _(op: MmaOp) -> Broken:
    if not op.ashift.value or isinstance(op.a.type, TmemType):
        return None
    return {"got": op.a.type}
