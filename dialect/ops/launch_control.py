"""Cluster launch control: a running CTA takes the place of a CTA that has not been launched."""

from tcir._mlir import ext, ir
from tcir.dialect.attributes import constant_of, defining, integer
from tcir.dialect.limits import LAUNCH_RESPONSE_BYTES
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, same_rules, verify
from tcir.dialect.types import LaunchResponsesType, MbarrierType


class LaunchResponsesOp(
    Op, name="launch_responses", async_only=True, in_shared=LAUNCH_RESPONSE_BYTES
):
    """``count`` responses of cluster launch control in shared memory, 16 bytes each.

    Once memory is planned, the attribute ``offset`` is their address (bytes, a multiple of 16;
    PTX ISA 9.7.13.17).
    """

    example = """
    func.func @example() {
      %r = "tc.launch_responses"() {count = 2 : i64, offset = 81920 : i64}
          : () -> !tc.launch_response_table
      return
    }
    """

    count: ir.IntegerAttr
    responses: ext.Result[LaunchResponsesType] = ext.result(default_factory=LaunchResponsesType.get)

    @property
    def nbytes(self) -> int:
        """Bytes of all responses."""
        return LAUNCH_RESPONSE_BYTES * integer(self, "count")


class LaunchRequestOp(
    Op,
    name="launch_request",
    issued_by="thread",
    role="producer",
    async_only=True,
    completed_by="tc.mbarrier_wait",
):
    """``clusterlaunchcontrol.try_cancel``: requests a CTA of the grid that has not been launched.

    Response ``slot`` is written through the async proxy, and its 16 bytes are counted on ``signal``
    (``tc.mbarrier_expect_tx``). A CTA that is granted is never launched: the requesting CTA must do
    its work (PTX ISA 9.7.13.17). After a request that is not granted, the CTA must make no other
    request.

    With ``cta_group = 2`` the leader of a pair requests another pair, and each CTA gets the
    response, at the same place and counted on its own barrier (``.multicast::cluster::all``).
    """

    example = """
    func.func @example(%r: !tc.launch_response_table, %slot: index, %full: !tc.mbarrier) {
      "tc.launch_request"(%r, %slot, %full)
          : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
      return
    }
    """
    form = "{responses}[{slot}] -> {signal}"

    responses: ext.Operand[LaunchResponsesType]
    slot: ext.Operand[ir.IndexType]
    signal: ext.Operand[MbarrierType]


class LaunchQueryOp(Op, name="launch_query", async_only=True):
    """``clusterlaunchcontrol.query_cancel`` of response ``slot``: tells whether a CTA was granted,
    and which one.

    ``cta`` is the ``%ctaid.x`` of the granted CTA (for a pair, of its leader), and 0 if no CTA was
    granted. The response is read through the generic proxy: before the next request to the slot,
    this op must be followed by ``tc.fence "proxy.async"`` and an arrival for which the request
    waits (PTX ISA 9.7.13.17).
    """

    example = """
    func.func @example(%r: !tc.launch_response_table, %slot: index) {
      %granted, %cta = "tc.launch_query"(%r, %slot)
          : (!tc.launch_response_table, index) -> (i1, index)
      return
    }
    """
    form = "{responses}[{slot}]"

    responses: ext.Operand[LaunchResponsesType]
    slot: ext.Operand[ir.IndexType]
    granted: ext.Result[ir.IntegerType] = ext.result(
        default_factory=lambda: ir.IntegerType.get_signless(1)
    )
    cta: ext.Result[ir.IndexType] = ext.result(default_factory=ir.IndexType.get)


@verify(
    LaunchResponsesOp,
    "count",
    "tc",
    "count must be at least 1, got {got}: a request needs a place for its response",
    bad={"count = 2": "count = 0"},
    good={"count = 2": "count = 1"},
)
def _(op: LaunchResponsesOp) -> Broken:
    got = integer(op, "count")
    return None if got >= 1 else {"got": got}


@verify(
    LaunchRequestOp,
    "slot",
    "tc",
    "slot must be in [0, {count}), got {got}",
    bad={
        "%r: !tc.launch_response_table, %slot: index,": "",
        '"tc.launch_request"': (
            '%slot = arith.constant 2 : index %r = "tc.launch_responses"() {count = 2 : i64} '
            ': () -> !tc.launch_response_table "tc.launch_request"'
        ),
    },
)
def _(op: LaunchRequestOp | LaunchQueryOp) -> Broken:
    made, got = defining(op.responses, LaunchResponsesOp), constant_of(op.slot)
    if made is None or got is None or 0 <= got < integer(made, "count"):
        return None
    return {"count": integer(made, "count"), "got": got}


same_rules(
    LaunchQueryOp,
    LaunchRequestOp,
    {
        "slot": {
            "%r: !tc.launch_response_table, %slot: index) {": (
                ') { %slot = arith.constant 3 : index %r = "tc.launch_responses"() {count = 2 : '
                "i64} : () -> !tc.launch_response_table"
            )
        }
    },
)
