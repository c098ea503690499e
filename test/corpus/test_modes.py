"""A seeded order gives the same findings, values and counters however the machine executes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from modes import MODES

from tcir.interp.ptx.loops.running import Loops
from tcir.run import RunReport, run_ptx

from .program import Case, cases

CASES = cases()
SEEDS = (None, 2, 5)
SEVERAL = [case for case in CASES if "grid=1," not in case.program.fields["launch"]]
"""Those that lockstep and several processes may have to do with."""


def said(seed: int | None, report: RunReport, wrong: list[str]) -> tuple[Any, ...]:
    """All that a run says but its time and how it was executed; of CTAs in lockstep under a seed
    one polls for all (docs/explanation/lockstep.md), so that the number of instructions differs."""
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


@pytest.mark.parametrize("case", SEVERAL[::10][::-1], ids=lambda case: case.name)
def test_the_same_in_every_mode(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    check(case, monkeypatch)


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


LOOP = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
 .reg .pred %p1; .reg .b32 %r<8>; .reg .b64 %d<6>;
 ld.param.b64 %d1, [x]; ld.param.b64 %d2, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
 mad.wide.u32 %d3, %r1, 4, %d1; mad.lo.u32 %r3, %r2, 32, %r1; mad.wide.u32 %d2, %r3, 4, %d2;
 mov.u32 %r4, 0; mov.u32 %r5, 0;
AGAIN:
 ld.global.b32 %r6, [%d3]; xor.b32 %r5, %r5, %r6; add.u64 %d3, %d3, 128;
 add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 40; @%p1 bra AGAIN;
 st.global.b32 [%d2], %r5; ret; }"""


@pytest.mark.parametrize("mode", MODES)
def test_loops_are_compiled_code_in_all_modes_but_one(
    mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file tells, as workers execute some of them: how many instructions each call did."""
    told, run = tmp_path / "told", Loops.run
    told.touch()

    def telling(self: Loops, *of: Any) -> tuple[int, bool, bool]:
        done = run(self, *of)
        with told.open("a") as file:
            file.write(f"{done[0]}\n")
        return done

    monkeypatch.setattr(Loops, "run", telling)
    MODES[mode](monkeypatch)
    x = np.random.default_rng(0).integers(0, 1 << 30, (40, 32), np.int32)
    y = np.zeros((4, 32), np.int32)
    report = run_ptx(LOOP, grid=4, block=32, args=[x, y])
    assert report.ok and (y == np.bitwise_xor.reduce(x)).all(), str(report)
    count = sum(map(int, told.read_text().split()))
    leaders = {"apart": 4, "together": 1, "interpreted": 0, "jobs": 4}[mode]
    assert leaders * 200 <= count <= leaders * 240
