"""matmul-warp with its tiles filled by TMA: every level, refusals, and three things broken."""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from tcir.passmanager.pipeline import Pass

from .test_matmul_warp import MAJORS, SMALL, Case, check, floats
from .test_matmul_warp_breaks import Break, erase, number

TMA = {**SMALL, "copy": "tma"}


def tma(*sizes: Any, **how: Any) -> Case:
    return Case(*sizes, **{"options": TMA, **how})


def cases() -> list[Case]:
    """Types, majornesses, tails in M, N and K, tiles, batches, targets."""
    return [
        *(tma(40, 24, 72, element, *major) for element in ("f16", "bf16") for major in MAJORS),
        *(tma(20, 20, k, element, "mk", "nk") for element, k in (
            ("f32", 44), ("f8E4M3FN", 80), ("f8E5M2", 48), ("i8", 80))),
        tma(24, 40, 96, "f8E4M3FN", "mk", "nk", other="f8E5M2", target="sm_100a"),
        tma(40, 24, 72, "f16", target="sm_100a"), tma(40, 24, 40, "bf16", batch=3),
        tma(24, 20, 80, "i8", "mk", "nk", batch=2), tma(40, 25, 72, "f16", "mk", "nk", out="f16"),
        tma(1, 8, 8, "f16"), tma(33, 24, 200, "f16", "mk", "nk", out="bf16"),
        *(tma(40, 24, 96, "f16", options={**TMA, **o}) for o in (
            {"stages": 2}, {"stages": 6}, {"block_k": 16}, {"block_k": 32, "warps_m": 1},
            {"block_m": 64, "block_n": 128, "warps_n": 2},
            {"block_m": 16, "block_n": 64, "warps_m": 1, "warps_n": 8})),
        tma(40, 24, 40, "f32", "mk", "nk", options={**TMA, "atom": "mma.m16n8k4.tf32"}),
        tma(40, 24, 72, "f16", "mk", "nk", options={**TMA, "ldmatrix": False}),
    ]  # fmt: skip


QUICK = [tma(40, 24, 72, "f16", "km", "kn")]


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_equal_at_every_level(case: Case) -> None:
    kernel = check(case, "integers")
    assert "cp.async.bulk.tensor" in kernel.ptx and "cp.async.cg" not in kernel.ptx


def test_there_are_twelve_cases() -> None:
    assert len({str(case) for case in cases()}) >= 12


@pytest.mark.parametrize("case", cases(), ids=str)
def test_integers_are_equal_at_every_level(case: Case) -> None:
    kernel = check(case, "integers")
    assert "cp.async.bulk.tensor" in kernel.ptx and "cp.async.cg" not in kernel.ptx


@pytest.mark.parametrize(
    "case",
    [
        Case(c.m, c.n + 4, c.k, c.element, "mk", "nk", target=c.target, options=TMA)
        for c in floats()
        if c.target != "sm_80" and c.a == "mk" and c.k * 2 % 16 == 0
    ],
    ids=str,
)
def test_floats_are_within_the_bound_at_every_level(case: Case) -> None:
    if case.element.startswith("f8"):
        case = Case(case.m, case.n, 80, case.element, "mk", "nk", target=case.target, options=TMA)
    check(case, "random")


@pytest.mark.parametrize(
    "options", [TMA, {**TMA, "block_k": 16, "stages": 2}, {**TMA, "block_k": 16, "stages": 3}]
)
def test_no_hazard_under_other_orders_of_completion(options: dict[str, Any]) -> None:
    kernel = tma(40, 24, 200, "f16", options=options).compile(validate=True, orders=4)
    assert kernel.report.ok, str(kernel.report)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (tma(32, 32, 32, "f16", target="sm_80"), "sm_80 has no TMA; take copy=cp.async"),
        (tma(32, 32, 36, "f16"), "rows of A have 72 bytes, TMA addresses global memory in units"),
        (tma(32, 32, 32, "f8E4M3FN", "km", "kn"), "the swizzle of TMA leaves .* bank conflicts in "
         "the loads of A"),
        (tma(32, 32, 32, "f32", "mk", "kn"), "tiles of B, MN-major and of f32, need the swizzle "
         "128B_ATOM_32B to be read without bank conflicts, which TMA of sm_90 does not have"),
        (tma(32, 32, 32, "f32", "mk", "kn", target="sm_100a"), "the tile of B has 32 rows of 64 "
         "bytes, TMA fills rows of 128 bytes"),
        (tma(32, 32, 256, "f16", options={**TMA, "block_k": 128}), "the tile of A has 32 rows of "
         "256 bytes, TMA fills rows of 32, 64 or 128 bytes"),
    ],
)  # fmt: skip
def test_what_tma_cannot_serve_is_refused(case: Case, words: str) -> None:
    with pytest.raises(tcir.PassError, match=words):
        case.compile()


def test_an_unknown_copy_is_refused() -> None:
    with pytest.raises(tcir.InputError, match=r"expected copy=tma or copy=cp.async, got copy=ldg"):
        tma(32, 32, 32, "f16", options={**SMALL, "copy": "ldg"}).compile()


@pytest.mark.parametrize(
    ("case", "copies"),
    [
        (Case(40, 24, 64, "f16"), "cp.async.bulk.tensor"),
        (Case(40, 24, 64, "f16", target="sm_80"), "cp.async.cg"),
        (Case(40, 24, 68, "f16"), "cp.async"),
        (Case(40, 24, 64, "f16", options={**SMALL, "copy": "cp.async"}), "cp.async.cg"),
    ],
    ids=str,
)
def test_the_copies_chosen(case: Case, copies: str) -> None:
    kernel = case.compile()
    assert copies in kernel.ptx
    assert ("bulk" in copies) == ("bulk.tensor" in kernel.ptx)


def other_parity(op: Any) -> None:
    """A wait that looks at the other parity."""
    from tcir._mlir import arith, ir

    with ir.InsertionPoint(op), op.location:
        one = arith.ConstantOp(ir.IndexType.get(), 1).result
        op.operands[1] = arith.SubIOp(one, op.operands[1]).result


def short_box(op: Any) -> None:
    """One row of the box less, and of the bytes announced nothing changes."""
    from tcir._mlir import ir

    *rest, last = list(ir.DenseI64ArrayAttr(op.attributes["box"]))
    op.attributes["box"] = ir.DenseI64ArrayAttr.get([*rest, last - 1], op.context)


def shifted(op: Any) -> None:
    """The box of one row further on."""
    from tcir._mlir import arith, ir

    with ir.InsertionPoint(op), op.location:
        one = arith.ConstantOp(ir.IndexType.get(), 1).result
        op.operands[2] = arith.AddIOp(op.operands[2], one).result


BREAKS = [
    # The wrong parity: tiles are read before they are there.
    ("pipeline-tma", Break("tc.mbarrier_wait", other_parity), 3, "break"),
    # No wait at all.
    ("double-buffer-fragments", Break("tc.mbarrier_wait", erase), 3, "break"),
    # Boxes that begin one row too far.
    ("tile-matmul-warp", Break("tc.tma_load", shifted), 1, "break"),
    # Fewer bytes announced than loaded: the phase ends early, or never.
    ("plan-staging", Break("tc.mbarrier_expect_tx", number("nbytes", -128)), 3, "break"),
    # No CTA barrier: slots are filled while other warps read them; only threads can see it.
    ("plan-staging", Break("tc.cta_barrier", erase), 3, "convert-tc-to-nvvm"),
]


@pytest.mark.parametrize(
    ("after", "broken", "orders", "seen"),
    BREAKS,
    ids=["parity", "wait", "box", "bytes", "barrier"],
)
def test_a_break_is_seen(after: str, broken: Pass, orders: int, seen: str) -> None:
    case = tma(40, 24, 96, "f16", options={**TMA, "block_k": 16, "stages": 3})
    pipeline = tcir.named_pipeline("matmul-warp", **case.options).insert(broken, after=after)
    kernel = tcir.compile(case.text, pipeline, target="sm_90", validate=True, orders=orders)
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    assert failure.verdict == "different"
    assert failure.name == seen, str(failure)


def test_a_box_one_row_short_is_refused() -> None:
    """The verifier compares the bytes of the box with those that the load names."""
    broken = Break("tc.make_tensor_map", short_box)
    pipeline = tcir.named_pipeline("matmul-warp", **TMA).insert(broken, after="tile-matmul-warp")
    with pytest.raises(tcir.PassError, match="nbytes"):
        tcir.compile(tma(40, 24, 96, "f16").text, pipeline, target="sm_90")
