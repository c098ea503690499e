"""Data movement between shared memory, tensor memory and registers."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, optional_integer, string
from tcir.dialect.limits import (
    QUARTER_LANES,
    QUARTERS,
    TMEM_LD_NUM,
    TMEM_LD_REGISTERS,
)
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, one_of, same_rules, verify
from tcir.dialect.types import TmemType

SOURCE = "PTX ISA 9.7.16.8"
HALF_LANES = QUARTER_LANES // 2
COLUMNS = {"32x32b": 1, "16x64b": 2, "16x32bx2": 1, "16x128b": 4, "16x256b": 8}
"""Shape -> columns for each repetition (``.num``), not packed (table 49)."""
SPLIT_SHAPE = "16x32bx2"
"""The shape that reads a window of columns for each half of the warp."""


class TmemLdWordsOp(
    Op, name="tmem_ld_words", issued_by="warp", role="epilogue", completed_by="tc.tmem_wait"
):
    """``tcgen05.ld`` of any ``shape``: loads the 32-bit registers of a warp's threads.

    The result is ``vector<32 x R x i32>``: row = thread, column = register. ``shape`` is
    ``"32x32b"``, ``"16x64b"``, ``"16x128b"``, ``"16x256b"`` or ``"16x32bx2"``; the shape determines
    which thread has which lane and column (PTX ISA 9.7.16.8). Shapes of 16 lanes read the first
    half of sub-partition ``quarter`` or, with ``upper``, its second half. With ``pack`` a register
    holds the low halves of two columns. ``split`` is the distance in columns between the two
    windows of ``16x32bx2``. The load is asynchronous, like ``tc.tmem_ld``.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 64>, f32>
    func.func @example(%d: !d, %quarter: index, %column: index) {
      %v = "tc.tmem_ld_words"(%d, %quarter, %column) {shape = "16x256b", upper = true, pack = false}
          : (!d, index, index) -> vector<32x16xi32>
      return
    }
    """
    form = "{source}[quarter={quarter}, column={column}] {shape}"

    source: ext.Operand[TmemType]
    quarter: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]
    shape: ir.StringAttr
    upper: ir.IntegerAttr
    pack: ir.IntegerAttr
    value: ext.Result[ir.VectorType]


class TmemStWordsOp(
    Op, name="tmem_st_words", issued_by="warp", role="epilogue", completed_by="tc.tmem_wait"
):
    """``tcgen05.st`` of any ``shape``: stores the 32-bit registers of a warp's threads.

    ``value`` is ``vector<32 x R x i32>``; the attributes are those of ``tc.tmem_ld_words``. Here
    ``pack`` means ``.unpack::16b``: each half of a register goes to a column of its own (PTX ISA
    9.7.16.8).
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 64>, f32>
    func.func @example(%v: vector<32x4xi32>, %d: !d, %quarter: index, %column: index) {
      "tc.tmem_st_words"(%v, %d, %quarter, %column) {shape = "16x32bx2", upper = false,
          pack = false, split = 16 : i64} : (vector<32x4xi32>, !d, index, index) -> ()
      return
    }
    """

    value: ext.Operand[ir.VectorType]
    target: ext.Operand[TmemType]
    quarter: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]
    shape: ir.StringAttr
    upper: ir.IntegerAttr
    pack: ir.IntegerAttr


Words = TmemLdWordsOp | TmemStWordsOp


def split_of(op: Words) -> int | None:
    """``split``. Only shape 16x32bx2 has the attribute, so the class does not declare it."""
    return optional_integer(op, "split")


def repetitions(op: Words) -> int:
    """The modifier ``.num`` of the instruction: how often its shape is repeated along the
    columns."""
    return int(op.value.type.shape[1]) // TMEM_LD_REGISTERS[string(op, "shape")]


def covered_columns(op: Words) -> int:
    """Half-open range of the columns that the op accesses."""
    columns = repetitions(op) * COLUMNS[string(op, "shape")] * (2 if op.pack.value else 1)
    return columns + (split_of(op) or 0)


@verify(
    TmemLdWordsOp,
    "shape",
    SOURCE,
    "shape must be one of {legal}, got {got}",
    bad={'shape = "16x256b"': 'shape = "32x16b"'},
    good={'shape = "16x256b"': 'shape = "16x64b"'},
)
def _(op: Words) -> Broken:
    return one_of(op, "shape", COLUMNS)


@verify(
    TmemLdWordsOp,
    "value",
    "PTX ISA 9.7.16.8, table 49",
    "the value must be vector<32 x registers x i32> with {each} registers for each of .num {legal} "
    "repetitions of {shape}, got {got}",
    bad={"32x16xi32": "32x2xi32"},
    good={"32x16xi32": "32x4xi32"},
)
def _(op: Words) -> Broken:
    got, shape = op.value.type, string(op, "shape")
    each, legal = TMEM_LD_REGISTERS[shape], TMEM_LD_NUM[shape]
    extents = list(got.shape)
    fits = len(extents) == 2 and extents[0] == QUARTER_LANES and extents[1] % each == 0
    if fits and extents[1] // each in legal and str(got.element_type) == "i32":
        return None
    return {"each": each, "legal": legal, "shape": shape, "got": got}


@verify(
    TmemLdWordsOp,
    "flags",
    "tc",
    "upper and pack must be true or false, and upper false for 32x32b, which has all 32 lanes, got "
    "{upper} and {pack}",
    bad={'shape = "16x256b"': 'shape = "32x32b"'},
    good={'shape = "16x256b"': 'shape = "16x64b"'},
)
def _(op: Words) -> Broken:
    flags = isinstance(op.upper, ir.BoolAttr) and isinstance(op.pack, ir.BoolAttr)
    if flags and not (op.upper.value and string(op, "shape") == "32x32b"):
        return None
    return {"upper": op.upper, "pack": op.pack}


@verify(
    TmemLdWordsOp,
    "split",
    SOURCE,
    "split must be an integer of at least 0 for shape 16x32bx2 and absent for others, got {got} "
    "for {shape}: it is immHalfSplitoff",
    bad={'shape = "16x256b"': 'shape = "16x32bx2"'},
    good={'shape = "16x256b"': 'shape = "16x32bx2"', "false": "false, split = 16 : i64"},
)
def _(op: Words) -> Broken:
    shape, got = string(op, "shape"), op.attributes.get("split", None)
    wanted = shape == SPLIT_SHAPE
    if wanted == isinstance(got, ir.IntegerAttr) and (got is None or got.value >= 0):
        return None
    return {"got": "none" if got is None else got, "shape": shape}


@verify(
    TmemLdWordsOp,
    "quarter",
    SOURCE,
    "quarter must be in [0, 4), got {got}: a warp reaches lanes 32 * (warp mod 4) to + 31",
    bad={
        '%v = "tc.tmem_ld_words"(%d, %quarter': (
            '%four = arith.constant 4 : index %v = "tc.tmem_ld_words"(%d, %four'
        )
    },
)
def _(op: Words) -> Broken:
    got = constant_of(op.quarter)
    return None if got is None or 0 <= got < QUARTERS else {"got": got}


@verify(
    TmemLdWordsOp,
    "columns",
    SOURCE,
    "the columns must lie within the tile's [0, {columns}), got [{begin}, {end})",
    bad={
        "array<i64: 128, 64>": "array<i64: 128, 32>",
        "index, %column: index) {": "index) { %column = arith.constant 8 : index",
    },
    good={
        "array<i64: 128, 64>": "array<i64: 128, 32>",
        "index, %column: index) {": "index) { %column = arith.constant 16 : index",
        "32x16xi32": "32x8xi32",
    },
)
def _(op: Words) -> Broken:
    tile = op.source if isinstance(op, TmemLdWordsOp) else op.target
    columns, begin = tile.type.columns, constant_of(op.column) or 0
    end = begin + covered_columns(op)
    if begin >= 0 and end <= columns:
        return None
    return {"columns": columns, "begin": begin, "end": end}


same_rules(
    TmemStWordsOp,
    TmemLdWordsOp,
    {
        "shape": {'shape = "16x32bx2"': 'shape = "32x16b"'},
        "value": {"32x4xi32": "32x3xi32"},
        "flags": {'shape = "16x32bx2"': 'shape = "32x32b"', "upper = false": "upper = true"},
        "split": {"false, split = 16 : i64": "false"},
        "quarter": {
            '"tc.tmem_st_words"(%v, %d, %quarter': (
                '%four = arith.constant 4 : index "tc.tmem_st_words"(%v, %d, %four'
            )
        },
        "columns": {
            '"tc.tmem_st_words"(%v, %d, %quarter, %column': (
                '%far = arith.constant 61 : index "tc.tmem_st_words"(%v, %d, %quarter, %far'
            )
        },
    },
    {"shape": {'shape = "16x32bx2"': 'shape = "16x64b"', "false, split = 16 : i64": "false"}},
)
