"""A seeded order gives the same findings, values and counters however the machine executes it."""

from __future__ import annotations

from typing import Any

import pytest
from modes import MODES

from tcir.run import RunReport

from .program import Case, cases

CASES = cases()
SEEDS = (None, 2, 5)
SEVERAL = [case for case in CASES if "grid=1," not in case.program.fields["launch"]]
"""Those that lockstep and several processes may have to do with."""


def said(seed: int | None, report: RunReport, wrong: list[str]) -> tuple[Any, ...]:
    """All that a run says but its time and how it was executed; of CTAs in lockstep under a seed
    one polls for all (docs/lockstep.md), so that the number of instructions differs."""
    errors = [(e.code, str(e), e.who) for e in report.errors]
    count = report.instructions if seed is None else 0
    return (list(report.findings), errors, report.counters, count, report.output,
            list(map(str, report.incomplete)), report.exit_code, wrong)  # fmt: skip


def check(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS:
        want = said(seed, *case.program.run(case.text, seed))
        for name, mode in MODES.items():
            with monkeypatch.context() as patch:
                mode(patch)
                assert said(seed, *case.program.run(case.text, seed)) == want, (name, seed)


@pytest.mark.parametrize("case", SEVERAL[::10], ids=lambda case: case.name)
def test_the_same_in_every_mode(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    check(case, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_whole_corpus_is_the_same_in_every_mode(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(case, monkeypatch)


@pytest.mark.parametrize("name", ["right/cuda_bfloat16_sum", "right/cuda_tiled_matmul"])
def test_the_modes_are_in_effect(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of four CTAs run in lockstep with the first, or two processes run two each."""
    (case,) = (case for case in CASES if case.name == name)
    found = {}
    for mode, change in MODES.items():
        with monkeypatch.context() as patch:
            change(patch)
            report, _ = case.program.run(case.text, None)
            found[mode] = report.lockstep, report.processes
    assert found["apart"] == (0, 1) and found["together"] == found["interpreted"] == (3, 1)
    assert found["jobs"][1] == 2
