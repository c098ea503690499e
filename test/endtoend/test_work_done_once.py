"""Work that a validation does once: executions of the same instructions, products of the same
operands. What differs is executed and multiplied.
"""

from __future__ import annotations

from typing import Any

import pytest

import tcir
import tcir.interp.tensor
import tcir.interp.thread
from tcir.machine.numerics.products import Products
from tcir.machine.tensor_core import block_scale, mma
from tcir.passmanager.pipeline import as_pipeline
from tcir.validation.report import Line

from .block_scaled_text import BlockScaled
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
    runs, line = lines["convert-to-llvm"]
    assert runs == 0
    assert (line.verdict, line.level) == (before.verdict, before.level)
    assert line.counters == before.counters and line.max_error == before.max_error
    assert line.compared.endswith("; the instructions executed after convert-scf-to-cf")
    for name in ("canonicalize", "cse"):
        runs, line = lines[name]
        assert runs == ORDERS and "the instructions executed" not in line.compared


NOTHING_TO_DO = "builtin.module(fold-empty, constants-to-arguments, raise-quantise, split-k)"


def test_a_module_that_nothing_changed_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    after: dict[str, int] = {}
    run = tcir.interp.tensor.run

    def counted(*arguments: Any, **named: Any) -> Any:
        runs.append(1)
        return run(*arguments, **named)

    def on_line(line: Line) -> None:
        after[line.name] = len(runs)
        runs.clear()

    monkeypatch.setattr(tcir.interp.tensor, "run", counted)
    report = tcir.validate(PROGRAM, NOTHING_TO_DO, on_line=on_line)
    assert report.ok, str(report)
    first, *others = report.passes
    assert after[first.name] > 0 and not others and not runs
    assert len(report.unchanged) == 4
    assert report.summary().startswith("held: executed, no pass to compare")


def test_one_number_in_a_module_is_a_change() -> None:
    edit = set_attribute("arith.constant", "value", "1.0 : f32")
    pipeline = tcir.Pipeline.parse(NOTHING_TO_DO)
    caught = run_broken(PROGRAM, pipeline, "raise-quantise", edit, orders=1)
    assert (caught.at, caught.by) == ("raise-quantise", "difference"), caught


def test_another_launch_of_the_same_instructions_is_executed() -> None:
    at = "convert-to-llvm"
    edit = set_attribute("llvm.func", "tc.grid", "array<i64: 1, 1, 1>")
    caught = run_broken(PROGRAM, as_pipeline("matmul"), at, edit, orders=1)
    assert (caught.at, caught.by) == (at, "difference"), caught


@pytest.mark.parametrize(
    ("where", "multiplication", "program", "pipeline"),
    [
        (mma, "fused_mma", PROGRAM, "matmul"),
        (block_scale, "block_scaled_mma", BlockScaled(m=130, k=128).linalg(), "gemv-padded-n"),
    ],
    ids=["matmul", "gemv-padded-n"],
)
def test_the_same_operands_are_multiplied_once(
    monkeypatch: pytest.MonkeyPatch, where: Any, multiplication: str, program: str, pipeline: str
) -> None:
    calls, multiply = [0], getattr(where, multiplication)

    def counted(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        return multiply(*arguments, **named)

    def lines() -> list[tuple[str, float | None, Any]]:
        report = tcir.validate(program, pipeline, orders=ORDERS, inputs="random", seed=5)
        assert report.ok, str(report)
        return [(line.verdict, line.max_error, line.counters.get("mma")) for line in report.passes]

    monkeypatch.setattr(where, multiplication, counted)
    shared = lines()
    mmas = shared[-1][-1]
    assert 0 < calls[0] <= mmas  # fewer when two CTAs multiply the same
    calls[0] = 0
    monkeypatch.setattr(Products, "get", lambda self, form, operands, multiply: multiply())
    assert lines() == shared
    assert calls[0] > 10 * mmas
