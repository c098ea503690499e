"""cluster-launch-control: lets running CTAs take over CTAs that have not been launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import arith, func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, string
from tcir.dialect.cta_pair import LEADER, PAIR, kernel_cta_group
from tcir.dialect.limits import LAUNCH_RESPONSE_BYTES, MBARRIER_BYTES, SMEM_BYTES, WARP
from tcir.dialect.loops import MOST_TRIPS
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import PRODUCER
from tcir.passes.emit import index
from tcir.passes.emit.builders import fence, i64, of_pair
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import body, find_kernels
from tcir.passes.emit.limits import round_up
from tcir.passes.emit.tile_kernel import block_id
from tcir.passes.pipelining.pairs import of_leader
from tcir.passmanager.pipeline import Pass, register_pass

RESPONSES = 2
"""Slots of the ring of responses: a role may lag this many tiles, as many as there are
accumulators."""


@register_pass
@dataclass(frozen=True)
class ClusterLaunchControl(Pass):
    """Lets a CTA that has finished its work do the work of CTAs that have not been launched yet
    (``tile-gemm`` with ``scheduler=clc``).

    Before, in each role, a loop of one iteration whose work follows from ``gpu.block_id``::

        scf.for %turn = 0 to 1 { %cta = gpu.block_id x; … } {tc.most_trips = …}

    After (%empty and %full are rings of mbarriers; slot = turn mod 2, phase = turn / 2 mod 2)::

        scf.while (%turn = 0, %cta = gpu.block_id x, %more = true) : %more {
          // the producer:
          "tc.mbarrier_wait"(%empty[slot], 1 - phase)
          "tc.mbarrier_expect_tx"(%full[slot]) {nbytes = 16}
          "tc.launch_request"(%responses, slot, %full[slot])
          …
          "tc.mbarrier_wait"(%full[slot], phase)
          %granted, %next = "tc.launch_query"(%responses, slot)
          "tc.fence"() {kind = "proxy.async"}
          // the others:
          "tc.mbarrier_arrive"(%empty[slot])
          scf.yield %turn + 1, %next, %granted
        }

    The request is issued before the work of the current CTA, so that the two overlap.

    If the number of turns follows from ``gpu.block_id`` (groups of rows, whose number of tiles is
    known at run time), a CTA that gets a CTA number with no turns ends its loop. CTAs with higher
    numbers have no turns either; the hardware launches them, or other CTAs take them over::

        %more = %turns_of(gpu.block_id x) != 0; … scf.yield %turn + 1, %next, %granted and
            %turns_of(%next) != 0

    A CTA pair takes over other pairs. The leader makes the request, and each CTA receives the
    response, counted on its own %full. All roles of both CTAs that read the response arrive on the
    leader's %empty::

          // the producer:
          "tc.mbarrier_wait"(%empty[slot], 1 - phase) {cta_group = 2, leader}
          "tc.mbarrier_expect_tx"(%full[slot]) {nbytes = 16}
          "tc.launch_request"(%responses, slot, %full[slot]) {cta_group = 2, leader}
          …
          // every role:
          "tc.mbarrier_wait"(%full[slot], phase) {cta_group = 2}
          %granted, %first = "tc.launch_query"(%responses, slot)
          "tc.fence"() {kind = "proxy.async"}
          "tc.mbarrier_arrive"(%empty[slot]) {cta_group = 2}
          scf.yield %turn + 1, %first + %rank, %granted

    Preserves the work of the grid as a whole; the hardware decides which CTA does which part.
    """

    name: ClassVar[str] = "cluster-launch-control"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            _take_over(kernel)


@dataclass(frozen=True)
class _Ring:
    """The responses, and the barriers that say that one is there, or has been read by all.

    With `cta_group` 2 they are in both CTAs of a pair, whose readers arrive on the leader's empty.
    """

    responses: tc.LaunchResponsesOp
    full: tc.MbarrierInitOp
    empty: tc.MbarrierInitOp
    cta_group: int


def _take_over(kernel: func.FuncOp) -> None:
    roles = [op for op in body(kernel) if isinstance(op, tc.RoleOp)]
    loops = [_loop(role) for role in roles]
    if not any(string(role, "kind") == PRODUCER for role in roles):
        raise match_failure(
            kernel,
            f"expected a kernel with a role of kind {PRODUCER}, got none; run assign-roles first",
        )
    inside = [op for loop in loops for op in walk(loop)]
    outside = [op for loop in loops for op in _turns(loop)]
    for op in (each for top in body(kernel) for each in walk(top)):
        if op.operation.name == "gpu.block_id" and op not in inside + outside:
            raise match_failure(
                op,
                "expected a kernel that reads its place in the grid in the loops of its roles, got "
                "gpu.block_id outside; tile with scheduler=clc",
            )
    ring = _place(kernel, roles)
    for role, loop in zip(roles, loops):
        _repeat(role, loop, ring)


def _loop(role: tc.RoleOp) -> scf.ForOp:
    """The loop that is all that `role` does with the CTA's place in the grid."""
    found = [op for op in role.body.blocks[0] if MOST_TRIPS in op.operation.attributes]
    if len(found) != 1 or not isinstance(found[0], scf.ForOp) or len(found[0].results):
        raise match_failure(
            role,
            f"expected one loop with {MOST_TRIPS} and no carried values in the role, got "
            f"{len(found)}; tile with scheduler=clc",
        )
    return found[0]


def _turns(loop: scf.ForOp) -> list[ir.OpView]:
    """The ops outside of `loop` that compute its number of turns from the CTA's number, in order.

    None if there is one turn whatever the number.
    """
    found: list[ir.OpView] = []

    def visit(value: ir.Value) -> bool:
        """Whether a value depends on the number of the CTA."""
        if isinstance(value, ir.BlockArgument):
            return False
        op = value.owner.opview
        depends = [visit(each) for each in op.operation.operands]
        if op.operation.name != "gpu.block_id" and not any(depends):
            return False
        if op not in found:
            found.append(op)
        return True

    visit(loop.upperBound)
    return found


def _has_turn(loop: scf.ForOp, cta: ir.Value) -> ir.Value:
    """Whether the loop has a turn in the CTA with number `cta`."""
    mapping: Mapping = {}
    for op in _turns(loop):
        if op.operation.name == "gpu.block_id":
            _check_axis(op)
            mapping[op.operation.results[0]] = cta
        else:
            clone(op, mapping)
    if loop.upperBound not in mapping:
        return index.constant(1, ir.IntegerType.get_signless(1))
    return arith.cmpi(arith.CmpIPredicate.ne, mapping[loop.upperBound], index.value(0))


def _releases(role: tc.RoleOp, cta_group: int) -> bool:
    """Whether `role` says that it has read a response. The thread that requests the next one need
    not, but a pair has another producer, which only reads."""
    return cta_group == PAIR or string(role, "kind") != PRODUCER


def _arrivals(role: tc.RoleOp, cta_group: int) -> int:
    """Threads that say so, in both CTAs of a pair if both have the role."""
    if not _releases(role, cta_group):
        return 0
    threads = len(integers(role, "warps")) * (1 if string(role, "threads") == "one" else WARP)
    return threads if LEADER in role.attributes else threads * cta_group


def _place(kernel: func.FuncOp, roles: list[tc.RoleOp]) -> _Ring:
    """Places the ring after the kernel's other shared memory; its barriers are published with the
    others."""
    start = round_up(integer(kernel, "tc.smem_bytes"), LAUNCH_RESPONSE_BYTES)
    end = start + RESPONSES * (LAUNCH_RESPONSE_BYTES + 2 * MBARRIER_BYTES)
    if end > SMEM_BYTES:
        raise match_failure(
            kernel,
            f"expected at most {SMEM_BYTES} bytes of shared memory, got {end} with the "
            "responses of cluster launch control; take fewer stages",
        )
    kernel.attributes["tc.smem_bytes"] = i64(end)
    cta_group = kernel_cta_group(kernel)
    readers = sum(_arrivals(role, cta_group) for role in roles)
    published = next(op for op in body(kernel) if isinstance(op, tc.FenceOp))
    kind = tc.RingType.build(RESPONSES, tc.MbarrierType.get())
    with ir.InsertionPoint(published), published.location:
        responses = tc.LaunchResponsesOp(i64(RESPONSES))
        full, empty = tc.MbarrierInitOp(i64(1), kind), tc.MbarrierInitOp(i64(readers), kind)
    at = start
    for op in (responses, full, empty):
        op.attributes["offset"] = i64(at)
        at += op.nbytes
    return _Ring(responses, full, empty, cta_group)


def _repeat(role: tc.RoleOp, loop: scf.ForOp, ring: _Ring) -> None:
    """Turns `loop` into a loop over all CTAs whose work this CTA does."""
    number, flag = ir.IndexType.get(), ir.IntegerType.get_signless(1)
    with ir.InsertionPoint(loop), loop.location:
        first = block_id("x")
        repeat = scf.WhileOp([number, number], [index.value(0), first, _has_turn(loop, first)])
        repeat.operation.attributes[MOST_TRIPS] = loop.attributes[MOST_TRIPS]
        before = repeat.before.blocks.append(number, number, flag, arg_locs=[loop.location] * 3)
        after = repeat.after.blocks.append(number, number, arg_locs=[loop.location] * 2)
        with ir.InsertionPoint(before):
            scf.ConditionOp(before.arguments[2], list(before.arguments)[:2])
        turn, cta = after.arguments
        with ir.InsertionPoint(after):
            last, query = _take_turn(role, ring, turn)
            rank = tc.CtaRankOp().rank if ring.cta_group == PAIR else 0
            following = index.value(index.add(query.cta, rank))
            more = query.granted
            if _turns(loop):
                more = arith.andi(more, _has_turn(loop, following))
            scf.YieldOp([index.value(index.add(turn, 1)), following, more])
    for op in list(loop.body)[:-1]:
        if op.operation.name == "gpu.block_id":
            _check_axis(op)
            op.operation.results[0].replace_all_uses_with(cta)
        else:
            op.operation.move_before(last.operation)
    loop.induction_variable.replace_all_uses_with(turn)
    loop.operation.erase()


def _take_turn(
    role: tc.RoleOp, ring: _Ring, turn: ir.Value
) -> tuple[tc.MbarrierWaitOp, tc.LaunchQueryOp]:
    """Asks for a response, if `role` is the one that does, and reads it: the wait for it, behind
    which its work does not go, and the query."""
    slot = index.value(index.rem(turn, RESPONSES))
    phase = index.value(index.rem(index.div(turn, RESPONSES), 2))
    full, empty = (_bar(each, slot) for each in (ring.full, ring.empty))
    asking: list[ir.OpView] = []
    if string(role, "kind") == PRODUCER:
        asking.append(tc.MbarrierWaitOp(empty, index.value(index.sub(1, phase))))
        tc.MbarrierExpectTxOp(full, i64(LAUNCH_RESPONSE_BYTES))
        asking.append(tc.LaunchRequestOp(ring.responses.responses, slot, full))
    wait = tc.MbarrierWaitOp(full, phase)
    query = tc.LaunchQueryOp(ring.responses.responses, slot)
    fence("proxy.async")
    reading: list[ir.OpView] = [wait]
    if _releases(role, ring.cta_group):
        reading.append(tc.MbarrierArriveOp(empty))
    if ring.cta_group == PAIR:
        for op in asking:
            of_leader(op)
        for op in asking + reading:
            of_pair(op)
    return wait, query


def _check_axis(op: ir.OpView) -> None:
    axis = str(op.operation.attributes["dimension"]).rstrip(">")[-1]
    if axis != "x":
        raise match_failure(
            op, f"expected a grid along x, got an index along {axis}; tile with scheduler=clc"
        )


def _bar(ring: tc.MbarrierInitOp, slot: ir.Value) -> ir.Value:
    return tc.SlotOp(ring.bar, slot, tc.MbarrierType.get()).slot
