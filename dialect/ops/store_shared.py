"""Stores of register tiles."""

from math import gcd

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify
from tcir.dialect.types import SmemType, element_bytes

STORE_BYTES = 16
"""Bytes of one access of a thread: the widest there is, and the unit that swizzles move."""


class StoreSharedOp(Op, name="store_shared", issued_by="warp", role="epilogue"):
    """Stores a register tile to rows of a shared tile, where TMA reads it (``tc.tma_store``).

    ``value`` is ``vector<32 x C x T>``. Row i goes to row ``row + i`` of the K-major tile ``[rows,
    columns]``, from column ``column`` on. ``column`` is a multiple of C or of the number of
    elements in a swizzle span. Each thread stores its row, 16 bytes at a time, through the generic
    proxy (PTX ISA 9.7.9.12): ``tc.fence "proxy.async"`` must precede a ``tc.tma_store`` of the
    tile.
    """

    example = """
    !tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
    func.func @example(%v: vector<32x16xf16>, %tile: !tile, %row: index, %column: index) {
      "tc.store_shared"(%v, %tile, %row, %column)
          : (vector<32x16xf16>, !tile, index, index) -> ()
      return
    }
    """
    form = "{value} -> {tile}[{row}, {column}]"

    value: ext.Operand[ir.VectorType]
    tile: ext.Operand[SmemType]
    row: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]


def column_step(tile: SmemType, columns: int) -> int:
    """The number that must divide the first column, so that no store of 16 bytes crosses the
    boundary between two swizzle spans."""
    return gcd(columns, tile.span // element_bytes(tile.element))


@verify(
    StoreSharedOp,
    "value",
    "PTX ISA 9.7.16.8",
    "value must be vector<32 x columns x {element}> (one row per thread of a warp, elements of the "
    "tile), got {got}",
    bad={"32x16xf16": "32x16xf32"},
)
def _(op: StoreSharedOp) -> Broken:
    got, element = op.value.type, op.tile.type.element
    shape = list(got.shape)
    fits = len(shape) == 2 and shape[0] == QUARTER_LANES and got.element_type == element
    return None if fits else {"element": element, "got": got}


@verify(
    StoreSharedOp,
    "width",
    "PTX ISA 9.7.9.12",
    "a row must be a multiple of 16 bytes that divides {span} (a row of the tile) or is a multiple "
    "of it, got {got}: a swizzle moves 16 bytes as a whole",
    bad={"32x16xf16": "32x24xf16"},
    good={"32x16xf16": "32x8xf16"},
)
def _(op: StoreSharedOp) -> Broken:
    tile = op.tile.type
    got = op.value.type.shape[1] * element_bytes(tile.element)
    whole = got % STORE_BYTES == 0 and (tile.span % got == 0 or got % tile.span == 0)
    return None if whole else {"span": tile.span, "got": got}


@verify(
    StoreSharedOp,
    "major",
    "tc",
    'the tile must be K-major, got "{got}": a thread has a row, and accesses it as one',
    bad={'"K"': '"MN"'},
)
def _(op: StoreSharedOp) -> Broken:
    got = op.tile.type.major
    return None if got == "K" else {"got": got}


@verify(
    StoreSharedOp,
    "rows",
    "tc",
    "the 32 rows must lie in the tile's {mn}, got [{begin}, {end})",
    bad={
        '"tc.store_shared"(%v, %tile, %row': (
            '%low = arith.constant 8 : index "tc.store_shared"(%v, %tile, %low'
        )
    },
)
def _(op: StoreSharedOp) -> Broken:
    mn, begin = op.tile.type.shape[0], constant_of(op.row) or 0
    end = begin + QUARTER_LANES
    return None if begin >= 0 and end <= mn else {"mn": mn, "begin": begin, "end": end}


@verify(
    StoreSharedOp,
    "columns",
    "tc",
    "the columns must lie in the tile's {k} and begin at a multiple of {step}, got [{begin}, "
    "{end})",
    bad={"index, %column: index) {": "index) { %column = arith.constant 8 : index"},
    good={"index, %column: index) {": "index) { %column = arith.constant 48 : index"},
)
def _(op: StoreSharedOp) -> Broken:
    tile, count = op.tile.type, op.value.type.shape[1]
    k, begin, step = tile.shape[1], constant_of(op.column) or 0, column_step(tile, count)
    end = begin + count
    if begin >= 0 and end <= k and begin % step == 0:
        return None
    return {"k": k, "step": step, "begin": begin, "end": end}
