"""Every planted bug of attention in tensor memory is noticed at its pass, by what is written.

The quick tests run every 16th bug of one program.
"""

from __future__ import annotations

import pytest

from .attention import ATTENTION, BUGS, Planted, program

QUICK = [bug for bug in BUGS if bug.program == ATTENTION][::16]


@pytest.mark.parametrize("bug", QUICK, ids=str)
def test_some_bugs(bug: Planted) -> None:
    test_bug(bug)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug not in QUICK], ids=str)
def test_bug(bug: Planted) -> None:
    caught = program(bug.program).run(bug)
    assert caught.by == bug.by, caught.text or "nothing noticed the bug"
