"""Loads of register tiles from shared memory."""

from tcir._mlir import ext, ir
from tcir.dialect.operation import Op
from tcir.dialect.ops.store_shared import StoreSharedOp
from tcir.dialect.rules import same_rules
from tcir.dialect.types import SmemType


class LoadSharedOp(
    Op, name="load_shared", issued_by="warp", role="epilogue", reads_shared=("tile",)
):
    """Loads a register tile from rows of a shared tile, which TMA has filled (``tc.tma_load``).

    ``value`` is ``vector<32 x C x T>``. Row i comes from row ``row + i`` of the K-major tile
    ``[rows, columns]``, from column ``column`` on. ``column`` is a multiple of C or of the number
    of elements in a swizzle span. Each thread loads its row, 16 bytes at a time, through the
    generic proxy (PTX ISA 9.7.9.8): ``tc.fence "proxy.async"`` and an arrival of every thread must
    precede the next fill.
    """

    example = """
    !tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    func.func @example(%tile: !tile, %row: index, %column: index) {
      %v = "tc.load_shared"(%tile, %row, %column) : (!tile, index, index) -> vector<32x16xf16>
      return
    }
    """
    form = "{tile}[{row}, {column}]"

    tile: ext.Operand[SmemType]
    row: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]
    value: ext.Result[ir.VectorType]


same_rules(
    LoadSharedOp,
    StoreSharedOp,
    {
        "value": {"32x16xf16": "32x16xf32"},
        "width": {"32x16xf16": "32x24xf16"},
        "major": {'"K"': '"MN"'},
        "rows": {
            '%v = "tc.load_shared"(%tile, %row': (
                '%high = arith.constant 104 : index %v = "tc.load_shared"(%tile, %high'
            )
        },
        "columns": {"index, %column: index) {": "index) { %column = arith.constant 8 : index"},
    },
    {
        "width": {"32x16xf16": "32x8xf16"},
        "columns": {"index, %column: index) {": "index) { %column = arith.constant 48 : index"},
    },
)
