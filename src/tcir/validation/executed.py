"""The parts of a state that determine its execution. States in which these parts are equal have
equal outcomes, so only one of them is executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcir.interp import Outcome, registered
from tcir.program.constants import constants_of
from tcir.program.launch import Launch
from tcir.program.programs import Program
from tcir.program.source import bytecode_of, digest_of
from tcir.program.workspaces import Workspaces
from tcir.validation.report import Line

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.interp.thread import Spelling


@dataclass(frozen=True)
class Threads:
    """The kernels of a thread-level module, in order, the workspaces between them, and the
    constants.

    instructions: instructions of each kernel, as the thread level's executor translates them
    spelled:      by name of the kernel: its PTX with source locations, which do not affect its
                  execution
    """

    launches: tuple[Launch, ...]
    instructions: tuple[list[str], ...]
    workspaces: Workspaces
    constants: tuple[ir.Attribute, ...]
    spelled: dict[str, Spelling] = field(compare=False)

    @staticmethod
    def of(module: ir.Module, programs: Sequence[Program]) -> Threads | None:
        """Returns the kernels of a module. Returns None unless tcir's own executor runs all
        programs and can translate them.
        """
        if any(program.level != "thread" for program in programs):
            return None
        if registered("thread"):
            return None  # somebody else's: what decides its executions is not known
        from tcir.interp import thread

        spelled = {name: thread.spell(module, name) for name in {p.name: None for p in programs}}
        if any(each.incomplete for each in spelled.values()):
            return None
        return Threads(
            tuple(Launch.from_program(program) for program in programs),
            tuple(each.instructions for each in spelled.values()),
            Workspaces.of(module),
            tuple(constants_of(module)),
            spelled,
        )


def digest(module: ir.Module, programs: Sequence[Program], known: bytes = b"") -> bytes | None:
    """Digest of a module; `known` is used if it is not empty. None if an executor that user code
    registered runs one of its programs.
    """
    if any(registered(program.level) for program in programs):
        return None
    return known or digest_of(bytecode_of(module))


@dataclass(frozen=True)
class ExecutedState:
    """A state whose executions all passed without a finding: its line in the report, and its
    outcome in issue order.
    """

    module: bytes | None
    threads: Threads | None
    line: Line
    outcome: Outcome
