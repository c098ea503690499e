"""Ops on the 32 lanes of a warp: a value per lane, and stores that go where each lane says."""

from collections.abc import Sequence

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, integer, is_integer, optional_integer
from tcir.dialect.limits import LANE_MASK_BYTES, QUARTER_LANES, SMEM_BYTES, TMEM_LANES
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, rule
from tcir.dialect.types import LaneMasksType, TmemType


def lane_vector(element: ir.Type) -> ir.VectorType:
    """``vector<32 x element>``: one value in each lane of a warp."""
    return ir.VectorType.get([QUARTER_LANES], element)


def is_lane_vector(type_: ir.Type, element: str) -> bool:
    """Whether ``type_`` is ``vector<32 x element>``."""
    return str(type_) == f"vector<{QUARTER_LANES}x{element}>"


class LaneIndexOp(Op, name="lane_index"):
    """The number of each lane of the executing warp, 0 to 31 (``%laneid``, PTX ISA 10.3).

    ``vector<32xindex>`` is an index a lane: elementwise ``arith`` on it computes in every lane.
    """

    lanes: ext.Result[ir.VectorType] = ext.result(
        default_factory=lambda: lane_vector(ir.IndexType.get())
    )


class StoreLanesOp(Op, name="store_lanes"):
    """Store rows of a register tile to global memory, each where its lane says.

    ``value`` is ``vector<32 x C x T>``. Row i goes to the place that element i of ``places`` (one
    ``vector<32xindex>`` per dimension but the last, unsigned) names, columns along the last
    dimension from ``column``; whatever falls outside the tensor in any dimension is not written.
    Each thread stores its row with vector stores (PTX ISA 9.7.9.11).
    """

    value: ext.Operand[ir.VectorType]
    tensor: ext.Operand[ir.MemRefType]
    places: Sequence[ext.Operand[ir.VectorType]]
    column: ext.Operand[ir.IndexType]


class LaneMasksOp(Op, name="lane_masks"):
    """A table of ``count`` lane masks in shared memory; see ``!tc.lane_mask_table``.

    Attribute ``offset`` (bytes, a multiple of 16) once memory is planned. An entry is an mma's
    ``disable-output-lane`` (PTX ISA 9.7.16.10.9).
    """

    count: ir.IntegerAttr
    masks: ext.Result[LaneMasksType] = ext.result(default_factory=LaneMasksType.get)


class WriteLaneMaskOp(Op, name="write_lane_mask"):
    """Word ``quarter`` of entry ``entry``: an mma is to write the lanes that ``on`` says.

    ``on`` is ``vector<32xi1>``. A ballot of the executing warp (``vote.sync.ballot``,
    PTX ISA 9.7.13.13), complemented, which one thread stores.
    """

    masks: ext.Operand[LaneMasksType]
    entry: ext.Operand[ir.IndexType]
    quarter: ext.Operand[ir.IndexType]
    on: ext.Operand[ir.VectorType]


class EnableLanesOp(Op, name="enable_lanes"):
    """``d`` as ``tc.mma`` may write it: without the lanes that entry ``entry`` disables.

    The entry is read here. An mma on the result leaves the other lanes as they are
    (``disable-output-lane``, PTX ISA 9.7.16.10.9); nothing else may use it.
    """

    d: ext.Operand[TmemType]
    masks: ext.Operand[LaneMasksType]
    entry: ext.Operand[ir.IndexType]
    tile: ext.Result[TmemType]


@rule(
    "tc.lane_masks",
    "count",
    "tc",
    "count must be at least 1, got {got}: a table without an entry masks nothing",
)
def _(op: LaneMasksOp) -> Broken:
    got = integer(op, "count")
    return None if got >= 1 else {"got": got}


@rule(
    "tc.lane_masks",
    "offset",
    "PTX ISA 9.7.9.8",
    "offset must be an integer multiple of {bytes} with the table in [0, {most}) of shared memory, "
    "got {got}: an entry is read with one load of {bytes} bytes",
)
def _(op: LaneMasksOp) -> Broken:
    offset, size = optional_integer(op, "offset") or 0, LANE_MASK_BYTES * integer(op, "count")
    if is_integer(op, "offset") and offset in range(0, SMEM_BYTES - size + 1, LANE_MASK_BYTES):
        return None
    got = op.attributes.get("offset", f"{size} bytes")
    return {"bytes": LANE_MASK_BYTES, "most": SMEM_BYTES, "got": got}


@rule(
    "tc.write_lane_mask",
    "on",
    "PTX ISA 9.7.13.13",
    "on must be vector<32xi1>, one bit for each lane of the warp, got {got}",
)
def _(op: WriteLaneMaskOp) -> Broken:
    got = op.on.type
    return None if is_lane_vector(got, "i1") else {"got": got}


@rule(
    "tc.write_lane_mask",
    "quarter",
    "PTX ISA 9.7.16.10.9",
    "quarter must be in [0, 4), got {got}: a mask is four words of 32 lanes",
)
def _(op: WriteLaneMaskOp) -> Broken:
    got = constant_of(op.quarter)
    return None if got is None or 0 <= got < TMEM_LANES // QUARTER_LANES else {"got": got}


@rule(
    "tc.enable_lanes",
    "type",
    "tc",
    "the result must be of d's type {want}, got {got}: it is the same tile",
)
def _(op: EnableLanesOp) -> Broken:
    want, got = op.d.type, op.tile.type
    return None if want == got else {"want": want, "got": got}


@rule(
    "tc.enable_lanes",
    "uses",
    "PTX ISA 9.7.16.10.9",
    "the result must be used as D of tc.mma only, got a use by {got}: only the mma has a mask",
)
def _(op: EnableLanesOp) -> Broken:
    for use in op.tile.uses:
        if use.owner.name != "tc.mma" or use.operand_number != 0:
            return {"got": use.owner.name}
    return None


@rule(
    "tc.lane_index",
    "result",
    "PTX ISA 10.3",
    "the result must be vector<32xindex>, got {got}: a warp has 32 lanes",
)
def _(op: LaneIndexOp) -> Broken:
    got = op.lanes.type
    return None if is_lane_vector(got, "index") else {"got": got}


@rule(
    "tc.store_lanes",
    "value",
    "PTX ISA 9.7.16.8",
    "value must be vector<32 x columns x element> (one row per thread of a warp), got {got}",
)
def _(op: StoreLanesOp) -> Broken:
    got = op.value.type
    shape = list(got.shape)
    return None if len(shape) == 2 and shape[0] == QUARTER_LANES else {"got": got}


@rule(
    "tc.store_lanes",
    "tensor",
    "tc",
    "tensor must be a static, contiguous memref of rank >= 2, got {got}: rows are clipped against "
    "its extents",
)
def _(op: StoreLanesOp) -> Broken:
    type_ = op.tensor.type
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank, op.context))
    if type_.has_static_shape and type_.rank >= 2 and type_.layout == identity:
        return None
    return {"got": type_}


@rule(
    "tc.store_lanes",
    "element",
    "tc",
    "value and tensor must have the same element type, got {value} and {tensor}; convert with "
    "arith.truncf first",
)
def _(op: StoreLanesOp) -> Broken:
    value, tensor = op.value.type.element_type, op.tensor.type.element_type
    return None if value == tensor else {"value": value, "tensor": tensor}


@rule(
    "tc.store_lanes",
    "places",
    "tc",
    "expected one vector<32xindex> per dimension of the tensor but the last ({want}), got {got}",
)
def _(op: StoreLanesOp) -> Broken:
    want, got = op.tensor.type.rank - 1, [place.type for place in op.places]
    if len(got) == want and all(is_lane_vector(t, "index") for t in got):
        return None
    return {"want": want, "got": ", ".join(map(str, got)) or "none"}
