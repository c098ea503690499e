"""Rules about a whole kernel (a ``func.func`` with the attribute ``tc.kernel``).

`verify_kernel` returns every violation; a rule is a generator of ``(op, values for the message)``.
Rules about memory are in `memory`, those of the warp level in `warp`.
"""

from __future__ import annotations

from math import prod

from tcir._mlir import ir
from tcir.dialect.attributes import defining, integer, integers, optional_integer
from tcir.dialect.kernel.view import (
    LAUNCH,
    SUBJECT,
    Found,
    KernelView,
    Site,
    attribute_of,
    kernel_rule,
    triple,
    view,
)
from tcir.dialect.limits import BLOCK_THREADS, CLUSTER_CTAS, GRID, WARP
from tcir.dialect.ops.block_scale import CpScalesOp, MmaBlockScaleOp
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.ops.halo import RefreshOp, ShiftOp
from tcir.dialect.ops.lanes import StoreLanesOp
from tcir.dialect.ops.memory import (
    MbarrierInitOp,
    SlotOp,
    TmemAllocOp,
)
from tcir.dialect.ops.movement import CpOp, StoreRowsOp, TmemLdOp, TmemStOp, TmemWaitOp
from tcir.dialect.ops.structure import ONE_THREAD, WHOLE_CTA, WHOLE_WARP, RoleOp
from tcir.dialect.ops.sync import CommitOp, MbarrierArriveOp, MbarrierExpectTxOp, MbarrierWaitOp
from tcir.dialect.ops.tma import TmaLoadOp
from tcir.dialect.ops.warp import MmaSyncOp
from tcir.dialect.rules import rules_of


def verify_kernel(func: ir.OpView) -> list[tuple[ir.Location, str]]:
    """Every violation of a kernel rule in ``func``, as (location, message); [] when all hold.

    The ops themselves must be verified already: the rules here rely on theirs.
    """
    kernel = view(func)
    return [
        (op.location, each.message(values))
        for each in rules_of(SUBJECT)
        for op, values in each.check(kernel)
    ]


@kernel_rule(
    "grid",
    LAUNCH,
    "tc.grid must be array<i64: x, y, z> with 1 <= extents <= {most}, got {got}",
)
def _(kernel: KernelView) -> Found:
    grid = triple(kernel, "tc.grid")
    if grid is None or any(n > most for n, most in zip(grid, GRID, strict=True)):
        yield kernel.func, {"most": GRID, "got": attribute_of(kernel, "tc.grid")}


@kernel_rule(
    "block",
    LAUNCH,
    "tc.block must be array<i64: x, y, z> of whole warps, at most 1024 threads, got {got}",
)
def _(kernel: KernelView) -> Found:
    block = triple(kernel, "tc.block")
    if block is None or prod(block) % WARP or prod(block) > BLOCK_THREADS:
        yield kernel.func, {"got": attribute_of(kernel, "tc.block")}


@kernel_rule(
    "cluster",
    "PTX ISA 11.4, .reqnctapercluster; CUDA C++ Programming Guide, thread block clusters",
    "tc.cluster must be array<i64: x, y, z> of at most {most} CTAs, whose extents divide those of "
    "tc.grid, {grid}, got {got}",
)
def _(kernel: KernelView) -> Found:
    if "tc.cluster" not in kernel.func.attributes:
        return
    cluster, grid = triple(kernel, "tc.cluster"), triple(kernel, "tc.grid") or [1, 1, 1]
    if (
        cluster is None
        or prod(cluster) > CLUSTER_CTAS
        or any(g % c for g, c in zip(grid, cluster, strict=True))
    ):
        got = attribute_of(kernel, "tc.cluster")
        yield kernel.func, {"most": CLUSTER_CTAS, "grid": grid, "got": got}


@kernel_rule(
    "target",
    "PTX ISA 9.7.16, target notes",
    'tc.target must be "sm_100a", got {got}: tcgen05 needs an architecture-specific target',
)
def _(kernel: KernelView) -> Found:
    got = attribute_of(kernel, "tc.target")
    if str(got) != '"sm_100a"' and not kernel.of(MmaSyncOp):  # those have a rule of their own
        yield kernel.func, {"got": got}


@kernel_rule(
    "signature",
    "PTX ISA 5.4",
    "a kernel takes memrefs and returns nothing, got {got}; write results to an argument",
)
def _(kernel: KernelView) -> Found:
    type_ = ir.FunctionType(ir.TypeAttr(kernel.func.attributes["function_type"]).value)
    if type_.results or not all(isinstance(t, ir.MemRefType) for t in type_.inputs):
        yield kernel.func, {"got": type_}


# --- who runs what ---------------------------------------------------------------------------


@kernel_rule(
    "once",
    "PTX ISA 9.7.13.15, 9.7.16.7",
    "{got} must not stand in a loop or branch: barriers and tensor memory are set up once",
)
def _(kernel: KernelView) -> Found:
    for site in kernel.sites:
        if site.nested and site.name in WHOLE_CTA and site.name != "tc.cta_barrier":
            yield site.op, {"got": site.name}


@kernel_rule(
    "roles-top-level",
    "tc",
    "roles must stand directly in the kernel, got one in a {got}: each warp enters its role once",
)
def _(kernel: KernelView) -> Found:
    for role in kernel.roles:
        parent = role.operation.parent
        if parent != kernel.func.operation:
            yield role, {"got": parent.name}


@kernel_rule(
    "roles-disjoint",
    "tc",
    "warp {got} already has a role ({other}): roles run concurrently, and a warp runs one",
)
def _(kernel: KernelView) -> Found:
    taken: dict[int, str] = {}
    for role in kernel.roles:
        for warp in integers(role, "warps"):
            if warp in taken:
                yield role, {"got": warp, "other": taken[warp]}
            taken[warp] = role.kind.value


@kernel_rule(
    "warp-in-block",
    LAUNCH,
    "warp {got} does not exist: tc.block has {warps} warps",
)
def _(kernel: KernelView) -> Found:
    block = triple(kernel, "tc.block")
    if block is None:
        return
    warps = prod(block) // WARP
    for role in kernel.roles:
        for warp in integers(role, "warps"):
            if warp >= warps:
                yield role, {"got": warp, "warps": warps}
    for op in kernel.of(TmemAllocOp):
        if (optional_integer(op, "warp") or 0) >= warps:
            yield op, {"got": integer(op, "warp"), "warps": warps}


@kernel_rule(
    "epilogue-quarters",
    "PTX ISA 9.7.16.8",
    "a role that reads or writes tensor memory needs four warps in a row from a multiple of 4, got "
    "{got}: warp w reaches the lanes of quarter w mod 4 only",
)
def _(kernel: KernelView) -> Found:
    readers = [s.role for s in kernel.sites if s.role and isinstance(s.op, TmemLdOp | TmemStOp)]
    for role in kernel.roles:
        warps = integers(role, "warps")
        if role in readers and (warps[0] % 4 or warps != list(range(warps[0], warps[0] + 4))):
            yield role, {"got": warps}


@kernel_rule(
    "roles-adjacent",
    "tc",
    "the roles of a kernel must follow each other, got {got} between them: they run concurrently",
)
def _(kernel: KernelView) -> Found:
    top = [s.op for s in kernel.sites if not s.nested and s.role is None]
    at = [i for i, op in enumerate(top) if isinstance(op, RoleOp)]
    if at:
        for op in top[at[0] : at[-1]]:
            if not isinstance(op, RoleOp):
                yield op, {"got": op.operation.name}


@kernel_rule(
    "in-role",
    "PTX ISA 9.7.16.5, table 46",
    "{got} must be inside a role: in a kernel with roles, ops outside are executed by the whole "
    "CTA",
)
def _(kernel: KernelView) -> Found:
    if not kernel.roles:
        return
    for site in kernel.sites:
        issued = site.name in (*ONE_THREAD, *WHOLE_WARP) or isinstance(
            site.op, StoreRowsOp | StoreLanesOp
        )
        if issued and site.role is None:
            yield site.op, {"got": site.name}


# --- completion ------------------------------------------------------------------------------


@kernel_rule(
    "sequential",
    "tc",
    "{got} has no meaning in a kernel without tc.async: there every op takes effect in program "
    "order",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        return
    waits = (
        MbarrierInitOp, MbarrierWaitOp, MbarrierExpectTxOp, MbarrierArriveOp, CommitOp, TmemWaitOp,
        RoleOp,
    )  # fmt: skip
    for op in kernel.of(*waits):
        yield op, {"got": op.operation.name}
    for op in kernel.of(TmaLoadOp):
        if op.signal is not None:
            yield op, {"got": "tc.tma_load with signal"}


@kernel_rule(
    "load-signal",
    "PTX ISA 9.7.9.27",
    "a load in a tc.async kernel needs a signal: nothing else tells when its bytes are there",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        yield from ((op, {}) for op in kernel.of(TmaLoadOp) if op.signal is None)


@kernel_rule(
    "commit",
    "PTX ISA 9.7.16.12",
    "no tc.commit follows this {got} in its role: nothing tells when it is complete",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous:
        return
    unfinished: dict[ir.Operation | None, Site] = {}
    for site in kernel.sites:
        thread = site.role.operation if site.role else None
        if isinstance(site.op, MmaOp | MmaBlockScaleOp | CpOp | CpScalesOp | ShiftOp | RefreshOp):
            unfinished[thread] = site
        elif isinstance(site.op, CommitOp):
            unfinished.pop(thread, None)
    for site in unfinished.values():
        yield site.op, {"got": site.name}


def _barrier(value: ir.Value) -> ir.Value:
    """The barrier or ring of barriers that ``value`` is, or is a slot of."""
    slot = defining(value, SlotOp)
    return value if slot is None else slot.ring


@kernel_rule(
    "wait-arrival",
    "PTX ISA 9.7.13.15",
    "nothing arrives on this barrier (no tc.commit, no tc.mbarrier_expect_tx, no "
    "tc.mbarrier_arrive): the wait never ends",
)
def _(kernel: KernelView) -> Found:
    arrivals = [
        _barrier(op.bar) for op in kernel.of(CommitOp, MbarrierExpectTxOp, MbarrierArriveOp)
    ]
    for op in kernel.of(MbarrierWaitOp):
        if _barrier(op.bar) not in arrivals:
            yield op, {}


@kernel_rule(
    "expect-signal",
    "PTX ISA 9.7.13.15",
    "no tc.tma_load signals this barrier: the announced {got} bytes never arrive",
)
def _(kernel: KernelView) -> Found:
    signalled = [_barrier(op.signal) for op in kernel.of(TmaLoadOp) if op.signal is not None]
    for op in kernel.of(MbarrierExpectTxOp):
        if _barrier(op.bar) not in signalled:
            yield op, {"got": integer(op, "nbytes")}


@kernel_rule(
    "signal-expect",
    "PTX ISA 9.7.13.15",
    "no tc.mbarrier_expect_tx announces the bytes of this load on its barrier: its phase could "
    "complete without them",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous:
        return
    announced = [_barrier(op.bar) for op in kernel.of(MbarrierExpectTxOp)]
    for op in kernel.of(TmaLoadOp):
        if op.signal is not None and _barrier(op.signal) not in announced:
            yield op, {}
