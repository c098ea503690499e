"""A plugin's op with a role, ``demo.mark``, and the pass that inserts it before assign-roles."""

from dataclasses import dataclass
from typing import ClassVar

import tcir
from tcir.dialect.base import Dialect
from tcir.dialect.operation import Op
from tcir.dialect.walk import walk
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.mlir import ir, llvm
from tcir.passes.nvvm.converter import Converter, lower


class Demo(Dialect, name="demo"):
    """The dialect of the tests."""


class MarkOp(Op, dialect=Demo, name="mark", role="producer"):
    """Triggers performance monitor event 0 (``pmevent``)."""


@execute(MarkOp)
def mark(compiler: Compiler, op: MarkOp) -> Step:
    """Nothing."""

    def step(frame: Frame) -> None:
        """Events leave no trace in memory."""

    return step


@lower(MarkOp)
def convert_mark(converter: Converter, op: MarkOp) -> None:
    """Lowers the op to one instruction."""
    llvm.inline_asm(None, [], "pmevent 0;", "", has_side_effects=True)


@tcir.register_pass
@dataclass(frozen=True)
class MarkLoads(tcir.Pass):
    """Puts a ``demo.mark`` before every ``tc.tma_load``."""

    name: ClassVar[str] = "mark-loads"

    def run(self, module: ir.Module) -> None:
        """Before each load."""
        for load in [op for op in walk(module.operation) if op.operation.name == "tc.tma_load"]:
            with ir.InsertionPoint(load), load.operation.location:
                MarkOp()
