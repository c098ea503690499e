"""skew-attention: multiplies the next block's scores during this block's softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tcir._mlir import arith, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of
from tcir.dialect.ops.warpgroup import FRAGMENT_PRODUCTS
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.kernel_ops import find_kernels, walk_body
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class SkewAttention(Pass):
    """Issues the product for the scores of the next block before it waits for the product with this
    block's values.

    Before, in the role of the consumers::

        %o, %m, %l = scf.for %j = 0 to %n iter_args(%o = 0, %m = -inf, %l = 0) {
          wait K(%j); %s = "tc.wgmma_product"(%q, %k); "tc.wgmma_wait"(%s); free K(%j)
          … %p, %alpha of %s and %m …; %a = "tc.fragment_as_a"(%p)
          %scaled = "tc.scale_fragment"(%o, %alpha)
          wait V(%j); %d = "tc.wgmma_fragment"(%a, %v, %scaled); "tc.wgmma_wait"(%d); free V(%j)
        }

    After::

        scores, softmax and %a of block 0
        … = scf.for %j = 1 to %n iter_args(…, %a) {
          wait K(%j); %s = "tc.wgmma_product"(%q, %k)
          wait V(%j - 1); %d = "tc.wgmma_fragment"(%a, %v, %o)
          "tc.wgmma_wait"(%s) {pending = 1}; free K(%j)
          … %p, %alpha of %s and %m …
          "tc.wgmma_wait"(%d) {pending = 0}; free V(%j - 1)
          %a1 = "tc.fragment_as_a"(%p); %scaled = "tc.scale_fragment"(%d, %alpha)
        }
        wait V(%n - 1); %d = "tc.wgmma_fragment"(%a, %v, %o); "tc.wgmma_wait"(%d); free V(%n - 1)

    The tensor core multiplies the values of a block while the warpgroup computes the exponentials
    of the next one. If there may be no block, a branch skips all of this. The ring needs at least
    two slots, because it holds K and V of different blocks; otherwise the kernel stays as it is.
    If the product has no accumulator ("tc.wgmma_fragment_product"), a "tc.add_fragment" follows its
    wait. Preserves every floating-point operation and, for each number, the order of the operations
    on it.
    """

    name: ClassVar[str] = "skew-attention"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            for op in list(walk_body(kernel)):
                if isinstance(op, scf.ForOp) and (steps := _Steps.of(op)):
                    _skew(op, steps)


@dataclass
class _Steps:
    """The ops of a block, in four parts: indices and slots; the product of the scores, up to the
    arrival that frees K; the softmax; and the product with V."""

    places: list[ir.OpView] = field(default_factory=list)
    scores: list[ir.OpView] = field(default_factory=list)
    softmax: list[ir.OpView] = field(default_factory=list)
    values: list[ir.OpView] = field(default_factory=list)

    @staticmethod
    def of(loop: scf.ForOp) -> _Steps | None:
        """Divides the body of a loop with both products into parts. None if one of the products is
        missing, if both read tiles of one ring (as in kernels of gradients), or if a ring has only
        one slot."""
        ops = list(loop.body)[:-1]
        if not any(isinstance(op, FRAGMENT_PRODUCTS) for op in ops):
            return None
        slots = [op for op in ops if isinstance(op, tc.SlotOp)]
        if not slots or min(op.ring.type.count for op in slots) < 2:
            return None
        steps, now = _Steps(), "scores"
        for op in ops:
            if isinstance(op, tc.SlotOp) or op.operation.name.startswith("arith."):
                steps.places.append(op)
                continue
            if now == "softmax" and isinstance(op, tc.MbarrierWaitOp):
                now = "values"
            getattr(steps, now).append(op)
            if now == "scores" and isinstance(op, tc.MbarrierArriveOp):
                now = "softmax"
        return steps if steps.values else None


def _skew(loop: scf.ForOp, steps: _Steps) -> None:
    first, end = constant_of(loop.lowerBound), constant_of(loop.upperBound)
    with ir.InsertionPoint(loop), loop.location:
        if end == 0:
            return
        if first == 0 and end is not None:
            results = _skewed(loop, steps)
        else:
            some = arith.cmpi(arith.CmpIPredicate.ne, loop.upperBound, loop.lowerBound)
            kinds = [value.type for value in loop.results]
            branch = scf.IfOp(some, kinds, has_else=True)
            with ir.InsertionPoint(branch.then_block):
                scf.YieldOp(_skewed(loop, steps))
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp(list(loop.initArgs))
            results = list(branch.results)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.operation.erase()


def _skewed(loop: scf.ForOp, steps: _Steps) -> list[ir.Value]:
    """Emits the blocks with skewed products; returns the values that replace the loop's results."""
    *_, last = loop.body.operations
    multiplied = next(op for op in steps.values if isinstance(op, FRAGMENT_PRODUCTS))
    waited = next(op for op in steps.values if isinstance(op, tc.WgmmaWaitOp))
    added = next((op for op in steps.values if isinstance(op, tc.AddFragmentOp)), None)
    summed = waited.e if added is None else added.c
    sums = list(last.operands).index(summed)
    scaled, factor = (multiplied.c if added is None else added.a), multiplied.a
    handed = [value for number, value in enumerate(last.operands) if number != sums]
    given = [value for number, value in enumerate(loop.inner_iter_args) if number != sums]
    before = loop.inner_iter_args[sums]

    def places(block: ir.Value) -> Mapping:
        mapping: Mapping = {loop.induction_variable: block}
        for op in steps.places:
            clone(op, mapping)
        return mapping

    def copy(ops: Sequence[ir.OpView], mapping: Mapping) -> None:
        for op in ops:
            clone(op, mapping)

    def ready(mapping: Mapping, start: Sequence[ir.Value], total: ir.Value) -> list[ir.Value]:
        """Emits the softmax of a block whose scores are available; returns the sums, operand A of
        the second product, and the other carried values."""
        mapping.update(zip(given, start, strict=True))
        mapping[before] = total
        copy(steps.softmax, mapping)
        return [mapping[value] for value in (scaled, factor, *handed)]

    def values(mapping: Mapping, carried: Sequence[ir.Value]) -> None:
        mapping[scaled], mapping[factor] = carried[:2]

    one = index.value(1)
    mapping = places(loop.lowerBound)
    copy(steps.scores, mapping)
    init = list(loop.initArgs)
    total = init.pop(sums)
    carried = ready(mapping, init, total)
    second = index.value(index.add(loop.lowerBound, 1))
    new = scf.ForOp(second, loop.upperBound, one, carried)
    for name in loop.attributes:
        new.attributes[name] = loop.attributes[name]
    with ir.InsertionPoint(new.body):
        block = new.induction_variable
        now, past = places(block), places(index.value(index.sub(block, 1)))
        wait = next(op for op in steps.scores if isinstance(op, tc.WgmmaWaitOp))
        at = steps.scores.index(wait)
        copy(steps.scores[:at], now)
        values(past, list(new.inner_iter_args))
        end = steps.values.index(waited)
        copy(steps.values[:end], past)
        clone(wait, now)
        now[wait.e].owner.attributes["pending"] = i64(1)
        copy(steps.scores[at + 1 :], now)
        now.update(zip(given, list(new.inner_iter_args)[2:], strict=True))
        late = _needs(steps.softmax, before, factor)
        copy([op for op in steps.softmax if op not in late], now)
        copy(steps.values[end:], past)
        now[before] = past[summed]
        copy(late, now)
        scf.YieldOp([now[value] for value in (scaled, factor, *handed)])
    last_block = places(index.value(index.sub(loop.upperBound, 1)))
    values(last_block, list(new.results))
    copy(steps.values, last_block)
    results = list(new.results)[2:]
    results.insert(sums, last_block[summed])
    return results


def _needs(ops: Sequence[ir.OpView], before: ir.Value, factor: ir.Value) -> list[ir.OpView]:
    """The ops that need the registers of the preceding product: its sums and its operand A."""
    return [
        op
        for op in ops
        if before in list(op.operation.operands) or factor in list(op.operation.results)
    ]
