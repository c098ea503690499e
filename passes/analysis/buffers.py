"""Numbers the buffers of a module of launches: arguments, constants, results and workspaces."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from tcir._mlir import func, ir
from tcir.dialect.attributes import integers
from tcir.program.constants import constants_of
from tcir.program.programs import Program, programs_on_tensors
from tcir.program.workspaces import sizes_of


@dataclass(frozen=True)
class BufferNumbers:
    """The buffer numbers of a program: first the arguments, then the constants, then the results of
    the program, then the workspaces."""

    constants: range
    results: range
    workspaces: range

    @staticmethod
    def of(module: ir.Module, functions: Sequence[func.FuncOp]) -> BufferNumbers:
        """Reads the buffer numbers of these launches, of which there must be at least one."""
        every = [integers(f, "tc.args") for f in functions]
        inputs = [len(f.type.inputs) for f in functions]
        start = min(n for numbers, count in zip(every, inputs) for n in numbers[count:])
        end = max(n for numbers in every for n in numbers) + 1
        spaces = end - len(sizes_of(module))
        constants = range(start - len(constants_of(module)), start)
        return BufferNumbers(constants, range(start, spaces), range(spaces, end))


def unwritten_arguments(module: ir.Module) -> Set[ir.Value]:
    """Arguments of launches on tensors whose buffers no launch of the program writes, in all
    launches of the same kernel (`share-kernels`): arguments and constants of the program.

    None if some launches have already become kernels, because it is not known which buffers those
    kernels write.
    """
    programs = programs_on_tensors(module)
    written = {
        key for each in programs for key in _places(each, each.buffers[len(each.op.type.inputs) :])
    }
    found, others = set[ir.Value](), set[ir.Value]()
    for each in programs:
        arguments = each.op.entry_block.arguments
        for argument, key in zip(arguments, _places(each, each.buffers)):
            (others if key in written else found).add(argument)
    return found - others


def _places(program: Program, numbers: Sequence[int]) -> list[tuple[str | None, int]]:
    """Buffers of a launch; those of a function that is no launch of a sequence are its own."""
    return [(program.name if program.order is None else None, number) for number in numbers]
