"""fold-constant-launches: executes launches that read only constants at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect.attributes import integers
from tcir.passes.analysis.buffers import BufferNumbers
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.gpu_module import launch_order, number_launches
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.program.constants import CONSTANTS, FOLDED, constants_of, folded_launches
from tcir.program.workspaces import sizes_of


@register_pass
@dataclass(frozen=True)
class FoldConstantLaunches(Pass):
    """Executes the launches that read only constants at compile time, and keeps their results as
    constants.

    Before (buffer 0 is the input, buffer 1 holds the weights, buffer 2 is the result, and buffer 3
    holds the repacked weights)::

        builtin.module attributes {tc.constants = [dense<…> : tensor<37x37xbf16>],
                                   tc.workspaces = array<i64: 2960>}
        func.func @f_repack0(%w) attributes {tc.order = 0, tc.args = array<i64: 1, 3>}
        func.func @f(%x, %wp) attributes {tc.order = 1, tc.args = array<i64: 0, 3, 2>}

    After::

        builtin.module attributes {tc.constants = [dense<…> : tensor<37x40xbf16>],
                                   tc.folded = ["f_repack0"], tc.workspaces = array<i64>}
        func.func @f(%x, %wp) attributes {tc.args = array<i64: 0, 1, 2>}

    The rules of the interpreter's tensor level execute these launches, so a reduction of constants
    is rounded in the same way as in the reference. A launch that writes a result of the program
    stays. Constants that no launch reads any more are dropped, and the buffers are renumbered. A
    remark names each launch. Preserves every value, bit for bit, at the tensor level.
    """

    name: ClassVar[str] = "fold-constant-launches"

    def run(self, module: ir.Module) -> None:
        functions = sorted(functions_with_body(module), key=lambda f: launch_order(f) or 0)
        if not constants_of(module) or any("tc.args" not in f.attributes for f in functions):
            return
        buffers = _Buffers.of(module, functions)
        for function in functions:
            *reads, write = integers(function, "tc.args")
            if len(function.type.results) != 1 or not buffers.folds(reads, write):
                continue
            made = _execute(module, function, [buffers.constants[n] for n in reads])
            if not made:
                continue
            (buffers.constants[write],) = made
            remark(
                function,
                f"@{function.name.value} reads constants only: executed now, its result of "
                f"{buffers.sizes[write]} bytes is a constant",
            )
            buffers.folded.append(function.name.value)
            function.operation.erase()
        if buffers.folded:
            buffers.renumber(module)


@dataclass
class _Buffers:
    """The buffers of a program, by number.

    first:     number of the first constant
    results:   numbers of the results
    constants: their values
    sizes:     of workspaces, in bytes
    folded:    names of launches that have been executed
    """

    first: int
    results: range
    constants: dict[int, ir.Attribute]
    sizes: dict[int, int]
    folded: list[str]

    @staticmethod
    def of(module: ir.Module, functions: Sequence[func.FuncOp]) -> _Buffers:
        """Reads the buffers of a module of launches, and the values of its constants."""
        numbers = BufferNumbers.of(module, functions)
        constants = dict(zip(numbers.constants, constants_of(module), strict=True))
        sizes = dict(zip(numbers.workspaces, sizes_of(module), strict=True))
        return _Buffers(numbers.constants.start, numbers.results, constants, sizes, [])

    def folds(self, reads: Sequence[int], write: int) -> bool:
        """Whether a launch is executed at compile time. reads, write: its buffers"""
        return bool(reads) and write in self.sizes and all(n in self.constants for n in reads)

    def renumber(self, module: ir.Module) -> None:
        """Renumbers the remaining launches, and updates the module's list of constants."""
        functions = functions_with_body(module)
        functions.sort(key=lambda f: launch_order(f) or 0)
        read = {n for f in functions for n in integers(f, "tc.args")}
        kept = [n for n in self.constants if n in read]
        spaces = [n for n in self.sizes if n not in self.constants]
        order = [*range(self.first), *kept, *self.results, *spaces]
        new = {old: number for number, old in enumerate(order)}
        number_launches(functions)
        for function in functions:
            numbers = integers(function, "tc.args")
            function.attributes["tc.args"] = i64s([new[n] for n in numbers])
        module.operation.attributes[CONSTANTS] = ir.ArrayAttr.get([self.constants[n] for n in kept])
        attributes = module.operation.attributes
        attributes["tc.workspaces"] = i64s([self.sizes[n] for n in spaces])
        names = [*folded_launches(module), *self.folded]
        attributes[FOLDED] = ir.ArrayAttr.get([ir.StringAttr.get(each) for each in names])


def _execute(
    module: ir.Module, function: func.FuncOp, values: Sequence[ir.Attribute]
) -> list[ir.Attribute]:
    """Results of a launch on constants; none if one of its ops has no rule."""
    from tcir.interp import OutputSpec
    from tcir.interp.tensor import run
    from tcir.interp.types import constant, dense, dtype_of, shape_of

    arrays = [
        constant(value, kind) for value, kind in zip(values, function.type.inputs, strict=True)
    ]
    kinds = list(function.type.results)
    outcome = run(
        module, function.name.value, arrays, [OutputSpec(shape_of(k), dtype_of(k)) for k in kinds]
    )
    return [dense(array, kind) for array, kind in zip(outcome.outputs, kinds)]
