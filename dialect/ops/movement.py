"""Data movement between shared memory, tensor memory and registers."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, integer, string
from tcir.dialect.limits import (
    CP_SHAPES,
    MMA_K_BYTES,
    QUARTER_LANES,
    SLICE_COLUMNS,
    TMEM_LANES,
    TMEM_LD_NUM,
)
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.types import SmemType, TmemType, element_bytes

CP_ROWS = CP_SHAPES["128x256b"][0]
"""Source rows of ``tc.cp``."""
NUM = TMEM_LD_NUM["32x32b"]
"""Columns one ``tc.tmem_ld`` may load."""


class CpOp(
    Op,
    name="cp",
    issued_by="thread",
    role="mma",
    reads_shared=("source",),
    completed_by="tc.commit",
):
    """``tcgen05.cp.128x256b``: copies one K slice of a shared tile into tensor memory.

    Copies 128 rows x 32 bytes, elements ``[slice * 32 bytes, ...)`` of K of ``source``, to the 8
    columns of slice ``slice`` of ``target``: row i goes to lane i (PTX ISA 9.7.16.9). One thread
    issues the op; it completes asynchronously.

    With ``cta_group = 2`` each CTA of the pair copies from its own ``source`` to its own
    ``target``.
    """

    example = """
    !source = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
    !target = !tc.tmem<array<i64: 128, 64>, f16>
    func.func @example(%source: !source, %target: !target) {
      "tc.cp"(%source, %target) {slice = 3 : i64} : (!source, !target) -> ()
      return
    }
    """
    form = "{source}[j={slice}] -> {target}[j={slice}]"

    source: ext.Operand[SmemType]
    target: ext.Operand[TmemType]
    slice: ir.IntegerAttr


class TmemLdOp(Op, name="tmem_ld", issued_by="warp", role="epilogue", completed_by="tc.tmem_wait"):
    """``tcgen05.ld.32x32b.xN``: loads N columns, from ``column`` on, of the 32 lanes of
    sub-partition ``quarter``.

    The result is ``vector<32xN>`` of the source's elements: row = lane in the sub-partition =
    thread of the warp (PTX ISA 9.7.16.8). The load is asynchronous: its registers are ready after
    ``tc.tmem_wait`` of kind ``"ld"``.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 64>, f32>
    func.func @example(%d: !d, %quarter: index, %column: index) {
      %v = "tc.tmem_ld"(%d, %quarter, %column) : (!d, index, index) -> vector<32x16xf32>
      return
    }
    """
    form = "{source}[quarter={quarter}, column={column}]"

    source: ext.Operand[TmemType]
    quarter: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]
    value: ext.Result[ir.VectorType]


class TmemStOp(Op, name="tmem_st", issued_by="warp", role="epilogue", completed_by="tc.tmem_wait"):
    """``tcgen05.st.32x32b.xN``: stores N columns, from ``column`` on, of the 32 lanes of
    sub-partition ``quarter``.

    ``value`` is ``vector<32xNxf32>``: row = lane in the sub-partition = thread of the warp (PTX ISA
    9.7.16.8). The store is asynchronous: it is complete after ``tc.tmem_wait`` of kind ``"st"``.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 64>, f32>
    func.func @example(%v: vector<32x16xf32>, %d: !d, %quarter: index, %column: index) {
      "tc.tmem_st"(%v, %d, %quarter, %column) : (vector<32x16xf32>, !d, index, index) -> ()
      return
    }
    """

    value: ext.Operand[ir.VectorType]
    target: ext.Operand[TmemType]
    quarter: ext.Operand[ir.IndexType]
    column: ext.Operand[ir.IndexType]


class TmemWaitOp(Op, name="tmem_wait", issued_by="warp", role="epilogue", async_only=True):
    """``tcgen05.wait::ld`` / ``::st``: waits for the executing warp's earlier loads or stores.

    ``kind`` is ``"ld"`` or ``"st"`` (PTX ISA 9.7.16.8).
    """

    example = """
    func.func @example() {
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
      return
    }
    """
    form = "{kind}"

    kind: ir.StringAttr


@verify(
    CpOp,
    "rows",
    "PTX ISA 9.7.16.9",
    "source must have at least {want} rows, got {got}: tcgen05.cp.128x256b copies row i to lane i "
    "of all 128 lanes",
    bad={"tc.smem<array<i64: 128, 64>": "tc.smem<array<i64: 64, 64>"},
)
def _(op: CpOp) -> Broken:
    got = op.source.type.shape[0]
    return None if got >= CP_ROWS else {"want": CP_ROWS, "got": got}


@verify(
    CpOp,
    "major",
    "PTX ISA 9.7.16.9",
    'source must be K-major, got "{got}": tcgen05.cp reads rows of 8 x 16-byte units and cannot '
    "transpose; load the tile K-major or use it from shared memory",
    bad={'"K"': '"MN"'},
)
def _(op: CpOp) -> Broken:
    got = op.source.type.major
    return None if got == "K" else {"got": got}


@verify(
    CpOp,
    "element",
    "PTX ISA 9.7.16.9",
    "source and target must have the same element type, got {source} and {target}: tcgen05.cp "
    "copies bits",
    bad={"tc.smem<array<i64: 128, 64>, f16": "tc.smem<array<i64: 128, 64>, bf16"},
    good={
        "tc.smem<array<i64: 128, 64>, f16": "tc.smem<array<i64: 128, 64>, bf16",
        "tc.tmem<array<i64: 128, 64>, f16": "tc.tmem<array<i64: 128, 64>, bf16",
    },
)
def _(op: CpOp) -> Broken:
    source, target = op.source.type.element, op.target.type.element
    return None if source == target else {"source": source, "target": target}


@verify(
    CpOp,
    "slice",
    "PTX ISA 9.7.16.9",
    "slice must be in [0, {slices}), got {got}: source has K = {k}, and one copy takes 32 bytes "
    "of it",
    bad={"slice = 3": "slice = 4"},
)
def _(op: CpOp) -> Broken:
    source, got = op.source.type, integer(op, "slice")
    slices = source.shape[1] * element_bytes(source.element) // MMA_K_BYTES
    return None if 0 <= got < slices else {"slices": slices, "got": got, "k": source.shape[1]}


@verify(
    CpOp,
    "target-columns",
    "PTX ISA 9.7.16.9",
    "target must have columns [{begin}, {end}) for this slice, got {got} columns",
    bad={"tc.tmem<array<i64: 128, 64>": "tc.tmem<array<i64: 128, 32>", "slice = 3": "slice = 2"},
    good={"tc.tmem<array<i64: 128, 64>": "tc.tmem<array<i64: 128, 32>", "slice = 3": "slice = 1"},
)
def _(op: CpOp) -> Broken:
    begin, got = SLICE_COLUMNS * integer(op, "slice"), op.target.type.columns
    end = begin + SLICE_COLUMNS
    return None if end <= got else {"begin": begin, "end": end, "got": got}


@verify(
    TmemLdOp,
    "element",
    "PTX ISA 9.7.16.8",
    "source must be f32 or i32, got {got}: the op loads accumulators, one 32-bit column each",
    bad={"f32": "f16"},
)
def _(op: TmemLdOp) -> Broken:
    got = str(op.source.type.element)
    return None if got in ("f32", "i32") else {"got": got}


@verify(
    TmemLdOp,
    "shape",
    "PTX ISA 9.7.16.8, table 49",
    "the result must be vector<32xNx{element}> with N {legal}, got {got}: .32x32b loads 32 lanes "
    "and a power of two of columns",
    bad={"32x16xf32": "32x24xf32"},
    good={"array<i64: 128, 64>": "array<i64: 128, 128>", "32x16xf32": "32x128xf32"},
)
def _(op: TmemLdOp) -> Broken:
    got = op.value.type
    shape = list(got.shape)
    fits = len(shape) == 2 and shape[0] == QUARTER_LANES and shape[1] in NUM
    element = op.source.type.element
    if fits and got.element_type == element and not any(got.scalable_dims):
        return None
    return {"element": element, "legal": NUM, "got": got}


@verify(
    TmemLdOp,
    "quarter",
    "PTX ISA 9.7.16.8",
    "quarter must be in [0, 4), got {got}: a warp reaches lanes 32 * (warp mod 4) to + 31",
    bad={
        "!d, %quarter: index, %column: index) {": (
            "!d) { %quarter = arith.constant 4 : index %column = arith.constant 0 : index"
        )
    },
    good={
        "!d, %quarter: index, %column: index) {": (
            "!d) { %quarter = arith.constant 3 : index %column = arith.constant 0 : index"
        )
    },
)
def _(op: TmemLdOp | TmemStOp) -> Broken:
    got = constant_of(op.quarter)
    return None if got is None or 0 <= got < TMEM_LANES // QUARTER_LANES else {"got": got}


same_rules(
    TmemStOp,
    TmemLdOp,
    {
        "quarter": {
            '"tc.tmem_st"(%v, %d, %quarter': (
                '%four = arith.constant 4 : index "tc.tmem_st"(%v, %d, %four'
            )
        }
    },
)


@verify(
    TmemLdOp,
    "columns",
    "PTX ISA 9.7.16.8",
    "the columns must lie within the tile's [0, {columns}), got [{begin}, {end})",
    bad={
        "!d, %quarter: index, %column: index) {": (
            "!d) { %quarter = arith.constant 0 : index %column = arith.constant 49 : index"
        )
    },
    good={
        "!d, %quarter: index, %column: index) {": (
            "!d) { %quarter = arith.constant 0 : index %column = arith.constant 48 : index"
        )
    },
)
def _(op: TmemLdOp | TmemStOp) -> Broken:
    tile = op.source if isinstance(op, TmemLdOp) else op.target
    columns, begin, n = tile.type.columns, constant_of(op.column), op.value.type.shape[1]
    if begin is None:
        begin = 0  # unknown until it runs, but even column 0 has to fit
    if begin >= 0 and begin + n <= columns:
        return None
    return {"columns": columns, "begin": begin, "end": begin + n}


same_rules(
    TmemStOp,
    TmemLdOp,
    {"columns": {"index, %column: index) {": "index) { %column = arith.constant 56 : index"}},
    {"columns": {"index, %column: index) {": "index) { %column = arith.constant 48 : index"}},
)


@verify(
    TmemStOp,
    "value",
    "PTX ISA 9.7.16.8, table 49",
    "value must be vector<32xNx{element}> like the target, with N {legal}, got {got}: .32x32b "
    "stores 32 lanes and a power of two of columns",
    bad={"32x16xf32": "32x12xf32"},
)
def _(op: TmemStOp) -> Broken:
    got, element = op.value.type, str(op.target.type.element)
    shape = list(got.shape)
    fits = len(shape) == 2 and shape[0] == QUARTER_LANES and shape[1] in NUM
    if fits and str(got.element_type) == element and element_bytes(op.target.type.element) == 4:
        return None
    return {"element": element, "legal": NUM, "got": got}


@verify(
    TmemWaitOp,
    "kind",
    "PTX ISA 9.7.16.8",
    'kind must be "ld" or "st", got "{got}"; completion of mma and cp is waited for with '
    "tc.commit and tc.mbarrier_wait",
    bad={'kind = "ld"': 'kind = "mma"'},
    good={'kind = "ld"': 'kind = "st"'},
)
def _(op: TmemWaitOp) -> Broken:
    got = string(op, "kind")
    return None if got in ("ld", "st") else {"got": got}
