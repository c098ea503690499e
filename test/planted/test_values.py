"""Every planted value bug is `different` at its pass, and the whole program is `equal` there."""

from __future__ import annotations

import pytest

from . import values_ptx, values_tensors, values_threads
from .planted import Planted
from .programs import program

BUGS = [*values_tensors.BUGS, *values_threads.BUGS, *values_ptx.BUGS]


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_value_bug(bug: Planted) -> None:
    caught = program(bug.program).run(bug)
    assert caught.by == bug.by, caught.text or "nothing noticed the bug"
