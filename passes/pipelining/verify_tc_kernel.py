"""verify-tc-kernel: checks the rules about whole kernels, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect.kernel.verify import verify_kernel
from tcir.errors import PassError
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class VerifyTcKernel(Pass):
    """Checks every ``func.func`` with the attribute ``tc.kernel`` against the kernel rules.

    These are rules that the verifier of a single op cannot check, such as the budgets of tensor and
    shared memory, the lifetime of allocations, disjoint roles, and an arrival for every wait. Each
    violation is reported as an error at its op.

    Before and after::

        func.func @f(%x: memref<…>, …) attributes {tc.kernel, tc.grid, tc.block, …}

    Changes nothing.
    """

    name: ClassVar[str] = "verify-tc-kernel"

    def run(self, module: ir.Module) -> None:
        """Reports every violation as a diagnostic; raises `PassError` with the first one."""
        broken: list[tuple[ir.Location, str]] = []
        for op in module.body.operations:
            if isinstance(op, func.FuncOp) and "tc.kernel" in op.attributes:
                broken += verify_kernel(op)
        for location, message in broken:
            location.emit_error(message)
        if broken:
            location, message = broken[0]
            raise PassError(message, location)
