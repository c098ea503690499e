"""Memory holds no values before they are written; other threads are as the first."""

from __future__ import annotations

import pytest

from .command import SCRIPTS, needs_triton, run

CASES = 14


@needs_triton
@pytest.mark.parametrize("left", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_memory_that_nobody_wrote(left: int) -> None:
    """Each case has one launch that depends on it, and none where all is written."""
    ended = run("--max-findings", 1, SCRIPTS / "unwritten.py", left)
    assert ended.returncode == left, ended.stderr
    assert f", {left * CASES} with a result" in ended.stderr, ended.stderr
    assert ("undefined-read" in ended.stderr) == bool(left), ended.stderr


@needs_triton
def test_other_threads() -> None:
    ended = run(SCRIPTS / "threads.py")
    assert (ended.returncode, ended.stdout) == (0, "[5, 33, 70, 200]\n"), ended.stderr
    assert "tcir: 4 launches executed" in ended.stderr


@needs_triton
def test_an_error_in_another_thread_is_that_of_the_command() -> None:
    ended = run(SCRIPTS / "threads.py", "outside")
    assert (ended.returncode, ended.stdout) == (1, "[]\n"), ended.stderr
    assert "twice: out-of-bounds" in ended.stderr
