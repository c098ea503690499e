"""Rules about kernels that may start before the launch in front of them has ended."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.kernel.view import Found, KernelView, verify_in_kernel
from tcir.dialect.operation import traits_of
from tcir.dialect.ops.grid_control import GridWaitOp
from tcir.dialect.types import TensorMapType

PROGRAMMATIC = "tc.programmatic"
"""Attribute of a kernel that is launched so."""


def accesses_global(op: ir.OpView) -> bool:
    """Whether `op` reads or writes global memory itself."""
    traits = traits_of(op)
    if traits.loads or traits.stores or op.operation.name in ("memref.load", "memref.store"):
        return True
    return any(isinstance(value.type, TensorMapType) for value in op.operands)


@verify_in_kernel(
    "programmatic-wait",
    "PTX ISA 9.7.13, griddepcontrol",
    "{got} must be behind a tc.grid_wait of its role: the kernel is tc.programmatic, so the launch "
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
