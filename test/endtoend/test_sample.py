"""`--budget`: a sample of the CTAs is executed, and never called equal."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
import tcir.interp.ptx.jobs.launch as jobs_launch
from tcir.exit_status import exit_status
from tcir.machine.sample import FEWEST, Sample
from tcir.opt import command
from tcir.program.source import load_module, mlir_context
from tcir.run import run_ptx
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import begin

from .linalg_text import Matmul

CASE = Matmul(512, 512, 32)
"""16 CTAs, of which 8 are executed."""
BUDGET = 0.5


def tc_opt(words: list[str]) -> int:
    return exit_status(lambda: command.main(words))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("grid", [(64, 64, 1), (4096, 1, 1), (5, 7, 11), (3, 3, 1), (4, 2, 1)])
def test_a_sample_has_first_last_corners_and_tails(grid: tuple[int, int, int], seed: int) -> None:
    total = math.prod(grid)
    chosen = list(Sample(24 / 4096, seed).of(grid, (1, 1, 1)))
    assert chosen == sorted(set(chosen)) and set(chosen) <= set(range(total))
    assert len(chosen) == min(total, max(FEWEST, round(total * 24 / 4096)))
    places = [(n % grid[0], n // grid[0] % grid[1], n // (grid[0] * grid[1])) for n in chosen]
    assert {0, total - 1} <= set(chosen)
    for axis, extent in enumerate(grid):
        assert {0, extent - 1} <= {place[axis] for place in places}
    assert list(Sample(1.0, seed).of(grid, (1, 1, 1))) == list(range(total))


def test_seeds_draw_others_and_clusters_stay_together() -> None:
    drawn = {tuple(Sample(0.01, seed).of((64, 64, 1), (1, 1, 1))) for seed in range(4)}
    assert len(drawn) == 4
    halved = Sample(0.01, 0).of((128, 64, 1), (2, 1, 1))
    assert len(halved) == 41 and max(halved) == 64 * 64 - 1


@pytest.fixture(scope="module")
def kernel() -> tcir.Kernel:
    return tcir.compile(CASE.text(), "gemm", n_tile=128)


def sampled(kernel: tcir.Kernel) -> list[int]:
    grid = kernel.launch_config.grid
    assert math.prod(grid) == 16
    return list(Sample(0.1, 0).of(grid, (1, 1, 1)))


def in_one_cta(ptx: str, grid: tuple[int, int, int], number: int, wrong: str) -> str:
    """The kernel with a mistake in one CTA, at its first store of a result; {0} is what it stores,
    {1} the store."""
    store = re.search(r"^\s*(st\.global\.\S+)\s+\[[^\]]+\], \{?(%\w+)[^;]*;", ptx, re.M)
    assert store is not None
    x, y = number % grid[0], number // grid[0]
    test = (
        "{ .reg .pred %bug, %bug2; .reg .b32 %cx, %cy; mov.u32 %cx, %ctaid.x; "
        f"mov.u32 %cy, %ctaid.y; setp.eq.u32 %bug, %cx, {x}; setp.eq.u32 %bug2, %cy, {y}; "
        f"and.pred %bug, %bug, %bug2; {wrong.format(store[2], store[0].strip())} }}"
    )
    return ptx[: store.start()] + "\n" + test + ptx[store.end() :]


VALUE = "@%bug mov.b64 {0}, 0x4228000042280000; {1}"  # 42, twice
MISSING = "@!%bug {1}"


def check(kernel: tcir.Kernel, *texts: str, budget: float | None = BUDGET) -> list[Line]:
    """The lines of PTX texts, each executed as a state of the program."""
    lines = [Line(n, f"state {n}") for n in range(len(texts))]
    with mlir_context() as context:
        validation = begin(load_module(CASE.text(), context), Settings(budget=budget))
        assert validation.input.verdict == "reference"
        for text, line in zip(texts, lines, strict=True):
            validation.check_ptx(text, kernel.launches, line)
    return lines


def test_a_bug_in_a_sampled_cta_is_found_and_one_elsewhere_was_not_executed(
    kernel: tcir.Kernel,
) -> None:
    grid, inside = kernel.launch_config.grid, sampled(kernel)
    outside = next(n for n in range(16) if n not in inside)
    for number in (inside[0], inside[3], inside[-1]):
        (line,) = check(kernel, in_one_cta(kernel.ptx, grid, number, VALUE))
        assert line.verdict == "different" and "got 42" in str(line.difference), str(line)
    broken = in_one_cta(kernel.ptx, grid, outside, VALUE)
    (line,) = check(kernel, broken)
    assert line.verdict == "sampled", str(line)
    assert line.compared.startswith("8 of 16 CTAs: machine, ptx level, bit for bit")
    (whole,) = check(kernel, broken, budget=None)
    assert whole.verdict == "different"


def test_a_store_that_a_pass_drops_in_a_sampled_cta_is_found(kernel: tcir.Kernel) -> None:
    grid, inside = kernel.launch_config.grid, sampled(kernel)
    broken = in_one_cta(kernel.ptx, grid, inside[2], MISSING)
    before, after = check(kernel, kernel.ptx, broken)
    assert before.verdict == "sampled" and after.verdict == "different", str(after)
    assert "nothing wrote it" in str(after.difference)


def test_kernels_that_communicate_are_executed_as_a_whole(kernel: tcir.Kernel) -> None:
    """One that could poll a flag: all of its CTAs are executed, so the result is equal."""
    pointer = re.search(r"st\.global\.\S+\s+\[(%\w+)", kernel.ptx)
    assert pointer is not None
    flag = f"{{1}} ld.volatile.global.u32 %cx, [{pointer[1]}];"
    (line,) = check(kernel, in_one_cta(kernel.ptx, kernel.launch_config.grid, 3, flag))
    assert line.verdict == "equal" and "CTAs may communicate: ld.volatile" in line.remarks[0]


def test_every_pass(tmp_path: Path, capfd: Any) -> None:
    """All levels are sampled, the PTX too; the status is that of something not executed."""
    file = tmp_path / "m.mlir"
    file.write_text(CASE.text())
    words = [str(file), "--pipeline=gemm{n-tile=128}", "--emit=ptx", "-o", str(tmp_path / "k.ptx")]
    report = tmp_path / "r.json"
    assert tc_opt([*words, f"--validate-each={report}", f"--budget={BUDGET}"]) == 2
    said = capfd.readouterr().err.splitlines()
    assert "the budget is 0.5 s: a sample of CTAs" in said[1]
    machine = [line for line in said if "machine, " in line]
    assert len(machine) > 8 and all("8 of 16 CTAs: machine" in line for line in machine)
    assert not any(" equal " in line for line in machine)
    assert any(re.match(r"sampled: \d+ steps, held where CTAs were executed", s) for s in said)
    assert (tmp_path / "k.ptx").exists() and (tmp_path / "k.json").exists()
    assert tc_opt([*words, "--validate-each", "--budget=100000"]) == 0
    assert "sample" not in capfd.readouterr().err


def test_jobs_and_lockstep_execute_the_same_sample(
    kernel: tcir.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_launch, "IN_LOCKSTEP", 0)
    launch, inside = kernel.launch_config, sampled(kernel)
    a = np.ones((512, 32), np.float16)
    b = np.ones((32, 512), np.float16)
    results = []
    ways: list[dict[str, Any]] = [{}, {"lockstep": False}, {"jobs": 2}]
    for options in ways:
        out = np.zeros((512, 512), np.float32)
        report = run_ptx(
            kernel.ptx, entry=launch.name, grid=launch.grid, block=launch.block,
            dynamic_smem=launch.dynamic_smem, args=launch.arguments([a, b], [out]),
            sample=Sample(0.1, 0), **options,
        )  # fmt: skip
        assert report.ok and report.executed == len(inside)
        assert report.processes == options.get("jobs", 1)
        assert "a sample of 8 CTAs" in str(report).splitlines()[0]
        results.append((out == 32).mean())
        np.testing.assert_array_equal(np.unique(out), [0, 32])
    assert results == [0.5, 0.5, 0.5]


def test_what_is_refused() -> None:
    with pytest.raises(tcir.InputError, match="budget: expected seconds above 0, got 0"):
        tcir.validate(CASE.text(), budget=0)
    assert tc_opt(["x.mlir", "--budget=3"]) == 3
