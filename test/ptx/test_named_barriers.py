"""bar.arrive and bar.red between warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER

RED = """
.visible .entry red(.param .u64 x, .param .u64 y)
{
 .reg .pred %p<8>; .reg .b32 %r<12>; .reg .b64 %rd<6>;
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y];
 mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3;
 mul.wide.u32 %rd3, %r1, 16; add.s64 %rd2, %rd2, %rd3;
 ld.global.b32 %r2, [%rd1];
 setp.gt.s32 %p1, %r2, 0;
 bar.red.popc.u32 %r4, 0, %p1;
 barrier.cta.red.or.aligned.pred %p2, 0, !%p1; selp.u32 %r5, 1, 0, %p2;
 barrier.cta.red.and.aligned.pred %p3, 1, 96, %p1; selp.u32 %r6, 1, 0, %p3;
 bar.red.popc.u32 %r7, 0, !%p1;
 st.global.v4.b32 [%rd2], {%r4, %r5, %r6, %r7};
 ret;
}
"""


@pytest.mark.parametrize("positive", [0, 1, 50, 96])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_reductions(positive: int, seed: int | None) -> None:
    x = np.where(np.arange(96) < positive, 3, -3).astype(np.int32)
    y = np.zeros((96, 4), np.uint32)
    report = run_ptx(HEADER + RED, grid=1, block=96, args=[x, y], order_seed=seed)
    assert report.ok, report
    want = [positive, int(positive < 96), int(positive == 96), 96 - positive]
    assert (y == want).all()


HANDOVER = """
.visible .entry handover(.param .u64 y)
{{
 .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .align 4 .b8 tile[128];
 ld.param.b64 %rd1, [y]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r2, 2;
 mov.u32 %r4, tile; add.u32 %r4, %r4, %r3; cvt.u64.u32 %rd2, %r3; add.s64 %rd1, %rd1, %rd2;
 setp.lt.u32 %p1, %r1, 32;
 @!%p1 bra CONSUMER;
 st.shared.b32 [%r4], %r1;
 {arrive}
 bra DONE;
CONSUMER:
 {wait}
 ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd1], %r5;
DONE: ret;
}}
"""
ARRIVE, WAIT = "barrier.cta.arrive.aligned 1, 64;", "barrier.cta.sync.aligned 1, 64;"


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_producer_arrives_and_goes_on(seed: int | None) -> None:
    y = np.zeros(32, np.uint32)
    ptx = HEADER + HANDOVER.format(arrive=ARRIVE, wait=WAIT)
    report = run_ptx(ptx, grid=1, block=64, args=[y], order_seed=seed)
    assert report.ok and not report.findings, report
    assert y.tolist() == list(range(32))


def test_arrival_alone_orders_nothing_for_who_arrives() -> None:
    """The consumer stores after its wait; the producer, which only arrived, may not read that."""
    later = ARRIVE + " ld.shared.b32 %r6, [%r4];"
    wait = WAIT + " st.shared.b32 [%r4], %r1;"
    report = run_ptx(
        HEADER + HANDOVER.format(arrive=later, wait=wait),
        grid=1,
        block=64,
        args=[np.zeros(32, "u4")],
    )
    assert {f.code for f in report.findings} == {"race"}


def test_without_the_arrival() -> None:
    ptx = HEADER + HANDOVER.format(arrive="", wait=WAIT)
    report = run_ptx(ptx, grid=1, block=64, args=[np.zeros(32, "u4")])
    assert [e.code for e in report.errors] == ["deadlock"]


def test_legal_ptx(assemble: Any) -> None:
    assemble(HEADER + RED + HANDOVER.format(arrive=ARRIVE, wait=WAIT))
