"""The work of a program, from the counters of its executions: budgets and remarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FACTOR = 20
"""Instructions (or loop turns) that a level may take, relative to the level before."""
LEAST = 100_000
"""Warp instructions that any program may execute: about a second."""
BYTES_PER_INSTRUCTION = 8
"""Bytes moved by tiles for each instruction of the first thread level; a warp moves up to 512."""
INSTRUCTIONS_PER_BYTE = 64
"""Instructions per byte of inputs and results that the first level below tensors, or an input below
them, may take."""
JUMP = 2
"""Growth of a counter that makes a remark."""

MOVED = (
    "global_to_shared", "shared_to_global", "shared_to_tmem", "tmem_load", "tmem_store",
    "global_load", "global_store", "shared_load", "shared_store",
)  # fmt: skip
WORK = (
    "ctas", "instructions", "loop_turns", "mma", "tensor_cycles", "global_to_shared",
    "shared_to_global", "global_load", "global_store", "tmem_load", "tma_loads", "tma_stores",
)  # fmt: skip
"""Counters that no pass should multiply."""
UNITS = ("instructions", "loop_turns")
"""Counters that one level has and the other has not."""


@dataclass(frozen=True)
class Work:
    """The work of one execution.

    levels:   of its kernels, in order: "tensor", "tile" or "thread"
    counters: of `tcir.interp.Outcome`
    """

    levels: tuple[str, ...]
    counters: Mapping[str, int] = field(default_factory=dict)

    def budget(self, level: str, nbytes: int) -> int:
        """Instructions (turns, at level "tile") that a kernel of the next state may take.

        nbytes: of the program's inputs and results
        """
        unit = "loop_turns" if level == "tile" else "instructions"
        most = LEAST + FACTOR * self.counters.get(unit, 0)
        if "tensor" in self.levels:
            most += INSTRUCTIONS_PER_BYTE * nbytes
        elif set(self.levels) != {level}:
            moved = sum(self.counters.get(name, 0) for name in MOVED)
            most += moved // BYTES_PER_INSTRUCTION
        return most

    def jumps(self, after: Work) -> list[str]:
        """``mma 4 -> 56 (14x)`` for each counter of `WORK` that grew at least `JUMP` times.

        A program that still has a kernel on tensors counts only a part of its work, and one with
        kernels of tiles and of threads only a part of its instructions.
        """
        if "tensor" in (*self.levels, *after.levels):
            return []
        names = [n for n in WORK if self.levels == after.levels or n not in UNITS]
        pairs = [(n, self.counters.get(n, 0), after.counters.get(n, 0)) for n in names]
        return [
            f"{name} {old} -> {new} ({new / old:.3g}x)"
            for name, old, new in pairs
            if old and new >= JUMP * old
        ]
