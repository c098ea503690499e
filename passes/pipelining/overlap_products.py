"""overlap-products: issues the wgmma of a step before it waits for the wgmma of the previous
step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of, integer, optional_integer
from tcir.dialect.limits import WARPGROUP
from tcir.dialect.warp_map import CONSUMER, warp_map_of
from tcir.passes.emit.builders import i64
from tcir.passes.emit.kernel_ops import CTAS_PER_SM, body, find_kernels, walk_body
from tcir.passes.emit.limits import OVERLAPPED_SLOTS
from tcir.passes.pipelining.unroll_rings import PRODUCTS
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class OverlapProducts(Pass):
    """If a single warpgroup multiplies, keeps one wgmma group in flight across the steps that
    `unroll-rings` has made.

    Before, in the role of the consumers::

        %d = scf.for … {
          wait full[0]; %p = "tc.wgmma"(…); %e = "tc.wgmma_wait"(%p) {pending = 0}; arrive empty[0]
          wait full[1]; %q = "tc.wgmma"(…); %f = "tc.wgmma_wait"(%q) {pending = 0}; arrive empty[1]
          …
        }

    After::

        %d = scf.for … {
          wait full[0]; %p = "tc.wgmma"(…); %e = "tc.wgmma_wait"(%p) {pending = 1}
          wait full[1]; %q = "tc.wgmma"(…); %f = "tc.wgmma_wait"(%q) {pending = 1}; arrive empty[0]
          …
          wait full[7]; … "tc.wgmma_wait"(%z) {pending = 0}; arrive empty[6]; arrive empty[7]
        }

    With two warpgroups, one multiplies while the other waits. A single warpgroup leaves the tensor
    core idle from the end of a group until it finds the next slot full; with 64 columns that takes
    as long as the multiplication. A slot is freed one step later than before, so kernels whose
    rings have fewer than four slots stay as they are. Kernels with two CTAs on an SM also stay as
    they are, because their rings are short. No group is in flight at the end of a lap, which is one
    pass over all slots of the ring. Preserves every value, and the order of products.
    """

    name: ClassVar[str] = "overlap-products"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            if not _multiplies_alone(kernel):
                continue
            shared = (optional_integer(kernel, CTAS_PER_SM) or 1) > 1
            roles = [op for op in body(kernel) if isinstance(op, tc.RoleOp)]
            loops = [op for op in walk_body(kernel) if isinstance(op, scf.ForOp)]
            for op in [*roles, *(loop for loop in loops if not (shared and _is_lap(loop)))]:
                steps = list(op.regions[0].blocks[0])
                if _slots(steps) >= OVERLAPPED_SLOTS:
                    _overlap(steps)


def _multiplies_alone(kernel: func.FuncOp) -> bool:
    """Whether the consumers are one warpgroup."""
    roles = warp_map_of(kernel)
    return CONSUMER in roles.kinds and roles.threads(CONSUMER) == WARPGROUP


def _is_lap(loop: scf.ForOp) -> bool:
    """Whether an iteration is several steps."""
    return constant_of(loop.step) != 1


def _slots(ops: list[ir.OpView]) -> int:
    return min((op.ring.type.count for op in ops if isinstance(op, tc.SlotOp)), default=0)


def _overlap(ops: list[ir.OpView]) -> None:
    """Moves the arrivals that free a step's slots after the wait of the next step."""
    waits: list[tc.WgmmaWaitOp] = []
    frees: list[list[ir.Operation]] = []
    for op in ops:
        if isinstance(op, tc.WgmmaWaitOp):
            if integer(op, "pending") or not isinstance(op.d.owner.opview, PRODUCTS):
                return
            waits.append(op)
            frees.append([])
        elif isinstance(op, tc.MbarrierArriveOp) and waits:
            frees[-1].append(op.operation)
    for wait, behind, freed in zip(waits, waits[1:], frees):
        wait.attributes["pending"] = i64(1)
        for op in reversed(freed):
            op.move_after(behind.operation)
