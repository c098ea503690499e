"""Every planted value bug is `different` at its pass, and the whole program is held there.

The quick tests run every 48th bug, and the first of each program that is not for boundaries only.
"""

from __future__ import annotations

import pytest

from . import (
    values_addresses,
    values_boundaries,
    values_epilogues,
    values_ptx,
    values_ranged,
    values_tensors,
    values_threads,
    values_warpgroups,
)
from .planted import Planted
from .programs import PROGRAMS, program

BUGS = [
    *values_tensors.BUGS,
    *values_threads.BUGS,
    *values_ptx.BUGS,
    *values_epilogues.BUGS,
    *values_addresses.BUGS,
    *values_boundaries.BUGS,
    *values_ranged.BUGS,
    *values_warpgroups.BUGS,
]
SLOW = ("attention f16", "mlp bf16")
"""Programs that take seconds."""
FIRST = {bug.program: bug for bug in reversed(BUGS) if bug.program not in SLOW}
EARLY = (*PROGRAMS, "gemm e4m3", "quantise to mxfp8", "quantise to i8", "max pool")
QUICK = list(dict.fromkeys([*(FIRST[name] for name in EARLY if name in FIRST), *BUGS[::48]]))


@pytest.mark.parametrize("bug", QUICK, ids=str)
def test_some_value_bugs(bug: Planted) -> None:
    test_value_bug(bug)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug not in QUICK], ids=str)
def test_value_bug(bug: Planted) -> None:
    caught = program(bug.program).run(bug)
    assert caught.by == bug.by, caught.text or "nothing noticed the bug"
