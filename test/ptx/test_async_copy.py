"""cp.async: sizes, zero fill, groups, arrival on an mbarrier, and the waits that order it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .conftest import HEADER

COPY = """
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n)
{{
 .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
 .shared .align 128 .b8 tile[2048]; .shared .align 8 .b64 bar;
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b32 %r9, [n];
 mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, {size};
 add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
 mov.u32 %r2, tile; mul.lo.u32 %r3, %r1, {size}; add.u32 %r2, %r2, %r3;
 mov.u32 %r12, bar; setp.eq.u32 %p2, %r1, 0;
 {body}
 {back}
 ret;
}}
"""
BACK = {
    4: "ld.shared.b32 %r4, [%r2]; st.global.b32 [%rd2], %r4;",
    8: "ld.shared.b64 %rd4, [%r2]; st.global.b64 [%rd2], %rd4;",
    16: "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2]; "
    "st.global.v4.b32 [%rd2], {%r4, %r5, %r6, %r7};",
}


def ptx(body: str, size: int = 16) -> str:
    return HEADER + COPY.format(body=body, size=size, back=BACK[size])


def run(body: str, size: int = 16, n: int = 0, threads: int = 64, **more: Any) -> Any:
    x = (np.arange(threads * size) % 251 + 1).astype(np.uint8)
    y = np.zeros_like(x)
    report: RunReport = run_ptx(
        ptx(body, size), grid=1, block=threads, args=[x, y, np.uint32(n)], **more
    )
    return report, x.reshape(threads, size), y.reshape(threads, size)


WAIT = "cp.async.commit_group; cp.async.wait_group 0;"
WHOLE = [
    (4, "cp.async.ca.shared.global [%r2], [%rd1], 4;"),
    (8, "cp.async.ca.shared.global.L2::64B [%r2], [%rd1], 8;"),
    (16, "cp.async.ca.shared.global [%r2], [%rd1], 16;"),
    (16, "cp.async.cg.shared.global.L2::128B [%r2], [%rd1], 16;"),
    (16, "cp.async.cg.shared.global [%r2], [%rd1], 0x10, 16;"),
]


@pytest.mark.parametrize("size,copy", WHOLE)
@pytest.mark.parametrize("wait", [WAIT, "cp.async.wait_all;"])
@pytest.mark.parametrize("seed", [None, 3])
def test_whole_copies(size: int, copy: str, wait: str, seed: int | None) -> None:
    report, x, y = run(copy + wait, size, order_seed=seed)
    assert report.ok and not report.findings, report
    assert (x == y).all()


@pytest.mark.parametrize("n", [0, 1, 5, 16])
def test_source_size_and_zero_fill(n: int) -> None:
    report, x, y = run("cp.async.cg.shared.global [%r2], [%rd1], 16, %r9;" + WAIT, n=n)
    assert report.ok, report
    want = x.copy()
    want[:, n:] = 0
    assert (y == want).all()


def test_source_size_above_the_copy() -> None:
    report, _, _ = run("cp.async.cg.shared.global [%r2], [%rd1], 16, %r9;" + WAIT, n=17)
    assert [e.code for e in report.errors] == ["copy-size"]


def test_nothing_is_read_where_the_size_is_zero() -> None:
    """Compilers point masked lanes anywhere."""
    body = (
        "setp.gt.u32 %p1, %r1, 40; selp.b64 %rd1, 0, %rd1, %p1; selp.b32 %r9, 0, 16, %p1;"
        "cp.async.cg.shared.global [%r2], [%rd1], 16, %r9;" + WAIT
    )
    report, x, y = run(body)
    assert report.ok, report
    assert (y[:41] == x[:41]).all() and not y[41:].any()


def test_ignored_source() -> None:
    body = "setp.gt.u32 %p1, %r1, 9; cp.async.cg.shared.global [%r2], [%rd1], 16, %p1;" + WAIT
    report, x, y = run(body)
    assert report.ok, report
    assert (y[:10] == x[:10]).all() and not y[10:].any()


TWO = (
    "cp.async.cg.shared.global [%r2], [%rd1], 16; cp.async.commit_group;"
    "cp.async.cg.shared.global [%r2+1024], [%rd1], 16; cp.async.commit_group;"
)


def test_older_group() -> None:
    assert run(TWO + "cp.async.wait_group 1;")[0].ok


@pytest.mark.parametrize(
    "body",
    [
        WHOLE[3][1],
        WHOLE[3][1] + "cp.async.wait_group 0;",  # the copy is in no group yet
        WHOLE[3][1] + "cp.async.commit_group; cp.async.wait_group 1;",
        TWO + "cp.async.wait_group 2;",
    ],
)
def test_missing_wait_is_found(body: str) -> None:
    report, _, _ = run(body)
    assert not report.ok
    assert {f.code for f in report.findings} == {"race"}
    assert "cp.async" in report.findings[0].first


SIGNAL = """
 @%p2 mbarrier.init.shared.b64 [%r12], 64; bar.sync 0;
 cp.async.cg.shared.global [%r2], [%rd1], 16;
 cp.async.mbarrier.arrive{noinc}.shared.b64 [%r12];
 {more}
WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r12], 0; @!%p1 bra WAIT;
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(
    "noinc,more", [(".noinc", ""), ("", "mbarrier.arrive.shared.b64 _, [%r12];")]
)
def test_arrival_when_the_copies_are_done(noinc: str, more: str, seed: int | None) -> None:
    report, x, y = run(SIGNAL.format(noinc=noinc, more=more), order_seed=seed)
    assert report.ok, report
    assert (x == y).all()


def test_without_noinc_the_count_stays_open() -> None:
    report, _, _ = run(SIGNAL.format(noinc="", more=""))
    assert [e.code for e in report.errors] == ["deadlock"]


def test_snippets_are_legal_ptx(assemble: Any) -> None:
    for size, copy in WHOLE:
        assemble(ptx(copy + WAIT, size))
    assemble(ptx("cp.async.cg.shared.global [%r2], [%rd1], 16, %r9; cp.async.wait_all;"))
    assemble(ptx("setp.gt.u32 %p1, %r1, 9; cp.async.cg.shared.global [%r2], [%rd1], 16, %p1;"))
    assemble(ptx(SIGNAL.format(noinc=".noinc", more="")))
    assemble(ptx(SIGNAL.format(noinc="", more="")))
