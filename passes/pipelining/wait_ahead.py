"""wait-ahead: waits for the tiles of the next step during the products of this step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import arith, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of
from tcir.passes.emit import index
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.kernel_ops import find_kernels, walk_body
from tcir.passmanager.pipeline import Pass, register_pass

MULTIPLYING = (tc.WgmmaProductOp, tc.WgmmaWaitOp)


@register_pass
@dataclass(frozen=True)
class WaitAhead(Pass):
    """Waits for the tiles of a step before it waits for the products of the previous step.

    Before, in a kernel with partial sums::

        %d = scf.for %k = 1 to 64 iter_args(%c = …) {
          "tc.mbarrier_wait"(full of %k)
          "tc.wgmma_product"; "tc.wgmma_wait"; "tc.add_fragment"
          "tc.wgmma_product"; "tc.wgmma_wait"; "tc.mbarrier_arrive"; "tc.add_fragment"
        }

    After::

        "tc.mbarrier_wait"(full of 1)
        %d, … = scf.while (%c = …, %slot = …, %next = 2) {
          "tc.wgmma_product"; "tc.wgmma_wait"; "tc.add_fragment"
          "tc.wgmma_product"
          %more = %next < 64
          %following = scf.if %more { "tc.mbarrier_wait"(full of %next); yield its slot } else { … }
          "tc.wgmma_wait"; "tc.mbarrier_arrive"; "tc.add_fragment"
          scf.condition(%more) …, %following, %next + 1
        } do { scf.yield … }

    While one warpgroup adds partial sums, the tensor core executes the product of the other. To
    keep it busy, the first warpgroup must issue its next product before the other's product is
    done. Computing the slot and its phase and polling the barrier takes longer than the addition,
    so this work is moved to a separate branch during the second product, where it does not come
    between the instructions of a product. The loop has the same condition as the branch. A step's
    slot is freed only after the step, so the ring needs at least two slots; otherwise the kernel
    stays as it is. Preserves every value, and the order of all other ops.
    """

    name: ClassVar[str] = "wait-ahead"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            for op in list(walk_body(kernel)):
                if isinstance(op, scf.ForOp) and _adds(op):
                    _wait_ahead(op)


def _adds(loop: scf.ForOp) -> bool:
    """Whether each step multiplies, and waits for one slot of a ring of several."""
    first, end, step = (constant_of(v) for v in (loop.lowerBound, loop.upperBound, loop.step))
    waits = [op for op in loop.body if isinstance(op, tc.MbarrierWaitOp)]
    slots = [op for op in loop.body if isinstance(op, tc.SlotOp)]
    return (
        all(any(isinstance(op, kind) for op in loop.body) for kind in MULTIPLYING)
        and not any(isinstance(op, scf.ForOp) for op in loop.body)
        and len(waits) == 1
        and all(op.ring.type.count > 1 for op in slots)
        and first is not None
        and end is not None
        and first < end
        and step == 1
    )


def _wait_ahead(loop: scf.ForOp) -> None:
    *ops, end = loop.body
    wait = next(op for op in ops if isinstance(op, tc.MbarrierWaitOp))
    last = [op for op in ops if isinstance(op, tc.WgmmaWaitOp)][-1]
    needed = _made_by(wait, ops)
    known = [op for op in needed if _is_index(op) and _is_used_beside(op, [*needed, wait])]

    def ahead(step: ir.Value) -> list[ir.Value]:
        """Emits the wait for a step's tiles; returns the indices that are known for that step."""
        mapping: Mapping = {loop.induction_variable: step}
        for op in [*needed, wait]:
            clone(op, mapping)
        return [mapping[op.operation.results[0]] for op in known]

    with ir.InsertionPoint(loop), loop.location:
        found = ahead(loop.lowerBound)
        second = index.value(index.add(loop.lowerBound, 1))
        start = [*loop.initArgs, *found, second]
        kinds, places = [value.type for value in start], [loop.location] * len(start)
        new = scf.WhileOp(kinds, start)
        body = new.before.blocks.append(*kinds, arg_locs=places)
        again = new.after.blocks.append(*kinds, arg_locs=places)
    with ir.InsertionPoint(again), loop.location:
        scf.YieldOp(list(again.arguments))
    *carried, following = body.arguments
    known_now = carried[len(loop.initArgs) :]
    with ir.InsertionPoint(body), loop.location:
        mapping: Mapping = {loop.induction_variable: index.value(index.sub(following, 1))}
    given = [*loop.inner_iter_args, *(op.operation.results[0] for op in known)]
    mapping.update(zip(given, carried, strict=True))
    with ir.InsertionPoint(body), loop.location:
        for op in ops:
            if op == last:
                more = arith.cmpi(arith.CmpIPredicate.ult, following, loop.upperBound)
                branch = scf.IfOp(more, [value.type for value in found], has_else=True)
                with ir.InsertionPoint(branch.then_block):
                    scf.YieldOp(ahead(following))
                with ir.InsertionPoint(branch.else_block):
                    scf.YieldOp(known_now)
            if op != wait and op not in known:
                clone(op, mapping)
        sums = [mapping.get(value, value) for value in end.operands]
        after = index.value(index.add(following, 1))
        scf.ConditionOp(more, [*sums, *branch.results, after])
    for old, result in zip(loop.results, new.results):
        old.replace_all_uses_with(result)
    loop.operation.erase()


def _is_index(op: ir.OpView) -> bool:
    return isinstance(op.operation.results[0].type, ir.IndexType)


def _is_used_beside(op: ir.OpView, ops: list[ir.OpView]) -> bool:
    return any(use.owner.opview not in ops for use in op.operation.results[0].uses)


def _made_by(op: ir.OpView, ops: list[ir.OpView]) -> list[ir.OpView]:
    """The ops of a block that the operands of one come from, in order."""
    found = {op}
    for each in reversed(ops):
        used = {use.owner.opview for result in each.operation.results for use in result.uses}
        if used & found:
            found.add(each)
    return [each for each in ops if each in found and each != op]
