"""verify-tc-kernel: checks the rules about whole kernels; changes nothing."""

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

    These are the rules no single op can check: budgets of tensor and shared memory, lifetime of
    allocations, disjoint roles, an arrival for every wait. Each violation is an error at its op.

    Before and after::

        func.func @f(%x: memref<…>, …) attributes {tc.kernel, tc.grid, tc.block, …}

    Preserves everything.
    """

    name: ClassVar[str] = "verify-tc-kernel"

    def run(self, module: ir.Module) -> None:
        """Reports every violation; raises `PassError` with the first."""
        broken: list[tuple[ir.Location, str]] = []
        for op in module.body.operations:
            if isinstance(op, func.FuncOp) and "tc.kernel" in op.attributes:
                broken += verify_kernel(op)
        for location, message in broken:
            location.emit_error(message)
        if broken:
            location, message = broken[0]
            raise PassError(message, location)
