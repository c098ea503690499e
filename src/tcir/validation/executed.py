"""Parts of a state that determine its execution: states that agree in them have the same
outcome."""

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
    """The kernels of a module, in order, the workspaces between them, and the constants.

    instructions: instructions of each kernel, as the thread level's executor spells them
    spelled:      by name of the kernel: its instructions with their source locations, which do not
                  affect its execution
    """

    launches: tuple[Launch, ...]
    instructions: tuple[list[str], ...]
    workspaces: Workspaces
    constants: tuple[ir.Attribute, ...]
    spelled: dict[str, Spelling] = field(compare=False)

    @staticmethod
    def of(module: ir.Module, programs: Sequence[Program]) -> Threads | None:
        """Returns None unless all programs are kernels that the executor of this package can
        spell."""
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
    """Digest of a module, computed unless it is `known`; None if a foreign executor runs one of its
    programs."""
    if any(registered(program.level) for program in programs):
        return None
    return known or digest_of(bytecode_of(module))


@dataclass(frozen=True)
class ExecutedState:
    """A state whose executions all passed without a finding: its line, and its outcome in issue
    order."""

    module: bytes | None
    threads: Threads | None
    line: Line
    outcome: Outcome
