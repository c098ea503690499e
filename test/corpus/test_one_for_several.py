"""One thread arrives for its warp, or for its warpgroup: what silicon keeps, and no document."""

from __future__ import annotations

import pytest

from tcir.machine import Assumptions

from .program import HERE, outcomes, read

ELECTED = read(HERE / "right/lanes_elected_for_the_warp.ptx")
RELEASED = read(HERE / "right/wgmma_released_by_one_thread.ptx")
LOADED_AGAIN = read(HERE / "wrong/wgmma_loaded_again_too_early.ptx")
WARP, WARPGROUP, RACE = "elected-for-warp", "waited-for-warpgroup", "race"


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


@pytest.mark.parametrize("ordering", ["silicon", "isa"])
@pytest.mark.parametrize(
    ("answer", "elected", "waited"),
    [("met", WARP, WARPGROUP), ("elected", WARP, RACE), ("own", RACE, RACE)],
)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_each_answer_to_whose_accesses_are_handed_over(
    answer: str, elected: str, waited: str, ordering: str, seed: int | None
) -> None:
    """Where the products of other warps may be late, the values may be others, too."""
    assumptions = Assumptions(handed_over=answer)
    for program, kind in ((ELECTED, elected), (RELEASED, waited), (LOADED_AGAIN, waited)):
        severity = "warning" if kind != RACE and ordering == "silicon" else "error"
        report, wrong = program.run(program.text, seed, ordering=ordering, assumptions=assumptions)
        assert (severity, kind) in outcomes(report), str(report)
        assert kind == RACE or (not wrong and len(set(outcomes(report))) == 1), str(report)
