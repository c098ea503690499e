"""One thread arrives for its warp, or for its warpgroup: what silicon keeps, and no document."""

from __future__ import annotations

import pytest

from tcir.machine import Assumptions

from .program import HERE, outcomes, read

ELECTED = read(HERE / "right/lanes_elected_for_the_warp.ptx")
LOADED_AGAIN = read(HERE / "wrong/wgmma_loaded_again_too_early.ptx")
WARP, WARPGROUP = "elected-for-warp", "waited-for-warpgroup"


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


@pytest.mark.parametrize(
    ("answer", "ordering", "wanted"),
    [
        ("no", "silicon", ("warning", WARPGROUP)),
        ("no", "isa", ("error", WARPGROUP)),
        ("yes", "silicon", ("error", "race")),
        ("yes", "isa", ("error", "race")),
    ],
)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_wait_of_one_warp_covers_the_warpgroup(
    answer: str, ordering: str, wanted: tuple[str, str], seed: int | None
) -> None:
    """Where the products of the other warps may be late, what they read may be newer."""
    report, wrong = LOADED_AGAIN.run(
        LOADED_AGAIN.text, seed, ordering=ordering, assumptions=Assumptions(warpgroup_wait=answer)
    )
    assert wanted in outcomes(report), str(report)
    assert answer == "yes" or not wrong
