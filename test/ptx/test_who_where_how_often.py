"""Findings and illegal acts say who did it, to which bytes of which argument, and how often."""

from __future__ import annotations

import numpy as np
import pytest

from tcir import debug
from tcir.run import RunReport, Uninitialized, run_ptx

from .conftest import HEADER
from .test_debug import line_of
from .test_tcgen05 import gemm, launch, operands

HISTOGRAM = (
    HEADER
    + """
.visible .entry hist(.param .u64 x, .param .u64 out)
{
 .reg .b32 %r<8>; .reg .b64 %rd<8>;
 mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
 mad.lo.u32 %r4, %r1, %r2, %r3;
 ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [out];
 mul.wide.u32 %rd3, %r4, 4; add.u64 %rd1, %rd1, %rd3;
 ld.global.u32 %r5, [%rd1];
 mul.wide.u32 %rd4, %r5, 4; add.u64 %rd2, %rd2, %rd4;
 ld.global.u32 %r6, [%rd2]; add.u32 %r6, %r6, 1;
 st.global.u32 [%rd2], %r6;
 ret;
}
"""
)


def histogram(bins: np.ndarray, grid: int, block: int, shape: tuple[int, ...]) -> RunReport:
    out = np.zeros(shape, np.uint32)
    return run_ptx(HISTOGRAM, grid=grid, block=block, args=[bins.astype(np.uint32), out])


def test_the_kind_between_ctas_is_not_hidden_by_the_one_between_warps() -> None:
    """Both are at the same two lines; the advice for warps does not order CTAs."""
    # thread t of a CTA counts bin 5 + t, so warps meet nowhere, CTAs everywhere
    apart = histogram(np.tile(np.arange(64) + 5, 2), 2, 64, (72,))
    assert {f.kind for f in apart.findings} == {"between CTAs"}
    # the second warp counts what the first did, too
    both = histogram(np.tile(np.arange(32) + 5, 4), 2, 64, (72,))
    kinds = {(f.kind, f.second.split(":")[0]) for f in both.findings}
    assert {k for k, _ in kinds} == {"between warps", "between CTAs"} and len(kinds) == 4
    advice = {f.kind: f.missing for f in both.findings}
    assert "between the two warps" in advice["between warps"]
    assert "PTX ISA 8.8" in advice["between CTAs"]


def test_lanes_element_and_count() -> None:
    """Lane 7 of warp 1 counts the bin of lane 3 of warp 0, which is element [2, 5]."""
    bins = np.arange(64)
    bins[3], bins[39] = 69, 69
    report = histogram(bins, 1, 64, (8, 32))
    (read, write) = report.findings
    for finding in (read, write):
        assert finding.who == "warp 0, lane 3 and warp 1, lane 7 of CTA (0, 0, 0)"
        assert finding.place == "bytes 0x114..0x117 of argument 1 (out): [2, 5]"
        assert finding.count == 1
    text = str(report)
    assert "    warp 0, lane 3 and warp 1, lane 7 of CTA (0, 0, 0): bytes 0x114..0x117" in text
    assert "summary: 2 errors\n" in text
    found = report.as_dict()["findings"][0]
    assert (found["between"], found["count"]) == ("between warps", 1)


STORES = (
    HEADER
    + """
.visible .entry k(.param .u64 out)
{
 .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 4 .b8 buffer[256];
 mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
 mad.lo.u32 %r4, %r2, %r3, %r1; mov.u32 %r5, buffer;
 shr.u32 %r6, %r4, 1; and.b32 %r6, %r6, 31; WHERE
 shl.b32 %r7, %r6, 2; add.u32 %r5, %r5, %r7;
 ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r4, 4, %rd1;
 st.shared.u32 [%r5], %r4;
 cvt.u64.u32 %rd3, %r7; add.u64 %rd2, %rd1, %rd3; mad.wide.u32 %rd2, %r2, 256, %rd2;
 st.global.u32 [%rd2], %r4;
 ret;
}
"""
)


@pytest.mark.parametrize("grid", [1, 64])
def test_two_lanes_of_one_store_are_named_with_their_element(grid: int) -> None:
    """Lanes 2 and 3 of each warp write element 1, with 4 and 5 and so on behind them; the second
    warp writes elements of its own, and 64 CTAs are executed in lockstep."""
    text = STORES.replace("WHERE", "")
    out = np.zeros((grid, 8, 8), np.uint32)
    report = run_ptx(text, grid=grid, block=64, args=[out])
    shared, stored = report.findings
    for finding in (shared, stored):
        assert finding.kind == "between lanes" and finding.count == 2 * grid
        assert finding.who == "warp 0, lane 0 and warp 0, lane 1 of CTA (0, 0, 0)"
        assert "PTX ISA 8.7.1" in finding.missing and "0x" not in finding.first + finding.second
    assert shared.place == "bytes 0x400..0x403 of shared memory"
    assert stored.place == "bytes 0x0..0x3 of argument 0 (out): [0, 0, 0]"
    one = STORES.replace("WHERE", "setp.lt.u32 %p1, %r1, 37; @%p1 mov.u32 %r6, %r1;")
    one = one.replace(".reg .b32 %r<8>;", ".reg .b32 %r<8>; .reg .pred %p1;")
    later = run_ptx(one, grid=grid, block=64, args=[np.zeros((grid, 8, 8), np.uint32)])
    assert any("warp 1, lane 6 and warp 1, lane 7" in f.who for f in later.findings), later


def test_the_same_in_every_cta_is_one_finding_with_a_count() -> None:
    bins = np.tile(np.arange(32), 2)
    bins = np.concatenate([bins + 32 * n for n in range(6)])
    report = histogram(bins, 6, 64, (192,))
    assert [f.count for f in report.findings] == [6, 6]
    assert "; 6 times" in str(report) and "summary: 2 errors (12 times)" in str(report)
    assert "1 more findings not shown" in report.text(1)


def test_an_address_outside_names_lane_and_argument() -> None:
    report = histogram(np.arange(40), 1, 64, (64,))
    (error,) = report.errors
    assert error.who == "warp 1, lane 8 of CTA (0, 0, 0)"
    assert "160 bytes from the start of the nearest, which has 160 (argument 0 (x))" in str(error)
    outside = histogram(np.array([1, 2, 900, 3] * 8), 1, 32, (64,)).errors[0]
    assert outside.who.startswith("warp 0, lane 2 ") and "argument 1 (out)" in str(outside)


def test_poison_is_called_poison() -> None:
    text = HISTOGRAM.replace("add.u64 %rd2, %rd2, %rd4;", "")
    report = run_ptx(
        text.replace("ld.param.u64 %rd2, [out];", ""),
        grid=1,
        block=32,
        args=[np.zeros(32, np.uint32), np.zeros(32, np.uint32)],
    )
    assert "got poison" in str(report.errors[0])
    stop = debug.run(
        HISTOGRAM,
        break_at=line_of(HISTOGRAM, "%r6, [%rd2]"),
        grid=1,
        block=8,
        args=[np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)],
    )
    (known, never) = stop.registers(["%r3", "%r6"])
    assert known.values.count() == 8 and list(known.values[:8]) == list(range(8))
    assert never.values.count() == 0 and "poison" in str(never)


def test_bytes_that_nothing_wrote_are_an_element_of_an_argument() -> None:
    out = np.zeros((4, 16), np.uint32)
    report = run_ptx(
        HISTOGRAM, grid=1, block=32, args=[np.arange(32, dtype=np.uint32), Uninitialized(out)]
    )
    (finding,) = {f.code: f for f in report.findings}.values()
    assert finding.code == "undefined-read" and "argument 1 (out)" in finding.missing


def test_registers_as_other_types() -> None:
    a, b, maps, out = operands(64, exact=True)
    text = gemm()
    line = line_of(text, "st.global.v4.b32 [%rd20+0]")
    stop = debug.run(text, break_at=line, grid=1, block=128, dynamic_smem=24576, args=[*maps, out])
    rows = a[32 * stop.warp.index :][:32]
    want = rows.astype(np.float32) @ b.astype(np.float32).T
    (d0,) = stop.registers(["%d0"])
    assert (d0.seen_as("f32").values == want[:, 0]).all()
    halves = d0.seen_as("f16x2").values
    assert halves.shape == (32, 2) and (halves == d0.values.data.view("f2").reshape(32, 2)).all()
    assert f"{want[1, 0]:g}" in stop.dump(["registers:f32=%d0"])
    with pytest.raises(debug.LaunchError, match="expected a type of 4 bytes, got f64"):
        d0.seen_as("f64")


@pytest.mark.parametrize("seed", [None, 1])
def test_a_deadlock_names_the_bytes_that_do_not_come_first(seed: int | None) -> None:
    """The epilogue's warps wait for the mma, which waits for TMA's full barrier."""
    _, _, maps, out = operands(64, exact=True)
    report = launch(gemm().replace("], 24576;", "], 24592;"), maps, out, 24576, order_seed=seed)
    (error,) = report.errors
    lines = str(error).splitlines()
    assert error.code == "deadlock" and "lane 0 waits for parity 0" in lines[1]
    assert "tx-count 16" in lines[1] and "16 of the 24592 bytes announced at line" in lines[2]
    mismatch = [f for f in report.findings if f.code == "expect-tx-mismatch"]
    assert len(mismatch) == 1 and "expect_tx" in mismatch[0].first


def test_a_deadlock_names_the_elected_lane_before_its_neighbours() -> None:
    text = (
        HEADER
        + """
.visible .entry k()
{
 .reg .b32 %r<4>; .reg .pred %p<4>;
 .shared .align 8 .b64 full;
 .shared .align 8 .b64 done;
 mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0;
 @%p1 bra MEET;
 mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [done], 1;
MEET:
 bar.sync 0;
 @%p1 bra WAIT_DONE;
WAIT_FULL:
 mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
 @!%p2 bra WAIT_FULL;
 mbarrier.arrive.shared.b64 _, [done];
WAIT_DONE:
 mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;
 @!%p3 bra WAIT_DONE;
 ret;
}
"""
    )
    (error,) = run_ptx(text, grid=1, block=64).errors
    first, lacks, others = str(error).splitlines()[1:]
    assert "warp 0, lane 0 waits for parity 0 of mbarrier at full " in first and "[full]" in first
    assert "it lacks 1 of 1 arrivals" in lacks
    assert "warp 0, lanes 1 to 31; warp 1 wait for" in others and "[done]" in others


def test_inputs_that_are_only_read_may_be_read_only() -> None:
    bins, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    bins.flags.writeable = False
    assert run_ptx(HISTOGRAM, grid=1, block=32, args=[bins, out]).ok and (out == 1).all()
    out.flags.writeable = False
    report = run_ptx(HISTOGRAM, grid=1, block=32, args=[bins, out])
    assert [e.code for e in report.errors] == ["read-only-argument"] and (out == 1).all()
    assert "argument 1 (out)" in str(report.errors[0])
