"""programmatic-launch: lets a kernel start before the previous launch has ended (programmatic
dependent launch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, optional_integer, string
from tcir.dialect.ops.grid_control import PROGRAMMATIC, accesses_global
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import PRODUCER
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import launch_order
from tcir.passes.emit.kernel_ops import CTAS_PER_SM, body, find_kernels
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import DEFAULT_TARGET


@register_pass
@dataclass(frozen=True)
class ProgrammaticLaunch(Pass):
    """Lets a kernel's setup overlap the previous launch (programmatic dependent launch).

    Before::

        "tc.role"() ({ ^bb0(%w: index): scf.for %i { wait empty; expect_tx; tma_load … } })
            {kind = "producer", …}

    After (and `tc.programmatic` on the kernel, which its launch reads)::

        "tc.role"() ({ ^bb0(%w: index):
          "tc.grid_wait"()
          scf.for %i { wait empty; expect_tx; tma_load … }
          "tc.grid_launch_dependents"()
        }) {kind = "producer", …}

    Every role that reads or writes global memory waits for the previous launch first; barriers,
    tensor memory and roles are set up before that wait. The CTA lets the next launch start once its
    last load is issued. CTAs of a kernel with ``tc.ctas_per_sm`` reserve enough shared memory that
    no more of them fit on an SM: otherwise they could crowd onto a few SMs while the previous
    launch still occupies the others. Preserves every value.

    several: whether to apply the pass only to programs of several launches, and not to kernels that
        access global memory before their roles (such as kernels that read numbers of keys)
    """

    name: ClassVar[str] = "programmatic-launch"
    several: bool = False

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            alone = launch_order(kernel) is None
            if not self.several or not (alone or any(map(accesses_global, body(kernel)))):
                _wait(kernel)


def _wait(kernel: func.FuncOp) -> None:
    roles = [op for op in body(kernel) if isinstance(op, tc.RoleOp)]
    if not any(string(role, "kind") == PRODUCER for role in roles):
        raise match_failure(
            kernel,
            f"expected a kernel with a role of kind {PRODUCER}, got none; run assign-roles first",
        )
    for op in body(kernel):
        if accesses_global(op):
            raise match_failure(
                op,
                f"expected accesses to global memory in roles only, got {op.operation.name} before "
                "them: it would have to wait for the previous launch, and so would the set-up",
            )
    kernel.attributes[PROGRAMMATIC] = ir.UnitAttr.get()
    if per_sm := optional_integer(kernel, CTAS_PER_SM):
        least = DEFAULT_TARGET.smem_per_sm // (per_sm + 1)
        kernel.attributes["tc.smem_bytes"] = i64(max(integer(kernel, "tc.smem_bytes"), least))
    for role in roles:
        block = role.body.blocks[0]
        first = next((op for op in block if any(map(accesses_global, walk(op)))), None)
        if first is None:
            continue
        with ir.InsertionPoint.at_block_begin(block), first.location:
            tc.GridWaitOp()
        if string(role, "kind") == PRODUCER:
            with ir.InsertionPoint(block), first.location:
                tc.GridLaunchDependentsOp()
