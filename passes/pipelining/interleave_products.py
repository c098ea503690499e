"""interleave-products: issues the products of one tile during the softmax of another tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.types import TmemType
from tcir.dialect.walk import nested
from tcir.dialect.warp_map import MMA, SOFTMAX
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.kernel_ops import accumulator_of, ancestor_in, body, find_kernels
from tcir.passes.pipelining.exchanges import MULTIPLIES
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class InterleaveProducts(Pass):
    """Issues the product for the scores of a tile's next block right after the product with the
    values of its previous block.

    Before, in the role of the mma, for two tiles of queries::

        scf.for %j = 0 to %n {
          wait K(%j); mma S0; mma S1; free K(%j)
          wait V(%j); wait P0; mma O0; wait P1; mma O1; free V(%j)
        }

    After::

        wait K(0); mma S0; mma S1; free K(0)
        scf.for %j = 1 to %n {
          wait V(%j - 1); wait P0; mma O0 of block %j - 1; wait K(%j); mma S0 of block %j
          wait P1; mma O1 of block %j - 1; free V(%j - 1); mma S1 of block %j; free K(%j)
        }
        wait V(%n - 1); wait P0; mma O0; wait P1; mma O1; free V(%n - 1)

    While the tensor core computes the products of one tile, other warps compute the softmax of the
    other tile. A kernel with one tile stays as it is, because the order of its products would not
    change. The loop has at least one iteration. Preserves the products, and their order for each
    tile in tensor memory.
    """

    name: ClassVar[str] = "interleave-products"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "assign-roles"):
            roles = {string(op, "kind"): op for op in body(kernel) if isinstance(op, tc.RoleOp)}
            if not set(SOFTMAX) <= set(roles):
                continue
            for op in list(nested(roles[MMA])):
                if isinstance(op, scf.ForOp) and (steps := _Steps.of(op)):
                    _interleave(op, steps)
            for kind in SOFTMAX:
                _take_turns(roles[kind])


@dataclass
class _Steps:
    """The ops of a block: indices and slots; of each tile those up to its scores and their commits;
    the same of its values."""

    places: list[ir.OpView] = field(default_factory=list)
    scores: list[list[ir.OpView]] = field(default_factory=list)
    values: list[list[ir.OpView]] = field(default_factory=list)

    @staticmethod
    def of(loop: scf.ForOp) -> _Steps | None:
        """Matches the steps of a loop over the blocks of several tiles; None if the loop has
        another form."""
        steps = _Steps()
        multiplied: ir.Value | None = None
        waits: list[ir.OpView] = []
        step: list[ir.OpView] = []
        for op in list(loop.body)[:-1]:
            if isinstance(op, tc.SlotOp) or op.operation.name.startswith("arith."):
                steps.places.append(op)
            elif isinstance(op, tc.CommitOp):
                step.append(op)
            elif not isinstance(op, MULTIPLIES):
                waits.append(op)
            else:
                d = accumulator_of(op.d)
                if multiplied is None or d != multiplied:
                    multiplied, step = d, []
                    stored = isinstance(op.a.type, TmemType)
                    (steps.values if stored else steps.scores).append(step)
                step += [*waits, op]
                waits = []
        several = len(steps.scores) == len(steps.values) > 1
        return steps if several and not waits else None


def _interleave(loop: scf.ForOp, steps: _Steps) -> None:
    def places(block: ir.Value) -> Mapping:
        mapping: Mapping = {loop.induction_variable: block}
        _copy(steps.places, mapping)
        return mapping

    with ir.InsertionPoint(loop), loop.location:
        one = index.value(1)
        first = places(index.value(0))
        for scores in steps.scores:
            _copy(scores, first)
        new = scf.ForOp(one, loop.upperBound, one)
        for name in loop.attributes:
            new.attributes[name] = loop.attributes[name]
        with ir.InsertionPoint(new.body):
            block = new.induction_variable
            now, past = places(block), places(index.value(index.sub(block, 1)))
            for values, scores in zip(steps.values, steps.scores, strict=True):
                _copy(values, past)
                _copy(scores, now)
            scf.YieldOp([])
        last = places(index.value(index.sub(loop.upperBound, 1)))
        for values in steps.values:
            _copy(values, last)
    loop.operation.erase()


def _take_turns(role: tc.RoleOp) -> None:
    """Lets the roles compute the exponentials of a block one after another."""
    (powers,) = [op for op in nested(role) if isinstance(op, tc.RowExponentialsOp)]
    outermost = ancestor_in(powers, role.body.blocks[0])

    def turn(kind: str) -> None:
        tc.TurnOp(ir.StringAttr.get(kind), i64(len(SOFTMAX)))

    with powers.location:
        with ir.InsertionPoint(outermost):
            turn("begin")
        with ir.InsertionPoint(powers):
            turn("wait")
        with ir.InsertionPoint.after(powers):
            turn("pass")
        with ir.InsertionPoint.after(outermost):
            turn("end")


def _copy(ops: Sequence[ir.OpView], mapping: Mapping) -> None:
    for op in ops:
        clone(op, mapping)
