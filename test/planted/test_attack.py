"""Bugs planted by an attack on the verdicts: each is noticed as its table says, or survives.

The quick tests run a few, of each table.
"""

from __future__ import annotations

import pytest

from .attack import BUGS, SURVIVORS
from .planted import Planted
from .programs import program

QUICK = BUGS[20::70]


@pytest.mark.parametrize("bug", QUICK, ids=str)
def test_some_bugs(bug: Planted) -> None:
    test_bug(bug)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug not in QUICK], ids=str)
def test_bug(bug: Planted) -> None:
    caught = program(bug.program).run(bug)
    assert caught.by == bug.by, caught.text or "nothing noticed the bug"


def test_survivors_are_bugs_of_the_tables() -> None:
    planted = [(bug.program, bug.what) for bug in BUGS if not bug.by]
    assert len(set(planted)) == len(SURVIVORS) and set(planted) == set(SURVIVORS)
