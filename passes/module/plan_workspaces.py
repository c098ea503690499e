"""plan-workspaces: places the workspaces between launches in one allocation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.passes.emit.builders import i64s
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.program.programs import find_programs
from tcir.program.workspaces import OFFSETS, Workspaces, aligned, sizes_of

Lifetime = tuple[int, int]
"""The first launch that uses a workspace, which writes it, and the last one."""


@register_pass
@dataclass(frozen=True)
class PlanWorkspaces(Pass):
    """Gives workspaces that are never in use together the same memory.

    Before::

        builtin.module attributes {tc.workspaces = array<i64: 2048, 64, 1024>}
        @f_0 {tc.order = 0, tc.args = array<i64: 0, 4>}     // writes workspace 4
        @f_1 {tc.order = 1, tc.args = array<i64: 4, 5>} // the last launch that reads 4 @f_2
        {tc.order = 2, tc.args = array<i64: 5, 1, 6>} @f_3 {tc.order = 3, tc.args = array<i64: 6, 2,
        3>}

    After (workspace 4 is no longer read when workspace 6 is written, so both are at offset 0)::

        builtin.module attributes {tc.workspace_offsets = array<i64: 0, 2048, 0>, …}

    Workspaces are placed largest first, each at the lowest offset at which it overlaps no workspace
    that is in use at the same time (greedy by size, as in Pisarchyk and Lee, Efficient Memory
    Management for Deep Neural Net Inference, 2020). A launch that may start before the previous
    launch has ended waits for that launch before it accesses memory, so it needs no special
    treatment. Preserves every value: kernels stay as they are.
    """

    name: ClassVar[str] = "plan-workspaces"

    def run(self, module: ir.Module) -> None:
        apart = Workspaces.apart(sizes_of(module))
        if len(apart.sizes) < 2:
            return
        programs = find_programs(module)
        used = [program.buffers for program in programs]
        first = 1 + max(max(numbers) for numbers in used) - len(apart.sizes)
        numbers = range(first, first + len(apart.sizes))
        lives = [_lifetime(place for place, each in enumerate(used) if n in each) for n in numbers]
        planned = Workspaces(apart.sizes, tuple(plan(apart.sizes, lives)))
        module.operation.attributes[OFFSETS] = i64s(planned.offsets)
        remark(
            programs[0].op,
            f"{len(planned.sizes)} workspaces in {planned.arena} bytes, of {apart.arena} without "
            "sharing",
        )


def plan(sizes: Sequence[int], lives: Sequence[Lifetime]) -> list[int]:
    """The offset of each workspace. sizes: bytes of each; lives: the launches during which each is
    in use"""
    offsets: dict[int, int] = {}
    for number in sorted(range(len(sizes)), key=lambda n: (-sizes[n], n)):
        begin, end = lives[number]
        together = [n for n in offsets if lives[n][0] <= end and begin <= lives[n][1]]
        offset = 0
        for other in sorted(together, key=offsets.__getitem__):
            if offset + sizes[number] <= offsets[other]:
                break
            offset = max(offset, aligned(offsets[other] + sizes[other]))
        offsets[number] = offset
    return [offsets[number] for number in range(len(sizes))]


def _lifetime(places: Iterable[int]) -> Lifetime:
    found = list(places)
    return found[0], found[-1]
