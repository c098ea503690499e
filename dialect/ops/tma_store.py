"""TMA stores."""

from collections.abc import Sequence

from tcir._mlir import ext, ir
from tcir.dialect.attributes import (
    constant_of,
    defining,
    integer,
    integers,
    string,
)
from tcir.dialect.limits import SWIZZLE_ATOM_ROWS
from tcir.dialect.operation import Names, Op
from tcir.dialect.ops.tma import BYTE_ELEMENTS, MakeTensorMapOp, TmaLoadOp, box_rows, inner_bytes
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.types import SmemType, TensorMapType

SOURCE = "PTX ISA 9.7.9.27"
REDUCTION_SOURCE = "PTX ISA 9.7.9.27.1.3"

REDUCTIONS = {
    "f16": ("add", "min", "max"),
    "bf16": ("add", "min", "max"),
    "f32": ("add",),
    "i32": ("add", "min", "max", "and", "or", "xor"),
}
"""Element type of the map -> what ``cp.reduce.async.bulk.tensor`` can do with it (PTX ISA
9.7.9.27.1.3); i32 is signed."""

SCATTERED_ROWS = 4
"""Rows of a store of mode ``tile::scatter4``, each at a coordinate of its own."""


class TmaStoreOp(
    Op,
    name="tma_store",
    issued_by="warp",
    role="epilogue",
    reads_shared=("tile",),
    stores="map",
    completed_by="tc.bulk_wait",
):
    """``cp.async.bulk.tensor`` from shared to global memory: stores one box to ``coords``
    (innermost coordinate first).

    The box is read from consecutive rows of ``tile`` from row ``row`` on (see ``!tc.smem``);
    elements outside the tensor are not stored. With ``reduction`` (``"add"``, ``"min"``, …) each
    element is combined with the element in memory (``cp.reduce.async.bulk.tensor``). If the box is
    one row and there are five coordinates, the op stores four rows, each at its own second
    coordinate (``tile::scatter4``). With a map of mode ``"im2col"`` the store has no offsets
    (``im2col_no_offs``).

    One elected thread of the warp issues it, in the thread's open bulk group: ``tc.bulk_commit``
    closes the group, ``tc.bulk_wait`` waits for it. The tile is read through the async proxy: each
    thread that wrote to it first executes ``tc.fence "proxy.async"``, then ``tc.warp_barrier``
    (PTX ISA 9.7.9.27).
    """

    example = """
    !tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
    func.func @example(%out: memref<128x256xf16>, %tile: !tile, %n: index, %m: index) {
      %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
          strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
          corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
      "tc.tma_store"(%map, %n, %m, %tile) {row = 0 : i64,
          operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
      return
    }
    """

    map: ext.Operand[TensorMapType]
    coords: Sequence[ext.Operand[ir.IndexType]]
    tile: ext.Operand[SmemType]
    row: ir.IntegerAttr

    @staticmethod
    def form(n: Names) -> str:
        """The short printed form of the op."""
        return f"{n['tile']}[row={n['row']}] -> {n['map']}[{n['coords']}]"


class BulkCommitOp(Op, name="bulk_commit", issued_by="warp", role="epilogue", async_only=True):
    """``cp.async.bulk.commit_group``: the warp's TMA stores since the last commit become a bulk
    group.

    The elected thread that issued the stores executes it (PTX ISA 9.7.9.25.4).
    """

    example = """
    func.func @example() {
      "tc.bulk_commit"() : () -> ()
      return
    }
    """


class BulkWaitOp(Op, name="bulk_wait", issued_by="warp", role="epilogue", async_only=True):
    """``cp.async.bulk.wait_group``: waits until at most the last ``pending`` bulk groups are
    incomplete.

    With ``read``, the stores of the other groups have only read their tiles, which may be reused;
    without it their writes are also visible. The elected thread waits: ``tc.warp_barrier`` releases
    the other threads (PTX ISA 9.7.9.25.4).
    """

    example = """
    func.func @example() {
      "tc.bulk_wait"() {pending = 1 : i64, read = true} : () -> ()
      return
    }
    """
    form = "pending={pending} read={read}"

    pending: ir.IntegerAttr
    read: ir.IntegerAttr  # i1


def reduction_of(op: TmaStoreOp) -> str | None:
    """``reduction``. The attribute is optional, so the class does not declare it."""
    return string(op, "reduction") if "reduction" in op.attributes else None


def _map(op: TmaStoreOp) -> MakeTensorMapOp:
    return defining(op.map, MakeTensorMapOp)


def scatters(op: TmaStoreOp) -> bool:
    """Whether the op stores four rows, each at its own coordinate (``tile::scatter4``)."""
    return len(integers(_map(op), "dims")) == 2 and len(op.coords) == 1 + SCATTERED_ROWS


def store_rows(op: TmaStoreOp) -> int:
    """Number of rows of the tile that the store reads."""
    return SCATTERED_ROWS if scatters(op) else box_rows(_map(op))


@verify(
    TmaStoreOp,
    "map",
    "tc",
    "map must be the result of a tc.make_tensor_map of the same function, got {got}",
    bad={
        "%m: index": "%m: index, %other: !tc.tensor_map",
        '"tc.tma_store"(%map': '"tc.tma_store"(%other',
    },
)
def _(op: TmaStoreOp) -> Broken:
    return None if defining(op.map, MakeTensorMapOp) is not None else {"got": op.map}


@verify(
    TmaStoreOp,
    "mode",
    SOURCE,
    'a store needs a map of mode "tiled" or "im2col", got "{got}": the w modes load only',
)
def _(op: TmaStoreOp) -> Broken:
    got = string(_map(op), "mode")
    return None if got in ("tiled", "im2col") else {"got": got}


@verify(
    TmaStoreOp,
    "corners",
    "PTX ISA 9.7.9.27.1.1",
    "the bounding box of an im2col store must lie in the tensor (lower corners >= 0, upper "
    "corners <= 0), got {got}: stores do not pad",
)
def _(op: TmaStoreOp) -> Broken:
    corners = integers(_map(op), "corners")
    half = len(corners) // 2
    inside = all(c >= 0 for c in corners[:half]) and all(c <= 0 for c in corners[half:])
    return None if inside else {"got": corners}


@verify(
    TmaStoreOp,
    "coords",
    SOURCE,
    "expected one coordinate per dimension of the map ({want}), or, of a map of two dimensions "
    "with a box of one row, a column and four rows, got {got}",
    bad={
        "%m, %tile": "%m, %n, %n, %n, %tile",
        "i32: 1, 2": "i32: 1, 5",
        "1>} : (!tc.tensor_map": "1>} : (!tc.tensor_map, index, index, index",
    },
)
def _(op: TmaStoreOp) -> Broken:
    want, got = len(integers(_map(op), "dims")), len(op.coords)
    if got == want or (scatters(op) and box_rows(_map(op)) == 1):
        return None
    return {"want": want, "got": got}


@verify(
    TmaStoreOp,
    "negative",
    "PTX ISA 9.7.9.27.1.1",
    "coordinates must not be negative, got {got}: a box to store begins inside the tensor",
    bad={"index, %m: index) {": "index) { %m = arith.constant -1 : index"},
    good={"index, %m: index) {": "index) { %m = arith.constant 0 : index"},
)
def _(op: TmaStoreOp) -> Broken:
    values = [value for value in map(constant_of, op.coords) if value is not None]
    got = min(values, default=0)
    return None if got >= 0 else {"got": got}


@verify(
    TmaStoreOp,
    "dtype",
    "PTX ISA 9.7.9.27.1.1",
    'a store cannot have dtype "{got}": the type is for loads',
)
def _(op: TmaStoreOp) -> Broken:
    made = _map(op)
    got = string(made, "dtype") if "dtype" in made.attributes else ""
    return {"got": got} if got == "u4_align16b" else None


@verify(
    TmaStoreOp,
    "element",
    "PTX ISA 5.5",
    "map and tile must have the same element type, got {map} and {tile}: TMA does not convert; "
    "convert with arith.truncf first",
    bad={"f16": "bf16"},
)
def _(op: TmaStoreOp) -> Broken:
    target, tile = _map(op).tensor.type.element_type, op.tile.type.element
    if target == tile or (str(target) in BYTE_ELEMENTS and str(tile) == "i8"):
        return None
    return {"map": target, "tile": tile}


@verify(
    TmaStoreOp,
    "reduction",
    REDUCTION_SOURCE,
    "reduction must be one of {legal} for elements of {element}, got {got}",
)
def _(op: TmaStoreOp) -> Broken:
    if "reduction" not in op.attributes:
        return None
    attribute = op.attributes["reduction"]
    element = str(_map(op).tensor.type.element_type)
    legal = REDUCTIONS.get(element, ())
    if isinstance(attribute, ir.StringAttr) and attribute.value in legal:
        return None
    return {"legal": ", ".join(legal) or "none", "element": element, "got": attribute}


@verify(
    TmaStoreOp,
    "scattered-reduction",
    REDUCTION_SOURCE,
    "a reduction has one coordinate per dimension, got four rows: tile::scatter4 only stores",
)
def _(op: TmaStoreOp) -> Broken:
    return {} if reduction_of(op) and scatters(op) else None


@verify(
    TmaStoreOp,
    "swizzle",
    "PTX ISA 5.5.7",
    "map and tile must have the same swizzle, got {map} and {tile}: the elements would be stored "
    "in another order",
    bad={
        '!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B"': (
            '!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "64B"'
        )
    },
)
def _(op: TmaStoreOp) -> Broken:
    target, tile = string(_map(op), "swizzle"), op.tile.type.swizzle
    return None if target == tile else {"map": target, "tile": tile}


same_rules(
    TmaStoreOp, TmaLoadOp, {"row-bytes": {"box = array<i64: 64, 32>": "box = array<i64: 32, 32>"}}
)


@verify(
    TmaStoreOp,
    "row-atom",
    "PTX ISA 5.5.7",
    "row must be a multiple of {atom}, got {got}: a swizzled box starts at a whole swizzle atom",
    bad={"row = 0": "row = 20"},
    good={"array<i64: 32, 64>": "array<i64: 64, 64>", "row = 0": "row = 24"},
)
def _(op: TmaStoreOp) -> Broken:
    atom, got = SWIZZLE_ATOM_ROWS, integer(op, "row")
    if box_rows(_map(op)) == 1 and op.tile.type.span == 128:
        return None  # at a multiple of 128 bytes, and the XOR is of absolute addresses
    return None if got % atom == 0 else {"atom": atom, "got": got}


@verify(
    TmaStoreOp,
    "rows",
    "tc",
    "the box must lie within the tile's rows [0, {rows}), got [{begin}, {end})",
    bad={"row = 0": "row = 8"},
    good={"array<i64: 32, 64>": "array<i64: 64, 64>", "row = 0": "row = 32"},
)
def _(op: TmaStoreOp) -> Broken:
    begin, rows = integer(op, "row"), op.tile.type.rows
    end = begin + store_rows(op) * inner_bytes(_map(op)) // op.tile.type.span
    return None if begin >= 0 and end <= rows else {"rows": rows, "begin": begin, "end": end}


@verify(
    BulkWaitOp,
    "pending",
    "PTX ISA 9.7.9.25.4",
    "pending must be at least 0, got {got}: so many of the last groups may be under way",
    bad={"pending = 1": "pending = -1"},
    good={"pending = 1": "pending = 0"},
)
def _(op: BulkWaitOp) -> Broken:
    got = integer(op, "pending")
    return None if got >= 0 else {"got": got}


@verify(
    BulkWaitOp,
    "read-type",
    "tc",
    "read must be true or false, got {got}",
    bad={"read = true": "read = 1 : i64"},
    good={"read = true": "read = false"},
)
def _(op: BulkWaitOp) -> Broken:
    return None if isinstance(op.read, ir.BoolAttr) else {"got": op.read}
