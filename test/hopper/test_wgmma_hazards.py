"""What orders `wgmma`: each rule kept, and broken (PTX ISA 9.7.15.7)."""

from __future__ import annotations

import numpy as np
import pytest

from .wgmma_cases import exact
from .wgmma_forms import FORMS, ptx
from .wgmma_machine import run

FENCE = " wgmma.fence.sync.aligned;\n"
COMMIT = " wgmma.commit_group.sync.aligned;\n"
WAIT = " wgmma.wait_group.sync.aligned 0;\n"
PROXY = "fence.proxy.async; bar.sync 0;"
#: Not of the hazards: every thread stores the image's address.
ADDRESS = " st.global.u32 [%d0+24], %r2;\n"
READ = " add.f32 %v0, %c0, %c1;\n"
WRITE_A = " mov.b32 %a0, 0;\n"
OVERWRITE = " setp.eq.u32 %q, %r0, 0; @%q st.shared.b32 [%r2], %r0;\n"


def program(old: str, new: str, registers: bool = False) -> tuple[bool, str, bool]:
    """Whether the machine accepts the edited kernel, its report, and whether D is right."""
    form = FORMS["n8_f32_f16_f16" + "_rs" * registers]
    text = ptx((form.name,)).replace(ADDRESS, "")
    assert old in text
    probe = exact(form)
    report, words = run(probe, text.replace(old, new), hazards="report")
    assert not report.incomplete
    return report.ok, str(report), bool(np.array_equal(words, probe.expected))


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
        (WAIT, "", False, "wgmma-in-flight"),
        (WAIT, "", False, "never-awaited"),
        (COMMIT, "", False, "wgmma-in-flight"),
        (WAIT, " wgmma.wait_group.sync.aligned 1;\n", False, "wgmma-in-flight"),
        (WAIT, READ + WAIT, False, "wgmma-in-flight"),
        (WAIT, WRITE_A + WAIT, True, "wgmma-in-flight"),
        (WAIT, OVERWRITE + WAIT, False, "wgmma reads shared memory, then generic overwrites it"),
        (WAIT, WAIT + OVERWRITE, False, "race"),
        (PROXY, "bar.sync 0;", False, "missing-proxy-fence"),
    ],
)
def test_not_ordered(old: str, new: str, registers: bool, finding: str) -> None:
    ok, report, _ = program(old, new, registers)
    assert not ok and finding in report, report


def test_d_in_flight_is_poisoned() -> None:
    """A read before the wait sees neither the old D nor the new one."""
    ok, _, equal = program(WAIT, "")
    assert not ok and not equal


def test_three_warps_are_no_warpgroup() -> None:
    form = FORMS["n8_f32_f16_f16"]
    text = ptx((form.name,)).replace(FENCE, " setp.ge.u32 %q, %r0, 96; @%q ret;\n" + FENCE)
    report, _ = run(exact(form), text, hazards="report")
    assert not report.ok and "warpgroup" in str(report)
