"""Time budget of a validation that executes each kind of launch once; all states (the program after
each pass) share it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tcir.validation.report import Line


@dataclass
class StatesBudget:
    """The time limit of all executions together, and the time that they have taken.

    seconds: the limit; None: no limit
    started: time at which the validation began
    latest:  seconds that the last executed state took
    """

    seconds: float | None
    started: float = field(default_factory=time.perf_counter)
    latest: float = 0.0

    def leaves_out(self, line: Line, *, last: bool = False) -> bool:
        """Whether a state is left out because too little time remains; the state's line in the
        report then names this reason.

        To be executed, a state needs twice the time of the previously executed state. The last
        state, the PTX, is executed if any time remains, because it has the instructions that users
        run.
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
