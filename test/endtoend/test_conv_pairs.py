"""conv-implicit-gemm by pairs of CTAs: every level equal, what pairs load, breaks at their pass.

`make test` runs the quick cases under two completion orders, `make test-all` all of them under
three or `TCIR_ORDERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pytest

import tcir
from tcir import codegen
from tcir._mlir import arith

from .breaking import Break, PtxCheck, change_operand, erase, set_attribute
from .conv_pair_cases import CASES, PairCase
from .linalg_text import Conv
from .oracle import convolution, operands
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
from .test_counts import LAYERS
from .test_gemm import check

PIPELINE = "conv-implicit-gemm"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=str(c)) for c in CASES],
)
def test_every_level(case: PairCase, orders: int) -> None:
    """Every level, and the PTX beside numpy."""
    kernel = check(case.conv.text(), case.pipeline)
    x, w = operands(case.conv)
    want = convolution(case.conv, x, w)
    for order in (None, *range(1, orders)):
        out = np.zeros_like(want)
        outcome = kernel(x, w, out, order_seed=order)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (order, str(outcome))
    assert ".im2col" in kernel.ptx and "tcgen05.mma.cta_group::2" in kernel.ptx


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cubin(case: PairCase) -> None:
    ptx = tcir.compile(case.conv.text(), case.pipeline).ptx
    assert codegen.assemble(ptx, target="sm_100a").spill_bytes == 0


@pytest.mark.parametrize("case", [c for c in CASES if c.conv.element[0] in "bf"], ids=str)
def test_floats_are_within_the_bound(case: PairCase) -> None:
    report = tcir.validate(case.conv.text(), case.pipeline, inputs="random", orders=1, seed=4)
    assert report.ok, str(report)


@pytest.mark.parametrize(
    "layer",
    [pytest.param(c, id=c.name) for c in LAYERS],
)
def test_a_pair_loads_its_filters_once(layer: Conv) -> None:
    """The table of docs/explanation/convolution.md, worked out from the shapes alone."""
    x, w = operands(layer)
    want = convolution(layer, x, w)
    tiles, n_tile = ceil(want[..., 0].size / 128), -(-layer.k // 32) * 32
    steps = layer.r * layer.s * ceil(layer.c / 64)
    rows = [layer.name]
    for cta_group in (1, 2):
        out = np.zeros_like(want)
        kernel = tcir.compile(layer.text(), PIPELINE, cta_group=cta_group, n_tile=n_tile)
        counted = kernel(x, w, out).counters
        ctas = cta_group * ceil(tiles / cta_group)
        pixels, filters = ctas * steps * 128 * 64 * 2, ctas * steps * n_tile // cta_group * 64 * 2
        assert out.tobytes() == want.tobytes()
        assert counted["ctas"] == ctas
        assert counted["mma"] == ctas // cta_group * steps * 4
        assert counted["global_to_shared_0"] == pixels
        assert counted["global_to_shared_1"] == filters
        assert counted["shared_to_tensor"] == pixels + filters
        cycles = ctas * steps * 4 * max(n_tile // 2, 32 + n_tile // cta_group // 4)
        assert counted["tensor_cycles"] == cycles
        rows.append(f"{ctas}: {pixels} {filters} {pixels + filters} {cycles}")
    print("\n".join(rows))


def test_epilogues_of_two_warpgroups() -> None:
    text = Conv(1, 9, 30, 16, 48, 1, 1).text()
    named = text.replace("f32> {", 'f32> attributes {tc.warp_map = "tcgen05-epilogue8"} {', 1)
    assert named != text
    check(named, f"{PIPELINE}{{cta-group=2}}")


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cta_group": 3}, "expected cta-group to be 1 or 2, the CTAs that an mma acts on (PTX ISA "
         "9.7.16.5), got 3; smallest accepted: cta-group=1"),
        ({"cta_group": 2, "n_tile": 48}, "expected n-tile to be a multiple of 32 in [32, 256], got "
         "48 (N of tcgen05.mma.kind::f16 with M = 256, PTX ISA 9.7.16.2, table 39); take 32 or 64, "
         "or 0 to choose; smallest accepted: n-tile=32"),
        ({"cta_group": 2, "stages": 99}, "expected stages of at most "),
    ],
    ids=["three", "48-columns", "99-stages"],
)  # fmt: skip
def test_refused(given: dict[str, int], message: str) -> None:
    with pytest.raises(tcir.Error) as caught:
        tcir.compile(Conv(1, 16, 16, 64, 64, 3, 3).text(), PIPELINE, **given)
    assert message in str(caught.value)


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = Conv(1, 9, 38, 72, 80, 2, 3, (1, 0, 1, 1))
"""342 pixels: two pairs, the last CTA without any. Twelve steps in two slots; N in one tile of 96,
whose second half has tails."""
OPTIONS = {"cta_group": 2, "n_tile": 96, "stages": 2}

TILE, PLACE, PLAN, ROLES = (
    "tile-conv-implicit-gemm", "place-barriers", "plan-memory", "assign-roles"
)  # fmt: skip
MAP, LOAD, MMA = "tc.make_tensor_map", "tc.tma_load", "tc.mma"
COMMIT, EXPECT = "tc.commit", "tc.mbarrier_expect_tx"
PIXELS, FILTERS = 0, 1
"""The loads and the maps, in program order."""
DIFFERENCE, REFUSED = ("difference",), ("refused",)


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _function(attribute: str, text: str) -> Any:
    return set_attribute("func.func", attribute, text)


BREAKS = [
    Break("halves of the filters swapped", TILE, of_rank(other_rank), DIFFERENCE),
    Break("both CTAs load the first half", TILE, of_rank(first_half), DIFFERENCE),
    Break("the second half begins 16 filters late", TILE,
          change_operand(LOAD, 1, _plus(16), FILTERS), DIFFERENCE),
    Break("pixels of the image's first column", TILE,
          change_operand(LOAD, 2, first_half, PIXELS), DIFFERENCE),
    Break("pixels of the row below", TILE, change_operand(LOAD, 3, _plus(1), PIXELS), DIFFERENCE),
    Break("pixels of the next image", TILE, change_operand(LOAD, 4, _plus(1), PIXELS), DIFFERENCE),
    Break("the tap's column is the next", TILE,
          change_operand(LOAD, 5, _plus(1), PIXELS), DIFFERENCE),
    Break("a corner of the im2col box off by one", TILE,
          set_attribute(MAP, "corners", "array<i64: -1, -1, -2, -1>", PIXELS), DIFFERENCE),
    Break("one CTA multiplies alone", TILE, without(MMA, "cta_group", 3), REFUSED),
    Break("a grid of no whole clusters", TILE,
          _function("tc.grid", "array<i64: 3, 1, 1>"), ("illegal", "refused")),
    Break("a pair along y", TILE, _function("tc.cluster", "array<i64: 1, 2, 1>"),
          ("illegal", "refused")),
    Break("a grid of one pair less", TILE, _function("tc.grid", "array<i64: 2, 1, 1>"),
          ("hazard: output-never-written", "difference")),
    Break("commit for the epilogue not multicast", PLACE,
          set_attribute(COMMIT, "cta_mask", "1 : i64", 1), ("deadlock",)),
    Break("commit for the producer not multicast", PLACE,
          set_attribute(COMMIT, "cta_mask", "1 : i64", 0), ("deadlock",)),
    Break("the leader expects its own bytes only", PLACE,
          set_attribute(EXPECT, "nbytes", "24576 : i64"), UNORDERED),
    Break("both expect the bytes", PLACE, without(EXPECT, "leader"), UNORDERED),
    Break("pixels signal the CTA's own barrier", PLACE,
          without(LOAD, "cta_group", PIXELS), UNORDERED),
    Break("filters signal the CTA's own barrier", PLACE,
          without(LOAD, "cta_group", FILTERS), UNORDERED),
    Break("both issue the mma", PLACE, both_issue, UNORDERED),
    Break("the producer does not wait for empty", PLACE, erase("tc.mbarrier_wait", 0), UNORDERED),
    Break("no barrier of the pair behind the set-up", PLACE, of_cta(0), UNORDERED),
    Break("no barrier of the pair at the end", PLAN, of_cta(1), ("warning: pair-dealloc",)),
    Break("deallocated by the leader only", PLAN, with_unit("tc.tmem_dealloc", "leader"),
          ("illegal: peer-exited",)),
    Break("the role of the mma is that of both CTAs", ROLES, without("tc.role", "leader", 1),
          UNORDERED),
    Break("the producer is the leader's", ROLES, with_unit("tc.role", "leader", 0), ("deadlock",)),
    Break("the epilogue is the leader's", ROLES, with_unit("tc.role", "leader", 2),
          ("hazard: output-never-written", "difference")),
]  # fmt: skip


@pytest.mark.parametrize(
    "each",
    [pytest.param(b, id=b.what) for b in BREAKS],
)
def test_break(each: Break) -> None:
    each.check(PROGRAM.text(), tcir.named_pipeline(PIPELINE, **OPTIONS), orders=2)


@dataclass(frozen=True)
class PtxBreak:
    """One damage to the PTX."""

    what: str
    pattern: str
    replacement: str
    by: tuple[str, ...]
    index: int = 0


def cluster_barrier(order: str = "") -> str:
    """Matches a barrier of the whole cluster, whose arrival has that qualifier of order."""
    return rf"barrier\.cluster\.arrive{order}\.aligned;\s*barrier\.cluster\.wait\.aligned;"


PTX_BREAKS = [
    PtxBreak("the barrier of the own CTA", r"(and\.b32\s+%r\d+, %r\d+), -16777217;", r"\1, -1;",
             UNORDERED),
    PtxBreak("pixels loaded for one CTA", r"(\.im2col[\w.:]+)\.cta_group::2", r"\1", UNORDERED),
    PtxBreak("row and column of the tap swapped", r"(\[%rd\d+\]), \{(%rs\d+), (%rs\d+)\};",
             r"\1, {\3, \2};", DIFFERENCE),
    PtxBreak("halves of 40 filters", r"(mad\.lo\.s32\s+%r\d+, %r\d+), 48, ", r"\1, 40, ",
             DIFFERENCE),
    PtxBreak("128 rows in the mma's descriptor", r"270073872", str(270073872 - (8 << 24)),
             ("illegal", "difference", "hazard")),
    PtxBreak("commit on the leader's barrier only", r"(mov\.b16\s+%rs\d+), 3;", r"\1, 1;",
             ("deadlock",), 1),
    PtxBreak("the pair's first barrier is the CTA's", cluster_barrier(r"\.relaxed"), "bar.sync 0;",
             ("warning: peer-not-started",)),
    PtxBreak("the pair's last barrier is the CTA's", cluster_barrier(), "bar.sync 0;",
             ("warning: pair-dealloc",), 1),
    PtxBreak("deallocated by each CTA for itself", r"dealloc\.cta_group::2", "dealloc.cta_group::1",
             ("illegal", "hazard")),
    PtxBreak("clusters of one", r"reqnctapercluster 2", "reqnctapercluster 1", ("illegal",)),
]  # fmt: skip


@pytest.fixture(scope="module")
def ptx() -> PtxCheck:
    return PtxCheck(PROGRAM.text(), tcir.compile(PROGRAM.text(), PIPELINE, **OPTIONS))


@pytest.mark.parametrize("each", PTX_BREAKS, ids=lambda each: each.what)
def test_ptx_break(ptx: PtxCheck, each: PtxBreak) -> None:
    assert not ptx.run(ptx.kernel.ptx, 1)
    caught = ptx.run(ptx.edit(each.pattern, each.replacement, each.index), 2)
    assert caught.by.startswith(each.by), (caught.by, caught.text)
