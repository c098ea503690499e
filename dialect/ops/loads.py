"""Loads of register tiles."""

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ext, ir
from tcir.dialect.attributes import is_integer, optional_integer
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.operation import Op
from tcir.dialect.ops.lanes import is_lane_vector
from tcir.dialect.rules import Broken, verify


class LoadRowsOp(Op, name="load_rows", issued_by="warp", role="epilogue", loads="tensor"):
    """Loads a register tile from global memory; elements outside the tensor are zeros.

    ``value`` is ``vector<32 x C x T>``. Its first element is at ``indices`` of ``tensor`` (one
    index per dimension, unsigned); its rows follow dimension ``row_dim`` of ``tensor``, and its
    columns follow ``column_dim``. Without ``row_dim`` (``column_dim``) all rows (columns) are the
    same: a vector or a number is broadcast. Where each row has its own indices, as in
    ``tc.store_lanes``, there is no ``row_dim``, and every index is a ``vector<32xindex>`` whose
    element i is for row i. Each thread loads its row, with vector loads where its columns are
    contiguous (PTX ISA 9.7.9.8).
    """

    example = """
    func.func @example(%bias: memref<192xf32>, %c: memref<256x192xf16>, %m: index, %n: index) {
      %b = "tc.load_rows"(%bias, %n) {column_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1>}
          : (memref<192xf32>, index) -> vector<32x16xf32>
      %r = "tc.load_rows"(%c, %m, %n) {row_dim = 0 : i64, column_dim = 1 : i64,
          operandSegmentSizes = array<i32: 1, 2>}
          : (memref<256x192xf16>, index, index) -> vector<32x16xf16>
      %rows = "tc.lane_index"() : () -> vector<32xindex>
      %columns = vector.broadcast %n : index to vector<32xindex>
      %l = "tc.load_rows"(%c, %rows, %columns) {column_dim = 1 : i64,
          operandSegmentSizes = array<i32: 1, 2>}
          : (memref<256x192xf16>, vector<32xindex>, vector<32xindex>) -> vector<32x16xf16>
      return
    }
    """
    form = "{tensor}[{indices}]"

    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[Any]]  # all index, or all vector<32xindex>
    value: ext.Result[ir.VectorType]


@verify(
    LoadRowsOp,
    "value",
    "PTX ISA 9.7.16.8",
    "value must be vector<32 x columns x element> of the tensor's element (one row per thread of a "
    "warp), got {got} of {tensor}",
    bad={"index, index) -> vector<32x16xf16>": "index, index) -> vector<32x16xf32>"},
)
def _(op: LoadRowsOp) -> Broken:
    got, tensor = op.value.type, op.tensor.type
    shape = list(got.shape)
    legal = len(shape) == 2 and shape[0] == QUARTER_LANES
    return (
        None
        if legal and got.element_type == tensor.element_type
        else {
            "got": got,
            "tensor": tensor,
        }
    )


@verify(
    LoadRowsOp,
    "tensor",
    "tc",
    "tensor must be a static, contiguous memref, got {got}: rows are clipped against its extents",
    bad={"memref<192xf32>": "memref<192xf32, strided<[2]>>"},
)
def _(op: LoadRowsOp) -> Broken:
    type_ = op.tensor.type
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank, op.context))
    return None if type_.has_static_shape and type_.layout == identity else {"got": type_}


@verify(
    LoadRowsOp,
    "indices",
    "tc",
    "expected one index per dimension of the tensor ({want}), got {got}",
    bad={"memref<192xf32>": "memref<4x192xf32>"},
)
def _(op: LoadRowsOp) -> Broken:
    want, got = op.tensor.type.rank, len(op.indices)
    return None if want == got else {"want": want, "got": got}


@verify(
    LoadRowsOp,
    "dims",
    "tc",
    "row_dim and column_dim must be two dimensions of the tensor in [0, {rank}), or left out, got "
    "{got}",
    bad={"row_dim = 0": "row_dim = 1"},
    good={"row_dim = 0": "row_dim = 1", "i64, column_dim = 1": "i64, column_dim = 0"},
)
def _(op: LoadRowsOp) -> Broken:
    rank, names = op.tensor.type.rank, ("row_dim", "column_dim")
    if all(is_integer(op, name) for name in names):
        given = [d for name in names if (d := optional_integer(op, name)) is not None]
        if all(0 <= d < rank for d in given) and len(set(given)) == len(given):
            return None
    got = ", ".join(f"{name} = {op.attributes.get(name, 'none')}" for name in names)
    return {"rank": rank, "got": got}


@verify(
    LoadRowsOp,
    "lanes",
    "tc",
    "indices must be of index, or of vector<32xindex> without row_dim, got {got} with row_dim = "
    "{row_dim}: rows follow each other along row_dim, or each has a place of its own",
    bad={"{column_dim = 1": "{row_dim = 0"},
)
def _(op: LoadRowsOp) -> Broken:
    got, row_dim = [index.type for index in op.indices], optional_integer(op, "row_dim")
    if all(isinstance(type_, ir.IndexType) for type_ in got):
        return None
    if row_dim is None and all(is_lane_vector(type_, "index") for type_ in got):
        return None
    return {"got": ", ".join(map(str, got)), "row_dim": op.attributes.get("row_dim", "none")}


class LoadIndexOp(Op, name="load_index", loads="tensor", pure=True, counted=True):
    """Loads an element of a tensor of i32, sign-extended to an index.

    All threads load it from the same address (PTX ISA 9.7.9.8).
    """

    example = """
    func.func @example(%lengths: memref<8xi32>, %batch: index) {
      %keys = "tc.load_index"(%lengths, %batch) : (memref<8xi32>, index) -> index
      return
    }
    """
    form = "{tensor}[{indices}]"

    tensor: ext.Operand[ir.MemRefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    value: ext.Result[ir.IndexType] = ext.result(default_factory=ir.IndexType.get)


@verify(
    LoadIndexOp,
    "tensor",
    "tc",
    "expected a static, contiguous memref of i32 and an index for each dimension, got {got} and "
    "{count} indices",
    bad=(
        {"memref<8xi32>": "memref<8xi64>"},
        {
            "(memref<8xi32>, index)": "(memref<8x8xi32>, index)",
            "%lengths: memref<8xi32>": "%lengths: memref<8x8xi32>",
        },
    ),
)
def _(op: LoadIndexOp) -> Broken:
    type_, count = op.tensor.type, len(op.indices)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank, op.context))
    plain = type_.has_static_shape and type_.layout == identity and type_.rank == count
    return None if plain and str(type_.element_type) == "i32" else {"got": type_, "count": count}
