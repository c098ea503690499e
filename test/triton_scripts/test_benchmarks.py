"""Benchmarks: modelled times, and nothing else changes."""

from __future__ import annotations

import pytest

from .command import SCRIPTS, needs_triton, run


@needs_triton
def test_times_are_modelled() -> None:
    ended = run(SCRIPTS / "benchmark.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "tcir: do_bench: times are modelled" in ended.stderr
    assert "tcir: perf_report: left out" in ended.stderr
    assert "tcir: 1 launches executed" in ended.stderr


@needs_triton
@pytest.mark.parametrize(("option", "taken"), [("first", 64), ("all", 64), ("modelled", 1)])
def test_autotuning(option: str, taken: int) -> None:
    """The first configuration adds 1/64 to each element 64 times, the second one adds 1."""
    ended = run("--autotune", option, SCRIPTS / "autotune.py")
    assert (ended.returncode, ended.stdout) == (0, f"{taken}\n"), ended.stderr
    assert f"tcir: {3 if option == 'all' else 1} launches executed" in ended.stderr
