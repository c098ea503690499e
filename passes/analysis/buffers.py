"""Numbers of the buffers of a module of launches, by what the buffers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import func, ir
from tcir.dialect.attributes import integers
from tcir.program.constants import constants_of
from tcir.program.workspaces import sizes_of


@dataclass(frozen=True)
class BufferNumbers:
    """After the arguments come the constants, the results of the program, and the workspaces."""

    constants: range
    results: range
    workspaces: range

    @staticmethod
    def of(module: ir.Module, functions: Sequence[func.FuncOp]) -> BufferNumbers:
        """The buffers of these launches, of which there is at least one."""
        every = [integers(f, "tc.args") for f in functions]
        inputs = [len(f.type.inputs) for f in functions]
        start = min(n for numbers, count in zip(every, inputs) for n in numbers[count:])
        end = max(n for numbers in every for n in numbers) + 1
        spaces = end - len(sizes_of(module))
        constants = range(start - len(constants_of(module)), start)
        return BufferNumbers(constants, range(start, spaces), range(spaces, end))
