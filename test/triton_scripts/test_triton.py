"""Scripts of Triton kernels, unmodified, by ``python -m tcir.triton``."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import SCRIPTS, missing, needs_triton, run


@needs_triton
@pytest.mark.parametrize(("autotune", "launches"), [("first", 1), ("all", 3)])
def test_a_script_that_names_cuda(autotune: str, launches: int) -> None:
    ended = run("--autotune", autotune, SCRIPTS / "vector_add.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert f"tcir: {launches} launches executed" in ended.stderr
    assert "the first configuration that fits is taken" in ended.stderr
    assert "leaked" not in ended.stderr  # as Triton's C part says of kernels that outlive it


@needs_triton
@pytest.mark.parametrize("order", [[], ["--order-seed", "3"]])
def test_pointers_and_descriptors(order: list[str]) -> None:
    ended = run(*order, SCRIPTS / "matmul.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "3 launches executed" in ended.stderr and ", 0 with a result" in ended.stderr
    assert ended.stderr.count(" warnings (--warnings shows them)") == 1


@needs_triton
def test_devices_of_tensors() -> None:
    ended = run(SCRIPTS / "devices.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr


@needs_triton
def test_hopper() -> None:
    ended = run("--target", "sm_90a", "--sms", "4", SCRIPTS / "hopper.py")
    assert (ended.returncode, ended.stdout) == (0, "right 4\n"), ended.stderr


@needs_triton
def test_a_race_is_found_at_the_script_s_line() -> None:
    ended = run(SCRIPTS / "race.py")
    assert ended.returncode == 1
    assert "tcir: halves: race: " in ended.stderr and "(race.py:9)" in ended.stderr
    assert ", 1 with a result that depends on timing" in ended.stderr


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("what", ["wrong", "right"])
def test_mistakes_of_published_kernels(what: str) -> None:
    """A masked load without `other` is none: Triton's PTX sets the register to 0."""
    ended = run("--max-findings", 1, SCRIPTS / "reported.py", what)
    wrong = what == "wrong"
    assert ended.returncode == wrong, ended.stderr
    assert f", {3 * wrong} with a result that depends on timing" in ended.stderr
    for name in ("read_back", "in_a_loop", "stencil"):
        assert (f"tcir: {name}: race: " in ended.stderr) == wrong, ended.stderr
    outside = "row: out-of-bounds: expected an address in a buffer, got bytes"
    assert (outside in ended.stderr) == wrong, ended.stderr
    assert "no_other" not in ended.stderr


@needs_triton
def test_an_illegal_act_ends_the_script_at_the_launch() -> None:
    ended = run(SCRIPTS / "outside.py")
    assert ended.returncode == 1
    assert "outside.py:12: error: fill: out-of-bounds" in ended.stderr
    assert "(outside.py:8)" in ended.stderr and "Traceback" not in ended.stderr


@needs_triton
def test_a_cooperative_launch_that_cannot_run_at_the_same_time() -> None:
    ended = run(SCRIPTS / "cooperative.py")
    assert ended.returncode == 3 and "tcir: 1 launches executed" in ended.stderr
    assert "cooperative.py:16: error: grid: expected at most 4736 CTAs" in ended.stderr


@needs_triton
def test_what_the_script_raises_is_told_as_python_does(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("def f():\n    raise ValueError('mine')\n\n\nf()\n")
    ended = run(script)
    assert ended.returncode == 1
    assert "runpy" not in ended.stderr and "tcir/" not in ended.stderr
    assert ended.stderr.rstrip().splitlines()[-2:] == [
        "ValueError: mine",
        "tcir: 0 launches executed in 0.0 s, 0 with a result that depends on timing",
    ]


@needs_triton
def test_arguments_and_exit_status_are_the_script_s(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(7)\n")
    ended = run(script, "--n", "3")
    assert (ended.returncode, ended.stdout) == (7, "['--n', '3']\n")


def test_a_script_that_is_not_there() -> None:
    ended = run("nowhere.py")
    assert ended.returncode == 3
    assert "nowhere.py: expected the path of a Python script, got no such file" in ended.stderr


@pytest.mark.skipif(not missing, reason="Triton is installed")
def test_without_triton_the_extra_is_named() -> None:
    ended = run(SCRIPTS / "race.py")
    assert ended.returncode != 0
    assert "install tcir[triton]" in ended.stderr and "Traceback" not in ended.stderr


@needs_triton
def test_gluon_and_a_map_of_pixels() -> None:
    ended = run(SCRIPTS / "im2col.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "3 launches executed" in ended.stderr and ", 0 with a result" in ended.stderr


@needs_triton
def test_classes_of_torch_cuda_stay_classes() -> None:
    import torch

    from tcir.doors.torch_cuda import _CUDA

    names = [name for name in _CUDA if isinstance(getattr(torch.cuda, name, None), type)]
    assert "CUDAGraph" in names and all(isinstance(_CUDA[name], type) for name in names)


@needs_triton
def test_what_libraries_for_a_gpu_ask_torch_for() -> None:
    """Devices, streams, alignment, autograd, a profiler, compiled functions, configurations that do
    not fit."""
    ended = run(SCRIPTS / "library.py")
    assert (ended.returncode, ended.stdout) == (0, "right\n"), ended.stderr
    assert "5 launches executed" in ended.stderr and ", 0 with a result" in ended.stderr
    assert "torch.profiler: only the CPU is profiled" in ended.stderr
    assert ended.stderr.count("torch.compile: functions are not compiled") == 1
