"""delay-waits: waits for the products of a step only where their sums are used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.ops.warpgroup import WGMMA_OPS
from tcir.passes.emit.builders import i64
from tcir.passes.emit.kernel_ops import find_kernels, walk_body
from tcir.passmanager.pipeline import Pass, register_pass

LEAST = 3
"""Products of a step with others to compute beside them: fewer wait for each other's sums."""


@register_pass
@dataclass(frozen=True)
class DelayWaits(Pass):
    """Moves the waits of a step with several products to the first use of their sums.

    Before, in the role of the consumers (gradients of keys and values)::

        %s = "tc.wgmma_product"(%k, %q); wait %s; %dp = "tc.wgmma_product"(%v, %do); wait %dp
        … %p of %s …; %dv1 = "tc.wgmma_fragment"(%p, %do, %dv); wait %dv1
        … %ds of %p, %dp …; %dk1 = "tc.wgmma_fragment"(%ds, %q, %dk); wait %dk1; arrive

    After::

        %s = "tc.wgmma_product"(%k, %q); %dp = "tc.wgmma_product"(%v, %do)
        wait %s {pending = 1}; … %p of %s …; %dv1 = "tc.wgmma_fragment"(%p, %do, %dv)
        wait %dp {pending = 1}; … %ds of %p, %dp …; %dk1 = "tc.wgmma_fragment"(%ds, %q, %dk)
        wait %dv1 {pending = 1}; wait %dk1 {pending = 0}; arrive

    In this order the tensor core multiplies while the warpgroup computes exponentials. A wait stays
    before the arrival that frees the tiles of its product, and before the end of the step.
    Preserves every value, and the order of products.
    """

    name: ClassVar[str] = "delay-waits"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            for op in list(walk_body(kernel)):
                if isinstance(op, scf.ForOp):
                    _delay(list(op.body))


def _delay(ops: list[ir.OpView]) -> None:
    """Moves the waits among the ops of a loop's body."""
    products = [op for op in ops if isinstance(op, WGMMA_OPS)]
    waits = [op for op in ops if isinstance(op, tc.WgmmaWaitOp)]
    if len(products) < LEAST or [wait.d for wait in waits] != [op.d for op in products]:
        return
    for wait in waits:
        later = ops[ops.index(wait) + 1 :]
        place = next(op for op in later if _ends(op, wait))
        issued = ops[ops.index(wait) : ops.index(place)]
        wait.attributes["pending"] = i64(sum(isinstance(op, WGMMA_OPS) for op in issued))
        wait.operation.move_before(place.operation)


def _ends(op: ir.OpView, wait: tc.WgmmaWaitOp) -> bool:
    """Whether an op needs the sums of a wait, or its product to be complete."""
    uses = {use.owner.operation for use in wait.e.uses}
    frees = isinstance(op, tc.MbarrierArriveOp | scf.YieldOp)
    return frees or op.operation in uses
