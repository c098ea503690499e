"""Stores of register tiles."""

from collections.abc import Sequence

from tcir._mlir import ext, ir
from tcir.dialect.attributes import integer, is_integer, optional_integer
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.operation import Op
from tcir.dialect.ops.lanes import is_lane_vector
from tcir.dialect.rules import Broken, same_rules, verify


class StoreRowsOp(Op, name="store_rows", issued_by="warp", role="epilogue", stores="tensor"):
    """Stores rows of a register tile to global memory, clipped to the tensor.

    ``value`` is ``vector<32 x C x T>``. The tile's first element goes to ``indices`` of ``tensor``
    (one index per dimension, unsigned). The first ``rows`` rows of the tile follow dimension
    ``row_dim`` of ``tensor``, and its columns follow ``column_dim`` (left out: the last dimension);
    elements outside the tensor in any dimension are not written. Each thread stores its row, with
    vector stores where its columns are contiguous (PTX ISA 9.7.9.11).
    """

    example = """
    !out = memref<1x56x56x64xf32>
    func.func @example(%v: vector<32x16xf32>, %out: !out, %n: index, %p: index, %q: index,
                       %k: index) {
      "tc.store_rows"(%v, %out, %n, %p, %q, %k) {rows = 30 : i64, row_dim = 2 : i64,
          operandSegmentSizes = array<i32: 1, 1, 4>}
          : (vector<32x16xf32>, !out, index, index, index, index) -> ()
      return
    }
    """
    form = "{value} -> {tensor}[{indices}]"

    value: ext.Operand[ir.VectorType]
    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    rows: ir.IntegerAttr
    row_dim: ir.IntegerAttr


class StoreLanesOp(Op, name="store_lanes", issued_by="warp", role="epilogue", stores="tensor"):
    """Stores rows of a register tile to global memory, each row at the indices of its lane.

    ``value`` is ``vector<32 x C x T>``. ``places`` has a ``vector<32xindex>`` (unsigned) for each
    dimension of the tensor except the last. Row i goes to the indices in element i of these
    vectors; its columns follow the last dimension from ``column`` on. Elements outside the tensor
    in any dimension are not written. Each thread stores its row with vector stores (PTX ISA
    9.7.9.11).
    """

    example = """
    !out = memref<1x56x56x64xf32>
    !lanes = vector<32xindex>
    func.func @example(%v: vector<32x16xf32>, %out: !out, %n: !lanes, %p: !lanes, %q: !lanes,
                       %k: index) {
      "tc.store_lanes"(%v, %out, %n, %p, %q, %k) {operandSegmentSizes = array<i32: 1, 1, 3, 1>}
          : (vector<32x16xf32>, !out, !lanes, !lanes, !lanes, index) -> ()
      return
    }
    """

    value: ext.Operand[ir.VectorType]
    tensor: ext.Operand[ir.MemRefType]
    places: Sequence[ext.Operand[ir.VectorType]]
    column: ext.Operand[ir.IndexType]


@verify(
    StoreRowsOp,
    "value",
    "PTX ISA 9.7.16.8",
    "value must be vector<32 x columns x element> (one row per thread of a warp), got {got}",
    bad={"32x16xf32": "16x16xf32"},
)
def _(op: StoreRowsOp | StoreLanesOp) -> Broken:
    got = op.value.type
    shape = list(got.shape)
    return None if len(shape) == 2 and shape[0] == QUARTER_LANES else {"got": got}


same_rules(StoreLanesOp, StoreRowsOp, {"value": {"32x16xf32": "16x16xf32"}})


@verify(
    StoreRowsOp,
    "tensor",
    "tc",
    "tensor must be a static, contiguous memref of rank >= 2, got {got}: rows are clipped against "
    "its extents",
    bad={"1x56x56x64xf32": "?x56x56x64xf32"},
)
def _(op: StoreRowsOp | StoreLanesOp) -> Broken:
    type_ = op.tensor.type
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank, op.context))
    if type_.has_static_shape and type_.rank >= 2 and type_.layout == identity:
        return None
    return {"got": type_}


same_rules(
    StoreLanesOp,
    StoreRowsOp,
    {"tensor": {"1x56x56x64xf32": "1x56x56x64xf32, strided<[401408, 7168, 128, 1]>"}},
)


@verify(
    StoreRowsOp,
    "element",
    "tc",
    "value and tensor must have the same element type, got {value} and {tensor}; convert with "
    "arith.truncf first",
    bad={"1x56x56x64xf32": "1x56x56x64xf16"},
)
def _(op: StoreRowsOp | StoreLanesOp) -> Broken:
    value, tensor = op.value.type.element_type, op.tensor.type.element_type
    return None if value == tensor else {"value": value, "tensor": tensor}


same_rules(StoreLanesOp, StoreRowsOp, {"element": {"32x16xf32": "32x16xf16"}})


@verify(
    StoreRowsOp,
    "indices",
    "tc",
    "expected one index per dimension of the tensor ({want}), got {got}",
    bad={
        "%n, %p, %q, %k": "%n, %p, %q",
        "1, 1, 4": "1, 1, 3",
        "index, index, index, index": "index, index, index",
    },
)
def _(op: StoreRowsOp) -> Broken:
    want, got = op.tensor.type.rank, len(op.indices)
    return None if want == got else {"want": want, "got": got}


@verify(
    StoreRowsOp,
    "rows",
    "tc",
    "rows must be in [1, 32], got {got}: a warp holds 32 rows",
    bad={"rows = 30": "rows = 33"},
    good={"rows = 30": "rows = 32"},
)
def _(op: StoreRowsOp) -> Broken:
    got = integer(op, "rows")
    return None if 1 <= got <= QUARTER_LANES else {"got": got}


@verify(
    StoreRowsOp,
    "column-dim",
    "tc",
    "column_dim must be a dimension of the tensor in [0, {rank}), or left out for the last, got "
    "{got}",
    bad={"row_dim = 2 : i64": "row_dim = 2 : i64, column_dim = 4 : i64"},
    good={"row_dim = 2": "row_dim = 1 : i64, column_dim = 0"},
)
def _(op: StoreRowsOp) -> Broken:
    rank = op.tensor.type.rank
    if is_integer(op, "column_dim") and 0 <= column_dim(op) < rank:
        return None
    return {"rank": rank, "got": op.attributes["column_dim"]}


@verify(
    StoreRowsOp,
    "row-dim",
    "tc",
    "row_dim must be a dimension of the tensor in [0, {rank}) other than {columns}, which takes "
    "the columns, got {got}",
    bad={"row_dim = 2": "row_dim = 3"},
)
def _(op: StoreRowsOp) -> Broken:
    rank, got, columns = op.tensor.type.rank, integer(op, "row_dim"), column_dim(op)
    if 0 <= got < rank and got != columns:
        return None
    return {"rank": rank, "columns": columns, "got": got}


def column_dim(op: StoreRowsOp) -> int:
    """The dimension of the tensor that the columns of the register tile follow."""
    found = optional_integer(op, "column_dim")
    return int(op.tensor.type.rank) - 1 if found is None else found


@verify(
    StoreLanesOp,
    "places",
    "tc",
    "expected one vector<32xindex> per dimension of the tensor but the last ({want}), got {got}",
    bad={
        "%n, %p, %q, %k": "%n, %p, %k",
        "3, 1>": "2, 1>",
        "!lanes, !lanes, !lanes, index": "!lanes, !lanes, index",
    },
)
def _(op: StoreLanesOp) -> Broken:
    want, got = op.tensor.type.rank - 1, [place.type for place in op.places]
    if len(got) == want and all(is_lane_vector(t, "index") for t in got):
        return None
    return {"want": want, "got": ", ".join(map(str, got)) or "none"}
