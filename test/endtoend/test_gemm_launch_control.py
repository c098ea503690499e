"""GEMM under cluster launch control: every level equal, and what breaks the ring of responses."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.errors import InputError
from tcir.passmanager.pipeline import as_pipeline

from .block_scaled_text import BlockScaled
from .breaking import (
    Break,
    Edit,
    change_operand,
    change_text,
    erase,
    pick,
    run_broken,
    set_attribute,
)
from .linalg_text import Matmul
from .pair_edits import UNORDERED, with_unit, without

PASS = "cluster-launch-control"
OPTIONS = {"persistent": True, "scheduler": "clc"}
CASES = {
    "six tiles": (Matmul(200, 40, 72), {"n_tile": 16, "stages": 3}),
    "a batch": (Matmul(24, 24, 16, batch=2, out="f16"), {"n_tile": 16}),
    "one tile": (Matmul(64, 16, 24), {}),
    "one accumulator": (Matmul(136, 24, 72, "km", "nk"), {"n_tile": 16, "acc_stages": 1}),
    "a dependent launch": (Matmul(64, 40, 24), {"n_tile": 16, "programmatic": True}),
    "pairs": (Matmul(300, 40, 24), {"cta_group": 2, "n_tile": 32, "stages": 2}),
    "pairs, groups of rows": (Matmul(1100, 72, 72), {"cta_group": 2, "n_tile": 64}),
    "pairs, a batch": (
        Matmul(24, 40, 16, "km", "nk", batch=3, out="f16"),
        {"cta_group": 2, "n_tile": 32},
    ),
    "pairs, stores by TMA": (
        Matmul(300, 40, 24),
        {"cta_group": 2, "n_tile": 32, "store": "tma", "programmatic": True},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_level(name: str, orders: int) -> None:
    program, options = CASES[name]
    kernel = tcir.compile(
        program.text(), "gemm", validate=True, orders=min(orders, 4), seed=3, **OPTIONS, **options
    )
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]
    for instruction in ("try_cancel.async", "query_cancel.is_canceled"):
        assert kernel.ptx.count(f"clusterlaunchcontrol.{instruction}") == (
            1 if "try" in instruction else 3
        )
    assert kernel.cubin


def test_a_cta_for_every_tile() -> None:
    kernel = tcir.compile(Matmul(300, 200, 72).text(), "gemm", n_tile=64, **OPTIONS)
    assert kernel.launch_config.grid == (12, 1, 1)


@pytest.mark.parametrize("options", [{"persistent": True, "ctas": 4}, {"persistent": False}])
def test_options_that_contradict(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"how many CTAs run|a CTA for every tile"):
        as_pipeline("gemm", scheduler="clc", **options)


def test_an_unknown_scheduler() -> None:
    with pytest.raises(InputError, match="one of static, clc, got dynamic"):
        as_pipeline("gemm", scheduler="dynamic", persistent=True)


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = Matmul(256, 56, 72)
QUERY, REQUEST, WAIT, ARRIVE = (
    "tc.launch_query", "tc.launch_request", "tc.mbarrier_wait", "tc.mbarrier_arrive",
)  # fmt: skip
EMPTY, OF_MMA, OF_EPILOGUE = 0, 0, 2
"""Which wait is the producer's for room, which arrivals release a response."""


def _other(slot: Any) -> Any:
    return arith.subi(arith.constant(slot.type, 1), slot)


def _last_request_first(module: Any) -> None:
    """The query in front of the wait for its response, in the epilogue's role."""
    query = pick(module, QUERY, 2)
    wait = [op for op in query.parent.regions[1].blocks[0] if op.operation.name == WAIT][-1]
    query.opview.operation.move_before(wait.operation)


def _loops(module: Any) -> list[Any]:
    """One for each role."""
    return [pick(module, "scf.while", index) for index in range(3)]


def _all_begin_with_the_first(module: Any) -> None:
    for loop in _loops(module):
        with ir.InsertionPoint(loop), loop.location:
            loop.operands[1] = arith.constant(loop.operands[1].type, 0)


def _the_next_tile(step: int) -> Edit:
    """The answer counts, its coordinates do not."""

    def edit(module: Any) -> None:
        for loop in _loops(module):
            tiles = loop.regions[1].blocks[0]
            yields = tiles.operations[len(tiles.operations) - 1]
            with ir.InsertionPoint(yields), yields.location:
                more = arith.constant(loop.operands[1].type, step)
                yields.operands[1] = arith.addi(tiles.arguments[1], more)

    return edit


NOTICED = ("difference", "hazard", "illegal", "deadlock", "refused")
BREAKS = [
    Break("the request does not wait for room", PASS, erase(WAIT, EMPTY),
          ("refused", "hazard: race")),
    Break("the mma never releases a response", PASS, erase(ARRIVE, OF_MMA),
          ("refused", "deadlock")),
    Break("the epilogue never releases one", PASS, erase(ARRIVE, OF_EPILOGUE),
          ("refused", "deadlock")),
    Break("a role reads the other response", PASS, change_operand(QUERY, 1, _other, 2), NOTICED),
    Break("the request goes to the other slot", PASS, change_operand(REQUEST, 1, _other), NOTICED),
    Break("the epilogue reads before the response is there", PASS, _last_request_first, NOTICED),
    Break("no request", PASS, erase(REQUEST), ("refused", "deadlock")),
    Break("half of the bytes are expected", PASS,
          set_attribute("tc.mbarrier_expect_tx", "nbytes", "8 : i64"), NOTICED),
    Break("one reader too few", PASS,
          set_attribute("tc.mbarrier_init", "arrivals", "128 : i64", 5), NOTICED),
    Break("every CTA begins with the first tile", PASS, _all_begin_with_the_first,
          NOTICED),
    Break("the next tile is taken, whatever the answer says", PASS, _the_next_tile(1),
          NOTICED),
]  # fmt: skip


@cache
def _pipeline() -> tcir.Pipeline:
    whole = as_pipeline("gemm", n_tile=16, **OPTIONS)
    return tcir.Pipeline(whole.passes[: whole.index(PASS) + 1])


@pytest.mark.parametrize(
    "broken",
    [pytest.param(b, id=b.what) for b in BREAKS],
)
def test_break(broken: Break) -> None:
    broken.check(PROGRAM.text(), _pipeline())


def test_unbroken() -> None:
    caught = run_broken(PROGRAM.text(), _pipeline(), PASS, lambda _: None)
    assert not caught, caught.text


# --- pairs -------------------------------------------------------------------------------------

PAIRS = {**OPTIONS, "cta_group": 2}


@pytest.mark.parametrize("seed", range(4))
def test_pairs_that_are_declined(seed: int) -> None:
    """A seed declines a quarter of the requests, each time others."""
    program = Matmul(1100, 40, 24).text()
    report = tcir.validate(program, "gemm", n_tile=32, orders=2, seed=seed, **PAIRS)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]


def test_pairs_of_nvfp4() -> None:
    program = BlockScaled(m=300, n=256, k=768).linalg()
    report = tcir.validate(program, "gemm", n_tile=128, orders=2, seed=2, **PAIRS)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]


def test_a_pair_for_every_pair_of_tiles() -> None:
    kernel = tcir.compile(Matmul(300, 200, 72).text(), "gemm", n_tile=64, **PAIRS)
    assert kernel.launch_config.grid == (16, 1, 1)
    assert kernel.launch_config.cluster == (2, 1, 1)
    asked = ".mbarrier::complete_tx::bytes.multicast::cluster::all.b128"
    assert kernel.ptx.count(asked) == 1 and kernel.cubin


PAIR_PROGRAM = Matmul(1100, 40, 24)
"""Ten pairs of tiles."""
TILE, TO_NVVM = "tile-gemm", "convert-tc-to-nvvm"
INIT, EXPECT = "tc.mbarrier_init", "tc.mbarrier_expect_tx"
OF_PRODUCER, EPILOGUE, OF_RESPONSES = 0, 3, 5
"""Which arrivals; which barriers are their "empty"."""


def _one(number: Any) -> Any:
    return arith.constant(number.type, 1)


def _pair_number(index: int) -> Edit:
    """A role takes the number of the pair for that of its first CTA."""

    def edit(module: Any) -> None:
        cta = pick(module, QUERY, index).results[1]
        (use,) = cta.uses
        with ir.InsertionPoint(use.owner), use.owner.location:
            half = arith.divui(cta, arith.constant(cta.type, 2))
        use.owner.operands[use.operand_number] = half

    return edit


def _one_epilogue(module: Any) -> None:
    """Of the two epilogues only the leader's releases."""
    with_unit(ARRIVE, "leader", EPILOGUE)(module)
    set_attribute(INIT, "arrivals", "131 : i64", OF_RESPONSES)(module)


PAIR_BREAKS = [
    Break("tiles by the number of the CTA", TILE, change_operand("arith.divui", 1, _one),
              ("difference", *UNORDERED)),
    Break("only the leader expects the response", PASS, with_unit(EXPECT, "leader"),
              ("deadlock",)),
    Break("the response stays with the leader", PASS, without(REQUEST, "cta_group"),
              ("deadlock",)),
    Break("every pair begins with the first tile", PASS, _all_begin_with_the_first, NOTICED),
    Break("the next pair is taken, whatever the answer says", PASS, _the_next_tile(2), NOTICED),
    Break("both CTAs ask", PASS, without(REQUEST, "leader"), ("deadlock",)),
    Break("the other producer does not release", PASS, erase(ARRIVE, OF_PRODUCER),
              ("deadlock",)),
    Break("an epilogue releases in its own CTA", PASS, without(ARRIVE, "cta_group", EPILOGUE),
              ("deadlock",)),
    Break("room once one CTA has read", PASS,
              set_attribute(INIT, "arrivals", "130 : i64", OF_RESPONSES), UNORDERED),
    Break("one epilogue does not release", PASS, _one_epilogue, UNORDERED),
    Break("read before it is there", PASS, _last_request_first, UNORDERED),
    Break("the producers take the pair's number", PASS, _pair_number(0),
              ("difference", *UNORDERED)),
    Break("the epilogues take the pair's number", PASS, _pair_number(2),
              ("difference", *UNORDERED)),
    Break("no multicast", TO_NVVM, change_text(r"\.multicast::cluster::all", ""),
              ("deadlock",)),
]  # fmt: skip


@pytest.mark.parametrize(
    "each",
    [pytest.param(b, id=b.what) for b in PAIR_BREAKS],
)
def test_pair_break(each: Break) -> None:
    each.check(PAIR_PROGRAM.text(), _pair_pipeline(each.at), orders=2)


@cache
def _pair_pipeline(last: str) -> tcir.Pipeline:
    whole = as_pipeline("gemm", n_tile=32, **PAIRS)
    return tcir.Pipeline(whole.passes[: whole.index(last) + 1])
