"""Rules about kernels whose CTAs take the place of others."""

from __future__ import annotations

from tcir.dialect.attributes import string
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import Found, KernelView, attribute_of, triple, verify_in_kernel
from tcir.dialect.ops.launch_control import LaunchQueryOp, LaunchRequestOp
from tcir.dialect.ops.sync import FenceOp, MbarrierArriveOp, MbarrierWaitOp

SOURCE = "PTX ISA 9.7.13.17"


@verify_in_kernel(
    "launch-request-grid",
    SOURCE,
    "a kernel that takes over CTAs must have a grid along x, without clusters, got tc.grid {grid} "
    "and tc.cluster {cluster}: tc.launch_query gives the number of one CTA along x",
)
def _(kernel: KernelView) -> Found:
    grid = triple(kernel, "tc.grid") or [1, 1, 1]
    if grid[1:] == [1, 1] and "tc.cluster" not in kernel.func.attributes:
        return
    for op in kernel.of(LaunchRequestOp):
        yield op, {"grid": grid, "cluster": attribute_of(kernel, "tc.cluster")}


@verify_in_kernel(
    "launch-request-reuse",
    SOURCE,
    'the role "{role}" reads a response and does not release it: it needs tc.fence "proxy.async" '
    "and tc.mbarrier_arrive behind tc.launch_query, on a barrier that the thread of the next "
    "tc.launch_request waits for; the request overwrites the response",
)
def _(kernel: KernelView) -> Found:
    for number, site in enumerate(kernel.sites):
        if not isinstance(site.op, LaunchQueryOp) or site.role is None:
            continue
        behind = [s.op for s in kernel.sites[number:] if s.role is site.role]
        requests = [
            s for s in kernel.sites
            if isinstance(s.op, LaunchRequestOp) and s.op.responses == site.op.responses
        ]  # fmt: skip
        fenced = any(isinstance(o, FenceOp) and string(o, "kind") == "proxy.async" for o in behind)
        arrivals = [barrier_of(op.bar) for op in behind if isinstance(op, MbarrierArriveOp)]
        for request in requests:
            waits = [
                barrier_of(s.op.bar) for s in kernel.sites[: kernel.sites.index(request)]
                if isinstance(s.op, MbarrierWaitOp) and s.role is request.role
            ]  # fmt: skip
            own = request.role is site.role
            if not fenced or not (own or any(bar in waits for bar in arrivals)):
                yield site.op, {"role": string(site.role, "kind")}
