"""take-turns: lets one warpgroup compute exponentials while another multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.limits import WARPGROUP
from tcir.dialect.ops.warpgroup import FRAGMENT_PRODUCTS
from tcir.dialect.warp_map import CONSUMER, warp_map_of
from tcir.passes.emit.builders import i64
from tcir.passes.emit.kernel_ops import find_kernels, walk_body
from tcir.passmanager.pipeline import Pass, register_pass

MOST_BYTES = 128
"""Most bytes of a row of values for which exponentials take as long as the products: with more the
tensor core is never without work, and turns only delay it (an H200, 128 columns of 16 bits: 5 %
slower)."""


@register_pass
@dataclass(frozen=True)
class TakeTurns(Pass):
    """Lets the warpgroups of an attention issue the products of a block one after another.

    Before, in the role of the consumers::

        scf.for %j = … {
          wait K(%j); "tc.wgmma_product"; wait V(%j - 1); "tc.wgmma_fragment"
          … softmax …
        }

    After::

        "tc.turn"() {kind = "begin"}
        scf.for %j = … {
          wait K(%j); "tc.turn"() {kind = "wait"}; "tc.wgmma_product"
          wait V(%j - 1); "tc.wgmma_fragment"; "tc.turn"() {kind = "pass"}
          … softmax …
        }
        "tc.turn"() {kind = "end"}

    Without turns the warpgroups tend to multiply at the same time, and then to compute exponentials
    at the same time, while the tensor core is idle. The turns continue from one tile to the next:
    "begin" and "end" are outside all loops. A kernel of one warpgroup, or with heads of more than
    128 bytes, stays as it is. Preserves every value.
    """

    name: ClassVar[str] = "take-turns"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "skew-attention"):
            roles = warp_map_of(kernel)
            if CONSUMER not in roles.kinds:
                continue
            count = roles.threads(CONSUMER) // WARPGROUP
            for op in list(walk_body(kernel)):
                if count > 1 and isinstance(op, scf.ForOp):
                    _take_turns(op, count)


def _take_turns(loop: scf.ForOp, count: int) -> None:
    ops = list(loop.body)
    first = [op for op in ops if isinstance(op, tc.WgmmaProductOp)]
    last = [op for op in ops if isinstance(op, FRAGMENT_PRODUCTS)]
    if not first or not last or any(isinstance(op, scf.ForOp) for op in ops):
        return
    before = isinstance(last[-1].a.owner, ir.Block)  # made in the iteration before
    skewed = before and ops.index(first[0]) < ops.index(last[-1])
    bytes_ = (op.d.type.shape[1] * tc.element_bytes(op.b.type.element) for op in last)
    if not skewed or max(bytes_) > MOST_BYTES:
        return

    def turn(kind: str) -> None:
        tc.TurnOp(ir.StringAttr.get(kind), i64(count))

    outermost = loop
    while outermost.operation.parent.name != tc.RoleOp.OPERATION_NAME:
        outermost = outermost.operation.parent.opview
    with loop.location:
        with ir.InsertionPoint(outermost):
            turn("begin")
        with ir.InsertionPoint(first[0]):
            turn("wait")
        with ir.InsertionPoint.after(last[-1]):
            turn("pass")
        with ir.InsertionPoint.after(outermost):
            turn("end")
