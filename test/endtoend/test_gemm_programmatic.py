"""GEMM by programmatic dependent launch: every level equal, and what misses the wait is a race."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tcir
from tcir.passmanager.pipeline import as_pipeline

from .breaking import Edit, PtxCheck, erase, pick, run_broken
from .linalg_text import Matmul

PROGRAM = Matmul(150, 24, 72)
REPACKED = Matmul(20, 16, 13)
"""Rows of A that TMA cannot encode: a launch of its own in front of the product."""
PASS = "programmatic-launch"
WAIT = "tc.grid_wait"


@cache
def _pipeline() -> tcir.Pipeline:
    whole = as_pipeline("gemm", programmatic=True)
    return tcir.Pipeline(whole.passes[: whole.index(PASS) + 1])


@pytest.mark.parametrize(
    "program",
    [PROGRAM, REPACKED],
    ids=lambda program: program.name,
)
def test_every_level(program: Matmul, orders: int) -> None:
    orders = 1 if program is REPACKED else orders
    kernel = tcir.compile(
        program.text(), "gemm", validate=True, orders=orders, seed=3, programmatic=True
    )
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]
    assert [launch.programmatic for launch in kernel.launches.launches][-1]
    assert kernel.ptx.count("griddepcontrol.wait;") == 2  # the producer's and the epilogue's
    assert kernel.ptx.count("griddepcontrol.launch_dependents;") == 1


def _late(module: object) -> None:
    """The producer waits behind its loads."""
    wait = pick(module, WAIT)
    wait.move_before(pick(module, "tc.grid_launch_dependents"))


BREAKS = {"no wait before the loads": erase(WAIT), "wait behind the loads": _late}


@pytest.mark.parametrize("edit", BREAKS.values(), ids=BREAKS.keys())
def test_break(edit: Edit) -> None:
    caught = run_broken(PROGRAM.text(), _pipeline(), PASS, edit, orders=2)
    assert (caught.at, caught.by) == (PASS, "hazard: race"), caught.text
    assert "a launch before this" in caught.text and "griddepcontrol.wait" in caught.text


def test_unbroken() -> None:
    caught = run_broken(PROGRAM.text(), _pipeline(), PASS, lambda _: None, orders=2)
    assert not caught, caught.text


def test_the_ptx_without_a_wait() -> None:
    kernel = tcir.compile(PROGRAM.text(), "gemm", programmatic=True)
    check = PtxCheck(PROGRAM.text(), kernel)
    assert not check.run(kernel.ptx, orders=1)
    caught = check.run(check.edit(r"griddepcontrol\.wait;", ""), orders=1)
    assert caught.by == "hazard: race", caught.text


def test_a_launch_that_is_not_programmatic_needs_no_wait() -> None:
    """The same PTX, launched behind what it depends on."""
    kernel = tcir.compile(PROGRAM.text(), "gemm")
    assert not kernel.launch_config.programmatic and "griddep" not in kernel.ptx
    a, b = np.ones((150, 72), np.float16), np.ones((72, 24), np.float16)
    out = np.zeros((150, 24), np.float32)
    assert not kernel(a, b, out).findings
    assert (out == 72).all()
