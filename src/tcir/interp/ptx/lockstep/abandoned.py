"""Exceptions that end an attempt to run a launch in lockstep."""

from __future__ import annotations

import warnings


class Abandoned(Exception):
    """Raised when the launch must run again in another mode. alone: in that mode every CTA is
    executed separately
    """

    def __init__(self, why: str, alone: bool = False) -> None:
        super().__init__(why)
        self.alone = alone


class LockstepDivergence(RuntimeWarning):
    """Warning for a bug of lockstep: the replay of the leader differs from the leader's run on the
    machine, or a rule raised an exception. It costs time and changes no result. Users get a
    warning; tests fail (test/conftest.py).
    """


def warn(mistake: Exception) -> str:
    """Warns about a divergence; returns the reason why lockstep ended."""
    raised = "" if isinstance(mistake, LockstepDivergence) else f"{type(mistake).__name__}: "
    what = f"{raised}{mistake}"
    warnings.warn(
        f"{what}; lockstep is given up, which costs time and changes no result. Please report "
        "this as a mistake in tcir",
        LockstepDivergence,
        stacklevel=2,
    )
    return f"a mistake in a rule: {what}"
