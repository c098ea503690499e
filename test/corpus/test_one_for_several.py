"""One thread arrives for its warp: what silicon keeps, and no document."""

from __future__ import annotations

import pytest

from .program import HERE, outcomes, read

ELECTED = read(HERE / "right/lanes_elected_for_the_warp.ptx")
WARP = "elected-for-warp"


@pytest.mark.parametrize(("ordering", "severity"), [("silicon", "warning"), ("isa", "error")])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_an_elected_lane_arrives_for_its_warp(
    ordering: str, severity: str, seed: int | None
) -> None:
    """It does behind elect.sync; lane 0 without one does not, nor does one of half of the lanes."""
    report, wrong = ELECTED.run(ELECTED.text, seed, ordering=ordering)
    assert not wrong and set(outcomes(report)) == {(severity, WARP)}, str(report)
    election = "elect.sync _|%p4, 0xffffffff;"
    assert ELECTED.text.count(election) == 2
    half = "setp.lt.u32 %p4, %l, 16; @%p4 elect.sync _|%p4, 0x0000ffff;"
    for other in ("setp.eq.u32 %p4, %l, 0;", half):
        report, _ = ELECTED.run(ELECTED.text.replace(election, other), seed, ordering=ordering)
        assert ("error", "race") in outcomes(report), str(report)
