"""unroll-rings: a step of a loop for each slot of its ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of
from tcir.dialect.walk import walk
from tcir.passes.build import index
from tcir.passes.build.clone import Mapping, clone
from tcir.passes.build.kernel_ops import find_kernels, walk_body
from tcir.passmanager.pipeline import Pass, register_pass

PRODUCTS = (tc.WgmmaOp, tc.WgmmaTapsOp)
"""What warpgroups wait for in every step."""


@register_pass
@dataclass(frozen=True)
class UnrollRings(Pass):
    """Unrolls the loops of a kernel of wgmma that step through a ring, by the slots of the ring.

    Before::

        %d = scf.for %i = 0 to 64 step 1 iter_args(%c = …) { … slot %i mod 4 … }

    After::

        %d = scf.for %i = 0 to 64 step 4 iter_args(%c = …) {
          … slot %i mod 4 …
          %j = %i + 1
          … slot %j mod 4 …
          …
        }

    Between two groups of wgmma a warpgroup finds its slot, the phase, and the descriptors there:
    cycles in which the tensor core has only the other warpgroup's group, if that is not waited
    for, too. Where a lap begins with slot 0 each step has a slot of its own, a constant. Loops
    whose iterations are no multiple of the slots stay as they are. Preserves every op and its
    order.
    """

    name: ClassVar[str] = "unroll-rings"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            ops = list(walk_body(kernel))
            if not any(isinstance(op, PRODUCTS) for op in ops):
                continue
            for op in ops:
                if isinstance(op, scf.ForOp) and (slots := _slots(op)) > 1:
                    _unroll(op, slots)


def _slots(loop: scf.ForOp) -> int:
    """Slots of the ring that a loop goes through in whole laps, more than one; else 0."""
    parent = loop.operation.parent
    while parent.name not in ("tc.role", "func.func"):
        parent = parent.parent
    if parent.name != "tc.role" or any(isinstance(op, scf.ForOp) for op in list(walk(loop))[1:]):
        return 0
    counts = {op.ring.type.count for op in loop.body if isinstance(op, tc.SlotOp)}
    first, end, step = (constant_of(v) for v in (loop.lowerBound, loop.upperBound, loop.step))
    if len(counts) != 1 or first is None or end is None or step != 1:
        return 0
    (count,) = counts
    laps, rest = divmod(end - first, count)
    return int(count) if laps > 1 and rest == 0 else 0


def _is_slot(op: ir.OpView, step: ir.Value, count: int) -> bool:
    """Whether an op is the remainder of a step and a multiple of `count`, by `count`."""
    if op.operation.name != "arith.remui" or constant_of(op.operation.operands[1]) != count:
        return False
    parts = _summands(op.operation.operands[0])
    others = [part for part in parts if part != step]
    return len(parts) == len(others) + 1 and all(_is_multiple(each, count) for each in others)


def _summands(value: ir.Value) -> list[ir.Value]:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.addi":
        return [value]
    return [each for operand in value.owner.operands for each in _summands(operand)]


def _is_multiple(value: ir.Value, count: int) -> bool:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.muli":
        return False
    return any((constant_of(each) or 1) % count == 0 for each in value.owner.operands)


def _unroll(loop: scf.ForOp, count: int) -> None:
    with ir.InsertionPoint(loop), loop.location:
        new = scf.ForOp(
            loop.lowerBound, loop.upperBound, index.value(count), list(loop.initArgs)
        )  # fmt: skip
    aligned = (constant_of(loop.lowerBound) or 0) % count == 0
    for name in loop.attributes:
        new.attributes[name] = loop.attributes[name]
    carried: list[ir.Value] = list(new.inner_iter_args)
    *ops, last = loop.body.operations
    with ir.InsertionPoint(new.body), loop.location:
        for number in range(count):
            at = index.value(index.add(new.induction_variable, number))
            mapping: Mapping = {loop.induction_variable: at}
            mapping.update(zip(loop.inner_iter_args, carried, strict=True))
            for op in ops:
                if aligned and _is_slot(op, loop.induction_variable, count):
                    mapping[op.results[0]] = index.value(number)
                else:
                    clone(op, mapping)
            carried = [mapping.get(value, value) for value in last.operands]
        scf.YieldOp(carried)
    for old, result in zip(loop.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    loop.operation.erase()
