"""Lanes of a warp.

Ops on the 32 lanes of a warp: a value per lane, and stores with an address per lane.
"""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, integer, is_integer, optional_integer
from tcir.dialect.limits import LANE_MASK_BYTES, QUARTER_LANES, SMEM_BYTES, TMEM_LANES
from tcir.dialect.operation import Op
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.rules import Broken, verify
from tcir.dialect.types import LaneMasksType, TmemType


def lane_vector(element: ir.Type) -> ir.VectorType:
    """``vector<32 x element>``: one value in each lane of a warp."""
    return ir.VectorType.get([QUARTER_LANES], element)


def is_lane_vector(type_: ir.Type, element: str) -> bool:
    """Whether ``type_`` is ``vector<32 x element>``."""
    return str(type_) == f"vector<{QUARTER_LANES}x{element}>"


class LaneIndexOp(Op, name="lane_index", pure=True):
    """The number of each lane of the executing warp, 0 to 31 (``%laneid``, PTX ISA 10.3).

    ``vector<32xindex>`` is an index per lane: elementwise ``arith`` on it computes in every lane.
    """

    example = """
    func.func @example() {
      %lane = "tc.lane_index"() : () -> vector<32xindex>
      return
    }
    """

    lanes: ext.Result[ir.VectorType] = ext.result(
        default_factory=lambda: lane_vector(ir.IndexType.get())
    )


class LaneMasksOp(Op, name="lane_masks", in_shared=LANE_MASK_BYTES):
    """A table of ``count`` lane masks in shared memory; see ``!tc.lane_mask_table``.

    Once memory is planned, the attribute ``offset`` is its address (bytes, a multiple of 16). An
    entry is an mma's ``disable-output-lane`` (PTX ISA 9.7.16.10.9).
    """

    example = """
    func.func @example() {
      %masks = "tc.lane_masks"() {count = 9 : i64, offset = 81920 : i64} : () -> !tc.lane_mask_table
      return
    }
    """

    count: ir.IntegerAttr
    masks: ext.Result[LaneMasksType] = ext.result(default_factory=LaneMasksType.get)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return LANE_MASK_BYTES * integer(self, "count")


class WriteLaneMaskOp(Op, name="write_lane_mask", issued_by="warp", role="epilogue"):
    """Writes word ``quarter`` of entry ``entry``: an mma will write the lanes where ``on`` is true.

    ``on`` is ``vector<32xi1>``. The word is the complement of a ballot of the executing warp
    (``vote.sync.ballot``, PTX ISA 9.7.13.13), and one thread stores it.
    """

    example = """
    func.func @example(%masks: !tc.lane_mask_table, %tap: index, %quarter: index,
                       %on: vector<32xi1>) {
      "tc.write_lane_mask"(%masks, %tap, %quarter, %on)
          : (!tc.lane_mask_table, index, index, vector<32xi1>) -> ()
      return
    }
    """

    masks: ext.Operand[LaneMasksType]
    entry: ext.Operand[ir.IndexType]
    quarter: ext.Operand[ir.IndexType]
    on: ext.Operand[ir.VectorType]


class EnableLanesOp(Op, name="enable_lanes", role="mma"):
    """``d`` without the lanes disabled by entry ``entry``, as the D operand of ``tc.mma``.

    The entry is read when this op is executed, not when the mma is. An mma on the result leaves the
    disabled lanes unchanged (``disable-output-lane``, PTX ISA 9.7.16.10.9); no other op may use the
    result.
    """

    example = """
    !d = !tc.tmem<array<i64: 128, 64>, f32>
    !a = !tc.tmem<array<i64: 128, 64>, f16>
    !b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
    func.func @example(%d: !d, %masks: !tc.lane_mask_table, %tap: index, %a: !a, %b: !b, %t: i1) {
      %on = "tc.enable_lanes"(%d, %masks, %tap) : (!d, !tc.lane_mask_table, index) -> !d
      "tc.mma"(%on, %a, %b, %t) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
          : (!d, !a, !b, i1) -> ()
      return
    }
    """

    d: ext.Operand[TmemType]
    masks: ext.Operand[LaneMasksType]
    entry: ext.Operand[ir.IndexType]
    tile: ext.Result[TmemType]


@verify(
    LaneMasksOp,
    "count",
    "tc",
    "count must be at least 1, got {got}: a table without an entry masks nothing",
    bad={"count = 9": "count = 0"},
)
def _(op: LaneMasksOp) -> Broken:
    got = integer(op, "count")
    return None if got >= 1 else {"got": got}


@verify(
    LaneMasksOp,
    "offset",
    "PTX ISA 9.7.9.8",
    "offset must be an integer multiple of {bytes} with the table in [0, {most}) of shared memory, "
    "got {got}: an entry is read with one load of {bytes} bytes",
    bad={"offset = 81920": "offset = 1032"},
    good={"offset = 81920": "offset = 1040"},
)
def _(op: LaneMasksOp) -> Broken:
    offset, size = optional_integer(op, "offset") or 0, op.nbytes
    if is_integer(op, "offset") and offset in range(0, SMEM_BYTES - size + 1, LANE_MASK_BYTES):
        return None
    got = op.attributes.get("offset", f"{size} bytes")
    return {"bytes": LANE_MASK_BYTES, "most": SMEM_BYTES, "got": got}


@verify(
    WriteLaneMaskOp,
    "on",
    "PTX ISA 9.7.13.13",
    "on must be vector<32xi1>, one bit for each lane of the warp, got {got}",
    bad={"32xi1": "16xi1"},
)
def _(op: WriteLaneMaskOp) -> Broken:
    got = op.on.type
    return None if is_lane_vector(got, "i1") else {"got": got}


@verify(
    WriteLaneMaskOp,
    "quarter",
    "PTX ISA 9.7.16.10.9",
    "quarter must be in [0, 4), got {got}: a mask is four words of 32 lanes",
    bad={
        '"tc.write_lane_mask"(%masks, %tap, %quarter': (
            '%four = arith.constant 4 : index "tc.write_lane_mask"(%masks, %tap, %four'
        )
    },
)
def _(op: WriteLaneMaskOp) -> Broken:
    got = constant_of(op.quarter)
    return None if got is None or 0 <= got < TMEM_LANES // QUARTER_LANES else {"got": got}


@verify(
    EnableLanesOp,
    "type",
    "tc",
    "the result must be of d's type {want}, got {got}: it is the same tile",
    bad={"index) -> !d": "index) -> !a", '"tc.mma"(%on,': '"tc.mma"(%d,'},
)
def _(op: EnableLanesOp) -> Broken:
    want, got = op.d.type, op.tile.type
    return None if want == got else {"want": want, "got": got}


@verify(
    EnableLanesOp,
    "uses",
    "PTX ISA 9.7.16.10.9",
    "the result must be used as D of tc.mma only, got a use by {got}: only the mma has a mask",
    bad={
        (
            '"tc.mma"(%on, %a, %b, %t) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true} '
            ": (!d, !a, !b, i1) -> ()"
        ): ('%v = "tc.tmem_ld"(%on, %tap, %tap) : (!d, index, index) -> vector<32x16xf32>')
    },
)
def _(op: EnableLanesOp) -> Broken:
    for use in op.tile.uses:
        if not isinstance(use.owner.opview, MmaOp) or use.operand_number != 0:
            return {"got": use.owner.name}
    return None


@verify(
    LaneIndexOp,
    "result",
    "PTX ISA 10.3",
    "the result must be vector<32xindex>, got {got}: a warp has 32 lanes",
    bad={"32xindex": "16xindex"},
)
def _(op: LaneIndexOp) -> Broken:
    got = op.lanes.type
    return None if is_lane_vector(got, "index") else {"got": got}
