"""The work of a program, measured by the counters of its executions; used for budgets and for
remarks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tcir.interp import OutputSpec
from tcir.program.factors import Contraction

FACTOR = 20
"""Instructions (or loop turns) that a level may take, relative to the level before."""
LEAST = 100_000
"""Warp instructions that any program may execute: about a second."""
BYTES_PER_INSTRUCTION = 8
"""Bytes moved by tiles for each instruction of the first thread level; a warp moves up to 512."""
INSTRUCTIONS_PER_RESULT = 4
"""More of them for each byte that tiles store: before LLVM a thread takes about 33 for a number in
MXFP8 and 36 for one of gelu, a warp of 32 threads one."""
INSTRUCTIONS_PER_NUMBER = 8
"""More of them for each number that a body on a fragment makes: before LLVM up to about 200 of a
thread for several functions of it, and a warp has 32."""
INSTRUCTIONS_PER_BYTE = 64
"""Instructions per byte of inputs and results that the first level below tensors, or an input below
them, may take."""
INSTRUCTIONS_PER_POINT = 4
"""Instructions per point of the input's reductions that kernels for CUDA cores may take when they
replace tensors: a warp takes 32 points."""
JUMP = 2
"""Growth of a counter that makes a remark."""
PADDED = 4
"""Growth of a padded contraction's products that does, at the first level below tensors: partly
filled tiles often double them."""
ROWS, COLUMNS, STEP = 128, 16, 32
"""A contraction is padded to whole mma: rows, columns, and bytes of its longest sum."""

MOVED = (
    "global_to_shared", "shared_to_global", "shared_to_tmem", "tmem_load", "tmem_store",
    "global_load", "global_store", "shared_load", "shared_store",
)  # fmt: skip
STORED = ("global_store", "shared_to_global")
"""Counters of bytes of results."""
WORK = (
    "ctas", "instructions", "loop_turns", "mma", "tensor_cycles", "global_to_shared",
    "shared_to_global", "global_load", "global_store", "tmem_load", "tma_loads", "tma_stores",
)  # fmt: skip
"""Counters that no pass should multiply."""
UNITS = ("instructions", "loop_turns")
"""Counters that exist at only one of two compared levels."""


@dataclass(frozen=True)
class Algorithm:
    """Work of the input program, before any schedule is chosen.

    products:      number of products of its contraction, with operands padded for tensor cores; 0
                   if it has none
    simt_products: number of products on CUDA cores, where CTAs also have whole tiles of rows
    stored:        bytes of its results
    """

    products: int
    simt_products: int
    stored: int

    @staticmethod
    def of(contraction: Contraction | None, outputs: Sequence[OutputSpec]) -> Algorithm:
        """Returns the work of a program that computes `contraction`; for None, that of a program
        without a single contraction.
        """
        stored = sum(math.prod(spec.shape) * spec.dtype.itemsize for spec in outputs)
        if contraction is None:
            return Algorithm(0, 0, stored)
        rows, columns, both, length = contraction.extents(math.prod(outputs[0].shape))
        elements = next(f for f in contraction.factors if not f.scale)
        padded = min(
            _up(rows, ROWS) * _up(columns, COLUMNS), _up(columns, ROWS) * _up(rows, COLUMNS)
        )
        sums = contraction.products // length * _up(length, STEP // elements.dtype.itemsize)
        rows_only = min(_up(rows, ROWS) * columns, rows * _up(columns, ROWS))
        return Algorithm(both * padded * sums, both * rows_only * contraction.products, stored)

    def exceeded(self, work: Work) -> list[str]:
        """Describes the counters in which the first state below tensors exceeds the input program.

        ``products 131072 -> 1835008 (14x)`` gives the number of products of the padded contraction
        and the number that the kernels compute.
        """
        found = []
        products = work.counters.get("products", 0)
        if self.products and products >= PADDED * self.products:
            found.append(_grown("products", self.products, products))
        simt_products = work.counters.get("simt_products", 0)
        if self.simt_products and simt_products >= JUMP * self.simt_products:
            found.append(_grown("products on CUDA cores", self.simt_products, simt_products))
        most = self.stored + work.counters.get("workspaces", 0)
        stored = sum(work.counters.get(name, 0) for name in STORED)
        if stored >= JUMP * most > 0:
            found.append(_grown("bytes stored", most, stored))
        return found


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


@dataclass(frozen=True)
class Work:
    """The work of one execution.

    levels:   levels of its kernels, in order: "tensor", "tile" or "thread"
    counters: the counters of `tcir.interp.Outcome`
    """

    levels: tuple[str, ...]
    counters: Mapping[str, int] = field(default_factory=dict)

    def budget(self, level: str, nbytes: int, points: int) -> int:
        """Number of instructions (at level "tile", of loop iterations) that a kernel of the next
        state may execute.

        nbytes: bytes of the program's inputs and results
        points: iterations of the loops of its reductions
        """
        unit = "loop_turns" if level == "tile" else "instructions"
        most = LEAST + FACTOR * self.counters.get(unit, 0)
        if "tensor" in self.levels:
            most += INSTRUCTIONS_PER_BYTE * nbytes
            most += INSTRUCTIONS_PER_POINT * points if level == "thread" else 0
        elif set(self.levels) != {level}:
            moved = sum(self.counters.get(name, 0) for name in MOVED)
            stored = sum(self.counters.get(name, 0) for name in STORED)
            most += moved // BYTES_PER_INSTRUCTION + INSTRUCTIONS_PER_RESULT * stored
            most += INSTRUCTIONS_PER_NUMBER * self.counters.get("fragment_numbers", 0)
        return most

    def jumps(self, after: Work) -> list[str]:
        """Describes each counter of `WORK` that grew by a factor of at least `JUMP`, as in ``mma 4
        -> 56 (14x)``.

        Two cases are left out: the counters of a program that still has a kernel on tensors cover
        only a part of its work, and those of a program with kernels on tiles and on threads only a
        part of its instructions.
        """
        if "tensor" in (*self.levels, *after.levels):
            return []
        names = [n for n in WORK if self.levels == after.levels or n not in UNITS]
        pairs = [(n, self.counters.get(n, 0), after.counters.get(n, 0)) for n in names]
        return [_grown(*pair) for pair in pairs if pair[1] and pair[2] >= JUMP * pair[1]]


def _grown(name: str, old: int, new: int) -> str:
    return f"{name} {old} -> {new} ({new / old:.3g}x)"
