"""Whole kernels against numpy: memory, divergence, warps that talk, barriers, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import LaunchError, Uninitialized, run_ptx

from .conftest import HEADER, kernel

SAXPY = """
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
 .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .f32 %f<5>;
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.f32 %f1, [a]; ld.param.b32 %r1, [n];
 cvta.to.global.u64 %rd1, %rd1;
 mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
 mad.lo.s32 %r5, %r2, %r3, %r4;
 setp.ge.u32 %p1, %r5, %r1;
 @%p1 bra DONE;
 mul.wide.u32 %rd3, %r5, 4;
 add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
 ld.global.nc.L1::no_allocate.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd5];
 fma.rn.f32 %f4, %f1, %f2, %f3;
 st.global.f32 [%rd5], %f4;
DONE: ret;
}
"""

REDUCE = """
.visible .entry reduce(.param .u64 x, .param .u64 y)
{
 .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .f32 %f<5>;
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y];
 mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3;
 ld.global.b32 %r2, [%rd3];
 mov.u32 %r3, 16;
LOOP:
 shfl.sync.bfly.b32 %r4|%p1, %r2, %r3, 31, -1;
 @%p1 add.u32 %r2, %r2, %r4;
 shr.u32 %r3, %r3, 1;
 setp.ne.u32 %p2, %r3, 0;
 @%p2 bra LOOP;
 elect.sync %r6|%p3, -1;
 @!%p3 bra SKIP;
 shr.u32 %r5, %r1, 5; mul.wide.u32 %rd4, %r5, 4; add.s64 %rd4, %rd2, %rd4;
 st.global.b32 [%rd4], %r2;
SKIP: ret;
}
"""

COLLATZ = """
.visible .entry collatz(.param .u64 y)
{
 .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>;
 ld.param.b64 %rd1, [y];
 mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; mov.u32 %r3, 0;
LOOP:
 setp.eq.u32 %p1, %r2, 1;
 @%p1 bra DONE;
 and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0;
 @%p2 bra EVEN;
 mad.lo.u32 %r2, %r2, 3, 1;
 bra.uni NEXT;
EVEN: shr.u32 %r2, %r2, 1;
NEXT: add.u32 %r3, %r3, 1;
 bra LOOP;
DONE:
 activemask.b32 %r5;
 mul.wide.u32 %rd2, %r1, 8; add.s64 %rd2, %rd1, %rd2;
 st.global.v2.b32 [%rd2], {%r3, %r5};
 ret;
}
"""

TRANSPOSE = """
.extern .shared .align 16 .b8 dynamic[];
.visible .entry transpose(.param .u64 x, .param .u64 y)
.reqntid 256
{
 .reg .b32 %r<16>; .reg .b64 %rd<8>;
 .shared .align 16 .b8 pad[64];
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y];
 mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 15; shr.u32 %r3, %r1, 4;
 mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; ld.global.b32 %r4, [%rd4];
 mad.lo.u32 %r5, %r2, 16, %r3; shl.b32 %r5, %r5, 2;
 mov.u32 %r6, dynamic; add.u32 %r5, %r5, %r6;
 st.shared.b32 [%r5], %r4;
 st.shared.b32 [pad], %r4;
 bar.sync 0;
 shl.b32 %r7, %r1, 2; add.u32 %r7, %r7, %r6; ld.shared::cta.b32 %r8, [%r7];
 add.s64 %rd5, %rd2, %rd3; st.global.b32 [%rd5], %r8;
 ret;
}
"""

PIPE = """
.visible .entry pipe(.param .u64 x, .param .u64 y)
.reqntid 64
{
 .reg .pred %p<6>; .reg .b32 %r<20>; .reg .b64 %rd<8>;
 .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2]; .shared .align 16 .b32 ring[64];
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y];
 mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mov.u32 %r3, full;
 mov.u32 %r4, empty; mov.u32 %r5, ring;
 setp.eq.u32 %p1, %r1, 0;
 @!%p1 bra READY;
 mbarrier.init.shared::cta.b64 [full], 32; mbarrier.init.shared::cta.b64 [full+8], 32;
 mbarrier.init.shared::cta.b64 [empty], 32; mbarrier.init.shared::cta.b64 [empty+8], 32;
READY:
 bar.sync 0;
 setp.ge.u32 %p2, %r1, 32;
 mov.u32 %r6, 0;
 @%p2 bra CONSUMER;
PRODUCE:
 and.b32 %r7, %r6, 1; shr.u32 %r8, %r6, 1; and.b32 %r8, %r8, 1; xor.b32 %r9, %r8, 1;
 mad.lo.u32 %r10, %r7, 8, %r4; mad.lo.u32 %r11, %r7, 8, %r3;
PWAIT: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r10], %r9, 10000;
 @!%p3 bra PWAIT;
 mad.lo.u32 %r12, %r6, 32, %r2; mul.wide.u32 %rd3, %r12, 4; add.s64 %rd3, %rd1, %rd3;
 ld.global.b32 %r13, [%rd3];
 mad.lo.u32 %r14, %r7, 32, %r2; mad.lo.u32 %r14, %r14, 4, %r5;
 st.shared.b32 [%r14], %r13;
 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r11];
 add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 5;
 @%p4 bra PRODUCE;
 ret;
CONSUMER:
 and.b32 %r7, %r6, 1; shr.u32 %r8, %r6, 1; and.b32 %r8, %r8, 1;
 mad.lo.u32 %r10, %r7, 8, %r4; mad.lo.u32 %r11, %r7, 8, %r3;
CWAIT: mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r11], %r8;
 @!%p3 bra CWAIT;
 xor.b32 %r15, %r2, 31;
 mad.lo.u32 %r14, %r7, 32, %r15; mad.lo.u32 %r14, %r14, 4, %r5;
 ld.shared.b32 %r13, [%r14];
 mbarrier.arrive.shared::cta.b64 %rd7, [%r10];
 mad.lo.u32 %r12, %r6, 32, %r2; mul.wide.u32 %rd3, %r12, 4; add.s64 %rd3, %rd2, %rd3;
 st.global.b32 [%rd3], %r13;
 add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 5;
 @%p4 bra CONSUMER;
 ret;
}
"""

VARIABLES = """
.global .align 4 .b32 numbers[4] = {10, 20, 30, 40};
.const .align 4 .f32 half = 0f3F000000;
.visible .entry variables(.param .align 8 .b8 pair[16], .param .u64 y)
{
 .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<4>;
 .local .align 8 .b8 depot[16];
 ld.param.b64 %rd1, [y]; ld.param.v2.b32 {%r1, %r2}, [pair]; ld.param.s8 %r3, [pair+8];
 mov.u32 %r4, %laneid; and.b32 %r5, %r4, 3;
 mov.u64 %rd2, numbers; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd2, %rd2, %rd3; ld.b32 %r6, [%rd2];
 mov.u64 %rd4, depot; cvta.local.u64 %rd5, %rd4; st.local.b32 [depot+4], %r4; ld.u32 %r7, [%rd5+4];
 ld.const.f32 %f1, [half]; cvt.rn.f32.u32 %f2, %r6; mul.f32 %f2, %f2, %f1; cvt.rzi.u32.f32 %r6, %f2;
 add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r1; sub.u32 %r6, %r6, %r2; add.u32 %r6, %r6, %r3;
 mul.wide.u32 %rd6, %r4, 4; add.s64 %rd6, %rd6, %rd1; st.global.b32 [%rd6], %r6;
 ret;
}
"""


def test_saxpy(assemble: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    want = (np.float64(1.5) * x + y).astype(np.float32)
    args = [x, y, np.float32(1.5), np.uint32(1000)]
    report = run_ptx(HEADER + SAXPY, grid=8, block=128, args=args)
    assert report.ok and (y == want).all(), str(report)
    assemble(HEADER + SAXPY)


def test_warp_reduction(assemble: Any) -> None:
    """Every lane has the sum, for any of them may be elected."""
    for seed in (None, 0, 1, 2):
        x, y = np.arange(1, 129, dtype=np.uint32) ** 2, np.zeros(4, np.uint32)
        report = run_ptx(HEADER + REDUCE, grid=1, block=128, args=[x, y], order_seed=seed)
        assert report.ok and (y == x.reshape(4, 32).sum(1)).all(), str(report)
    assemble(HEADER + REDUCE)


def test_divergent_loop_reconverges(assemble: Any) -> None:
    y = np.zeros((64, 2), np.uint32)
    report = run_ptx(HEADER + COLLATZ, grid=1, block=64, args=[y])
    for n in range(64):
        v, steps = n + 1, 0
        while v != 1:
            v, steps = (v // 2 if v % 2 == 0 else 3 * v + 1), steps + 1
        assert y[n, 0] == steps
    assert report.ok and (y[:, 1] == 0xFFFFFFFF).all(), str(report)
    assemble(HEADER + COLLATZ)


def test_transpose_through_shared_memory(assemble: Any) -> None:
    x = np.arange(256, dtype=np.uint32).reshape(16, 16) * 3 + 1
    y = np.zeros((16, 16), np.uint32)
    text = HEADER + TRANSPOSE.replace("st.shared.b32 [pad], %r4;", "")
    for seed in (None, 1, 2):
        y[:] = 0
        report = run_ptx(text, grid=1, block=256, dynamic_smem=1024, args=[x, y], order_seed=seed)
        assert report.ok and (y == x.T).all(), str(report)
    assemble(text)


def test_missing_barrier_is_a_hazard() -> None:
    x, y = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    text = HEADER + TRANSPOSE.replace("bar.sync 0;", "").replace("st.shared.b32 [pad], %r4;", "")
    report = run_ptx(text, grid=1, block=256, dynamic_smem=1024, args=[x, y])
    assert not report.ok and report.findings


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_mbarrier_producer_and_consumer(seed: int | None, assemble: Any) -> None:
    x, y = np.arange(1, 161, dtype=np.uint32), np.zeros(160, np.uint32)
    report = run_ptx(HEADER + PIPE, grid=1, block=64, args=[x, y], order_seed=seed)
    assert report.ok and (y.reshape(5, 32) == x.reshape(5, 32)[:, ::-1]).all(), str(report)
    if seed is None:
        assemble(HEADER + PIPE)


def test_variables_parameters_and_local_memory(assemble: Any) -> None:
    pair = np.array([100, 7], np.uint32).tobytes() + b"\xfe" + b"\0" * 7
    y = np.zeros(32, np.uint32)
    report = run_ptx(HEADER + VARIABLES, grid=1, block=32, args=[pair, Uninitialized(y)])
    lane = np.arange(32)
    assert report.ok and (y == (lane % 4 + 1) * 5 + lane + 93 - 2).all(), str(report)
    assemble(HEADER + VARIABLES)


# --- what goes wrong ---------------------------------------------------------------------------


def run_body(body: str, **more: Any) -> Any:
    out = np.zeros(32, np.uint32)
    return run_ptx(HEADER + kernel("k", body, [], "u32"), grid=1, block=32, args=[out], **more), out


def test_undefined_registers_are_found() -> None:
    report, _ = run_body("add.u32 %d, %t5, 1;")
    assert [f.code for f in report.findings] == ["undefined-register"] and not report.ok
    report, _ = run_body("mov.u32 %t6, %t5; mov.u32 %d, 1;")
    assert report.ok, "copying an undefined value is no use of it"
    report, _ = run_body("setp.eq.u32 %p0, %t0, 3; @%p0 mov.u32 %t5, 1; mov.u32 %d, %t5;")
    assert not report.ok, "31 lanes store what they never wrote"


def test_lanes_that_are_predicated_off_are_untouched() -> None:
    report, out = run_body("mov.u32 %d, 5; setp.lt.u32 %p0, %t0, 3; @%p0 add.u32 %d, %d, %t0;")
    assert report.ok and out.tolist() == [5, 6, 7] + [5] * 29


def test_a_spinning_lane_does_not_starve_its_warp() -> None:
    body = """
    .shared .align 4 .b32 flag;
    mov.u32 %d, 1; mov.u32 %t3, 0;
    setp.eq.u32 %p0, %t0, 0; @%p0 st.shared.b32 [flag], %t3;
    bar.warp.sync -1;
    @!%p0 bra SET;
    SPIN: ld.volatile.shared.b32 %t4, [flag]; setp.eq.u32 %p1, %t4, 0; @%p1 bra SPIN;
    bra.uni OUT;
    SET: setp.ne.u32 %p2, %t0, 5; @%p2 bra OUT; mov.u32 %t3, 9; st.volatile.shared.b32 [flag], %t3;
    OUT: """
    report, out = run_body(body, max_instructions=100000)
    assert report.ok and (out == 1).all(), str(report)


def test_a_waiting_lane_does_not_starve_its_warp() -> None:
    body = """
    .shared .align 8 .b64 bar;
    mov.u32 %d, 1;
    setp.eq.u32 %p0, %t0, 0; @%p0 mbarrier.init.shared.b64 [bar], 31;
    bar.warp.sync -1;
    @!%p0 bra ARRIVE;
    SPIN: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra SPIN;
    bra.uni OUT;
    ARRIVE: mbarrier.arrive.shared.b64 _, [bar];
    OUT: bar.sync 0; """
    report, out = run_body(body, max_instructions=100000)
    assert not report.errors and (out == 1).all(), str(report)


@pytest.mark.parametrize(
    "instruction",
    ["bar.sync 0;", "tcgen05.wait::ld.sync.aligned;", "barrier.cta.sync.aligned 1;"],
)
def test_aligned_instructions_need_the_whole_warp(instruction: str) -> None:
    body = f"mov.u32 %d, 1; setp.lt.u32 %p0, %t0, 7; @!%p0 bra OVER; {instruction} OVER: "
    report, _ = run_body(body)
    assert [e.code for e in report.errors] == ["not-converged"], str(report)
    assert instruction in str(report.errors[0]) and "0x0000007f" in str(report.errors[0])
    report, _ = run_body(f"mov.u32 %d, 1; setp.lt.u32 %p0, %t0, 7; @%p0 {instruction}")
    assert [e.code for e in report.errors] == ["not-converged"], str(report)


def test_members_of_a_mask_have_to_meet() -> None:
    shuffle = "shfl.sync.idx.b32 %t3, %t0, 0, 31, -1;"
    split = "mov.u32 %d, 1; setp.lt.u32 %p0, %t0, 7; @!%p0 bra OVER;"
    report, _ = run_body(f"{split} {shuffle} OVER: {shuffle}")
    assert [e.code for e in report.errors] == ["not-converged"], str(report)
    report, _ = run_body(f"{split} {shuffle} OVER: ")
    assert report.ok, "lanes that have exited are not waited for"


def test_half_warps_vote_under_their_own_masks() -> None:
    body = """setp.lt.u32 %p0, %t0, 16; @!%p0 bra HIGH;
    vote.sync.ballot.b32 %d, %p0, 0x0000ffff; bra.uni OVER;
    HIGH: vote.sync.ballot.b32 %d, !%p0, 0xffff0000; OVER: """
    report, out = run_body(body)
    assert report.ok and out.tolist() == [0xFFFF] * 16 + [0xFFFF0000] * 16


EIGHTS = "and.b32 %t4, %t0, 24; mov.u32 %t5, 255; shl.b32 %t5, %t5, %t4;"
"""%t5: the mask of the lane's tile of eight."""


def test_converged_lanes_may_name_different_masks() -> None:
    report, out = run_body(f"{EIGHTS} elect.sync %d|%p0, %t5;")
    assert report.ok and (out == np.arange(32) // 8 * 8).all(), str(report)
    report, out = run_body(f"{EIGHTS} redux.sync.add.u32 %d, %t0, %t5;")
    assert report.ok and (out == np.arange(32).reshape(4, 8).sum(1).repeat(8)).all(), str(report)
    more = f"mov.u32 %d, 1; {EIGHTS} or.b32 %t5, %t5, 0x100; bar.warp.sync %t5; bar.sync 0;"
    report, _ = run_body(more)
    assert [e.code for e in report.errors] == ["not-converged"], "lane 8 names the second tile"
    report, _ = run_body(f"mov.u32 %d, 1; {EIGHTS} not.b32 %t5, %t5; bar.warp.sync %t5;")
    assert [e.code for e in report.errors] == ["not-a-member"], str(report)
    text = str(report.errors[0])
    assert "0xffffff00 by lanes 0 to 7;" in text and "lanes 0 to 7 not in the mask" in text


def test_lanes_meet_at_different_warp_barriers_but_not_at_different_shuffles() -> None:
    apart = "mov.u32 %d, 1; setp.lt.u32 %p0, %t0, 7; @%p0 {0} @!%p0 {0}"
    report, out = run_body(apart.format("bar.warp.sync -1;"))
    assert report.ok and (out == 1).all(), str(report)
    report, _ = run_body(apart.format("shfl.sync.idx.b32 %t3, %t0, 0, 31, -1;") + "bar.sync 0;")
    assert [e.code for e in report.errors] == ["not-converged"], str(report)
    assert "shfl" in str(report.errors[0]) and "0x0000007f" in str(report.errors[0])


def test_wild_pointers_are_errors() -> None:
    for body in (
        "mov.u64 %u2, 64; ld.global.b32 %d, [%u2];",
        "mov.u64 %u2, 0xFFFFFFFFFFFFFFF0; ld.global.b32 %d, [%u2];",
        "mov.u32 %t3, 0x7fffffff; ld.shared.b8 %d, [%t3];",
        "mov.u64 %u2, 0x7F0000FFFFF0; ld.b32 %d, [%u2];",
        "mov.u32 %d, 1; mov.u32 %t3, 0x7ffffff0; st.shared.b32 [%t3], %d;",
    ):
        report, _ = run_body(body)
        assert len(report.errors) == 1 and "line" in str(report.errors[0]), (body, str(report))


def test_misaligned_access_is_an_error() -> None:
    report, _ = run_body(".shared .align 16 .b8 s[64]; mov.u32 %d, 1; st.shared.b32 [s+2], %d;")
    assert report.errors[0].code == "misaligned-address"


def test_endless_loops_end() -> None:
    report, _ = run_body("mov.u32 %d, 1; L: bra L;", max_instructions=20000)
    assert report.errors[0].code == "instruction-budget"


def test_trap_is_reported() -> None:
    report, _ = run_body("mov.u32 %d, 1; trap;")
    assert report.errors[0].code == "trap"


@pytest.mark.parametrize(
    "more,message",
    [
        ({"block": 1025}, "block"),
        ({"block": (64, 64)}, "1024"),
        ({"block": 0}, "block"),
        ({"grid": (1, 70000)}, "65535"),
        ({"grid": 1 << 40}, "grid"),
        ({"grid": (1 << 30, 1 << 10)}, "CTAs"),
        ({"dynamic_smem": 1 << 20}, "shared memory"),
        ({"dynamic_smem": -1}, "shared memory"),
        ({"args": []}, "expected 1"),
        ({"args": [np.uint32(1)]}, "scalar"),
        ({"args": [object()]}, "numpy"),
        ({"args": [-1]}, "does not fit"),
        ({"args": [b"1234"]}, "bytes"),
        ({"args": [np.zeros((4, 4), np.uint32).T[:2]]}, "contiguous"),
        ({"entry": "nobody"}, "entry"),
        ({"cluster": 3}, "multiple"),
    ],
)
def test_launches_that_do_not_fit(more: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"grid": 1, "block": 32, "args": [np.zeros(32, np.uint32)], **more}
    with pytest.raises(LaunchError, match=message):
        run_ptx(HEADER + kernel("k", "mov.u32 %d, 1;", [], "u32"), **given)


def test_reqntid_is_checked() -> None:
    with pytest.raises(LaunchError, match="reqntid"):
        run_ptx(HEADER + TRANSPOSE, grid=1, block=128, args=[np.zeros(1), np.zeros(1)])


def test_atomics_add_once_per_thread(assemble: Any) -> None:
    text = (
        HEADER
        + """
.visible .entry count(.param .u64 y)
{ .reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.b64 %rd1, [y];
  red.global.add.u32 [%rd1], 1; atom.global.add.u32 %r1, [%rd1+4], 2;
  atom.global.cas.b32 %r2, [%rd1+8], 0, 5; atom.global.max.u32 %r3, [%rd1+12], %r1; ret; }
"""
    )
    y = np.zeros(4, np.uint32)
    report = run_ptx(text, grid=2, block=64, args=[y])
    assert report.ok and y.tolist() == [128, 256, 5, 254], str(report)
    assemble(text)


def test_branch_by_index(assemble: Any) -> None:
    body = """and.b32 %t3, %t0, 3; TABLE: .branchtargets A, B, C, D; brx.idx %t3, TABLE;
    A: mov.u32 %d, 10; bra.uni OUT; B: mov.u32 %d, 20; bra.uni OUT; C: mov.u32 %d, 30; bra.uni OUT;
    D: mov.u32 %d, 40; OUT: """
    report, out = run_body(body)
    assert report.ok and out.tolist() == [10, 20, 30, 40] * 8, str(report)
    assemble(HEADER + kernel("k", body, [], "u32"))


def test_two_views_of_one_buffer_alias() -> None:
    buffer = np.arange(64, dtype=np.float32)
    x, y = buffer[:32], buffer[32:]
    args = [x, y, np.float32(1), np.uint32(32)]
    assert run_ptx(HEADER + SAXPY, grid=1, block=32, args=args).ok
    assert (buffer[32:] == np.arange(32) * 2 + 32).all()


def test_lanes_of_one_load_may_go_to_different_buffers() -> None:
    text = (
        HEADER
        + """
.visible .entry pick(.param .u64 x, .param .u64 y, .param .u64 z)
{ .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<8>;
  ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b64 %rd5, [z]; mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; selp.b64 %rd3, %rd1, %rd2, %p;
  mul.wide.u32 %rd4, %r1, 4; add.s64 %rd3, %rd3, %rd4; ld.global.b32 %r3, [%rd3];
  add.s64 %rd5, %rd5, %rd4; st.global.b32 [%rd5], %r3; add.u32 %r3, %r3, 1;
  st.global.b32 [%rd3], %r3; ret; }
"""
    )
    x, y = np.arange(32, dtype=np.uint32), np.arange(100, 132, dtype=np.uint32)
    z = np.zeros(32, np.uint32)
    report = run_ptx(text, grid=1, block=32, args=[x, y, z])
    want = np.where(np.arange(32) % 2 == 0, np.arange(32), np.arange(100, 132))
    assert report.ok and (z == want).all(), str(report)
    assert (x[::2] == want[::2] + 1).all() and (x[1::2] == want[1::2] - 100).all()


WAITING = """.shared .align 8 .b64 one; .shared .align 8 .b64 two; mov.u32 %d, 1;
setp.eq.u32 %p0, %t0, 0;
@%p0 mbarrier.init.shared.b64 [one], 1; @%p0 mbarrier.init.shared.b64 [two], 1;
bar.warp.sync -1;
"""


def test_waiting_for_what_never_comes_is_a_deadlock() -> None:
    spin = "L: mbarrier.try_wait.parity.shared.b64 %p1, [one], 0; @!%p1 bra L;"
    report, _ = run_body(WAITING + spin)
    assert [e.code for e in report.errors] == ["deadlock"] and "mbarrier" in str(report.errors[0])


def test_two_halves_of_a_warp_in_deadlock() -> None:
    spin = """@%p0 bra M;
    L: mbarrier.try_wait.parity.shared.b64 %p1, [one], 0; @!%p1 bra L; bra OUT;
    M: mbarrier.try_wait.parity.shared.b64 %p1, [two], 0; @!%p1 bra M; OUT: """
    report, _ = run_body(WAITING + spin, max_instructions=1_000_000)
    assert [e.code for e in report.errors] in (["deadlock"], ["instruction-budget"]), str(report)


def test_a_poll_does_not_block() -> None:
    """One look at a barrier that only this thread will complete, then the arrival."""
    poll = """mbarrier.try_wait.parity.shared.b64 %p1, [one], 0; selp.u32 %d, 5, 1, %p1;
    @%p0 mbarrier.arrive.shared.b64 %u3, [one];
    L: mbarrier.test_wait.shared.b64 %p2, [one], %u3; @%p0 bra.uni M; mov.pred %p2, 1;
    M: @!%p2 bra L; """
    poll = poll.replace("L:", "@!%p0 mov.b64 %u3, 0; L:")
    report, out = run_body(WAITING + poll)
    assert report.ok and (out == 1).all(), str(report)


def test_an_interrupt_passes_through() -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_body("mov.u32 %d, 1;", progress=stop)


FLAG = """
.visible .entry flag(.param .u64 y)
.reqntid 64
{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .shared .align 4 .b32 data; .shared .align 4 .b32 set;
  ld.param.b64 %rd1, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 77; mov.u32 %r4, 1;
  setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.b32 [set], %r2;
  bar.sync 0;
  setp.eq.u32 %p2, %r1, 32; @!%p2 bra NEXT;
  st.shared.b32 [data], %r3; st.release.cta.shared.b32 [set], %r4;
NEXT: @!%p1 bra OUT;
SPIN: ld.acquire.cta.shared.b32 %r5, [set]; setp.eq.u32 %p3, %r5, 0; @%p3 bra SPIN;
  ld.shared.b32 %r6, [data]; st.global.b32 [%rd1], %r6;
OUT: ret; }
"""


def test_a_flag_orders_its_data_only_with_release_and_acquire(assemble: Any) -> None:
    y = np.zeros(1, np.uint32)
    for seed in (None, 1, 2):
        report = run_ptx(HEADER + FLAG, grid=1, block=64, args=[y], order_seed=seed)
        assert report.ok and y[0] == 77, str(report)
    weak = FLAG.replace(".release.cta", "").replace(".acquire.cta", "")
    report = run_ptx(HEADER + weak, grid=1, block=64, args=[y])
    assert {f.code for f in report.findings} == {"race"}
    assemble(HEADER + FLAG)


def test_shared_addresses_wrap_around(lanes: Any) -> None:
    """Base −4·lane, offset 124: below zero as a 32-bit number, inside the window as an address."""
    body = (
        ".shared .align 16 .b8 tile[128]; shl.b32 %t3, %t0, 2; mov.u32 %t4, tile;"
        "add.u32 %t5, %t4, %t3; st.shared.b32 [%t5], %a; bar.warp.sync -1;"
        "sub.u32 %t6, %t4, %t3; ld.shared.b32 %d, [%t6+124];"
    )
    a = np.arange(32, dtype=np.uint32)
    assert lanes(body, [a], ["u32"], "u32").tolist() == a[::-1].tolist()


@pytest.mark.parametrize(
    "wrong",
    [{"max_instructions": 0}, {"max_instructions": 1.5}, {"order_seed": -1}, {"hazards": "on"},
     {"numerics": "slow"}, {"ordering": "ptx"}, {"assumptions": "listed"}],
)  # fmt: skip
def test_options_are_checked_before_anything_runs(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(LaunchError, match=f"{name}: expected .*, got"):
        run_body("mov.u32 %d, 1;", **wrong)
