"""Bulk copies to several CTAs, reductions into shared memory, .ignore_oob; hints and policies.

Every program that is called legal also goes through ptxas.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .conftest import HEADER

HEAD = HEADER.replace("8.8", "9.2")
COMPLETE = "mbarrier::complete_tx::bytes"


def entry(body: str, head: str = HEAD) -> str:
    """Kernel k(x, y): %d0, %d1; rank in %r0, sm in %r1, mbarrier (count 1) in %r2; one thread."""
    return f"""{head}
.visible .entry k(.param .u64 x, .param .u64 y)
{{
.reg .pred %p<4>; .reg .b32 %r<24>; .reg .b16 %h<4>; .reg .b64 %d<8>;
.shared .align 128 .b8 sm[256]; .shared .align 8 .b64 bar;
ld.param.b64 %d0, [x]; ld.param.b64 %d1, [y];
mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, sm; mov.u32 %r2, bar;
mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
{body}
ret;
}}
"""


SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;\n"
OUT = """ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r1+16];
mul.wide.u32 %d2, %r0, 16; add.s64 %d2, %d1, %d2; st.global.v4.b32 [%d2], {%r10, %r11, %r12, %r13};
"""


def run(ptx: str, *args: Any, **sizes: Any) -> RunReport:
    return run_ptx(ptx, args=list(args), **{"grid": 1, "block": 1, **sizes})


# Multicast ----------------------------------------------------------------------------------------


def multicast(mask: int, hint: bool = False, wait: str = WAIT) -> str:
    words = (".L2::cache_hint", ", %d3") if hint else ("", "")
    return entry(
        SYNC + "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64; mov.b64 %d3, 0;\n"
        f"setp.ne.u32 %p0, %r0, 0; mov.b16 %h0, {mask}; {SYNC}"
        f"@!%p0 cp.async.bulk.shared::cluster.global.{COMPLETE}.multicast::cluster{words[0]}"
        f" [%r1], [%d0], 64, [%r2], %h0{words[1]};\n" + wait + OUT + SYNC
    )


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("hint", [False, True])
def test_multicast_reaches_every_cta_of_the_mask(hint: bool, seed: Any, assemble: Any) -> None:
    x, y = np.arange(16, dtype=np.uint32), np.zeros((4, 4), np.uint32)
    report = run(multicast(0xF, hint), x, y, grid=4, cluster=4, order_seed=seed)
    assert report.ok and not report.findings, report
    assert (y == x[4:8]).all()
    assemble(multicast(0xF, hint))


def test_multicast_counts_bytes_of_every_copy() -> None:
    x, y = np.arange(16, dtype=np.uint32), np.zeros((4, 4), np.uint32)
    report = run(multicast(0xF), x, y, grid=4, cluster=4)
    assert report.counters["global_to_shared"] == 4 * 64
    assert report.counters["global_to_shared_read"] == 64


@pytest.mark.parametrize("mask,code", [(0xB, "deadlock"), (0x1F, "cluster-rank"), (0, "cta-mask")])
def test_masks_that_leave_ctas_out(mask: int, code: str) -> None:
    x, y = np.arange(16, dtype=np.uint32), np.zeros((4, 4), np.uint32)
    report = run(multicast(mask), x, y, grid=4, cluster=4)
    assert [e.code for e in report.errors] == [code]


def test_reading_a_multicast_without_the_wait_is_a_race() -> None:
    x, y = np.arange(16, dtype=np.uint32), np.zeros((4, 4), np.uint32)
    report = run(multicast(0xF, wait=""), x, y, grid=4, cluster=4)
    assert "race" in {f.code for f in report.findings}


# Reductions into shared memory --------------------------------------------------------------------


def reduction(op: str, wait: str = WAIT, fence: str = "fence.proxy.async;") -> str:
    """Each of two CTAs reduces its 16 bytes into those of the other."""
    return entry(
        "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d0];\n"
        "st.shared.v4.b32 [%r1+16], {%r10, %r11, %r12, %r13};\n"
        "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d0+16];\n"
        f"st.shared.v4.b32 [%r1+32], {{%r10, %r11, %r12, %r13}}; {fence}\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;\n" + SYNC + "xor.b32 %r3, %r0, 1;"
        "mapa.shared::cluster.u32 %r4, %r1, %r3; mapa.shared::cluster.u32 %r5, %r2, %r3;\n"
        f"cp.reduce.async.bulk.shared::cluster.shared::cta.{COMPLETE}.{op}"
        " [%r4+16], [%r1+32], 16, [%r5];\n" + wait + OUT + SYNC
    )


REDUCTIONS = [
    ("add.u32", np.uint32, lambda a, b: a + b), ("add.s32", np.int32, lambda a, b: a + b),
    ("add.u64", np.uint64, lambda a, b: a + b), ("min.u32", np.uint32, np.minimum),
    ("min.s32", np.int32, np.minimum), ("max.u32", np.uint32, np.maximum),
    ("max.s32", np.int32, np.maximum), ("and.b32", np.uint32, np.bitwise_and),
    ("or.b32", np.uint32, np.bitwise_or), ("xor.b32", np.uint32, np.bitwise_xor),
    ("inc.u32", np.uint32, lambda a, b: np.where(a >= b, 0, a + 1)),
    ("dec.u32", np.uint32, lambda a, b: np.where((a == 0) | (a > b), b, a - 1)),
]  # fmt: skip


@pytest.mark.parametrize("op,dtype,oracle", REDUCTIONS, ids=[r[0] for r in REDUCTIONS])
def test_reduction_into_the_peer(op: str, dtype: Any, oracle: Any, assemble: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1 << 32, 8, np.uint32).view(dtype)
    half = len(x) // 2
    for seed in (None, 1):
        y = np.zeros(2 * half, dtype)
        report = run(reduction(op), x, y, grid=2, cluster=2, order_seed=seed)
        assert report.ok and not report.findings, report
        assert (y.reshape(2, half) == oracle(x[:half], x[half:]).astype(dtype)).all()
    assemble(reduction(op))


@pytest.mark.parametrize("op", ["add.s64", "min.u64", "and.u32", "inc.s32", "or.b64", "add.f16"])
def test_reductions_that_ptxas_refuses(op: str, assemble: Any) -> None:
    with pytest.raises(ValueError, match=r"expected \.|cp\.reduce"):
        run(reduction(op), np.zeros(8, "u4"), np.zeros(8, "u4"), grid=2, cluster=2)
    with pytest.raises(AssertionError, match=r"type|operation|Arguments"):
        assemble(reduction(op))


@pytest.mark.parametrize(
    "text,code",
    [
        (reduction("add.u32", wait=""), "race"),
        (reduction("add.u32", fence=""), "missing-proxy-fence"),
        (reduction("add.u32").replace("[%r5]", "[%r2]"), "foreign-mbarrier"),
    ],
)
def test_edges_of_a_reduction(text: str, code: str) -> None:
    x = np.zeros(8, np.uint32)
    report = run(text, x, x.copy(), grid=2, cluster=2)
    assert code in {f.code for f in report.findings} | {e.code for e in report.errors}, report


# .ignore_oob --------------------------------------------------------------------------------------


def ignoring(left: int, right: int, out: str = OUT, to: str = "%r1") -> str:
    return entry(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 48; fence.proxy.async;\n"
        f"mov.b32 %r6, {left}; sub.s64 %d0, %d0, 16;\n"
        f"cp.async.bulk.shared::cta.global.{COMPLETE}.ignore_oob"
        f" [{to}], [%d0], 48, %r6, {right}, [%r2];\n" + WAIT + out
    )


def test_bytes_out_of_bounds_are_ignored(assemble: Any) -> None:
    """48 bytes from 16 before the array, of which at most 15 may lie outside: one too few."""
    whole = np.arange(32, dtype=np.uint8)  # the array starts where a line of 16 does
    y = np.zeros(4, np.uint32)
    text = ignoring(15, 0).replace("sub.s64 %d0, %d0, 16;", "")
    report = run(text, np.arange(48, dtype=np.uint8), y)
    assert report.ok and (y.view(np.uint8) == np.arange(16, 32)).all(), report
    assert [e.code for e in run(ignoring(15, 0), whole, y).errors] == ["out-of-bounds"]
    assemble(text)
    # 39 bytes: the last 9 of 48 do not exist.
    end = ignoring(0, 9).replace("sub.s64 %d0, %d0, 16;", "")
    assert run(end, np.arange(39, dtype=np.uint8), y).ok
    assert not run(end.replace("%r6, 9", "%r6, 8"), np.arange(39, dtype=np.uint8), y).ok


def test_ignored_bytes_are_undefined() -> None:
    text = ignoring(4, 0).replace("sub.s64 %d0, %d0, 16;", "").replace("[%r1+16]", "[%r1]")
    report = run(text, np.arange(48, dtype=np.uint8), np.zeros(4, np.uint32))
    assert [f.code for f in report.findings] == ["undefined-read"]


def test_more_than_fifteen_bytes_cannot_be_ignored() -> None:
    text = ignoring(16, 0)
    report = run(text, np.arange(48, dtype=np.uint8), np.zeros(4, np.uint32))
    assert [e.code for e in report.errors] == ["ignore-oob"]


def test_only_shared_cta_ignores(assemble: Any) -> None:
    text = ignoring(4, 0).replace("shared::cta.global", "shared::cluster.global")
    report = run(text, np.arange(48, dtype=np.uint8), np.zeros(4, np.uint32))
    assert "ignore_oob" in str(report.incomplete[0]) and report.incomplete[0].line > 5
    with pytest.raises(AssertionError, match="ignore_oob"):
        assemble(text)


def test_shared_cta_is_the_own_cta() -> None:
    text = ignoring(0, 0, to="%r7").replace("sub.s64", "or.b32 %r7, %r1, 0x1000000; sub.s64")
    report = run(text, np.zeros(64, "u1"), np.zeros(4, "u4"), grid=2, cluster=2)
    assert [e.code for e in report.errors] == ["foreign-shared-memory"]


# The order of a copy (PTX ISA 9.3), the width of a mask (9.4) ----------------------------------


MASKED = ".multicast::cluster::16b"


def ordered(text: str, word: str, kind: str = ".b128") -> str:
    """Every bulk copy with `word`; a relaxed one needs its element."""
    text = re.sub(r"(cp\.async\.bulk)(\.[a-z:]+\.[a-z:]+)(\S+)", rf"\1{word}\2\3{kind}", text)
    return text.replace(".version 9.2", ".version 9.4")


@pytest.mark.parametrize(
    "word,kind", [(".weak", ""), (".relaxed.cluster", ".b128"), (".relaxed.sys", ".b128")]
)
def test_copies_that_name_their_order(word: str, kind: str, assemble: Any) -> None:
    text = ordered(multicast(0xF).replace(".multicast::cluster", MASKED), word, kind)
    x, y = np.arange(16, dtype=np.uint32), np.zeros((4, 4), np.uint32)
    report = run(text, x, y, grid=4, cluster=4)
    assert MASKED in text and word in text
    assert report.ok and not report.findings and (y == x[4:8]).all(), report
    assemble(text)


STORES = """mov.b32 %r9, {value}; st.shared.v4.b32 [%r1], {{%r9, %r9, %r9, %r9}};
fence.proxy.async.shared::cta;
cp.async.bulk{order}.global.shared::cta.bulk_group{kind} [%d1], [%r1], 16;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
"""
REDUCES = STORES.replace("cp.async.bulk{", "cp.reduce.async.bulk{").replace("{kind}", ".add.u32")


@pytest.mark.parametrize(
    ("body", "order", "kind", "races"),
    [
        (STORES, "", "", True),
        (STORES, ".weak", "", True),
        (STORES, ".relaxed.gpu", ".b128", False),
        (STORES, ".relaxed.cta", ".b128", True),
        (REDUCES, "", "", False),
        (REDUCES, ".relaxed.gpu", "", False),
        (REDUCES, ".relaxed.cta", "", True),
    ],
)
def test_relaxed_stores_of_two_ctas(
    body: str, order: str, kind: str, races: bool, assemble: Any
) -> None:
    """Strong accesses that nothing orders are no race if each is in the scope of the other."""
    head = HEAD.replace("9.2", "9.3")
    text = entry(
        body.format(order=order, kind=kind, value="%ctaid.x").replace("mov.b32 %r9", "mov.u32 %r9"),
        head,
    )
    y = np.zeros(4, np.uint32)
    report = run(text, np.zeros(4, np.uint32), y, grid=2)
    assert {f.code for f in report.findings} == ({"race"} if races else set()), report
    assert set(y.tolist()) <= {0, 1}
    assemble(text)


@pytest.mark.parametrize(
    "line",
    [
        "cp.async.bulk.relaxed.global.shared::cta.bulk_group.b128 [%d0], [%r1], 16;",
        "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group [%d0], [%r1], 16;",
        "cp.async.bulk.weak.global.shared::cta.bulk_group.b128 [%d0], [%r1], 16;",
        f"cp.async.bulk.relaxed.gpu.shared::cluster.shared::cta.{COMPLETE}.b128 "
        "[%r1], [%r1], 16, [%r2];",
        "cp.reduce.async.bulk.weak.global.shared::cta.bulk_group.add.u32 [%d0], [%r1], 16;",
        "cp.async.bulk.weak.shared::cta.bulk_group [%d0], [%r1], 16;",
    ],
)
def test_orders_that_do_not_exist(line: str, assemble: Any) -> None:
    text = entry(line, HEAD.replace("9.2", "9.3"))
    with pytest.raises(AssertionError, match="error"):
        assemble(text)
    try:
        report = run(text, np.zeros(4, "u4"), np.zeros(4, "u4"))
    except ValueError as error:
        assert "bulk" in str(error)
    else:
        assert report.incomplete


# Fences, hints, policies --------------------------------------------------------------------------

LEGAL = [
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
    "fence.acquire.sync_restrict::shared::cluster.cluster;",
    "fence.release.sync_restrict::shared::cta.cluster;",
    "createpolicy.fractional.L2::evict_last.b64 %d3, 0.5;",
    "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d3;",
    "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d3, [%d0], 256, 1024;",
    "createpolicy.cvt.L2.b64 %d3, 0x10F0000000000000;",
    "applypriority.global.L2::evict_normal [%d0], 128;",
    "prefetch.global.L1 [%d0]; prefetch.L2 [%d0]; prefetch.local.L1 [%d0];",
    "prefetch.global.L2::evict_last [%d0]; prefetchu.L1 [%d0];",
    "cp.async.bulk.prefetch.L2.global [%d0], 16;",
    "discard.global.L2 [%d0], 128; discard.L2 [%d0], 128;",
    "griddepcontrol.wait; nanosleep.u32 10;",
]
ILLEGAL = [
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cta.cluster;",
    "fence.proxy.async::generic.release.sync_restrict::shared::cluster.cluster;",
    "fence.acquire.sync_restrict::shared::cta.cluster;",
    "fence.mbarrier_init.cluster;",
    "applypriority.L2::evict_normal [%d0], 64;",
    "discard.global.L2 [%d0], 64;",
    "prefetch.shared.L1 [%r1];",
    "prefetch.local.L2::evict_last [%d0];",
    "cp.async.bulk.prefetch.L2.global.ignore_oob [%d0], 16, 4, 4;",
    "createpolicy.cvt.b64 %d3, 0;",
]


@pytest.mark.parametrize("text", LEGAL)
def test_hints_and_fences_run(text: str, assemble: Any) -> None:
    report = run(entry(text), np.zeros(64, np.uint32), np.zeros(4, np.uint32))
    assert report.ok, report
    assemble(entry(text))


@pytest.mark.parametrize("text", ILLEGAL)
def test_forms_that_ptxas_refuses_do_not_run(text: str, assemble: Any) -> None:
    with pytest.raises(AssertionError, match="error"):
        assemble(entry(text))
    try:
        report = run(entry(text), np.zeros(64, np.uint32), np.zeros(4, np.uint32))
    except ValueError as error:
        assert str(error)[0].isdigit()  # line and column
    else:
        assert report.incomplete and report.incomplete[0].line > 5


def test_discarded_bytes_are_undefined_until_written() -> None:
    read = "ld.global.b32 %r10, [%d0+4]; st.global.b32 [%d1], %r10;"
    for write, good in (("", False), ("st.global.b32 [%d0+4], 7;", True)):
        y = np.zeros(4, np.uint32)
        text = entry("discard.global.L2 [%d0], 128;" + write + read)
        report = run(text, np.zeros(32, np.uint32), y)
        assert report.ok == good and (y[0] == 7) == good


def test_discard_has_to_be_aligned() -> None:
    report = run(entry("discard.L2 [%d0+64], 128;"), np.zeros(64, "u4"), np.zeros(4, "u4"))
    assert [e.code for e in report.errors] == ["misaligned-address"]
