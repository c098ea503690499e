"""Benchmarks: modelled times, and nothing else changes."""

from __future__ import annotations

from .command import SCRIPTS, needs_triton, run


@needs_triton
def test_times_are_modelled() -> None:
    ended = run(SCRIPTS / "benchmark.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "tcir: do_bench: times are modelled" in ended.stderr
    assert "tcir: perf_report: left out" in ended.stderr
    assert "tcir: 1 launches executed" in ended.stderr
