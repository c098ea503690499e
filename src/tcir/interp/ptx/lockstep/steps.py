"""Steps of a trace that access no memory: computations, and comparisons with the leader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tcir.interp.ptx.lanes import LANE_MASK
from tcir.interp.ptx.lockstep.group import LockstepGroup, Operand
from tcir.interp.ptx.lockstep.lanes_of import Active
from tcir.interp.ptx.op import Compute
from tcir.machine.memory.effects import Effect


class Step(Protocol):
    """One step of a trace: an instruction, or a part of an instruction."""

    def run(self, group: LockstepGroup) -> None:
        """Executes the step in all CTAs of the group."""


@dataclass(frozen=True)
class Computing:
    """Replays an instruction that only computes.

    old:      previous values of its results, which lanes that do not execute it keep
    spelling: its PTX text without operands
    """

    active: Active
    compute: Compute
    operands: tuple[Operand, ...]
    old: tuple[Operand | None, ...]
    spelling: str

    def run(self, group: LockstepGroup) -> None:
        active, compute, warp = self.active, self.compute, self.active.warp
        values = []
        for n, (operand, (_, view)) in enumerate(zip(self.operands, compute.sources, strict=True)):
            value = group.value(warp, operand, view)
            values.append(~value if n in compute.flips else value)
        if compute.divisor >= 0:
            zero = (values[compute.divisor] == 0).reshape(group.count, 32) & active.of(group)
            group.leave((zero & ~zero[0]).any(axis=1))  # the leader's result is undefined, too
        found = compute.fn(*values)
        results = found if isinstance(found, tuple) else (found,)
        where = active.where(group)
        for (slot, view), result, old in zip(compute.results, results, self.old, strict=True):
            group.assign(warp, slot, view, result, where, old)
        if compute.products and active.guard >= 0:
            own = active.of(group).sum(axis=1)
            group.count_beyond("simt_products", compute.products * own)


@dataclass(frozen=True)
class SameLanes:
    """Requires that a varying guard selects the same lanes as in the leader."""

    active: Active

    def run(self, group: LockstepGroup) -> None:
        own = self.active.of(group)
        group.leave((own != LANE_MASK[self.active.leader]).any(axis=1))


@dataclass(frozen=True)
class SameValue:
    """Requires that a register has the leader's value in these lanes."""

    warp: int
    slot: int
    lanes: int

    def run(self, group: LockstepGroup) -> None:
        row = group.registers[self.warp][self.slot]
        row = row.view(f"u{row.itemsize}").reshape(group.count, -1)  # bits, whatever the type
        own = row[:, LANE_MASK[self.lanes]]
        group.leave((own != own[0]).any(axis=1))


@dataclass(frozen=True)
class OnMemories:
    """Replays an operation of the tensor core on the memories of the CTAs."""

    effect: Effect

    def run(self, group: LockstepGroup) -> None:
        well = self.effect.apply(group.smem, group.tmem)
        if well is not None:
            group.leave(~well)
