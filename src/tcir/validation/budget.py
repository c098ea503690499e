"""The seconds of a validation by kinds, all states together."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tcir.validation.report import Line


@dataclass
class StatesBudget:
    """The time limit of executions, and the time that they took.

    seconds: all that they may take; None: any
    started: time at which the validation began
    latest:  seconds of the state that was executed last
    """

    seconds: float | None
    started: float = field(default_factory=time.perf_counter)
    latest: float = 0.0

    def leaves_out(self, line: Line, *, last: bool = False) -> bool:
        """Whether a state is left out, which its line then reports: it and the last one would take
        too long. The last one, the PTX, whose instructions are those that ship, may begin as long
        as there is time."""
        if self.seconds is None:
            return False
        spent = time.perf_counter() - self.started
        if spent + (0 if last else 2 * self.latest) <= self.seconds:
            return False
        line.verdict, line.left = "-", f"the state after {line.name}"
        line.compared = (
            f"not executed: {spent:.0f} s of the budget of {self.seconds:g} s are over, and "
            f"the state before took {self.latest:.0f} s"
        )
        return True

    def executed(self, line: Line) -> None:
        """Notes the time that a state took."""
        self.latest = line.execute_seconds
