"""double-buffer-fragments: loads fragments one K step before the mma that uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of
from tcir.passes.emit import index
from tcir.passes.emit.clone import Mapping, clone
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import find_kernels
from tcir.passes.warp.loops import (
    KStep,
    clone_all,
    k_steps,
    loops_with,
    operands_of,
    slice_of,
)
from tcir.passmanager.pipeline import Pass, register_pass

COPIES = (tc.CpAsyncOp, tc.OneThreadOp, scf.IfOp)
"""Ops that fill a slot; scf.if fills it with a step of the next tile, if there is one."""
HEAD = (
    tc.CpAsyncWaitOp, tc.MbarrierWaitOp, tc.FenceOp, tc.CtaBarrierOp, tc.FirstWarpBarrierOp,
)  # fmt: skip
"""Ops that wait for the tiles of an iteration."""


@register_pass
@dataclass(frozen=True)
class DoubleBufferFragments(Pass):
    """Rotates the loops of `pipeline-cp-async` or `pipeline-tma`, so that fragment loads and mma
    overlap.

    Before::

        scf.for %i iter_args(%acc) {
          wait; barrier; copies of a later step; commit
          %a0, %b0 = load_fragment …; mma_sync; %a1, %b1 = load_fragment …; mma_sync …
        }

    After::

        wait; barrier; %a, %b = load_fragment of step 0, K step 0
        scf.for %i iter_args(%acc, %a, %b) {
          per K step: load_fragment of the next K step; a share of the copies of a later step, with
          the last share the commit; mma_sync of this K step the last: wait; barrier; load_fragment
          of the next iteration's first; mma_sync } the last iteration, peeled; if the CTA has
          several tiles, it copies for the next tile

    The barrier of an iteration thus moves into the previous iteration, after the last load from
    that iteration's slot, so that the slot is free for copies. Preserves the order of the sums.
    """

    name: ClassVar[str] = "double-buffer-fragments"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "pipeline-cp-async or pipeline-tma"):
            loops = loops_with(kernel, tc.MmaSyncOp)
            if "tc.async" not in kernel.attributes or len(loops) not in (1, 2):
                raise match_failure(
                    kernel,
                    "expected the one or two loops of pipeline-cp-async or pipeline-tma with "
                    "tc.mma_sync, got "
                    f"{len(loops)}; run it first",
                )
            with loops[0].location:
                _rotate([_Body(loop) for loop in loops])


class _Body:
    """The parts of one loop's body."""

    def __init__(self, loop: scf.ForOp) -> None:
        self.loop = loop
        ops = list(loop.body)[:-1]
        self.head = [op for op in ops if isinstance(op, HEAD)]
        self.steps = k_steps(loop)
        copies = [op for op in ops if isinstance(op, COPIES)]
        places = [v for op in copies for v in operands_of(op)]
        self.commits = [op for op in ops if isinstance(op, tc.CpAsyncCommitOp)]
        self.places = slice_of(places, loop.body)
        self.copies = copies
        self.waits = slice_of([v for op in self.head for v in operands_of(op)], loop.body)
        self.slots = slice_of([v for s in self.steps for v in (s.a.tile, s.b.tile)], loop.body)
        known = [
            op.operation
            for op in (
                *self.head,
                *self.places,
                *self.copies,
                *self.commits,
                *self.slots,
                *self.waits,
                *(op for s in self.steps for op in (s.a, s.b, s.mma)),
            )
        ]
        for op in ops:
            if op.operation not in known:
                raise match_failure(
                    op, "expected copies, loads and tc.mma_sync only in the main loop"
                )

    @property
    def by_one_thread(self) -> bool:
        """Whether a single thread issues the copies."""
        return any(not isinstance(op, tc.CpAsyncOp) for op in self.copies)

    def at(self, step: ir.Value) -> Mapping:
        """Values of the body for iteration `step`, including the slots of the rings, which are
        emitted."""
        mapping: Mapping = {self.loop.induction_variable: index.value(step)}
        clone_all(self.slots, mapping)
        return mapping

    def copies_at(self, number: int) -> list[ir.OpView]:
        """The copies that are issued in K step `number`. Copies are spread evenly over all K steps
        except the last, which waits for the next slot.

        Fragment loads do not overtake copies, so many copies at once would delay them. If one
        thread issues all copies, they are issued in the first K step, which measurements showed to
        be the fastest place.
        """
        if self.by_one_thread:
            return self.copies if number == 0 else []
        last = max(len(self.steps) - 2, 0)
        count = len(self.copies)
        here = [op for i, op in enumerate(self.copies) if i * (last + 1) // count == number]
        return [*here, *(self.commits if number == last else [])]


def _load(step: KStep, mapping: Mapping) -> list[ir.Value]:
    clone_all((step.a, step.b), mapping)
    return [mapping[step.a.fragment], mapping[step.b.fragment]]


def _first(body: _Body, step: ir.Value) -> list[ir.Value]:
    """Waits for the tiles of iteration `step` and loads its first fragments."""
    waiting: Mapping = {body.loop.induction_variable: index.value(step)}
    clone_all([*body.waits, *body.head], waiting)
    return _load(body.steps[0], body.at(step))


def _iteration(
    body: _Body, step: ir.Value, total: ir.Value, held: list[ir.Value], more: bool
) -> list[ir.Value]:
    """One iteration; with `more`, the next one's first fragments are loaded in it. Without, it is a
    tile's last, and what it copies is for the next tile."""
    copied: Mapping = {body.loop.induction_variable: index.value(step)}
    copies = more or body.by_one_thread
    if copies:
        clone_all(body.places, copied)
    mapping = body.at(step)
    for number, this in enumerate(body.steps):
        following: list[ir.Value] = []
        if number + 1 < len(body.steps):
            following = _load(body.steps[number + 1], mapping)
        if copies:
            clone_all(body.copies_at(number), copied)
        if more and number + 1 == len(body.steps):
            following = _first(body, index.add(step, 1))
        values: Mapping = dict(zip((this.mma.a, this.mma.b, this.mma.c), (*held, total)))
        total = clone(this.mma, values).d
        held = following
    return [total, *held]


def _rotate(bodies: list[_Body]) -> None:
    first, last = bodies[0], bodies[-1]
    with ir.InsertionPoint(first.loop):
        values = [*first.loop.initArgs, *_first(first, 0)]
    for body in bodies:
        loop = body.loop
        bounds = [constant_of(v) for v in (loop.lowerBound, loop.upperBound)]
        if None in bounds:
            raise match_failure(loop, "expected a loop with constant bounds")
        low, high = int(bounds[0] or 0), int(bounds[1] or 0)
        end = high - 1 if body is last else high
        with ir.InsertionPoint(loop):
            if low < end:
                values = _rotated_loop(body, low, end, values)
            if body is last:
                values = _iteration(body, end, values[0], values[1:], more=False)
    last.loop.results[0].replace_all_uses_with(values[0])
    for body in reversed(bodies):
        body.loop.operation.erase()


def _rotated_loop(body: _Body, low: int, end: int, values: list[ir.Value]) -> list[ir.Value]:
    new = scf.ForOp(index.value(low), index.value(end), index.value(1), values)
    with ir.InsertionPoint(new.body):
        total, *held = new.inner_iter_args
        scf.YieldOp(_iteration(body, new.induction_variable, total, held, more=True))
    return list(new.results)
