"""A pass that leaves the instructions alone is not executed again; one that changes a launch is."""

from __future__ import annotations

from typing import Any

import pytest

import tcir
import tcir.interp.thread
from tcir.passmanager.pipeline import as_pipeline
from tcir.validation.report import Line

from .breaking import run_broken, set_attribute
from .linalg_text import Matmul

PROGRAM = Matmul(200, 80, 72).text()
ORDERS = 2


def executions(monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, tuple[int, Line]]:
    """By pass: runs of kernels, and the line of the report."""
    runs, lines = [0], {}
    run_kernel = tcir.interp.thread.run_kernel

    def counted(*arguments: Any, **named: Any) -> Any:
        runs[0] += 1
        return run_kernel(*arguments, **named)

    def on_line(line: Line) -> None:
        lines[line.name] = runs[0], line
        runs[0] = 0

    monkeypatch.setattr(tcir.interp.thread, "run_kernel", counted)
    report = tcir.validate(PROGRAM, "matmul", orders=ORDERS, on_line=on_line, **options)
    assert report.ok, str(report)
    return lines


@pytest.mark.parametrize("inputs", ["integers", "random"])
def test_the_same_instructions_run_once(monkeypatch: pytest.MonkeyPatch, inputs: str) -> None:
    lines = executions(monkeypatch, inputs=inputs)
    executed, before = lines["convert-scf-to-cf"]
    assert executed == ORDERS
    for name in ("convert-arith-to-llvm", "convert-cf-to-llvm", "convert-nvvm-to-llvm"):
        runs, line = lines[name]
        assert runs == 0
        assert (line.verdict, line.level) == (before.verdict, before.level)
        assert line.counters == before.counters and line.max_error == before.max_error
        assert line.compared.endswith("; the instructions executed after convert-scf-to-cf")
    for name in ("canonicalize", "cse"):
        runs, line = lines[name]
        assert runs == ORDERS and "the instructions executed" not in line.compared


def test_another_launch_of_the_same_instructions_is_executed() -> None:
    at = "convert-cf-to-llvm"
    edit = set_attribute("llvm.func", "tc.grid", "array<i64: 1, 1, 1>")
    caught = run_broken(PROGRAM, as_pipeline("matmul"), at, edit, orders=1)
    assert (caught.at, caught.by) == (at, "difference"), caught
