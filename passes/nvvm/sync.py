"""Lowering of barriers, fences and commits."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm, nvvm, scf
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import WARP, WARPGROUP
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.emit.gpu_module import pointer_type

from .converter import Converter, Mbarrier, i32, lower, require_role
from .structure import is_equal


@lower(tc.MbarrierWaitOp)
def convert_mbarrier_wait(converter: Converter, op: tc.MbarrierWaitOp) -> None:
    """Emits ``mbarrier.try_wait.parity`` in a loop, because the instruction may time out at a
    hardware limit.

    In warp-level kernels, which have no roles, every thread waits, so every thread sees the bytes.
    """
    if not converter.of_warps:
        require_role(converter, op)
    pointer = converter.shared(converter.record(op.bar, Mbarrier).address)
    parity, scope = converter.ssa(op.parity), _scope(op)
    loop = scf.WhileOp([], [])
    with ir.InsertionPoint(loop.before.blocks.append()):
        done = nvvm.mbarrier_try_wait(pointer, parity, scope)
        scf.ConditionOp(arith.XOrIOp(done, converter.constant(1, bits=1)).result, [])
    with ir.InsertionPoint(loop.after.blocks.append()):
        scf.YieldOp([])


@lower(tc.MbarrierExpectTxOp)
def convert_expect_tx(converter: Converter, op: tc.MbarrierExpectTxOp) -> None:
    """Lowers to ``mbarrier.arrive.expect_tx``."""
    pointer = converter.shared(converter.record(op.bar, Mbarrier).address)
    nbytes = integer(op, "nbytes")
    nvvm.mbarrier_arrive_expect_tx(pointer, converter.constant(nbytes))


@lower(tc.MbarrierArriveOp)
def convert_arrive(converter: Converter, op: tc.MbarrierArriveOp) -> None:
    """Emits ``mbarrier.arrive`` by every thread, or by one thread per warp for each CTA of a mask.
    In a CTA pair the arrival is on the leader's barrier."""
    require_role(converter, op)
    mask = converter.mask(op)
    if mask is not None:
        _arrive_in_each(converter, op, mask)
    elif "once" in op.attributes:
        _arrive_once(converter, op)
    else:
        _arrive(converter, op)


def _arrive_once(converter: Converter, op: tc.MbarrierArriveOp) -> None:
    """By the first lane: predicated where it orders the CTA, as lanes that branch have to come
    together again before the next instruction of the whole warp."""
    if _scope(op) != "cta":
        with simt.only_if(is_equal(converter, converter.lane, 0)):
            _arrive(converter, op)
        return
    address = converter.record(op.bar, Mbarrier).address
    place = converter.add(address.base, address.offset)
    llvm.inline_asm(
        None,
        [converter.lane, place],
        "\n".join(_PREDICATED),
        "r,r,~{memory}",
        has_side_effects=True,
    )


_PREDICATED = (
    "{", ".reg .pred p;", ".reg .b64 state;", "setp.eq.u32 p, $0, 0;",
    "@p mbarrier.arrive.shared.b64 state, [$1];", "}",
)  # fmt: skip


def _arrive_in_each(converter: Converter, op: tc.MbarrierArriveOp, mask: ir.Value) -> None:
    """Lane n of a warp arrives in CTA n of the cluster, if that is in the mask."""
    wide = arith.ExtUIOp(i32(), mask).result
    bit = arith.AndIOp(arith.ShRUIOp(wide, converter.lane).result, converter.constant(1)).result
    with simt.only_if(is_equal(converter, bit, 1)):
        pointer = converter.shared(converter.record(op.bar, Mbarrier).address)
        there = nvvm.mapa(pointer, converter.lane, pointer_type(7))
        nvvm.mbarrier_arrive(there, "cluster")


def _arrive(converter: Converter, op: tc.MbarrierArriveOp) -> None:
    pointer = converter.shared(converter.record(op.bar, Mbarrier).address)
    if cta_group_of(op) == PAIR:
        pointer = nvvm.mapa(pointer, _leader(converter), pointer_type(7))
    nvvm.mbarrier_arrive(pointer, _scope(op))


def _scope(op: ir.OpView) -> nvvm.Scope:
    """Scope of a wait or an arrival."""
    return "cluster" if cta_group_of(op) == PAIR or "cluster" in op.attributes else "cta"


def _leader(converter: Converter) -> ir.Value:
    """The rank of the pair's leader."""
    return arith.AndIOp(converter.cta_rank(), converter.constant(-PAIR)).result


@lower(tc.CommitOp)
def convert_commit(converter: Converter, op: tc.CommitOp) -> None:
    """Lowers to ``tcgen05.commit``."""
    pointer = converter.shared(converter.record(op.bar, Mbarrier).address)
    nvvm.tcgen05.commit(pointer, converter.mask(op), cta_group_of(op))


@lower(tc.FenceOp)
def convert_fence(converter: Converter, op: tc.FenceOp) -> None:
    """Emits the fence that the op's kind names."""
    kind = string(op, "kind")
    if kind == "tcgen05.before":
        nvvm.tcgen05.fence("before")
    elif kind == "tcgen05.after":
        nvvm.tcgen05.fence("after")
    elif kind == "proxy.async":
        nvvm.fence_proxy("async")
    elif kind == "proxy.async.shared":
        nvvm.fence_proxy("async.shared", "cta")
    elif kind == "mbarrier_init":
        nvvm.fence_mbarrier_init()
    else:
        raise PassError(f"expected a fence kind that convert-tc-to-nvvm knows, got '{kind}'")


@lower(tc.CtaBarrierOp)
def convert_cta_barrier(converter: Converter, op: tc.CtaBarrierOp) -> None:
    """Emits ``bar.sync 0``. After it, the addresses of allocations made before it are read."""
    nvvm.barrier()
    _read_bases(converter)


@lower(tc.WarpsBarrierOp)
def convert_warps_barrier(converter: Converter, op: tc.WarpsBarrierOp) -> None:
    """Emits ``bar.sync`` for some of the warps."""
    number = converter.add(converter.ssa(op.number), 1)
    nvvm.barrier(number, converter.constant(WARP * integer(op, "warps")))


@lower(tc.TurnOp)
def convert_turn(converter: Converter, op: tc.TurnOp) -> None:
    """Emits ``bar.sync`` on the warpgroup's own barrier, or ``bar.arrive`` on the barrier of the
    next warpgroup."""
    kind, count, threads = string(op, "kind"), integer(op, "warpgroups"), 2 * WARPGROUP
    group = simt.divide(converter.warp, WARPGROUP // WARP)
    if kind == "wait":
        nvvm.barrier(simt.add(group, 1), converter.constant(threads))
        return
    last = simt.equal(group, count - 1)
    if kind == "pass":
        after = arith.select(last, converter.constant(1), simt.add(group, 2))
        _arrive_at(after, threads)
        return
    own = last if kind == "begin" else simt.equal(group, 0)
    with simt.only_if(own):
        if kind == "begin":
            _arrive_at(converter.constant(1), threads)
        else:
            nvvm.barrier(converter.constant(1), converter.constant(threads))


def _arrive_at(number: ir.Value, threads: int) -> None:
    text = f"bar.arrive $0, {threads};"
    llvm.inline_asm(None, [number], text, "r,~{memory}", has_side_effects=True)


@lower(tc.FirstWarpBarrierOp)
def convert_first_warp_barrier(converter: Converter, op: tc.FirstWarpBarrierOp) -> None:
    """Emits ``bar.sync`` or ``bar.arrive``, each with a predicate, because a branch would divide
    the basic block of the main loop."""
    number = converter.add(converter.ssa(op.slot), 1)
    text = "\n".join(_FIRST_WARP).format(threads=converter.threads)
    llvm.inline_asm(None, [converter.warp, number], text, "r,r,~{memory}", has_side_effects=True)


_FIRST_WARP = (
    "{{", ".reg .pred first;", "setp.eq.u32 first, $0, 0;", "@first bar.sync $1, {threads};",
    "@!first bar.arrive $1, {threads};", "}}",
)  # fmt: skip


@lower(tc.ClusterBarrierOp)
def convert_cluster_barrier(converter: Converter, op: tc.ClusterBarrierOp) -> None:
    """Emits ``barrier.cluster.arrive`` and ``.wait``, and then reads addresses of allocations as
    ``tc.cta_barrier`` does."""
    nvvm.cluster_barrier()
    _read_bases(converter)


@lower(tc.CtaRankOp)
def convert_cta_rank(converter: Converter, op: tc.CtaRankOp) -> None:
    """Lowers to ``%cluster_ctarank``."""
    converter.values[op.rank] = converter.cta_rank()


def _read_bases(converter: Converter) -> None:
    """Reads the addresses of the allocations made so far."""
    for base in converter.bases:
        if base.value is None:
            slot = converter.add(converter.smem, base.slot)
            pointer = llvm.inttoptr(llvm.PointerType.get(3), slot)
            base.value = llvm.load(i32(), pointer)
