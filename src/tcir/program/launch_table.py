"""Table of a program's launches: the operations of each, the fused ops, and the bytes passed
between launches.

Bytes are those of the buffers that a launch reads or writes, each counted once. The actual traffic,
such as data loaded again for another tile, is counted by the simulated machine
(`tcir.interp.Outcome.counters`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tcir._mlir import arith, func, tensor
from tcir.dialect import tc
from tcir.dialect.upstream import names
from tcir.interp import OutputSpec
from tcir.program.launch import LaunchSequence
from tcir.program.memory_image import image_spec
from tcir.program.programs import programs_on_tensors
from tcir.program.signature import Signature
from tcir.program.source import mlir_context
from tcir.program.workspaces import NONE, Workspaces

if TYPE_CHECKING:
    from tcir._mlir import ir

_BEHIND = names(tc.EpilogueOp, tc.QuantiseBlocksOp)
"""Ops that a launch applies to sums before it stores them."""
_BODIES = names("linalg.generic", "linalg.map", "linalg.reduce", tc.EpilogueOp)
"""Ops whose body describes their computation."""
_NO_WORK = names(
    arith.ConstantOp, func.ReturnOp, "linalg.fill", "linalg.yield", tc.ElementOp, tc.YieldOp,
    tensor.CollapseShapeOp, tensor.EmptyOp, tensor.ExpandShapeOp, tensor.YieldOp,
)  # fmt: skip


@dataclass(frozen=True)
class LaunchOps:
    """Ops of a launch, named without their dialects.

    fused: ops of its epilogue
    flops: kind and number of floating-point operations of each product (`tcir.program.flops`)
    """

    computes: tuple[str, ...]
    fused: tuple[str, ...] = ()
    flops: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class LaunchRow:
    """One launch, as a row of the table.

    arguments: bytes of the caller's inputs and of constants that the launch reads
    loaded:    bytes it reads that earlier launches stored
    stored:    bytes it stores for later launches
    results:   bytes of the caller's results that it stores
    """

    name: str
    work: LaunchOps
    arguments: int
    loaded: int
    stored: int
    results: int

    @property
    def bytes(self) -> tuple[int, int, int, int]:
        """Bytes that the launch reads and writes: `arguments`, `loaded`, `stored`, `results`."""
        return self.arguments, self.loaded, self.stored, self.results


@dataclass(frozen=True)
class LaunchTable:
    """The launches of a program in order; `str` returns the table as text.

    constants: bytes of the constants, which are part of the program
    folded:    launches that computed some of the constants at compile time
    """

    rows: tuple[LaunchRow, ...]
    workspaces: Workspaces = NONE
    constants: int = 0
    folded: tuple[str, ...] = ()

    @property
    def total(self) -> tuple[int, int, int, int]:
        """Sums of `LaunchRow.bytes` over all launches."""
        nothing = [(0, 0, 0, 0)]  # of a program without launches
        sums = map(sum, zip(*nothing, *(row.bytes for row in self.rows), strict=True))
        arguments, loaded, stored, results = sums
        return arguments, loaded, stored, results

    def __str__(self) -> str:
        head = ("launch", "computes", "fused behind it")
        words = [
            (row.name, ", ".join(row.work.computes), ", ".join(row.work.fused) or "-")
            for row in self.rows
        ]
        wide = [max(map(len, column)) for column in zip(head, *words, ("bytes", "", ""))]

        def line(cells: Iterable[str], numbers: Iterable[object]) -> str:
            left = [f"{cell:<{width}}" for cell, width in zip(cells, wide)]
            return "  ".join([*left, *(f"{number:>10}" for number in numbers)])

        rows = [line(cells, row.bytes) for cells, row in zip(words, self.rows)]
        _, loaded, stored, _ = self.total
        spaces, apart = self.workspaces, Workspaces.apart(self.workspaces.sizes)
        planned = [f"workspaces: {spaces.arena} bytes, {apart.arena} without sharing"]
        return "\n".join(
            [
                line(head, ("arguments", "loaded", "stored", "results")),
                *rows,
                line(("bytes", "", ""), self.total),
                f"between launches: {stored} bytes stored, {loaded} bytes loaded",
                *(planned if spaces.sizes else []),
                *([self._constants()] if self.constants else []),
            ]
        )

    def _constants(self) -> str:
        made = f"; packed at compile time: {', '.join(f'@{name}' for name in self.folded)}"
        return f"constants: {self.constants} bytes" + (made if self.folded else "")


def launch_table(
    sequence: LaunchSequence, signature: Signature, works: Mapping[str, LaunchOps]
) -> LaunchTable:
    """Returns the table of launches in order.

    A launch writes those of its buffers that no earlier launch wrote, as in an execution
    (`tcir.program.execution`). works: ops by launch, see `works_of`; a launch without an entry was
    added by the tiling passes.
    """
    constants = [each.nbytes for each in sequence.constants]
    inputs, results = map(_sizes, (signature.inputs, signature.outputs))
    inputs += constants
    sizes = [*inputs, *results, *sequence.workspaces.sizes]
    first = len(inputs) + len(results)
    known = set(range(len(inputs)))
    rows = []
    for launch in sequence.launches:
        read = [n for n in launch.buffers if n in known]
        written = [n for n in launch.buffers if n not in known]
        known.update(written)
        outside, inside = (
            [sum(sizes[n] for n in numbers if (n < first) is caller) for numbers in (read, written)]
            for caller in (True, False)
        )
        work = works.get(launch.title, LaunchOps(("(added by tiling)",)))
        rows.append(LaunchRow(launch.title, work, outside[0], inside[0], inside[1], outside[1]))
    return LaunchTable(tuple(rows), sequence.workspaces, sum(constants), sequence.folded)


def works_of(texts: Iterable[str]) -> dict[str, LaunchOps]:
    """Returns the operations of each launch, from the texts of a program after each pass, in order.

    They are read from the last text on tensors, where each launch is a function of named ops.
    """
    from tcir._mlir import ir

    works: dict[str, LaunchOps] = {}
    with mlir_context():
        for text in texts:
            found = works_in(ir.Module.parse(text))
            if not found:
                break
            works = found
    return works


def works_in(module: ir.Module) -> dict[str, LaunchOps]:
    """Returns the operations of each launch in a module of functions on tensors; empty for any
    other module."""
    from tcir.program.flops import flops_of

    works = {}
    for program in programs_on_tensors(module):
        ops = [op.operation for op in program.op.operation.regions[0].blocks[0]]
        behind = [op for op in ops if op.name in _BEHIND]
        first = _names(op for op in ops if op not in behind)
        computes, fused = (first, _names(behind)) if first else (_names(behind), ())
        works[program.title] = LaunchOps(computes, fused, tuple(flops_of(program)))
    return works


def _sizes(specs: Sequence[OutputSpec]) -> list[int]:
    images = map(image_spec, specs)
    return [prod(image.shape) * image.dtype.itemsize for image in images]


def _names(ops: Iterable[ir.Operation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.rpartition(".")[2] for op in ops for name in _work(op)))


def _work(op: ir.Operation) -> list[str]:
    """Returns the names of the ops that an op consists of: those of its body, or its own."""
    if op.name in _NO_WORK:
        return []
    if op.name in _BODIES:
        (block,) = op.regions[0].blocks
        return [name for each in block for name in _work(each.operation)]
    return [op.name]
