"""Ops on the 32 lanes of a warp: a value per lane, and stores that go where each lane says."""

from collections.abc import Sequence

from tcir._mlir import ext, ir

from .limits import QUARTER_LANES
from .operation import Op
from .rules import Broken, rule


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
