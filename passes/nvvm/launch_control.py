"""Lowering of cluster launch control as inline PTX, because the NVPTX back end does not support the
nvvm intrinsics for it."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import LAUNCH_RESPONSE_BYTES

from .converter import (
    Converter,
    LaunchResponses,
    Mbarrier,
    SharedAddress,
    i32,
    integer_attribute,
    lower,
    require_role,
)


@lower(tc.LaunchResponsesOp)
def convert_launch_responses(converter: Converter, op: tc.LaunchResponsesOp) -> None:
    """Lowers to an address in shared memory."""
    address = SharedAddress(converter.smem, integer_attribute(op, "offset"))
    converter.values[op.responses] = LaunchResponses(address)


def _slot(converter: Converter, responses: ir.Value, slot: ir.Value) -> ir.Value:
    """The address of a response in the shared window, i32."""
    address = converter.record(responses, LaunchResponses).address
    offset = arith.muli(converter.ssa(slot), converter.constant(LAUNCH_RESPONSE_BYTES))
    return converter.add(arith.addi(address.base, offset), address.offset)


@lower(tc.LaunchRequestOp)
def convert_launch_request(converter: Converter, op: tc.LaunchRequestOp) -> None:
    """Lowers to ``clusterlaunchcontrol.try_cancel``. For a CTA pair, the response is written to
    both CTAs."""
    signal = converter.record(op.signal, Mbarrier).address
    multicast = ".multicast::cluster::all" if cta_group_of(op) == PAIR else ""
    llvm.inline_asm(
        None,
        [_slot(converter, op.responses, op.slot), converter.add(signal.base, signal.offset)],
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
        f"{multicast}.b128 [$0], [$1];",
        "r,r,~{memory}",
        has_side_effects=True,
    )


QUERY = """{
.reg .pred p;
.reg .b128 response;
ld.shared.b128 response, [$2];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response;
selp.b32 $0, 1, 0, p;
mov.b32 $1, 0;
@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 $1, response;
}"""


@lower(tc.LaunchQueryOp)
def convert_launch_query(converter: Converter, op: tc.LaunchQueryOp) -> None:
    """Emits a load of the response, and ``clusterlaunchcontrol.query_cancel``."""
    require_role(converter, op)
    address = _slot(converter, op.responses, op.slot)
    pair = ir.Type.parse("!llvm.struct<(i32, i32)>")
    both = llvm.inline_asm(pair, [address], QUERY, "=&r,=&r,r,~{memory}", has_side_effects=True)
    granted, cta = (llvm.extractvalue(i32(), both.results[0], n) for n in range(2))
    zero = converter.constant(0)
    converter.values[op.granted] = arith.cmpi(arith.CmpIPredicate.ne, granted, zero)
    converter.values[op.cta] = cta
