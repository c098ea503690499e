"""What orders `wgmma`: each rule kept, and broken (PTX ISA 9.7.15.7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.interp.ptx.loops import straight
from tcir.interp.ptx.loops.straight import StraightLine
from tcir.machine import Assumptions

from .wgmma_cases import exact
from .wgmma_edits import COMMIT, FENCE, OVERWRITE, PROXY, READ, WAIT, WRITE_A, ZERO, edited, edits
from .wgmma_forms import FORMS, ptx
from .wgmma_machine import run

ALONE = Assumptions(handed_over="own")


def program(old: str, new: str, registers: bool = False) -> tuple[bool, str, bool]:
    """`edited` of a product of f16, A from shared memory or registers."""
    return edited(exact(FORMS["n8_f32_f16_f16" + "_rs" * registers]), old, new)


@pytest.mark.parametrize(
    ("old", "new", "registers"),
    [
        (WAIT, WAIT, False),
        (WAIT, WAIT, True),
        (WAIT, WAIT + READ, False),
        (WAIT, WAIT + WRITE_A, True),
        (WAIT, WAIT + " bar.sync 0;\n" + OVERWRITE, False),
        (COMMIT, COMMIT + COMMIT, False),
        (WAIT, COMMIT + " wgmma.wait_group.sync.aligned 1;\n", False),
        (FENCE, READ + FENCE, False),
        (PROXY, "fence.proxy.async.shared::cta; bar.sync 0;", False),
    ],
)
def test_ordered(old: str, new: str, registers: bool) -> None:
    ok, report, equal = program(old, new, registers)
    assert ok and equal, report
    assert "error" not in report and "warning" not in report


@pytest.mark.parametrize(
    ("old", "new", "registers", "finding"),
    [
        (FENCE, "", False, "missing-wgmma-fence"),
        (FENCE, FENCE + " add.f32 %c0, %c0, %c1;\n", False, "missing-wgmma-fence"),
        (FENCE, FENCE + WRITE_A, True, "missing-wgmma-fence"),
        (FENCE, FENCE + " mov.b32 %c0, 1;\n", False, "missing-wgmma-fence"),
        (FENCE, FENCE + ZERO + " add.f32 %c0, %c0, %c1;\n", False, "missing-wgmma-fence"),
        (FENCE, ZERO, False, "missing-wgmma-fence"),
        (WAIT, "", False, "wgmma-in-flight"),
        (WAIT, "", False, "never-awaited"),
        (COMMIT, "", False, "wgmma-in-flight"),
        (WAIT, " wgmma.wait_group.sync.aligned 1;\n", False, "wgmma-in-flight"),
        (WAIT, READ + WAIT, False, "wgmma-in-flight"),
        (WAIT, WRITE_A + WAIT, True, "wgmma-in-flight"),
        (WAIT, OVERWRITE + WAIT, False, "wgmma reads shared memory, then generic overwrites it"),
        (PROXY, "bar.sync 0;", False, "missing-proxy-fence"),
    ],
)
def test_not_ordered(old: str, new: str, registers: bool, finding: str) -> None:
    ok, report, _ = program(old, new, registers)
    assert not ok and finding in report, report


LINE = " add.f32 %c1, %c1, %c0;\n" * 4


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (FENCE, LINE + FENCE, ""),
        (WAIT, WAIT + " sub.f32 %c0, %c0, %c0;\n" + LINE, ""),
        (FENCE, FENCE + LINE, "missing-wgmma-fence"),
        (WAIT, LINE + WAIT, "wgmma-in-flight"),
    ],
)
def test_instructions_that_compiled_code_executes_together(
    old: str, new: str, finding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[StraightLine] = []
    execute = StraightLine.execute

    def counted(self: StraightLine, *of: Any) -> bool:
        lines.extend([self] * (done := execute(self, *of)))
        return done

    monkeypatch.setattr(straight, "WORTH", 0)
    monkeypatch.setattr(StraightLine, "execute", counted)
    ok, report, _ = program(old, new)
    assert any(line.touched for line in lines) == (finding != "wgmma-in-flight")
    assert ok == (not finding) and finding in report, report


def test_a_wait_of_one_warp_covers_the_four() -> None:
    """On silicon; where it does not, the overwritten operands are a race."""
    probe = exact(FORMS["n8_f32_f16_f16"])
    text = edits(probe, WAIT, WAIT + OVERWRITE)
    for options, ok, finding in (
        ({}, True, "warning: waited-for-warpgroup"),
        ({"ordering": "isa"}, False, "error: waited-for-warpgroup"),
        ({"assumptions": ALONE}, False, "error: race"),
    ):
        report, words = run(probe, text, hazards="report", **options)
        assert report.ok == ok and finding in str(report), str(report)
        assert not ok or np.array_equal(words, probe.expected)


def test_d_in_flight_is_poisoned() -> None:
    """A read before the wait sees neither the old D nor the new one."""
    ok, _, equal = program(WAIT, "")
    assert not ok and not equal


def test_three_warps_are_no_warpgroup() -> None:
    form = FORMS["n8_f32_f16_f16"]
    text = ptx((form.name,)).replace(FENCE, " setp.ge.u32 %q, %r0, 96; @%q ret;\n" + FENCE)
    report, _ = run(exact(form), text, hazards="report")
    assert not report.ok and "3 of the four warps of the warpgroup" in str(report)
    report, _ = run(exact(form), text, hazards="report", assumptions=ALONE)
    assert not report.ok and "they issued [1, 1, 1, 0] wgmma" in str(report), str(report)
