"""unroll-rings: unrolls a loop by the number of slots of its ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of
from tcir.dialect.walk import walk
from tcir.passes.emit import index
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.kernel_ops import find_kernels, walk_body
from tcir.passmanager.pipeline import Pass, register_pass

PRODUCTS = (tc.WgmmaOp, tc.WgmmaTapsOp)
"""Ops that warpgroups wait for in every step."""


@register_pass
@dataclass(frozen=True)
class UnrollRings(Pass):
    """Unrolls the loops of a wgmma kernel that step through a ring, by the number of its slots.

    Before::

        %d = scf.for %i = 0 to 64 step 1 iter_args(%c = …) { … slot %i mod 4 … }

    After::

        %d = scf.for %i = 0 to 64 step 4 iter_args(%c = …) {
          … slot %i mod 4 …
          %j = %i + 1
          … slot %j mod 4 …
          …
        }

    Without unrolling, a warpgroup computes its slot, the phase and the descriptors between two
    wgmma groups, while the tensor core has at most the other warpgroup's group to execute. A lap is
    one pass over all slots of the ring. If a lap begins with slot 0, the slot of each step is a
    constant. Steps after the last whole lap follow the loop, and fewer than two laps need no loop.
    If slots cannot be constant, a loop whose number of steps is not a whole number of laps stays as
    it is. Preserves every op and its order.
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
    """Slots of the ring that a loop goes through, in whole laps or with a constant slot for each
    step; else 0."""
    parent = loop.operation.parent
    while not isinstance(parent.opview, tc.RoleOp | func.FuncOp):
        parent = parent.parent
    if isinstance(parent.opview, func.FuncOp) or any(
        isinstance(op, scf.ForOp) for op in list(walk(loop))[1:]
    ):
        return 0
    counts = {op.ring.type.count for op in loop.body if isinstance(op, tc.SlotOp)}
    first, end, step = (constant_of(v) for v in (loop.lowerBound, loop.upperBound, loop.step))
    if len(counts) != 1 or first is None or end is None or step != 1:
        return 0
    (count,) = counts
    laps, rest = divmod(end - first, count)
    whole = laps > 1 and rest == 0
    return int(count) if whole or laps and _has_constant_slots(loop, first, count) else 0


def _has_constant_slots(loop: scf.ForOp, first: int, count: int) -> bool:
    """Whether the slots of a lap are 0, 1, … in every execution of the loop."""
    slots = [op.operands[1].owner for op in loop.body if isinstance(op, tc.SlotOp)]
    return first % count == 0 and all(
        not isinstance(slot, ir.Block) and _is_slot(slot.opview, loop.induction_variable, count)
        for slot in slots
    )


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
    first, end = (constant_of(v) or 0 for v in (loop.lowerBound, loop.upperBound))
    laps = (end - first) // count
    looped = laps * count if laps > 1 else 0
    carried = list(loop.initArgs)
    with ir.InsertionPoint(loop), loop.location:
        if looped:
            upper = index.value(first + looped)
            new = scf.ForOp(loop.lowerBound, upper, index.value(count), carried)
            for name in loop.attributes:
                new.attributes[name] = loop.attributes[name]
            carried = list(new.inner_iter_args)
            with ir.InsertionPoint(new.body):
                for number in range(count):
                    at = index.value(index.add(new.induction_variable, number))
                    carried = _step(loop, at, first + number, count, carried)
                scf.YieldOp(carried)
            carried = list(new.results)
        for number in range(first + looped, end):
            carried = _step(loop, index.value(number), number, count, carried)
    for old, result in zip(loop.results, carried, strict=True):
        old.replace_all_uses_with(result)
    loop.operation.erase()


def _step(
    loop: scf.ForOp, at: ir.Value, number: int, count: int, carried: list[ir.Value]
) -> list[ir.Value]:
    """The loop's body in iteration `at`, which is `number` up to whole laps from its first one."""
    aligned = (constant_of(loop.lowerBound) or 0) % count == 0
    mapping: Mapping = {loop.induction_variable: at}
    mapping.update(zip(loop.inner_iter_args, carried, strict=True))
    *ops, last = loop.body.operations
    for op in ops:
        if aligned and _is_slot(op, loop.induction_variable, count):
            mapping[op.results[0]] = index.value(number % count)
        else:
            clone(op, mapping)
    return [mapping.get(value, value) for value in last.operands]
