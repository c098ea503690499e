"""Compiled kernels in several processes: results, findings and counters of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
import tcir.interp.ptx.jobs.launch as jobs_launch
from tcir.exit_status import exit_status
from tcir.opt import command
from tcir.ptxrun.command import main as tc_run

from .linalg_text import Conv, Matmul
from .oracle import integers

SAME = (1, 1, 1, 1)


@pytest.fixture(autouse=True)
def _small_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divides grids that one process executes as fast."""
    monkeypatch.setattr(jobs_launch, "IN_LOCKSTEP", 0)


CASES: list[tuple[str, Any, dict[str, Any], bool]] = [
    ("gemm", Matmul(256, 512, 64), {}, True),
    ("gemm", Matmul(300, 520, 72, out="f16"), {}, True),
    ("gemm", Matmul(512, 512, 64), {"persistent": True, "ctas": 4}, True),
    ("conv-shift-reuse", Conv(1, 16, 33, 64, 64, 3, 3, SAME), {}, True),
    ("conv-implicit-gemm", Conv(1, 40, 30, 32, 32, 3, 3, SAME), {}, True),
    ("matmul-warp", Matmul(256, 512, 64), {}, True),
]
"""Pipeline, case, options, and whether two processes run it."""


def tc_opt(words: list[str]) -> int:
    return exit_status(lambda: command.main(words))


def run(kernel: tcir.Kernel, inputs: list[Any], **options: Any) -> tuple[Any, list[Any]]:
    outputs = [np.empty(spec.shape, spec.dtype) for spec in kernel.signature.outputs]
    return kernel(*inputs, *outputs, **options), outputs


@pytest.mark.parametrize(
    ("pipeline", "case", "options", "apart"),
    CASES,
)
def test_kernels(pipeline: str, case: Any, options: dict[str, Any], apart: bool) -> None:
    kernel = tcir.compile(case.text(), pipeline, **options)
    inputs = [integers(s.shape, "f16", n) for n, s in enumerate(kernel.signature.inputs)]
    one, outputs = run(kernel, inputs)
    two, same = run(kernel, inputs, jobs=2)
    assert not two.together if apart else two.together, two.together
    if isinstance(case, Matmul):
        a, b = (each.astype(np.float32) for each in inputs)
        np.testing.assert_array_equal(same[0], (a @ b).astype(same[0].dtype))
    for left, right in zip(outputs, same, strict=True):
        np.testing.assert_array_equal(left.view(np.uint8), right.view(np.uint8))
    assert one.counters == two.counters and one.findings == two.findings
    for place, output in enumerate(outputs):
        for index in ((0,) * output.ndim, tuple(n - 1 for n in output.shape)):
            assert one.sites[place](index) == two.sites[place](index)


def test_every_pass_is_executed_with_jobs(tmp_path: Path, capfd: Any) -> None:
    """The verdicts are those of one process; a remark says where one process ran all."""
    file = tmp_path / "m.mlir"
    file.write_text(Matmul(256, 512, 64).text())
    words = [str(file), "--pipeline=gemm", "--validate-each", "--emit=ptx", "-o", "/dev/null"]
    assert tc_opt([*words, "--jobs=2"]) == 0
    lines = capfd.readouterr().err
    assert "llvm-to-ptx" in lines and "one process" not in lines and "held" in lines
    assert tc_opt([*words, "--jobs=2", "--orders=2"]) == 0  # the processes are for the orders
    lines = capfd.readouterr().err
    assert "2 completion orders" in lines and "one process" not in lines
    file.write_text(Matmul(128, 16, 64).text())
    assert tc_opt([*words, "--jobs=2"]) == 0
    assert "one process: @matmul: a grid of few CTAs" in capfd.readouterr().err


def test_flags(tmp_path: Path, capfd: Any) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(Matmul(128, 128, 64).text())
    assert tc_opt([str(file), "--jobs=2"]) == 3
    assert "--jobs: expected --validate-each" in capfd.readouterr().err
    assert tc_opt([str(file), "--jobs=0", "--validate-each"]) == 3
    assert "jobs: expected an integer of at least 1, got 0" in capfd.readouterr().err
    assert tc_run(["k.ptx", "--jobs", "2", "--counters"]) == 3
    assert (
        "--jobs: expected no --counters, which needs all warps in one process"
        in capfd.readouterr().err
    )
