"""Rules about kernels whose running CTAs take over the work of CTAs that have not been launched."""

from __future__ import annotations

from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.pairs import of_leader
from tcir.dialect.kernel.view import Found, KernelView, attribute_of, triple, verify_in_kernel
from tcir.dialect.limits import LAUNCH_RESPONSE_BYTES
from tcir.dialect.ops.launch_control import LaunchQueryOp, LaunchRequestOp
from tcir.dialect.ops.sync import FenceOp, MbarrierArriveOp, MbarrierExpectTxOp, MbarrierWaitOp

SOURCE = "PTX ISA 9.7.13.17"


@verify_in_kernel(
    "launch-request-grid",
    SOURCE,
    "a kernel that takes over CTAs must have a grid along x, without clusters, or with cta_group = "
    "2 on the request of a pair, got tc.grid {grid}, tc.cluster {cluster} and cta_group = {group}: "
    "tc.launch_query gives the number of one CTA along x, and a request takes over whole clusters",
)
def _(kernel: KernelView) -> Found:
    grid, clustered = triple(kernel, "tc.grid") or [1, 1, 1], "tc.cluster" in kernel.func.attributes
    for op in kernel.of(LaunchRequestOp):
        group = cta_group_of(op)
        if grid[1:] != [1, 1] or (clustered and group != PAIR):
            cluster = attribute_of(kernel, "tc.cluster")
            yield op, {"grid": grid, "cluster": cluster, "group": group}


@verify_in_kernel(
    "launch-request-leader",
    SOURCE,
    "{got} of cta_group = 2 must be the leader's (attribute leader, of the op or its role): both "
    "CTAs get its response, and issued by both it takes over two pairs",
)
def _(kernel: KernelView) -> Found:
    for site in kernel.sites:
        asks = isinstance(site.op, LaunchRequestOp) and cta_group_of(site.op) == PAIR
        if asks and not of_leader(site):
            yield site.op, {"got": site.name}


@verify_in_kernel(
    "launch-response-bytes",
    SOURCE,
    "every CTA that gets the response must expect its {want} bytes on this barrier, got {got}: the "
    "wait for it ends too early, or never",
)
def _(kernel: KernelView) -> Found:
    for site in kernel.sites:
        if not isinstance(site.op, LaunchRequestOp):
            continue
        bar, pair = barrier_of(site.op.signal), cta_group_of(site.op) == PAIR
        expects = [
            s
            for s in kernel.sites
            if isinstance(s.op, MbarrierExpectTxOp) and barrier_of(s.op.bar) == bar
        ]
        sizes = sorted({integer(s.op, "nbytes") for s in expects})
        if sizes != [LAUNCH_RESPONSE_BYTES]:
            got = ", ".join(map(str, sizes)) or "none"
            yield site.op, {"want": LAUNCH_RESPONSE_BYTES, "got": got}
        elif pair and all(map(of_leader, expects)):
            yield site.op, {"want": LAUNCH_RESPONSE_BYTES, "got": "the leader's only"}


@verify_in_kernel(
    "launch-request-reuse",
    SOURCE,
    'the role "{role}" reads a response and does not release it: it needs tc.fence "proxy.async" '
    "and tc.mbarrier_arrive after tc.launch_query, on a barrier that the thread of the next "
    "tc.launch_request waits for; the request overwrites the response",
)
def _(kernel: KernelView) -> Found:
    for number, site in enumerate(kernel.sites):
        if not isinstance(site.op, LaunchQueryOp) or site.role is None:
            continue
        behind = [s.op for s in kernel.sites[number:] if s.role is site.role]
        requests = [
            s
            for s in kernel.sites
            if isinstance(s.op, LaunchRequestOp) and s.op.responses == site.op.responses
        ]
        fenced = any(isinstance(o, FenceOp) and string(o, "kind") == "proxy.async" for o in behind)
        arrivals = [barrier_of(op.bar) for op in behind if isinstance(op, MbarrierArriveOp)]
        for request in requests:
            waits = [
                barrier_of(s.op.bar)
                for s in kernel.sites[: kernel.sites.index(request)]
                if isinstance(s.op, MbarrierWaitOp) and s.role is request.role
            ]
            own = request.role is site.role and cta_group_of(request.op) != PAIR
            if not fenced or not (own or any(bar in waits for bar in arrivals)):
                yield site.op, {"role": string(site.role, "kind")}
