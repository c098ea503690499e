"""The programs in a module: the functions to execute, and the level of each function.

Levels: ``tensor`` (func on tensors), ``tile`` (`func.func` with the attribute ``tc.kernel``),
``thread`` (`llvm.func` with ``nvvm.kernel``). A module has one program, or several with the
attribute ``tc.order``; some of them may be launched several times (`repeats`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcir.errors import InputError, format_location
from tcir.program.repeats import Repeat, repeats_of

if TYPE_CHECKING:
    from tcir._mlir import ir


@dataclass(frozen=True)
class Program:
    """A function to execute, and its level: "tensor", "tile" or "thread".

    repeat: the `Repeat` of a further launch of the function; None: the function's own launch
    """

    op: ir.OpView
    level: str
    repeat: Repeat | None = None

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(self.op.operation.attributes["sym_name"].value)

    @property
    def title(self) -> str:
        """Name of the launch."""
        return self.name if self.repeat is None else self.repeat.name

    @property
    def symbol(self) -> str:
        """Name of the kernel in the program, which PTX may be unable to spell (pass
        legalize-symbols)."""
        given = self.attribute("tc.symbol")
        return self.name if given is None else str(given.value)

    @property
    def private(self) -> bool:
        """Whether the function can be called only from its own module."""
        visibility = self.attribute("sym_visibility")
        return visibility is not None and visibility.value == "private"

    @property
    def order(self) -> int | None:
        """Position in the sequence of launches; None: there is no sequence."""
        if self.repeat is not None:
            return self.repeat.order
        order = self.attribute("tc.order")
        return None if order is None else int(order.value)

    @property
    def buffers(self) -> tuple[int, ...]:
        """Numbers of the program's buffers: its arguments in order and, on tensors, also its
        results.
        """
        if self.repeat is not None:
            here = self.repeat.here(self._own_buffers)
            return tuple(sorted(here)) if self.level == "thread" else here
        return self._own_buffers

    @property
    def _own_buffers(self) -> tuple[int, ...]:
        if self.level == "thread":
            given = (entry["arg"] for entry in self.attribute("tc.params", ()) if "arg" in entry)
            return tuple(sorted({int(number.value) for number in given}))
        arguments = self.attribute("tc.args")
        return tuple(range(len(self.buffer_types))) if arguments is None else tuple(arguments)

    @property
    def buffer_types(self) -> list[ir.Type]:
        """MLIR types of the program's buffers: its arguments and, on tensors, also its results."""
        arguments = self.op.operation.regions[0].blocks[0].arguments
        results = self.op.type.results if self.level == "tensor" else []
        return [*(argument.type for argument in arguments), *results]

    def attribute(self, name: str, default: Any = None) -> Any:
        """Returns an attribute of the function, or `default`."""
        attributes = self.op.operation.attributes
        return attributes.get(name, default)


def find_programs(module: ir.Module) -> list[Program]:
    """Returns the programs of `module` in the order of their launches: the only program, or all
    programs with ``tc.order``. A ``gpu.module`` without kernels, all of whose results have no
    elements, has none.
    """
    programs = _programs(module)
    if not programs and [op.operation.name for op in module.body] == ["gpu.module"]:
        return []
    orders = [program.order for program in programs]
    if len(programs) < 2 or None in orders or len(set(orders)) < len(orders):
        return [_only(module, programs)]
    return sorted(programs, key=lambda program: program.order or 0)


def find_program(module: ir.Module, entry: str | None = None) -> Program:
    """Returns the only program in `module`, or the program called `entry`. Raises InputError if
    there is none.
    """
    programs = _programs(module)
    if entry is not None:
        programs = [program for program in programs if program.title == entry] or programs
    return _only(module, programs)


def programs_on_tensors(module: ir.Module) -> list[Program]:
    """Returns the programs of `module` in any order if all are functions on tensors, else none."""
    programs = _programs(module)
    return programs if all(program.level == "tensor" for program in programs) else []


def _only(module: ir.Module, programs: list[Program]) -> Program:
    if len(programs) == 1:
        return programs[0]
    from tcir.passes.emit.calls import CHOOSE

    names = ", ".join(f"@{program.title}" for program in programs) or "none"
    raise InputError(
        f"{format_location(module.operation.location)}expected one function with a body "
        f"(func.func, or llvm.func with nvvm.kernel) to execute, got {names}"
        + (f"; {CHOOSE.format(programs[0].name)}" if programs else "")
    )


def _programs(module: ir.Module) -> list[Program]:
    programs: list[Program] = []
    called: list[Program] = []
    for op in _functions(module.operation):
        name = op.operation.name
        attributes = op.operation.attributes
        if name == "llvm.func" and "nvvm.kernel" in attributes:
            programs.append(Program(op, "thread"))
        elif name == "func.func" and len(op.operation.regions[0].blocks):
            program = Program(op, "tile" if "tc.kernel" in attributes else "tensor")
            (called if program.private else programs).append(program)
    return _with_repeats(module, programs or called)


def _with_repeats(module: ir.Module, programs: list[Program]) -> list[Program]:
    """Returns the programs and their further launches."""
    repeats = repeats_of(module)
    if not repeats:
        return programs
    by_order = {program.order: program for program in programs}
    strange = next((each for each in repeats if each.kernel not in by_order), None)
    if strange is not None:
        raise InputError(
            f"{format_location(module.operation.location)}tc.repeats: expected launches of a "
            f"function with tc.order, got @{strange.name} of function number {strange.kernel}"
        )
    return [
        *programs,
        *(replace(by_order[each.kernel], repeat=each) for each in repeats),
    ]


def _functions(operation: ir.Operation) -> list[ir.OpView]:
    found = []
    for block in operation.regions[0]:
        for op in block:
            if op.operation.name in ("gpu.module", "builtin.module"):
                found += _functions(op.operation)
            else:
                found.append(op)
    return found
