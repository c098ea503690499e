"""Persistent GEMM: every level equal, and the ways in which tiles of a CTA can disturb each other.

A break is seen at the pass it is in. What is planted at `assign-roles` is right in program order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.passmanager.pipeline import as_pipeline

from .breaking import Break, Edit, change_operand, erase, pick, run_broken, set_attribute, walk
from .epilogue_text import TRUNCATE, Fused
from .linalg_text import Matmul
from .oracle import integers, product


@dataclass(frozen=True)
class Case:
    """A product, the options, and the tiles that the CTAs have."""

    matmul: Matmul
    options: dict[str, int]
    tiles: str

    @property
    def name(self) -> str:
        """Short test id."""
        return "-".join([self.matmul.name, *(f"{k}{v}" for k, v in self.options.items())])


CASES = [
    Case(Matmul(200, 72, 136), {"n_tile": 16, "ctas": 4, "stages": 3}, "3, 3, 2, 2"),
    Case(Matmul(300, 200, 136), {"n_tile": 64, "ctas": 5, "stages": 3}, "3, 3, 2, 2, 2"),
    Case(Matmul(384, 64, 64), {"n_tile": 16, "ctas": 2, "stages": 1}, "6 each"),
    Case(Matmul(256, 48, 200), {"n_tile": 16, "ctas": 1, "acc_stages": 1}, "6, one accumulator"),
    Case(Matmul(256, 80, 136), {"n_tile": 16, "ctas": 3, "acc_stages": 3}, "4, 3, 3"),
    Case(Matmul(150, 72, 80, batch=3), {"n_tile": 48, "ctas": 5}, "3, 3, 2, 2, 2 of a batch"),
    Case(Matmul(1290, 40, 72, "km", "nk"), {"n_tile": 16, "ctas": 4}, "groups of 8 and of 3"),
    Case(Matmul(264, 40, 24, "km", "kn", batch=2, out="f16"), {"ctas": 4}, "2, 2, 1, 1"),
    Case(Matmul(129, 17, 64, "mk", "nk", element="bf16", out="bf16"), {}, "one each: few tiles"),
    Case(Matmul(256, 512, 72), {"n_tile": 256, "ctas": 1}, "4, all of tensor memory"),
]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name) for case in CASES],
)
def test_case(case: Case, orders: int) -> None:
    text, options = case.matmul.text(), {"persistent": True, **case.options}
    a_shape, b_shape, _ = case.matmul.shapes
    a, b = integers(a_shape, case.matmul.element, 1), integers(b_shape, case.matmul.element, 2)
    kernel = tcir.compile(text, "gemm", validate=True, orders=orders, seed=3, **options)
    want = product(case.matmul, a, b)
    out = np.zeros_like(want)
    kernel(a, b, out)
    assert out.tobytes() == want.tobytes()

    exact = kernel.report
    assert exact.ok, str(exact)
    assert {line.verdict for line in exact.passes} == {"reference", "equal"}, str(exact)
    assert not [f for line in exact.passes for f in line.findings]

    floats = tcir.validate(text, "gemm", inputs="random", seed=4, **options)
    assert floats.ok, str(floats)


def test_two_epilogue_warpgroups_release_an_accumulator() -> None:
    text = Matmul(256, 48, 72).text()
    named = text.replace("f32> {", 'f32> attributes {tc.warp_map = "tcgen05-epilogue8"} {', 1)
    report = tcir.validate(named, "gemm", orders=10, persistent=True, ctas=1, n_tile=16)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def test_the_grid_and_the_sms() -> None:
    """No more CTAs than SMs, and a ring as deep as one CTA on the SM allows."""
    text = Matmul(4096, 4096, 4096).text()
    kernel = tcir.compile(text, "gemm", persistent=True, n_tile=256)
    state = kernel.ir["plan-memory"]
    assert "tc.grid = array<i64: 148, 1, 1>" in state
    assert "!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 256>, f32>>" in state
    assert "!tc.ring<4 : i64, !tc.smem<array<i64: 128, 64>" in state
    assert "tc.tmem_columns = 512" in state


def test_a_fused_epilogue_of_every_tile() -> None:
    bias_relu = """
        %u = arith.addf %s, %bias : f32
        %zero = arith.constant 0.0 : f32
        %t = arith.maximumf %u, %zero : f32
    """
    fused = Fused(bias_relu + TRUNCATE, inputs={"bias": ("f32", "n")}, m=200, n=40, k=72)
    report = tcir.validate(fused.linalg(), _pipeline(ROLES), orders=2, seed=5)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize("slots", [2, 3])
def test_the_kernel_rules_know_how_many_tiles_there_are(slots: int) -> None:
    """At most three tiles per CTA, a count that depends on the CTA: three slots need no release."""
    context = ir.Context()
    tc.load(context)
    with context:
        module = ir.Module.parse(PROGRAM.text())
        for step in [*as_pipeline("gemm", **OPTIONS | {"acc_stages": slots}).passes]:
            step.apply(module)
            if step.name == ROLES:
                break
        check = as_pipeline("builtin.module(verify-tc-kernel)").passes[0]
        check.apply(module)
        assert len(list(walk(module, "tc.mbarrier_arrive"))) == (slots == 2)
        if slots == 2:
            erase(WAIT, WAITS["free"])(module)
            with pytest.raises(tcir.PassError, match="2 accumulators for 3 tiles"):
                check.apply(module)


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = Matmul(256, 56, 136)
OPTIONS = {"persistent": True, "n_tile": 16, "ctas": 3, "stages": 2}
"""Eight tiles by three CTAs: 3, 3 and 2; two accumulators, three k steps in two slots."""

TILE, PLACE, ROLES = "tile-gemm", "place-barriers", "assign-roles"
INIT, WAIT, FENCE, SLOT = "tc.mbarrier_init", "tc.mbarrier_wait", "tc.fence", "tc.slot"
TRIPS = "tc.most_trips"
"""Attribute of the loop over tiles."""
WAITS = {"empty": 0, "free": 1, "full": 2, "done": 3}
"""By barrier, the wait on it, in program order after assign-roles."""
FREE_FENCE, FULL_FENCE, DONE_FENCE, RELEASE_FENCE = 1, 2, 3, 4
MMA_D, EPILOGUE_D, EPILOGUE_DONE = 4, 11, 13
"""Which ``tc.slot`` after assign-roles: accumulators, and the barrier of one."""


def _other(slot: Any) -> Any:
    return arith.subi(_one(slot), slot)


def _zero(old: Any) -> Any:
    return arith.constant(old.type, 0)


def _one(old: Any) -> Any:
    return arith.constant(old.type, 1)


def _next(old: Any) -> Any:
    return arith.addi(old, _one(old))


def _inner(old: Any) -> Any:
    """Of the number of a k step over all tiles, the number in its tile."""
    return old.owner.operands[1]


def _one_tile_less(module: Any) -> None:
    """Every CTA leaves its last tile to nobody."""
    loop = next(op for op in walk(module, "scf.for") if TRIPS in op.attributes)
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[1] = arith.subi(loop.operands[1], _one(loop.operands[1]))


def _first_k_step_adds(module: Any) -> None:
    """Only a CTA's very first mma clears its accumulator."""
    mma = pick(module, "tc.mma")
    turn = mma.parent.parent.regions[0].blocks[0].arguments[0]
    with ir.InsertionPoint(mma), mma.location:
        steps = arith.addi(mma.operands[3].owner.operands[0], turn)
        mma.operands[3] = arith.cmpi(arith.CmpIPredicate.ne, steps, _zero(steps))


def _arrive_first(module: Any) -> None:
    """The epilogue gives its accumulator back before it has read it."""
    pick(module, "tc.mbarrier_arrive").move_before(_around(pick(module, "tc.tmem_ld")))


def _around(op: Any) -> Any:
    """The outermost loop over columns around `op`."""
    while op.parent.name == "scf.for" and TRIPS not in op.parent.attributes:
        op = op.parent
    return op


def _read_first(module: Any) -> None:
    """The epilogue reads before it waits for the mma."""
    wait = pick(module, WAIT, WAITS["done"])
    wait.move_after(_around(pick(module, "tc.tmem_ld")))


def _no_fence_before_the_mma(module: Any) -> None:
    """Neither behind the wait for the epilogue nor behind that for the loads: one is enough."""
    for fence in (FULL_FENCE, FREE_FENCE):
        erase(FENCE, fence)(module)


RACE, DIFFERENCE, DEADLOCK = ("hazard: race",), ("difference",), ("deadlock",)
UNWRITTEN, NOTICED = ("hazard: output-never-written",), ("difference", "hazard", "deadlock")
BREAKS = [
    Break("the mma do not wait for the epilogue", ROLES, erase(WAIT, WAITS["free"]), RACE),
    Break("the epilogue does not wait for the mma", ROLES, erase(WAIT, WAITS["done"]), NOTICED),
    Break("the epilogue reads early", ROLES, _read_first, NOTICED),
    Break("the epilogue releases early", ROLES, _arrive_first, RACE),
    Break("the epilogue never releases", ROLES, erase("tc.mbarrier_arrive"), DEADLOCK),
    *(Break(f"parity of {bar} flipped", ROLES, change_operand(WAIT, 1, _other, i), NOTICED)
      for bar, i in WAITS.items()),
    *(Break(f"parity of {bar} never changes", ROLES, change_operand(WAIT, 1, to, i), NOTICED)
      for bar, i, to in (("free", 1, _one), ("done", 3, _zero))),
    Break("the epilogue reads the other accumulator", ROLES,
          change_operand(SLOT, 1, _other, EPILOGUE_D), NOTICED),
    Break("the mma write the other accumulator", ROLES, change_operand(SLOT, 1, _other, MMA_D),
          NOTICED),
    Break("one accumulator for all tiles", ROLES, change_operand(SLOT, 1, _zero, MMA_D), NOTICED),
    Break("the epilogue waits for the other accumulator", ROLES,
          change_operand(SLOT, 1, _other, EPILOGUE_DONE), NOTICED),
    Break("three warps release", ROLES, set_attribute(INIT, "arrivals", "96 : i64", 3), NOTICED),
    Break("five warps release", PLACE, set_attribute(INIT, "arrivals", "160 : i64", 3), DEADLOCK),
    Break("no fence before the release", ROLES, erase(FENCE, RELEASE_FENCE),
          ("warning: missing-fence-before",)),
    Break("no fence after the release", ROLES, _no_fence_before_the_mma,
          ("warning: missing-fence-after",)),
    Break("no fence after the commit", ROLES, erase(FENCE, DONE_FENCE),
          ("warning: missing-fence-after",)),
    Break("rings start again with every tile", PLACE, change_operand("arith.divui", 0, _inner, 4),
          NOTICED),
    Break("the last tile of every CTA is left out", TILE, _one_tile_less, UNWRITTEN),
    Break("a loop over three tiles that says two", TILE,
          set_attribute("scf.for", TRIPS, "2 : i64", 3), ("illegal: most-trips",)),
    Break("a tile adds to the one before", TILE, _first_k_step_adds, NOTICED),
    Break("a tile counted to the next column", TILE, change_operand("arith.divui", 0, _next, 2),
          UNWRITTEN),
]  # fmt: skip


@cache
def _pipeline(until: str) -> tcir.Pipeline:
    whole = as_pipeline("gemm", **OPTIONS)
    return tcir.Pipeline(whole.passes[: whole.index(until) + 1])


@pytest.mark.parametrize(
    "broken",
    [pytest.param(b, id=b.what) for b in BREAKS],
)
def test_break(broken: Break) -> None:
    broken.check(PROGRAM.text(), _pipeline(broken.at))


def _first_columns_release(module: Any) -> None:
    """The epilogue gives its accumulator back with the first columns in registers."""
    last = pick(module, "scf.if").operands[0].owner
    with ir.InsertionPoint(last), last.location:
        last.operands[1] = _zero(last.operands[1])


@pytest.mark.parametrize("edit", [None, _first_columns_release], ids=["last", "first"])
def test_the_columns_behind_which_an_accumulator_is_released(edit: Edit | None) -> None:
    program, options = Matmul(256, 64, 72).text(), OPTIONS | {"n_tile": 32, "ctas": 1}
    whole = as_pipeline("gemm", **options)
    passes = tcir.Pipeline(whole.passes[: whole.index(ROLES) + 1])
    caught = run_broken(program, passes, ROLES, edit or (lambda _: None), orders=4)
    assert caught.by == ("hazard: race" if edit else ""), caught.text


def test_unbroken() -> None:
    caught = run_broken(PROGRAM.text(), _pipeline(ROLES), ROLES, lambda _: None)
    assert not caught, caught.text
