"""The modes in which the machine's tests run: how it executes a program may change nothing but the
time that it takes (`pytest --mode`, `make test-modes`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tcir.interp.ptx.jobs.launch as several
import tcir.interp.ptx.lockstep.launch as lockstep
import tcir.interp.ptx.lockstep.leaders as leaders
import tcir.interp.ptx.loops.running as loops
import tcir.interp.ptx.loops.straight as straight
from tcir.machine.jit.calls import CompiledCalls
from tcir.run import run_ptx

Mode = Callable[[pytest.MonkeyPatch], None]


def apart(patch: pytest.MonkeyPatch) -> None:
    """Every CTA runs on its own: no lockstep."""
    patch.setattr(leaders, "LEAST", 1 << 60)


def together(patch: pytest.MonkeyPatch) -> None:
    """Lockstep in small grids, too; straight lines are compiled at once."""
    patch.setattr(leaders, "LEAST", 2)
    patch.setattr(straight, "WORTH", 0)


def interpreted(patch: pytest.MonkeyPatch) -> None:
    """No compiled code: Python runs what is compiled else, and numpy replays traces."""

    def call(self: CompiledCalls, *args: object) -> object:
        with np.errstate(all="ignore"):  # as compiled code does
            return self.function(*args)

    patch.setattr(CompiledCalls, "__call__", call)
    patch.setattr(lockstep, "COMPILED", False)
    patch.setattr(loops, "COMPILED", False)
    patch.setattr(straight, "COMPILED", False)


def jobs(patch: pytest.MonkeyPatch) -> None:
    """Blocks of each grid in two processes, of small ones, too."""
    patch.setattr(several, "FEWEST", 2)
    patch.setattr(several, "IN_LOCKSTEP", 0)
    patch.setitem(run_ptx.__kwdefaults__, "jobs", 2)


MODES: dict[str, Mode] = {mode.__name__: mode for mode in (apart, together, interpreted, jobs)}
OWN: dict[str, set[str]] = {
    "apart": {
        "test_lockstep.py",
        "test_lockstep_kernels.py",
        "test_lockstep_programs.py",
        "test_lockstep_tma.py",
        "test_an_instruction_from_outside_is_fast_everywhere",
        "test_a_mistake_in_lockstep_is_warned_of_by_this_process",
        "test_ctas_in_lockstep_have_the_events_that_they_have_alone",
        "test_memory_grows_with_the_ctas_in_flight_not_with_the_grid",
    },
    "together": {"test_lockstep.py", "test_lockstep_tma.py"},
    "interpreted": {
        "test_an_instruction_from_outside_is_fast_everywhere",
        "test_wrong_annotation_is_refused",
        "test_lockstep_kernels.py",
        "test_loops.py",
    },
    "jobs": {
        "test_an_instruction_from_outside_is_fast_everywhere",
        "test_jobs.py",
        "test_loops.py",
        "test_debug.py",
        "test_lockstep_kernels.py",
        "test_lockstep_tma.py",
        "test_the_groups_that_follow_the_first_one",
        "test_a_leader_is_not_followed_by_those_that_left_another_one_elsewhere",
        "test_many_lanes_compute_as_few_do",
        "test_jobs_and_lockstep_execute_the_same_sample",
        "test_memory_grows_with_the_ctas_in_flight_not_with_the_grid",
    },
}
"""Files and tests that are left out in a mode: they compare both ways themselves, need what the
mode turns off, or need one process: a debugger, and what looks into lockstep or at the memory of
this process, where nothing is executed if others do it."""
