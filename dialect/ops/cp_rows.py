"""Data movement between shared memory, tensor memory and registers."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, string
from tcir.dialect.limits import CP_SHAPES, QUARTER_LANES, SWIZZLE_ATOM_ROWS
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, one_of, verify
from tcir.dialect.types import SmemType, TmemType, element_bytes

SOURCE = "PTX ISA 9.7.16.9"
CP_UNIT = 16
"""Bytes that a copy begins at a multiple of."""
FORMATS = ("b4x16_p64", "b6x16_p32")
"""Source formats: 16 elements of 4 (6) bits at the start of 16 bytes become a byte each."""


class CpRowsOp(
    Op,
    name="cp_rows",
    issued_by="thread",
    role="mma",
    reads_shared=("source",),
    completed_by="tc.commit",
):
    """``tcgen05.cp`` of any ``shape``: copies rows of a shared tile into tensor memory.

    ``shape`` is source rows x bits: ``"128x256b"``, ``"128x128b"`` (row i to lane i), ``"4x256b"``
    (row i to lane ``32 i + 31``), ``"64x128b"`` with ``multicast`` ``"warpx2::02_13"`` (row i to
    lanes i and i + 64) or ``"warpx2::01_23"`` (rows 0 to 31 to lanes i and i + 32, rows 32 to 63 to
    lanes i + 32 and i + 64), ``"32x128b"`` with ``"warpx4"`` (to lane i of every sub-partition).
    The op copies the rows of ``source`` from ``row`` on, starting at byte ``byte`` of K, to the
    columns of ``target`` from ``column`` on. With ``format``, ``"b4x16_p64"`` or ``"b6x16_p32"``,
    padded elements of 4 or 6 bits become a byte each (PTX ISA 9.7.16.9). ``tc.cp``,
    ``tc.cp_scales`` and ``tc.refresh`` are special cases, for A, scale factors and halos. One
    thread issues the op; it completes asynchronously.

    With ``cta_group = 2`` each CTA of the pair copies from its own ``source`` to its own
    ``target``.
    """

    example = """
    !source = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
    !target = !tc.tmem<array<i64: 128, 64>, f16>
    func.func @example(%source: !source, %target: !target) {
      "tc.cp_rows"(%source, %target) {shape = "64x128b", multicast = "warpx2::02_13", row = 0 : i64,
          byte = 48 : i64, column = 4 : i64} : (!source, !target) -> ()
      return
    }
    """
    form = "{source}[row={row}, byte={byte}] -> {target}[column={column}] {shape} {multicast}"

    source: ext.Operand[SmemType]
    target: ext.Operand[TmemType]
    shape: ir.StringAttr
    multicast: ir.StringAttr
    row: ir.IntegerAttr
    byte: ir.IntegerAttr
    column: ir.IntegerAttr


def format_of(op: CpRowsOp) -> str | None:
    """``format``. The attribute is optional, so the class does not declare it."""
    return string(op, "format") if "format" in op.attributes else None


@verify(
    CpRowsOp,
    "shape",
    SOURCE,
    "shape must be one of {legal}, got {got}",
    bad={'shape = "64x128b"': 'shape = "16x128b"'},
)
def _(op: CpRowsOp) -> Broken:
    return one_of(op, "shape", CP_SHAPES)


@verify(
    CpRowsOp,
    "multicast",
    SOURCE,
    'multicast must be {legal} for shape {shape}, got "{got}"',
    bad={'multicast = "warpx2::02_13"': 'multicast = "warpx4"'},
    good={'multicast = "warpx2::02_13"': 'multicast = "warpx2::01_23"'},
)
def _(op: CpRowsOp) -> Broken:
    shape, got = string(op, "shape"), string(op, "multicast")
    legal = CP_SHAPES[shape][2]
    named = " or ".join(f'"{each}"' for each in legal)
    return None if got in legal else {"legal": named, "shape": shape, "got": got}


@verify(
    CpRowsOp,
    "format",
    SOURCE,
    "format must be one of {legal} of a source of i8, got {got} of {element}",
    bad={"4 : i64": '4 : i64, format = "b4x16_p64"'},
    good={
        "array<i64: 64, 64>, f16": "array<i64: 64, 64>, i8",
        "4 : i64": '4 : i64, format = "b4x16_p64"',
    },
)
def _(op: CpRowsOp) -> Broken:
    if "format" not in op.attributes:
        return None
    got, element = op.attributes["format"], str(op.source.type.element)
    if isinstance(got, ir.StringAttr) and got.value in FORMATS and element == "i8":
        return None
    return {"legal": ", ".join(FORMATS), "got": got, "element": element}


@verify(
    CpRowsOp,
    "major",
    SOURCE,
    'source must be K-major, got "{got}": tcgen05.cp reads rows and cannot transpose',
    bad={'"K"': '"MN"'},
)
def _(op: CpRowsOp) -> Broken:
    got = op.source.type.major
    return None if got == "K" else {"got": got}


@verify(
    CpRowsOp,
    "rows",
    SOURCE,
    "rows [{begin}, {end}) must lie in the source's {rows} and begin at a multiple of {atom}: a "
    "descriptor starts at a whole swizzle atom",
    bad={"row = 0": "row = 8"},
)
def _(op: CpRowsOp) -> Broken:
    begin, rows = integer(op, "row"), op.source.type.shape[0]
    end = begin + CP_SHAPES[string(op, "shape")][0]
    if 0 <= begin and end <= rows and begin % SWIZZLE_ATOM_ROWS == 0:
        return None
    return {"begin": begin, "end": end, "rows": rows, "atom": SWIZZLE_ATOM_ROWS}


@verify(
    CpRowsOp,
    "bytes",
    SOURCE,
    "bytes [{begin}, {end}) of K must lie in one row of the source's {span} bytes (without a "
    "swizzle, in K's {k}) and begin at a multiple of 16",
    bad={"byte = 48": "byte = 120"},
    good={"byte = 48": "byte = 112"},
)
def _(op: CpRowsOp) -> Broken:
    type_, begin = op.source.type, integer(op, "byte")
    end = begin + CP_SHAPES[string(op, "shape")][1]
    k, span = type_.shape[1] * element_bytes(type_.element), type_.span
    one = type_.swizzle == "NONE" or begin // span == (end - 1) // span
    if 0 <= begin and end <= k and begin % CP_UNIT == 0 and one:
        return None
    return {"begin": begin, "end": end, "span": span, "k": k}


@verify(
    CpRowsOp,
    "columns",
    SOURCE,
    "target must have columns [{begin}, {end}), got {got} columns",
    bad={"array<i64: 128, 64>": "array<i64: 128, 32>", "column = 4": "column = 14"},
    good={"array<i64: 128, 64>": "array<i64: 128, 32>", "column = 4": "column = 12"},
)
def _(op: CpRowsOp) -> Broken:
    begin, got = integer(op, "column"), op.target.type.columns
    end = begin + CP_SHAPES[string(op, "shape")][1] // 4
    return None if 0 <= begin and end <= got else {"begin": begin, "end": end, "got": got}


def lane_of(op: CpRowsOp) -> int:
    """The lane in the target's address. For shape 4x256b, as for ``tc.refresh``, it is the last
    lane of a sub-partition; for other shapes it is 0."""
    return QUARTER_LANES - 1 if string(op, "shape") == "4x256b" else 0
