"""Options of ``python -m tcir.triton``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tiers import slow

from .command import SCRIPTS, needs_triton, run


@needs_triton
def test_hooks_see_every_launch_and_the_device_prints() -> None:
    ended = run(SCRIPTS / "hooks.py")
    assert ended.returncode == 0, ended.stderr
    assert "program: 0\n" in ended.stdout and "program: 1\n" in ended.stdout
    assert "tcir: 1 launches executed" in ended.stderr  # the other one has no programs


@needs_triton
def test_orders_whose_results_differ_are_told() -> None:
    ended = run("--order-seeds", "6", SCRIPTS / "race.py")
    assert ended.returncode == 1
    assert "tcir: halves: race: " in ended.stderr
    assert ", 1 with a result that depends on timing" in ended.stderr


@needs_triton
def test_a_result_that_is_no_number_is_the_same_in_every_order(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    source = (SCRIPTS / "sizes.py").read_text().replace("1024 * 1000", "1000")
    source = source.replace("torch.int32", "torch.float32").replace(", 1024, ", ", float('nan'), ")
    script.write_text(source.replace("(x == 1024)", "x.isnan()"))
    ended = run("--order-seeds", "1", script)
    assert (ended.returncode, ended.stdout) == (0, "1000\n"), ended.stderr
    assert "the result differs" not in ended.stderr


@needs_triton
def test_other_sizes() -> None:
    """1024 in the kernel stays."""
    ended = run("--size", "1024=3", SCRIPTS / "sizes.py")
    assert ended.returncode == 1 and "AssertionError" in ended.stderr  # it is compared with 3
    ended = run("--size", "1000=3", SCRIPTS / "sizes.py")
    assert (ended.returncode, ended.stdout) == (0, "3072\n"), ended.stderr
    ended = run("--size", "256=3", "--size", "17=3", SCRIPTS / "sizes.py")
    assert ended.returncode == 3
    assert "sizes.py outside its kernels, got 17" in ended.stderr


@needs_triton
def test_a_module_that_runs_scripts(tmp_path: Path) -> None:
    source = (SCRIPTS / "sizes.py").read_text().replace("n = 1024 * 1000", "n = 1000")
    head, tail = source.split("\nn = ")
    tail += "triton.testing.do_bench(lambda: None)\n"
    body = "".join(f"    {line}\n" for line in f"n = {tail}".splitlines())
    (tmp_path / "test_it.py").write_text(f"{head}\ndef test_fill():\n{body}")
    ended = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", cwd=tmp_path)
    assert ended.returncode == 0 and "1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "tcir: 1 launches executed" in ended.stderr
    assert "tcir: do_bench: times are modelled" in ended.stderr  # pytest captures the script's own
    ended = run("-m", "no_such_module")
    assert ended.returncode == 1 and "No module named no_such_module" in ended.stderr


@needs_triton
@pytest.mark.skipif(importlib.util.find_spec("perfetto") is None, reason="not installed: perfetto")
def test_a_trace_of_the_launches(tmp_path: Path) -> None:
    ended = run("--trace", tmp_path / "t.pftrace", SCRIPTS / "vector_add.py")
    assert ended.returncode == 0, ended.stderr
    assert b"ld.global" in (tmp_path / "t.pftrace").read_bytes()
    ended = run("--trace", tmp_path / "nowhere" / "t", SCRIPTS / "vector_add.py")
    assert ended.returncode == 3 and "cannot write" in ended.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--size", "8192"], "expected OLD=NEW, two integers, got '8192'"),
        (["--size", "8=-3"], "expected OLD=NEW, two integers, got '8=-3'"),
        slow(["--order-seeds", "-1"], "expected an integer of 0 to 10000, got '-1'"),
        slow(["--jobs", "0"], "expected an integer of at least 1, got '0'"),
        slow(["--size", "8=3", "-m"], "--size: replaces integers of a script, not of"),
        slow([], "expected the path of a Python script, got a directory"),
    ],
)
def test_values_that_are_refused(options: list[str], words: str) -> None:
    ended = run(*options, SCRIPTS)
    assert ended.returncode in (2, 3) and words in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr
