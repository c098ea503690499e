"""Rows of registers.

A warp that accesses tensor memory holds a row of a tile in each of its threads. The type
``vector<32 x N x f32>`` is a row for each lane of the warp's sub-partition, and ``vector<32 x 1 x
f32>`` is a number for each of these rows. The type ``vector<128 x 1 x f32>`` is a number for each
lane of tensor memory; each warp holds the numbers of its own sub-partition.
`tcir.interp.online_softmax` defines the softmax's values at every level.
"""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, optional_integer, optional_number
from tcir.dialect.limits import FP8, QUARTER_LANES, QUARTERS, TMEM_LANES
from tcir.dialect.operation import Op
from tcir.dialect.ops.attention import PERIOD
from tcir.dialect.rules import Broken, same_rules, verify

PARTIAL_SUMS = 8
"""Sums that ``tc.row_sum`` keeps at a time: additions of a thread that do not wait for another."""


def rows(columns: int) -> ir.VectorType:
    """The type ``vector<32 x columns x f32>``, a row for each lane of a warp."""
    return ir.VectorType.get([QUARTER_LANES, columns], ir.F32Type.get())


def lane_numbers() -> ir.VectorType:
    """The type ``vector<128 x 1 x f32>``, a number for each lane of tensor memory."""
    return ir.VectorType.get([TMEM_LANES, 1], ir.F32Type.get())


class LaneNumbersOp(Op, name="lane_numbers", issued_by="warp", role="epilogue"):
    """Sets the number of each lane of tensor memory to ``value``. The numbers are in registers of
    the warps that access these lanes (PTX ISA 9.7.16.8)."""

    example = """
    func.func @example() {
      %sums = "tc.lane_numbers"() {value = 0.0 : f32} : () -> vector<128x1xf32>
      return
    }
    """
    value: ir.FloatAttr
    numbers: ext.Result[ir.VectorType] = ext.result(default_factory=lane_numbers)


class RowNumbersOp(Op, name="row_numbers", pure=True):
    """Selects the numbers of the 32 lanes of sub-partition ``quarter``, one for each row that the
    warp holds (PTX ISA 9.7.16.8)."""

    example = """
    func.func @example(%numbers: vector<128x1xf32>, %quarter: index) {
      %mine = "tc.row_numbers"(%numbers, %quarter)
          : (vector<128x1xf32>, index) -> vector<32x1xf32>
      return
    }
    """
    form = "{numbers}[quarter={quarter}]"

    numbers: ext.Operand[ir.VectorType]
    quarter: ext.Operand[ir.IndexType]
    mine: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))


class SetRowNumbersOp(Op, name="set_row_numbers", pure=True):
    """Replaces the elements of ``numbers`` for the lanes of sub-partition ``quarter`` by ``mine``
    (PTX ISA 9.7.16.8)."""

    example = """
    func.func @example(%numbers: vector<128x1xf32>, %quarter: index, %mine: vector<32x1xf32>) {
      %new = "tc.set_row_numbers"(%numbers, %quarter, %mine)
          : (vector<128x1xf32>, index, vector<32x1xf32>) -> vector<128x1xf32>
      return
    }
    """
    form = "{numbers}[quarter={quarter}] = {mine}"

    numbers: ext.Operand[ir.VectorType]
    quarter: ext.Operand[ir.IndexType]
    mine: ext.Operand[ir.VectorType]
    new: ext.Result[ir.VectorType] = ext.result(default_factory=lane_numbers)


class RowMaxOp(Op, name="row_max", pure=True):
    """The largest number of each row; NaN only if all numbers of the row are NaN.

    (``max.f32``, PTX ISA 9.7.3.)
    """

    example = """
    func.func @example(%values: vector<32x64xf32>) {
      %largest = "tc.row_max"(%values) : (vector<32x64xf32>) -> vector<32x1xf32>
      return
    }
    """

    values: ext.Operand[ir.VectorType]
    largest: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))


class RowSumOp(Op, name="row_sum", pure=True):
    """The sum of each row, in f32 and in a fixed order.

    Column n is added to partial sum ``n mod 8``, from the first column to the last. Then the second
    half of the partial sums is added to the first half, until one sum is left (``add.f32``, PTX ISA
    9.7.3).
    """

    example = """
    func.func @example(%values: vector<32x64xf32>) {
      %total = "tc.row_sum"(%values) : (vector<32x64xf32>) -> vector<32x1xf32>
      return
    }
    """

    values: ext.Operand[ir.VectorType]
    total: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))


class RowOnlineMaxOp(Op, name="row_online_max", pure=True):
    """Computes three numbers of each row of a softmax over blocks: its new maximum, the reference
    that exponents are relative to, and the factor by which earlier sums are multiplied.

    ``before`` is the maximum before this block, -inf at first, and ``largest`` is the maximum of
    the block. Exponents are relative to ``reference``. Earlier sums are multiplied by ``alpha``,
    which is 2 to the power of ``(before - reference) * scale`` (``ex2.approx.ftz.f32``, PTX ISA
    9.7.3.21), where ``scale`` is the scale of scores times log2(e). The maximum moves only when
    exponents have grown by more than ``tau`` (0: it always moves). ``below``, if present, is
    subtracted from ``largest``, so that exponentials are at most ``2^(below * scale)``.
    """

    example = """
    func.func @example(%before: vector<32x1xf32>, %largest: vector<32x1xf32>) {
      %after, %reference, %alpha = "tc.row_online_max"(%before, %largest)
          {scale = 0.125 : f32, tau = 8.0 : f32}
          : (vector<32x1xf32>, vector<32x1xf32>)
          -> (vector<32x1xf32>, vector<32x1xf32>, vector<32x1xf32>)
      return
    }
    """

    before: ext.Operand[ir.VectorType]
    largest: ext.Operand[ir.VectorType]
    scale: ir.FloatAttr
    tau: ir.FloatAttr
    after: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))
    reference: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))
    alpha: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))

    @property
    def below(self) -> float:
        """``below``: how far the reference of exponents is below the largest score."""
        return optional_number(self, "below") or 0.0


class MaskRowsOp(Op, name="mask_rows", pure=True):
    """Replaces the elements of ``scores`` that belong to keys which a row does not have by -inf.

    ``scores`` belong to the rows from ``row`` on and to the keys from ``column`` on; keys with
    numbers from ``keys`` on do not exist. With ``causal_offset``, row i has only the keys j <= i +
    causal_offset; with ``window_offset``, it has only the keys j >= i + window_offset (``setp``,
    ``selp``, PTX ISA 9.7.6).
    """

    example = """
    func.func @example(%scores: vector<32x64xf32>, %row: index, %column: index, %keys: index) {
      %masked = "tc.mask_rows"(%scores, %row, %column, %keys) {causal_offset = 0 : i64}
          : (vector<32x64xf32>, index, index, index) -> vector<32x64xf32>
      return
    }
    """

    scores: ext.Operand[ir.VectorType]
    row: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]
    keys: ext.Operand[ir.IndexType]
    masked: ext.Result[ir.VectorType]


class RowExponentialsOp(Op, name="row_exponentials", pure=True):
    """Computes 2 to the power of ``(scores - reference) * scale``. For each row, the product
    ``reference * scale`` is computed once; each element then takes an fma with this product and an
    ``ex2.approx.ftz.f32`` (PTX ISA 9.7.3.21).

    With ``polynomial``, a polynomial instead of the special-function unit computes the last
    ``polynomial`` columns of every 16, with a relative error of 2^-13.26
    (`tcir.interp.online_softmax.exp2_polynomial`). In a row whose product would be too inexact, a
    difference and a multiplication replace the fma (`tcir.interp.online_softmax.exponents`).
    """

    example = """
    func.func @example(%scores: vector<32x64xf32>, %reference: vector<32x1xf32>) {
      %p = "tc.row_exponentials"(%scores, %reference) {scale = 0.125 : f32}
          : (vector<32x64xf32>, vector<32x1xf32>) -> vector<32x64xf32>
      return
    }
    """

    scores: ext.Operand[ir.VectorType]
    reference: ext.Operand[ir.VectorType]
    scale: ir.FloatAttr
    powers: ext.Result[ir.VectorType]

    @property
    def polynomial(self) -> int:
        """Number of columns, out of every 16, whose exponentials a polynomial computes."""
        return optional_integer(self, "polynomial") or 0


class NarrowRowsOp(Op, name="narrow_rows", pure=True):
    """Converts rows to 8-bit floats, rounded to nearest even; numbers beyond the largest finite
    number become that number (``cvt.rn.satfinite``, PTX ISA 9.7.9.21)."""

    example = """
    func.func @example(%p: vector<32x64xf32>) {
      %a = "tc.narrow_rows"(%p) : (vector<32x64xf32>) -> vector<32x64xf8E4M3FN>
      return
    }
    """

    wide: ext.Operand[ir.VectorType]
    narrow: ext.Result[ir.VectorType]


class RowsDifferOp(Op, name="rows_differ", pure=True):
    """Whether the number of any row of the warp differs from ``value`` or is NaN. The result is a
    single i1.

    The threads of the warp vote (``vote.sync``, PTX ISA 9.7.13.13).
    """

    example = """
    func.func @example(%alpha: vector<32x1xf32>) {
      %any = "tc.rows_differ"(%alpha) {value = 1.0 : f32} : (vector<32x1xf32>) -> i1
      return
    }
    """

    numbers: ext.Operand[ir.VectorType]
    value: ir.FloatAttr
    differ: ext.Result[ir.IntegerType] = ext.result(
        default_factory=lambda: ir.IntegerType.get_signless(1)
    )


class RowInverseSumOp(Op, name="row_inverse_sum", pure=True):
    """Factor by which a row of results is multiplied: ``1 / total`` by ``rcp.approx.ftz.f32``
    (PTX ISA 9.7.3.13), or 1 if the total is NaN or 0, as in a row without keys. If ``times`` is
    present, the factor is multiplied by it."""

    example = """
    func.func @example(%total: vector<32x1xf32>) {
      %inverse = "tc.row_inverse_sum"(%total) : (vector<32x1xf32>) -> vector<32x1xf32>
      return
    }
    """

    total: ext.Operand[ir.VectorType]
    inverse: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))

    @property
    def times(self) -> float:
        """Factor by which the results are multiplied."""
        factor = optional_number(self, "times")
        return 1.0 if factor is None else factor


class RowLogSumOp(Op, name="row_log_sum", pure=True):
    """Computes the natural logarithm of a row's sum of exponentials: ``(largest * scale +
    log2(total)) * ln(2)``, with ``lg2.approx.ftz.f32`` (PTX ISA 9.7.3.20). It is -inf for a row
    without keys, whose total is 0."""

    example = """
    func.func @example(%largest: vector<32x1xf32>, %total: vector<32x1xf32>) {
      %lse = "tc.row_log_sum"(%largest, %total) {scale = 0.125 : f32}
          : (vector<32x1xf32>, vector<32x1xf32>) -> vector<32x1xf32>
      return
    }
    """

    largest: ext.Operand[ir.VectorType]
    total: ext.Operand[ir.VectorType]
    scale: ir.FloatAttr
    lse: ext.Result[ir.VectorType] = ext.result(default_factory=lambda: rows(1))


ONE, LANES = f"vector<{QUARTER_LANES}x1xf32>", f"vector<{TMEM_LANES}x1xf32>"


def _are(values: list[ir.Value], kind: str) -> bool:
    return all(str(value.type) == kind for value in values)


def _has_rows(kind: ir.Type) -> bool:
    """Whether it is ``vector<32 x N x f32>``."""
    shape = list(kind.shape) if isinstance(kind, ir.VectorType) else []
    return len(shape) == 2 and str(kind) == f"vector<{QUARTER_LANES}x{shape[1]}xf32>"


@verify(
    LaneNumbersOp,
    "type",
    "tc",
    "value must be of f32 and the result {want}, got {got}",
    bad={"0.0 : f32": "0.0 : f64"},
    good={"0.0 : f32": "0xFF800000 : f32"},
)
def _(op: LaneNumbersOp) -> Broken:
    is_f32 = str(op.value.type) == "f32"
    if is_f32 and _are([op.numbers], LANES):
        return None
    return {"want": LANES, "got": f"{op.value.type} and {op.numbers.type}"}


@verify(
    RowNumbersOp,
    "types",
    "tc",
    "numbers must be {lanes} and those of a sub-partition {rows}, got {got}",
    bad={"-> vector<32x1xf32>": "-> vector<64x1xf32>"},
)
def _(op: RowNumbersOp | SetRowNumbersOp) -> Broken:
    lanes = [op.numbers] if isinstance(op, RowNumbersOp) else [op.numbers, op.new]
    if _are(lanes, LANES) and _are([op.mine], ONE):
        return None
    got = ", ".join(str(value.type) for value in (*lanes, op.mine))
    return {"lanes": LANES, "rows": ONE, "got": got}


@verify(
    RowNumbersOp,
    "quarter",
    "PTX ISA 9.7.16.8",
    "quarter must be in [0, 4), got {got}: tensor memory has four sub-partitions of 32 lanes",
    bad={"<128x1xf32>, %quarter: index) {": ("<128x1xf32>) { %quarter = arith.constant 4 : index")},
)
def _(op: RowNumbersOp | SetRowNumbersOp) -> Broken:
    got = constant_of(op.quarter)
    return None if got is None or 0 <= got < QUARTERS else {"got": got}


same_rules(
    SetRowNumbersOp,
    RowNumbersOp,
    {
        "types": {
            "%mine: vector<32x1xf32>": "%mine: vector<32x2xf32>",
            "index, vector<32x1xf32>": "index, vector<32x2xf32>",
        },
        "quarter": {
            '"tc.set_row_numbers"(%numbers, %quarter': (
                '%four = arith.constant 4 : index %new = "tc.set_row_numbers"(%numbers, %four'
            ),
            "%new = ": "",
        },
    },
)


@verify(
    RowMaxOp,
    "types",
    "tc",
    "values must be vector<32xNxf32> and the result {one}, got {got}",
    bad={"-> vector<32x1xf32>": "-> vector<32x64xf32>"},
    good={"vector<32x64xf32>": "vector<32x48xf32>"},
)
def _(op: RowMaxOp | RowSumOp) -> Broken:
    values, result = op.values.type, op.results[0].type
    if _has_rows(values) and str(result) == ONE:
        return None
    return {"one": ONE, "got": f"{values} and {result}"}


same_rules(RowSumOp, RowMaxOp, {"types": {"-> vector<32x1xf32>": "-> vector<32x64xf32>"}})


@verify(
    RowSumOp,
    "columns",
    "tc",
    "columns must be a multiple of {parts}, the number of partial sums, got {got}",
    bad={"vector<32x64xf32>": "vector<32x12xf32>"},
    good={"vector<32x64xf32>": "vector<32x8xf32>"},
)
def _(op: RowSumOp) -> Broken:
    got = op.values.type.shape[1]
    return None if got % PARTIAL_SUMS == 0 else {"parts": PARTIAL_SUMS, "got": got}


@verify(
    RowOnlineMaxOp,
    "types",
    "tc",
    "operands and results must be {one}, and scale a positive f32, got {got}",
    bad=(
        {"scale = 0.125": "scale = -0.125"},
        {
            "%largest: vector<32x1xf32>": "%largest: vector<32x2xf32>",
            "(vector<32x1xf32>, vector<32x1xf32>)": "(vector<32x1xf32>, vector<32x2xf32>)",
        },
    ),
)
def _(op: RowOnlineMaxOp | RowLogSumOp) -> Broken:
    values = [*op.operands, *op.results]
    if _are(values, ONE) and _is_scale(op.scale):
        return None
    got = ", ".join(str(value.type) for value in values)
    return {"one": ONE, "got": f"{got} and {op.scale}"}


def _is_scale(attribute: ir.Attribute) -> bool:
    of_f32 = isinstance(attribute, ir.FloatAttr) and str(attribute.type) == "f32"
    return of_f32 and 0 < attribute.value < float("inf")


same_rules(RowLogSumOp, RowOnlineMaxOp, {"types": {"scale = 0.125": "scale = 0.0"}})


@verify(
    RowOnlineMaxOp,
    "tau",
    "tc",
    "tau must be an f32 of at least 0, got {got}",
    bad={"tau = 8.0": "tau = -1.0"},
    good={"tau = 8.0": "tau = 0.0"},
)
def _(op: RowOnlineMaxOp) -> Broken:
    of_f32 = str(op.tau.type) == "f32"
    return None if of_f32 and op.tau.value >= 0 else {"got": op.tau}


@verify(
    RowExponentialsOp,
    "types",
    "tc",
    "scores and the result must be of one vector<32xNxf32>, reference {one}, and scale a positive "
    "f32, got {got}",
    bad=({"scale = 0.125": "scale = -1.0"}, {"-> vector<32x64xf32>": "-> vector<32x32xf32>"}),
    good={"vector<32x64xf32>": "vector<32x128xf32>"},
)
def _(op: RowExponentialsOp) -> Broken:
    scores, reference, powers = op.scores.type, op.reference.type, op.powers.type
    alike = _has_rows(scores) and powers == scores and str(reference) == ONE
    if alike and _is_scale(op.scale):
        return None
    return {"one": ONE, "got": f"{scores}, {reference}, {powers} and {op.scale}"}


@verify(
    RowExponentialsOp,
    "polynomial",
    "tc",
    "polynomial must be an even number of every {period} columns, from 2 on, got {got}: an "
    "instruction computes two; leave it out for none",
    bad={"scale = 0.125 : f32": "scale = 0.125 : f32, polynomial = 3 : i64"},
    good={"scale = 0.125 : f32": "scale = 0.125 : f32, polynomial = 4 : i64"},
)
def _(op: RowExponentialsOp) -> Broken:
    if "polynomial" not in op.attributes:
        return None
    got = op.attributes["polynomial"]
    whole = isinstance(got, ir.IntegerAttr) and got.value in range(2, PERIOD + 1, 2)
    return None if whole else {"period": PERIOD, "got": got}


@verify(
    NarrowRowsOp,
    "types",
    "PTX ISA 9.7.9.21",
    "expected rows of f32, vector<32xNxf32>, with N a multiple of 4, and the same of f8E4M3FN or "
    "f8E5M2 as result, got {got}: a register has four numbers",
    bad=(
        {"-> vector<32x64xf8E4M3FN>": "-> vector<32x64xf16>"},
        {
            "vector<32x64xf32>": "vector<32x66xf32>",
            "vector<32x64xf8E4M3FN>": "vector<32x66xf8E4M3FN>",
        },
    ),
    good={"-> vector<32x64xf8E4M3FN>": "-> vector<32x64xf8E5M2>"},
)
def _(op: NarrowRowsOp) -> Broken:
    wide, narrow = op.wide.type, op.narrow.type
    if _has_rows(wide) and wide.shape[1] % 4 == 0:
        columns = wide.shape[1]
        legal = [f"vector<{QUARTER_LANES}x{columns}x{each}>" for each in FP8]
        return None if str(narrow) in legal else {"got": f"{wide} and {narrow}"}
    return {"got": f"{wide} and {narrow}"}


@verify(
    MaskRowsOp,
    "types",
    "tc",
    "scores and the result must be of one vector<32xNxf32>, offsets integers, got {got}",
    bad=(
        {"-> vector<32x64xf32>": "-> vector<32x32xf32>"},
        {"causal_offset = 0 : i64": "causal_offset = 0.0 : f32"},
    ),
    good={"causal_offset = 0 : i64": ""},
)
def _(op: MaskRowsOp) -> Broken:
    scores, masked = op.scores.type, op.masked.type
    offsets = [op.attributes.get(name, None) for name in ("causal_offset", "window_offset")]
    whole = all(isinstance(each, ir.IntegerAttr | None) for each in offsets)
    if _has_rows(scores) and masked == scores and whole:
        return None
    return {"got": f"{scores}, {masked} and {', '.join(map(str, offsets))}"}


@verify(
    RowsDifferOp,
    "types",
    "tc",
    "numbers must be {one}, value an f32 and the result i1, got {got}",
    bad=({"value = 1.0 : f32": "value = 1.0 : f64"}, {"-> i1": "-> i32"}),
)
def _(op: RowsDifferOp) -> Broken:
    kinds = [str(each) for each in (op.numbers.type, op.value.type, op.differ.type)]
    return None if kinds == [ONE, "f32", "i1"] else {"one": ONE, "got": ", ".join(kinds)}


@verify(
    RowInverseSumOp,
    "types",
    "tc",
    "operand and result must be {one}, got {got}",
    bad={"-> vector<32x1xf32>": "-> vector<32x2xf32>"},
)
def _(op: RowInverseSumOp) -> Broken:
    if _are([op.total, op.inverse], ONE):
        return None
    return {"one": ONE, "got": f"{op.total.type} and {op.inverse.type}"}
