"""Split-K: the sums of a tile in parts, a CTA each, and a kernel that adds the parts in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.program.inputs import make_inputs, poison

from .block_scaled_text import F4, F8A, F8B, UE8M0, BlockScaled
from .breaking import Edit, change_operand, pick, run_broken, walk
from .epilogue_text import TRUNCATE, Fused
from .gemm_cases import Dense
from .gemm_scaled_cases import Scaled

QUICK = Dense(8, 136, 296, "f16", "mk", "nk", out="bf16", options="split-k=3")
CASES = [
    Dense(130, 40, 320, "f16", options="split-k=5"),  # a step each
    Dense(40, 24, 328, "bf16", "km", "nk", options="split-k=4 swap=never"),  # 6 steps: 2, 2, 2
    Dense(24, 136, 100, "f32", "mk", "nk", options="split-k=2"),
    Dense(8, 132, 256, "f32", "km", "kn", options="split-k=2"),
    Dense(20, 72, 400, "f8E4M3FN", "mk", "nk", other="f8E5M2", out="f16", options="split-k=2"),
    Dense(9, 200, 272, "i8", "mk", "nk", options="split-k=3"),
    Dense(40, 24, 130, "f16", batch=3, options="split-k=3"),
    Dense(140, 40, 200, "f16", options="split-k=2 n-tile=16 persistent=true ctas=3"),
    Dense(130, 72, 256, "f16", "mk", "nk", options="cluster=2x1 split-k=2"),
    Dense(7, 130, 257, "f16", "mk", "kn", options="split-k=2"),  # repacked first
]


WGMMA = [QUICK, CASES[4], CASES[6], CASES[7]]
"""Promoted sums, a batch, fewer CTAs than tiles: also of warpgroups."""


def run(case: Dense, orders: int, target: str = "sm_100a") -> None:
    """Every level equal on integers, and the PTX beside numpy."""
    kernel = tcir.compile(
        case.text, case.pipeline, target=target, validate=True, orders=orders, seed=3
    )
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}, str(
        kernel.report
    )
    assert not [finding for line in kernel.report.passes for finding in line.findings]
    assert len(kernel.launches.launches) >= 2
    a, b = make_inputs(kernel.signature.inputs, 7, "integers")
    (out,) = (poison(spec) for spec in kernel.signature.outputs)
    outcome = kernel(a, b, out)
    assert out.tobytes() == case.product(a, b).tobytes() and not outcome.findings, str(outcome)


@pytest.mark.parametrize("case", [QUICK, *CASES], ids=str)
def test_case(case: Dense) -> None:
    run(case, 2)


@pytest.mark.parametrize("case", WGMMA, ids=str)
def test_warpgroups(case: Dense) -> None:
    run(case, 2, "sm_90a")


NVFP4 = Scaled(BlockScaled(m=20, n=40, k=640, alpha="in", blocked="a1b1"), "split-k=3")
SCALED = [
    NVFP4,
    Scaled(BlockScaled(m=20, n=72, k=512, alpha="after", out="f16"), "split-k=2 n-tile=32"),
    Scaled(
        BlockScaled(m=20, n=40, k=256, batch=2, a=F8A, b=F8B, scale=UE8M0, block=32, out="bf16"),
        "split-k=2 swap=never",
    ),
    Scaled(BlockScaled(m=20, n=40, k=384, a=F4, b=F8A, scale=UE8M0, block=32), "split-k=3"),
    Scaled(
        BlockScaled(m=40, n=48, k=768, scale=UE8M0, block=32),
        "split-k=3 kind=mxf8f6f4 persistent=true ctas=2 store=tma",
    ),
    Scaled(BlockScaled(m=8, n=40, k=512, alpha="in", blocked="a1b1"), "split-k=2"),  # exchanged
]


@pytest.mark.parametrize("case", SCALED, ids=str)
def test_block_scaled(case: Scaled) -> None:
    """Global scales multiply the sum of the parts."""
    report = tcir.validate(case.case.linalg(), case.pipeline, orders=2)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


def test_block_scaled_floats() -> None:
    case = SCALED[2]
    report = tcir.validate(case.case.linalg(), case.pipeline, inputs="random")
    assert report.ok, str(report)


def test_floats_are_within_the_bound() -> None:
    """And the same bits under every completion order: the order of the sums is that of k."""
    case = CASES[0]
    report = tcir.validate(case.text, case.pipeline, inputs="random", orders=5, seed=4)
    assert report.ok, str(report)
    assert report["llvm-to-ptx"].verdict in ("equal", "within bound"), str(report)


SILU = Fused(
    """
    %u = arith.addf %s, %b : f32
    %one = arith.constant 1.0 : f32
    %negative = arith.negf %u : f32
    %e = math.exp %negative : f32
    %d = arith.addf %one, %e : f32
    %q = arith.divf %u, %d : f32
    %v = arith.extf %r : f16 to f32
    %t = arith.addf %q, %v : f32
    """
    + TRUNCATE,
    {"b": ("f32", "n"), "r": ("f16", "mn")},
    m=8,
    n=40,
    k=160,
)


def test_an_epilogue_follows_the_sum() -> None:
    report = tcir.validate(SILU.linalg(), "gemm", inputs="random", split_k=3)
    assert report.ok, str(report)


def _plus(amount: int) -> Callable[[Any], Any]:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _one_step_further(module: Any) -> None:
    for load in walk(module, "tc.tma_load"):
        with ir.InsertionPoint(load), load.location:
            load.operands[1] = _plus(64)(load.operands[1])


def _last_part_left_out(module: Any) -> None:
    *_, last = walk(module, "arith.addf")
    last.results[0].replace_all_uses_with(last.operands[0])


def _part_again(module: Any) -> None:
    first, second, *_ = walk(module, "llvm.load")
    second.operands[0] = first.operands[0]


def _all_to_the_first_part(module: Any) -> None:
    store = pick(module, "tc.store_rows")
    with ir.InsertionPoint(store), store.location:
        store.operands[2] = arith.constant(ir.IndexType.get(), 0)


BREAKS: dict[str, tuple[str, Edit, tuple[str, ...]]] = {
    "k ranges one step off": ("tile-gemm", _one_step_further, ("difference",)),
    "last part not added": ("convert-to-simt", _last_part_left_out, ("difference",)),
    "a part added twice": ("convert-to-simt", _part_again, ("difference",)),
    "all parts to one place": (
        "tile-gemm",
        _all_to_the_first_part,
        ("hazard: output-never-written", "hazard: race"),
    ),
}


@pytest.mark.parametrize(
    ("at", "edit", "by"),
    [pytest.param(*each, id=what) for what, each in BREAKS.items()],
)
def test_break(at: str, edit: Edit, by: tuple[str, ...]) -> None:
    case = Dense(40, 24, 320, "f16", "mk", "nk")
    pipeline = tcir.named_pipeline("gemm", split_k=3, swap="never")
    caught = run_broken(case.text, pipeline, at, edit, orders=1)
    assert caught.at == at and caught.by in by, caught.text


def _no_global_scale(module: Any) -> None:
    """alpha of one operand alone."""
    product = pick(module, "arith.mulf")
    product.results[0].replace_all_uses_with(product.operands[0])


SCALED_BREAKS: dict[str, tuple[str, Edit]] = {
    "one global scale of two": ("split-k", _no_global_scale),
    "scales one step off": ("tile-gemm", change_operand("tc.tma_load", 2, _plus(8), 1)),
    "codes one step off": ("tile-gemm", change_operand("tc.tma_load", 1, _plus(128))),
}


@pytest.mark.parametrize(
    ("at", "edit"), [pytest.param(*each, id=what) for what, each in SCALED_BREAKS.items()]
)
def test_block_scaled_break(at: str, edit: Edit) -> None:
    pipeline = tcir.named_pipeline("gemm", split_k=3)
    caught = run_broken(NVFP4.case.linalg(), pipeline, at, edit, orders=1)
    assert caught.at == at and caught.by == "difference", caught.text
