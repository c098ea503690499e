"""Time budget of a validation by kinds, for all states together."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tcir.validation.report import Line


@dataclass
class StatesBudget:
    """The time limit of executions, and the time that they took.

    seconds: limit for all of them together; None: no limit
    started: time at which the validation began
    latest:  seconds of the state that was executed last
    """

    seconds: float | None
    started: float = field(default_factory=time.perf_counter)
    latest: float = 0.0

    def leaves_out(self, line: Line, *, last: bool = False) -> bool:
        """Whether a state is left out because too little time remains; its line then reports that.

        Twice the time of the state executed before must remain. The last state, the PTX, has the
        instructions that ship, and is executed if any time remains.
        """
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
        """Records the time that a state took."""
        self.latest = line.execute_seconds
