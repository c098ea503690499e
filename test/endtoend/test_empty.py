"""Dimensions of size 0: every pipeline, every pass, and PTX, beside numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.errors import InputError
from tcir.program.launch_file import LaunchFile
from tcir.ptxrun import command
from tcir.ptxrun.program_bundle import write_program

from .breaking import Edit, change_text, run_broken
from .empty_cases import CASES, Case


def numbers(spec: Any, seed: int) -> np.ndarray[Any, Any]:
    """Whole numbers without 0, and a -0: a sum of nothing does not change its sign."""
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 4, spec.shape) * generator.choice([-1, 1], spec.shape)
    made = np.asarray(values, np.float64)
    if made.size and spec.dtype == np.float32:
        made.reshape(-1)[made.size // 2] = -0.0
    return made.astype(spec.dtype)


@pytest.mark.parametrize(
    ("case", "pipeline"),
    [
        pytest.param(case, pipeline, id=f"{pipeline}-{case}")
        for case in CASES
        for pipeline in case.pipelines
    ],
)
def test_empty(case: Case, pipeline: str) -> None:
    kernel = tcir.compile(case.text, pipeline, validate=True)
    verdicts = {line.verdict for line in kernel.report.passes}
    assert verdicts <= {"reference", "equal"}, str(kernel.report)
    assert len(kernel.launches.launches) == len(kernel.launch_table.rows) == case.launches
    assert all(0 not in launch.grid for launch in kernel.launches.launches)
    inputs = [numbers(spec, n) for n, spec in enumerate(kernel.signature.inputs)]
    results = [np.full(spec.shape, 77, spec.dtype) for spec in kernel.signature.outputs]
    assert not kernel(*inputs, *results).findings
    for result, wanted in zip(results, case.oracle(*inputs), strict=True):
        assert (result.shape, result.tobytes()) == (wanted.shape, wanted.tobytes())


def named(name: str) -> Case:
    """The case of that name."""
    return next(case for case in CASES if case.name == name)


NOTHING, PART = named("matmul-0x96x64"), named("matmul-40x96x0-behind-start")


def lose_a_launch(module: Any) -> None:
    """Erases the last function."""
    list(module.body.operations)[-1].operation.erase()


@pytest.mark.parametrize(
    ("name", "at", "edit"),
    [
        ("matmul-40x96x0", "fold-empty", change_text(r"0\.000000e\+00", "1.0")),
        (PART.name, "fold-empty", change_text(r"linalg.copy ins\(%arg2", "linalg.copy ins(%arg3")),
        (PART.name, "split-layers", lose_a_launch),
        ("concat", "split-layers", lose_a_launch),
    ],
    ids=["another number", "another accumulator", "no launch", "a launch too few"],
)
def test_breaks_are_caught(name: str, at: str, edit: Edit) -> None:
    caught = run_broken(
        named(name).text, tcir.named_pipeline("simt-elementwise"), at, edit, orders=1
    )
    assert (caught.at, caught.by) == (at, "difference"), caught.text


def test_without_a_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table, the launch file, tc-run, cubin, bundle."""
    kernel = tcir.compile(NOTHING.text, "gemm")
    assert kernel.launch_table.total == (0, 0, 0, 0)
    last = str(kernel.launch_table).splitlines()[-1]
    assert last == "between launches: 0 bytes stored, 0 bytes loaded"
    with pytest.raises(InputError, match=r"got 0 \(all results are without elements\)"):
        _ = kernel.launch_config
    file = LaunchFile.of(kernel.signature, kernel.launches, kernel.target)
    (tmp_path / "k.json").write_text(file.text())
    (tmp_path / "k.ptx").write_text(kernel.ptx)
    for number, spec in enumerate(kernel.signature.inputs):
        np.save(tmp_path / f"{number}.npy", np.zeros(spec.shape, spec.dtype))
    arguments = [f"--arg={tmp_path / name}" for name in ("0.npy", "1.npy")]
    assert command.main([str(tmp_path / "k.ptx"), *arguments, f"--out={tmp_path / 'y.npy'}"]) == 0
    assert capsys.readouterr().out == "no launch: all results are without elements\n"
    assert np.load(tmp_path / "y.npy").shape == (0, 96)
    (tmp_path / "m.mlir").write_text(NOTHING.text)
    with pytest.raises(InputError, match="the program has no launch, since all its results"):
        write_program(tmp_path / "bundle", str(tmp_path / "m.mlir"), "gemm")


def test_a_launch_file_without_the_launch_it_needs(tmp_path: Path) -> None:
    kernel = tcir.compile(PART.text, "simt-elementwise")
    text = LaunchFile.of(kernel.signature, replace(kernel.launches, launches=()), "sm_100a").text()
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(InputError, match="expected a launch that writes result0, got none"):
        LaunchFile.read(tmp_path / "k.json")
