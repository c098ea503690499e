"""Scripts of CuTe DSL kernels, unmodified, by ``python -m tcir.cute``."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
TRANSPOSE = Path(__file__).parents[2] / "examples" / "cute_transpose.py"
missing = importlib.util.find_spec("cutlass") is None
needs_cute = pytest.mark.skipif(missing, reason="not installed: nvidia-cutlass-dsl")
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="not installed: torch"
)


def run(*given: object) -> subprocess.CompletedProcess[str]:
    """Ended, with what it wrote."""
    return subprocess.run(
        [sys.executable, "-m", "tcir.cute", *map(str, given)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@needs_cute
@pytest.mark.parametrize("order", [[], ["--order-seeds", "2"]])
def test_numpy_arrays_and_shared_memory(order: list[str]) -> None:
    ended = run(*order, TRANSPOSE)
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert ended.stderr.startswith("tcir: 1 launches executed in ")
    assert ", 0 with a result that depends on timing" in ended.stderr


@needs_cute
def test_a_race_is_found_at_the_script_s_line() -> None:
    ended = run(TRANSPOSE, "--unsynchronised")
    assert ended.returncode == 1
    assert "transpose" in ended.stderr and ": race: " in ended.stderr
    assert "(cute_transpose.py:26)" in ended.stderr and "(cute_transpose.py:23)" in ended.stderr
    assert ", 1 with a result that depends on timing" in ended.stderr


@needs_cute
def test_tensor_maps_and_tensor_cores() -> None:
    ended = run(SCRIPTS / "tensor_core.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "1 launches executed" in ended.stderr and ", 0 with a result" in ended.stderr


@needs_cute
def test_an_autotuner_executes_every_configuration_and_models_its_time() -> None:
    ended = run(SCRIPTS / "tune.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "2 launches executed" in ended.stderr and "benchmark: times are modelled" in ended.stderr


@needs_cute
def test_calls_for_tvm_ffi_and_maps_of_the_driver() -> None:
    ended = run(SCRIPTS / "direct_calls.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "4 launches executed" in ended.stderr and ", 0 with a result" in ended.stderr


@needs_cute
@needs_torch
def test_a_script_that_is_written_for_a_gpu() -> None:
    ended = run(SCRIPTS / "torch_cuda.py")
    factor = "factor 0.500000"
    said = [factor, factor, "right", "148", factor, "modelled"]
    assert (ended.returncode, ended.stdout.split("\n")[:-1]) == (0, said), ended.stderr
    assert "3 launches executed" in ended.stderr and "benchmark: times are modelled" in ended.stderr


@needs_cute
@needs_torch
def test_tables_of_addresses() -> None:
    ended = run(SCRIPTS / "tables.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr


@needs_cute
@needs_torch
@pytest.mark.parametrize("what", ["empty", pytest.param("zeros", marks=pytest.mark.slow)])
def test_memory_that_nobody_wrote(what: str) -> None:
    ended = run("--max-findings", 1, SCRIPTS / "unwritten.py", what)
    wrong = what == "empty"
    assert ended.returncode == wrong, ended.stderr
    assert f", {4 * wrong} with a result" in ended.stderr, ended.stderr
    assert ended.stderr.count("undefined-read") == 2 * wrong


@needs_cute
@pytest.mark.parametrize(
    ("what", "status", "words"),
    [
        ("right", 0, "tcir: 1 launches executed"),
        ("outside", 1, "wrong.py:38: error: kernel_cutlass_fill_"),
        ("together", 0, "tcir: 1 launches executed"),
        ("too many", 3, "wrong.py:47: error: grid: expected at most 4736 CTAs of 64 threads"),
        (
            "driver",
            2,
            "wrong.py:52: error: the host part needs a GPU here (cuda.cuGraphCreate(0)): ",
        ),
        ("dsl", 3, "wrong.py:54: error: NameError in `unknown`: name 'nothing' is not defined"),
        ("map", 3, "wrong.py:58: error: dims[1]: expected 1..2^32, got 0; cuTensorMapEncodeTiled"),
        ("own", 1, "ValueError: mine"),
        ("exit", 7, "tcir: 0 launches executed"),
    ],
)
def test_how_scripts_end(what: str, status: int, words: str) -> None:
    ended = run(SCRIPTS / "wrong.py", what)
    assert ended.returncode == status, ended.stderr
    assert words in ended.stderr
    if what != "own":
        assert "Traceback" not in ended.stderr
    if what == "outside":
        assert "out-of-bounds" in ended.stderr and "(wrong.py:14)" in ended.stderr


def test_a_script_that_is_not_there() -> None:
    ended = run("nowhere.py")
    assert ended.returncode == 3
    assert "nowhere.py: expected the path of a Python script, got no such file" in ended.stderr


@pytest.mark.skipif(not missing, reason="CuTe DSL is installed")
def test_without_cute_dsl_the_extra_is_named() -> None:
    ended = run(TRANSPOSE)
    assert ended.returncode == 2
    assert "install tcir[cute]" in ended.stderr and "Traceback" not in ended.stderr
