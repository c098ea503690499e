"""GEMM of CTA pairs: every level equal, and the ways in which the two CTAs can miss each other.

A break is seen at the pass it is in.
"""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from tcir._mlir import arith

from .block_scaled_text import BlockScaled
from .breaking import Break, change_operand, erase, pick, set_attribute, walk
from .linalg_text import Matmul
from .pair_edits import (
    UNORDERED,
    both_issue,
    first_half,
    of_cta,
    of_rank,
    other_rank,
    with_unit,
    without,
)
from .test_halo_assumptions import assume

PROGRAM = Matmul(300, 72, 200)
"""Two pairs, the last CTA without rows; four k steps in two slots; N in one tile of 96."""
OPTIONS = {"cta_group": 2, "n_tile": 96, "stages": 2}
SCALED = BlockScaled(m=300, n=256, k=768)
"""NVFP4 in tiles of 256 x 128 x 256: two pairs for each half of N, three k steps in two slots."""
SCALED_OPTIONS = {"cta_group": 2, "n_tile": 128, "stages": 2}

TILE, PLACE, PLAN, ROLES = "tile-gemm", "place-barriers", "plan-memory", "assign-roles"
COMMIT, EXPECT, LOAD = "tc.commit", "tc.mbarrier_expect_tx", "tc.tma_load"


def test_every_order() -> None:
    report = tcir.validate(PROGRAM.text(), "gemm", orders=6, seed=2, **OPTIONS)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


# --- breaks ------------------------------------------------------------------------------------


BREAKS = [
    Break("halves of B swapped", TILE, of_rank(other_rank), ("difference",)),
    Break("both CTAs load the first half", TILE, of_rank(first_half), ("difference",)),
    Break("rows of A of the other tile", TILE,
          change_operand(LOAD, 2, first_half), ("difference",)),
    Break("one CTA multiplies alone", TILE, without("tc.mma", "cta_group", 3), ("refused",)),
    Break("commit for the epilogue not multicast", PLACE,
          set_attribute(COMMIT, "cta_mask", "1 : i64", 1), ("deadlock",)),
    Break("commit for the producer not multicast", PLACE,
          set_attribute(COMMIT, "cta_mask", "1 : i64", 0), ("deadlock",)),
    Break("commit to the other CTA only", PLACE,
          set_attribute(COMMIT, "cta_mask", "2 : i64", 1), ("deadlock",)),
    Break("the leader expects its own bytes only", PLACE,
          set_attribute(EXPECT, "nbytes", "22528 : i64"), UNORDERED),
    Break("both expect the bytes", PLACE, without(EXPECT, "leader"), UNORDERED),
    Break("nobody expects the bytes", PLACE, erase(EXPECT), UNORDERED),
    Break("A signals the CTA's own barrier", PLACE, without(LOAD, "cta_group", 0), UNORDERED),
    Break("B signals the CTA's own barrier", PLACE, without(LOAD, "cta_group", 1), UNORDERED),
    Break("both issue the mma", PLACE, both_issue, UNORDERED),
    Break("no barrier of the pair behind the set-up", PLACE, of_cta(0), UNORDERED),
    Break("no barrier of the pair at the end", PLAN, of_cta(1), ("warning: pair-dealloc",)),
    Break("deallocated by the leader only", PLAN, with_unit("tc.tmem_dealloc", "leader"),
          ("illegal: peer-exited",)),
    Break("allocated by the leader only", PLAN, with_unit("tc.tmem_alloc", "leader"),
          UNORDERED),
    Break("the role of the mma is that of both CTAs", ROLES, without("tc.role", "leader", 1),
          UNORDERED),
    Break("the producer is the leader's", ROLES, with_unit("tc.role", "leader", 0), ("deadlock",)),
    Break("the epilogue is the leader's", ROLES, with_unit("tc.role", "leader", 2),
          ("hazard: output-never-written", "difference")),
]  # fmt: skip


def _even(row: Any) -> Any:
    two = arith.constant(row.type, 2)
    return arith.muli(arith.divui(row, two), two)


def _other_of_pair(row: Any) -> Any:
    return arith.xori(row, arith.constant(row.type, 1))


def _next_for_odd(block: Any) -> Any:
    """The block behind the tile's, for the CTA that has the second half of B."""
    rank = pick(block.owner.parent, "tc.cta_rank").results[0]
    return arith.addi(block, rank)


def _copies_first(module: Any) -> None:
    """The scales are copied before the loads have come."""
    pick(module, WAIT, 1).move_before(pick(module, SCALED_MMA))


def _both_copy(module: Any) -> None:
    for op in walk(module, CP):
        del op.attributes["leader"]


CP, SCALED_MMA, WAIT, TO_NVVM = (
    "tc.cp_scales", "tc.mma_block_scale", "tc.mbarrier_wait", "convert-tc-to-nvvm",
)  # fmt: skip
SFA, SFB = 1, 3
"""Which load."""
SCALED_BREAKS = [
    Break("the leader's scales of A in both CTAs", TILE, change_operand(LOAD, 3, _even, SFA),
          ("difference",)),
    Break("scales of A swapped", TILE, change_operand(LOAD, 3, _other_of_pair, SFA),
          ("difference",)),
    Break("the odd CTA has the scales of other columns", TILE,
          change_operand(LOAD, 3, _next_for_odd, SFB), ("difference",)),
    Break("halves of B swapped", TILE, of_rank(other_rank), ("difference",)),
    Break("scales copied to the leader only", TILE, without(CP, "cta_group", 4),
          ("illegal: cta-group-mixed",)),
    Break("a set of B's scales copied over another", TILE,
          set_attribute(CP, "block", "0 : i64", 5), ("difference",)),
    Break("the leader waits for operands without scales", PLACE,
          set_attribute(EXPECT, "nbytes", "49152 : i64"), UNORDERED),
    Break("scales of A signal the CTA's own barrier", PLACE, without(LOAD, "cta_group", SFA),
          UNORDERED),
    Break("scales of B signal the CTA's own barrier", PLACE, without(LOAD, "cta_group", SFB),
          UNORDERED),
    Break("scales copied before they are there", PLACE, _copies_first, UNORDERED),
    Break("both CTAs copy", PLACE, _both_copy, UNORDERED),
    Break("a copy of one CTA", TO_NVVM,
          set_attribute("nvvm.tcgen05.cp", "group", "#nvvm.cta_group<cta_1>", 2),
          ("illegal: cta-group-mixed",)),
]  # fmt: skip


@pytest.mark.parametrize(
    "each",
    [pytest.param(b, id=b.what) for b in SCALED_BREAKS],
)
def test_scaled_break(each: Break) -> None:
    each.check(SCALED.linalg(), tcir.named_pipeline("gemm", **SCALED_OPTIONS), orders=2)


# --- persistent pairs --------------------------------------------------------------------------

TILES = Matmul(600, 40, 72)
TILES_OPTIONS = {"cta_group": 2, "n_tile": 32, "stages": 2, "persistent": True, "ctas": 2}
"""Six pairs of tiles by one pair of CTAs; two accumulators in each."""
INIT, ARRIVE, LOAD_D = "tc.mbarrier_init", "tc.mbarrier_arrive", "tc.tmem_ld"
FREE_WAIT = 1
"""Which wait after assign-roles."""
CTA_SCOPE = "#nvvm.mem_scope<cta>"
BEYOND_SCOPE = ("warning: mbarrier-scope",)
"""Silicon keeps the order; under "isa" it is an error."""


def _one_by_one(number: Any) -> Any:
    """Each CTA of a pair goes through tiles of its own."""
    return arith.constant(number.type, 1)


def _release_first(module: Any) -> None:
    """The epilogue gives its accumulator back before it has read it."""
    arrive, loop = pick(module, ARRIVE), pick(module, LOAD_D).parent
    arrive.move_before(loop)


PERSISTENT_BREAKS = [
    Break("each epilogue arrives on its own barrier", PLACE, without(ARRIVE, "cta_group"),
          ("deadlock",)),
    Break("one epilogue is enough", PLACE, set_attribute(INIT, "arrivals", "128 : i64", 2),
          UNORDERED),
    Break("the mma do not wait for the epilogues", ROLES, erase(WAIT, FREE_WAIT), UNORDERED),
    Break("the epilogues release early", ROLES, _release_first, UNORDERED),
    Break("both CTAs have the same tile", TILE, of_rank(first_half),
          ("hazard: output-never-written",)),
    Break("each CTA has tiles of its own", TILE, change_operand("arith.divui", 1, _one_by_one),
          ("difference", *UNORDERED)),
    Break("an arrival stays in its CTA", TO_NVVM,
          change_operand("nvvm.mapa", 1, lambda rank: rank.owner.operands[0]), ("deadlock",)),
    Break("an arrival at the leader is of the CTA's scope", TO_NVVM,
          set_attribute("nvvm.mbarrier.arrive", "scope", CTA_SCOPE), BEYOND_SCOPE),
    Break("the wait for both epilogues is of the CTA's scope", TO_NVVM,
          set_attribute("nvvm.mbarrier.try_wait", "scope", CTA_SCOPE, FREE_WAIT), BEYOND_SCOPE),
    Break("the wait for both epilogues is for one", ROLES,
          without(WAIT, "cta_group", FREE_WAIT), BEYOND_SCOPE),
]  # fmt: skip


@pytest.mark.parametrize(
    "each",
    [pytest.param(b, id=b.what) for b in PERSISTENT_BREAKS],
)
def test_persistent_break(each: Break) -> None:
    each.check(TILES.text(), tcir.named_pipeline("gemm", **TILES_OPTIONS), orders=2)


def test_whose_scales_a_pair_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it the issuer's for both CTAs, the odd one would scale its rows by the leader's."""
    assume(monkeypatch, cp_pair_source="issuer")
    report = tcir.validate(SCALED.linalg(), "gemm", orders=1, seed=2, **SCALED_OPTIONS)
    wrong = next(line for line in report.passes if line.verdict == "different")
    assert wrong.name == TILE, str(report)


@pytest.mark.parametrize(
    "each",
    [pytest.param(b, id=b.what) for b in BREAKS],
)
def test_break(each: Break) -> None:
    each.check(PROGRAM.text(), tcir.named_pipeline("gemm", **OPTIONS), orders=2)
