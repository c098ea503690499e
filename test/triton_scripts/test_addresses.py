"""Kernels that reach tensors by addresses in other tensors."""

from __future__ import annotations

import pytest

from .command import SCRIPTS, needs_triton, run

pytestmark = needs_triton
SCRIPT = SCRIPTS / "grouped.py"


@pytest.mark.parametrize("options", [[], ["--order-seeds", "2"], ["--jobs", "2"]])
def test_products_of_several_sizes(options: list[str]) -> None:
    ended = run(*options, SCRIPT)
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "tcir: 1 launches executed" in ended.stderr and ", 0 with a result" in ended.stderr


def test_a_tensor_that_is_too_short() -> None:
    ended = run(SCRIPT, "short")
    assert ended.returncode == 1
    assert "grouped.py:46: error: grouped: out-of-bounds" in ended.stderr
    assert "(grouped.py:27)" in ended.stderr and "the array at 0x" in ended.stderr


def test_a_tensor_that_is_gone() -> None:
    ended = run(SCRIPT, "gone")
    assert ended.returncode == 1
    assert "grouped.py:46: error: grouped: out-of-bounds" in ended.stderr
    assert "(grouped.py:25)" in ended.stderr
