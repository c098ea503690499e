"""Rules for kernels that may start before the previous launch has ended (programmatic dependent
launch)."""

from __future__ import annotations

from tcir.dialect.kernel.view import Found, KernelView, verify_in_kernel
from tcir.dialect.ops.grid_control import PROGRAMMATIC, GridWaitOp, accesses_global


@verify_in_kernel(
    "programmatic-wait",
    "PTX ISA 9.7.13, griddepcontrol",
    "{got} must follow a tc.grid_wait of its role: the kernel is tc.programmatic, so the launch "
    "before it may still write what is read here, or read what is written; run programmatic-launch",
)
def _(kernel: KernelView) -> Found:
    if PROGRAMMATIC not in kernel.func.attributes:
        return
    waited: set[object] = set()
    for site in kernel.sites:
        scope = site.role or kernel.func
        if isinstance(site.op, GridWaitOp) and site.op.operation.parent == scope.operation:
            waited.add(scope)
        elif accesses_global(site.op) and not waited & {scope, kernel.func}:
            yield site.op, {"got": site.name}
