"""Softmax on rows of fragments.

These ops compute the maxima, exponentials and sums of a softmax whose scores wgmma leaves in
registers, and convert the exponentials to operand A of the next product. A fragment of kind
``"row"`` has a number for each row of C, held by all four threads that have elements of that row.
`tcir.interp.online_softmax` defines the values.
"""

from collections.abc import Sequence

from tcir._mlir import ext, ir
from tcir.dialect.attributes import optional_number
from tcir.dialect.fragments import DEFAULT_ATOM, ROW
from tcir.dialect.limits import FP8
from tcir.dialect.operation import Op
from tcir.dialect.ops.attention import Band
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.warp_types import FragmentType

_ALIASES = """
    !c = !tc.fragment<array<i64: 128, 128>, f32, "C", "mma.m16n8k16.f16">
    !r = !tc.fragment<array<i64: 128, 1>, f32, "row", "mma.m16n8k16.f16">
    !a = !tc.fragment<array<i64: 128, 128>, f16, "A", "mma.m16n8k16.f16">"""
"""Types of the examples."""


AS_A = ("f16", "bf16", *FP8)
"""Types of A that a fragment of C becomes."""


class FillRowsOp(Op, name="fill_rows", role="consumer"):
    """Fills all rows with one number: the initial value of maxima (-inf) or of sums (0).

    PTX ISA 9.7.14.5 defines the layout of the rows in registers.
    """

    example = (
        _ALIASES
        + """
    func.func @example() {
      %m = "tc.fill_rows"() {value = 0xFF800000 : f32} : () -> !r
      return
    }
    """
    )

    value: ir.FloatAttr
    rows: ext.Result[FragmentType]


class MaskFragmentOp(Op, name="mask_fragment", role="consumer"):
    """Replaces the scores of keys that a row does not have by -inf.

    Element [i, j] is the score of row r = ``row + i`` and key k = ``column + j``. It is kept if k <
    ``keys``, k <= r + ``causal_offset`` and k >= r + ``window_offset`` (an offset that is left out
    imposes no condition); otherwise it becomes -inf. A warp whose elements are all kept executes no
    comparisons (``setp``, ``selp``, PTX ISA 9.7.6).
    """

    example = (
        _ALIASES
        + """
    func.func @example(%s: !c, %row: index, %column: index, %keys: index) {
      %masked = "tc.mask_fragment"(%s, %row, %column, %keys) {causal_offset = 44 : i64}
          : (!c, index, index, index) -> !c
      return
    }
    """
    )

    scores: ext.Operand[FragmentType]
    row: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]
    keys: ext.Operand[ir.IndexType]
    masked: ext.Result[FragmentType]

    @property
    def band(self) -> Band:
        """The band of keys that each row has; it relates the number of a row to the numbers of its
        keys."""
        return Band.of(self)


class OnlineMaxOp(Op, name="online_max", role="consumer"):
    """Computes three numbers of each row of a softmax over blocks: the new maximum after a block of
    scores, the reference that exponents are relative to, and the factor by which the sums of
    earlier blocks are multiplied (`tcir.interp.online_softmax.online_max`).

    ``scale`` is log2(e) times the scale of the scores, rounded to f32. The earlier maximum remains
    until exponents grow by more than ``tau``. ``below``, if present, is subtracted from the largest
    score of the block, so that exponentials are at most ``2^(below * scale)``. The four threads of
    a row exchange their maxima (``shfl.sync.bfly``, PTX ISA 9.7.9.6). NaN scores do not affect the
    maximum.
    """

    example = (
        _ALIASES
        + """
    func.func @example(%s: !c, %m: !r) {
      %now, %reference, %alpha = "tc.online_max"(%s, %m) {scale = 0.18 : f32, tau = 8.0 : f32}
          : (!c, !r) -> (!r, !r, !r)
      return
    }
    """
    )

    scores: ext.Operand[FragmentType]
    before: ext.Operand[FragmentType]
    scale: ir.FloatAttr
    tau: ir.FloatAttr
    now: ext.Result[FragmentType]
    reference: ext.Result[FragmentType]
    alpha: ext.Result[FragmentType]

    @property
    def below(self) -> float:
        """``below``: how far the reference of exponents is below the largest score."""
        return optional_number(self, "below") or 0.0


class ExpFragmentOp(Op, name="exp_fragment", role="consumer"):
    """Computes ``2^((score - reference) * scale)`` of each element, as
    `tcir.interp.online_softmax.exponents` defines it, by an fma and an ``ex2.approx.ftz.f32``
    (PTX ISA 9.7.3.21).
    """

    example = (
        _ALIASES
        + """
    func.func @example(%s: !c, %reference: !r) {
      %p = "tc.exp_fragment"(%s, %reference) {scale = 0.180336878 : f32} : (!c, !r) -> !c
      return
    }
    """
    )

    scores: ext.Operand[FragmentType]
    reference: ext.Operand[FragmentType]
    scale: ir.FloatAttr
    powers: ext.Result[FragmentType]


class AddRowSumsOp(Op, name="add_row_sums", role="consumer"):
    """``fma(before, alpha, sum of the row's elements)``.

    A thread sums its even columns and its odd columns, each in order, then adds these two sums; the
    sums of the four threads 0 to 3 that share a row are added as (0 + 1) + (2 + 3). All are f32
    (PTX ISA 9.7.3).
    """

    example = (
        _ALIASES
        + """
    func.func @example(%l: !r, %alpha: !r, %p: !c) {
      %now = "tc.add_row_sums"(%l, %alpha, %p) : (!r, !r, !c) -> !r
      return
    }
    """
    )

    before: ext.Operand[FragmentType]
    alpha: ext.Operand[FragmentType]
    elements: ext.Operand[FragmentType]
    now: ext.Result[FragmentType]


class ScaleFragmentOp(Op, name="scale_fragment", role="consumer"):
    """Multiplies each element by the number of its row, rounded to f32 (``mul.rn.f32``, PTX ISA
    9.7.3)."""

    example = (
        _ALIASES
        + """
    func.func @example(%o: !c, %alpha: !r) {
      %scaled = "tc.scale_fragment"(%o, %alpha) : (!c, !r) -> !c
      return
    }
    """
    )

    elements: ext.Operand[FragmentType]
    factors: ext.Operand[FragmentType]
    scaled: ext.Result[FragmentType]


class InvertRowsOp(Op, name="invert_rows", role="consumer"):
    """Inverts the number of each row by ``rcp.approx.ftz.f32`` (PTX ISA 9.7.3.13). The inverse of 0
    (a row without keys) and of NaN is defined as 1. If ``times`` is present, each inverse is
    multiplied by it."""

    example = (
        _ALIASES
        + """
    func.func @example(%l: !r) {
      %r = "tc.invert_rows"(%l) : (!r) -> !r
      return
    }
    """
    )

    rows: ext.Operand[FragmentType]
    inverse: ext.Result[FragmentType]

    @property
    def times(self) -> float:
        """Factor by which each inverse is multiplied."""
        factor = optional_number(self, "times")
        return 1.0 if factor is None else factor


class LogSumRowsOp(Op, name="log_sum_rows", role="consumer"):
    """Computes the natural logarithm of each row's sum of exponentials from the maximum of its
    scores and the sum relative to that maximum: ``(maximum * scale + log2(sum)) * ln(2)``; -inf
    where the sum is 0 (``lg2.approx.ftz.f32``, PTX ISA 9.7.3.20)."""

    example = (
        _ALIASES
        + """
    func.func @example(%m: !r, %l: !r) {
      %lse = "tc.log_sum_rows"(%m, %l) {scale = 0.180336878 : f32} : (!r, !r) -> !r
      return
    }
    """
    )

    maximum: ext.Operand[FragmentType]
    total: ext.Operand[FragmentType]
    scale: ir.FloatAttr
    logarithm: ext.Result[FragmentType]


class StoreFragmentRowsOp(Op, name="store_fragment_rows", role="consumer", stores="tensor"):
    """Stores the number of each row to the last dimension of ``tensor``, from ``indices`` on. Rows
    outside the tensor and, if ``end`` is given, rows from ``end`` on are not stored. Four threads
    hold the number of a row; one of them stores it (PTX ISA 9.7.9.12)."""

    example = (
        _ALIASES
        + """
    func.func @example(%lse: !r, %out: memref<8x500xf32>, %head: index, %row: index) {
      "tc.store_fragment_rows"(%lse, %out, %head, %row)
          {operandSegmentSizes = array<i32: 1, 1, 2, 0>}
          : (!r, memref<8x500xf32>, index, index) -> ()
      return
    }
    """
    )

    rows: ext.Operand[FragmentType]
    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    end: ext.Operand[ir.IndexType] | None = None


class FragmentAsAOp(Op, name="fragment_as_a", role="consumer"):
    """Converts a fragment of C to one of A, rounded to nearest even.

    With 16-bit elements, 16 columns of C become the registers of A of one instruction, two numbers
    in each. With 8-bit elements, a register of A has four columns, but C has these columns in two
    threads, two columns in each, so the four threads of a row exchange them (``shfl.sync.idx``);
    numbers beyond the largest finite number become that number (``cvt.rn.satfinite``, PTX ISA
    9.7.15.5.1.1, 9.7.9.21).
    """

    example = (
        _ALIASES
        + """
    func.func @example(%p: !c) {
      %a = "tc.fragment_as_a"(%p) : (!c) -> !a
      return
    }
    """
    )

    c: ext.Operand[FragmentType]
    a: ext.Result[FragmentType]


def _is_c(kind: FragmentType) -> bool:
    return bool(kind.operand == "C" and str(kind.element) == "f32")


def _rows_of(kind: FragmentType, *rows: FragmentType) -> bool:
    """Whether `rows` have a number for each row of a fragment."""
    alike = all(each.atom == kind.atom and each.shape == [kind.shape[0], 1] for each in rows)
    return alike and all(each.operand == ROW and str(each.element) == "f32" for each in rows)


_WANT = (
    "expected fragments of f32, elements of C and a number for each of their rows, of the same "
    "atom, got {got}: a thread has both in its registers"
)


def _row_problem(op: Op, elements: Sequence[ir.Value], rows: Sequence[ir.Value]) -> Broken:
    kinds, columns = [each.type for each in elements], [each.type for each in rows]
    first = (kinds or columns)[0]
    fits = all(_is_c(each) and each == first for each in kinds) and _rows_of(first, *columns)
    return None if fits else {"got": ", ".join(map(str, [*kinds, *columns]))}


_ROW_OPS = {
    FillRowsOp: ((), ("rows",)),
    MaskFragmentOp: (("scores", "masked"), ()),
    OnlineMaxOp: (("scores",), ("before", "now", "reference", "alpha")),
    ExpFragmentOp: (("scores", "powers"), ("reference",)),
    AddRowSumsOp: (("elements",), ("before", "alpha", "now")),
    ScaleFragmentOp: (("elements", "scaled"), ("factors",)),
    InvertRowsOp: ((), ("rows", "inverse")),
    LogSumRowsOp: ((), ("maximum", "total", "logarithm")),
    StoreFragmentRowsOp: ((), ("rows",)),
}
"""Operands and results that are elements of C, and those that are of its rows."""


@verify(FillRowsOp, "types", "tc", _WANT, bad={'f32, "row"': 'i32, "row"'})
def _(op: Op) -> Broken:
    elements, rows = _ROW_OPS[type(op)]
    return _row_problem(op, [getattr(op, n) for n in elements], [getattr(op, n) for n in rows])


for _op, _bad in {
    MaskFragmentOp: {"-> !c": "-> !a"},
    OnlineMaxOp: {"(!r, !r, !r)": "(!r, !c, !r)"},
    ExpFragmentOp: {"-> !c": "-> !a"},
    AddRowSumsOp: {"-> !r": "-> !c"},
    ScaleFragmentOp: {"-> !c": "-> !a"},
    InvertRowsOp: {"-> !r": "-> !c"},
    LogSumRowsOp: {"-> !r": "-> !c"},
    StoreFragmentRowsOp: {'f32, "row"': 'i32, "row"'},
}.items():
    same_rules(_op, FillRowsOp, {"types": _bad}, {})


@verify(
    StoreFragmentRowsOp,
    "tensor",
    "tc",
    "expected a tensor of f32 and an index for each of its dimensions, got {tensor} and {count} "
    "indices",
    bad={"8x500xf32": "8x500xf16"},
    good={"8x500xf32": "8x128xf32"},
)
def _(op: StoreFragmentRowsOp) -> Broken:
    kind, count = op.tensor.type, len(op.indices)
    if str(kind.element_type) == "f32" and kind.rank == count:
        return None
    return {"tensor": kind, "count": count}


@verify(
    FragmentAsAOp,
    "types",
    "PTX ISA 9.7.15.5.1.1",
    "expected a fragment of C of f32 and one of A of f16, bf16, f8E4M3FN or f8E5M2 of the same "
    "shape and of the type's atom, got {c} and {a}: elements of other sizes are in other threads",
    bad={"-> !a": "-> !c"},
    good=(
        {'f16, "A"': 'bf16, "A"'},
        {"mma.m16n8k16.f16": "mma.m16n8k32.b8", 'f16, "A"': 'f8E4M3FN, "A"'},
    ),
)
def _(op: FragmentAsAOp) -> Broken:
    c, a = op.c.type, op.a.type
    alike = a.operand == "A" and a.shape == c.shape and a.atom == c.atom
    legal = str(a.element) in AS_A and a.atom == DEFAULT_ATOM[str(a.element)]
    if _is_c(c) and alike and legal:
        return None
    return {"c": c, "a": a}
