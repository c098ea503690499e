"""Tensor-core kernels of two CTAs (cta_group::2), and .ws; each assembles for sm_100a."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import Assumptions, TensorMap
from tcir.run import RunReport, Uninitialized, run_ptx

from .conftest import HEADER

ORDERS = (None, *range(6))
DESCRIPTOR = 1 << 16 | 1024 >> 4 << 32 | 1 << 46 | 2 << 61  # 128B swizzle, 1024-byte groups
N = 64

HEAD = """
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 out)
.reqntid 128
{
 .reg .pred %p<9>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .b32 %d<64>; .reg .b16 %h<4>;
 .shared .align 8 .b64 full; .shared .align 8 .b64 done; .shared .align 4 .b32 base;
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0;
 mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p6, %r30, 0;
 mov.u32 %r4, tiles; mov.u32 %r5, full; mov.u32 %r6, done; mov.u32 %r31, base;
 barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
 @!%p1 bra SET;
 tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [%r31], 128;
 tcgen05.relinquish_alloc_permit.cta_group::GROUP.sync.aligned;
 @!%p2 bra SET;
 mbarrier.init.shared::cta.b64 [%r5], 1; mbarrier.init.shared::cta.b64 [%r6], 1;
 fence.mbarrier_init.release.cluster;
SET:
 tcgen05.fence::before_thread_sync;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 tcgen05.fence::after_thread_sync;
 ld.shared.b32 %r3, [%r31];
 mov.u64 %rd1, map_a; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, map_b; cvta.param.u64 %rd2, %rd2;
 add.u32 %r7, %r4, 16384;
 and.b32 %r8, %r4, 0x3FFFF; shr.u32 %r8, %r8, 4; cvt.u64.u32 %rd3, %r8;
 or.b64 %rd3, %rd3, DESCRIPTOR; add.s64 %rd4, %rd3, 1024;
 mov.b32 %r9, IDESC; mov.u32 %r10, 0;
"""

PAIR = """
 @!%p2 bra FINISH;
 // both report to the barrier of the even CTA, which expects the bytes of both
 and.b32 %r11, %r5, 0xFEFFFFFF;
 @%p6 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], BYTES;
 mul.lo.u32 %r12, %r30, ROWS; mul.lo.u32 %r13, %r30, 32;
 LOAD [%r4], [%rd1, {%r10, %r12}], [%r11];
 LOAD [%r7], [%rd2, {%r10, %r13}], [%r11];
 @!%p6 bra FINISH;
WAIT_FULL: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], 0; @!%p3 bra WAIT_FULL;
 tcgen05.fence::after_thread_sync;
 setp.ne.u32 %p4, %r10, 0;
STEPS
 mov.u16 %h1, MASK;
 COMMIT [%r6], %h1;
"""

TAIL = """
FINISH:
WAIT_DONE: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], 0; @!%p4 bra WAIT_DONE;
 tcgen05.fence::after_thread_sync;
 shl.b32 %r20, %r2, 21; add.u32 %r20, %r20, %r3;
 tcgen05.ld.sync.aligned.32x32b.xCOUNT.b32 {REGISTERS}, [%r20];
 tcgen05.wait::ld.sync.aligned;
 ld.param.u64 %rd20, [out]; shl.b32 %r21, %r30, 7; add.u32 %r21, %r21, %r1;
 mul.wide.u32 %rd21, %r21, PITCH; add.s64 %rd20, %rd20, %rd21;
STORES
 tcgen05.fence::before_thread_sync;
 END
 tcgen05.fence::after_thread_sync;
 @%p1 tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 %r3, 128;
 ret;
}
"""
COMMIT = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
CLUSTER_END = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


def step(form: str, k: int) -> str:
    address = f" add.s64 %rd10, %rd3, {2 * k}; add.s64 %rd11, %rd4, {2 * k};\n"
    return address + f" {form} [%r3], %rd10, %rd11, %r9, {'%p4' if k == 0 else 1};"


def text(middle: str, columns: int, idesc: int, group: int, end: str) -> str:
    registers = ", ".join(f"%d{n}" for n in range(columns))
    stores = "\n".join(
        f" st.global.v4.b32 [%rd20+{4 * n}], {{%d{n}, %d{n + 1}, %d{n + 2}, %d{n + 3}}};"
        for n in range(0, columns, 4)
    )
    whole = HEADER + HEAD + middle + TAIL
    for name, value in (
        ("DESCRIPTOR", hex(DESCRIPTOR)), ("IDESC", hex(idesc)), ("GROUP", str(group)),
        ("COUNT", str(columns)), ("REGISTERS", registers), ("STORES", stores),
        ("PITCH", str(4 * columns)), ("END", end),
    ):  # fmt: skip
        whole = whole.replace(name, value)
    return whole


def descriptor(m: int, n: int) -> int:
    return 1 << 4 | n // 8 << 17 | m // 16 << 24


def pair(m: int = 256, end: str = CLUSTER_END, mask: int = 3, group: str = ".cta_group::2") -> str:
    half = m // 2
    load = (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" + group
    )
    steps = "\n".join(step("tcgen05.mma.cta_group::2.kind::f16", k) for k in range(4))
    middle = PAIR.replace("LOAD", load).replace("STEPS", steps).replace("MASK", str(mask))
    middle = middle.replace("COMMIT", COMMIT)
    middle = middle.replace("ROWS", str(half)).replace("BYTES", str((half + N // 2) * 128 * 2))
    return text(middle, N if m == 256 else N // 2, descriptor(m, N), 2, end)


def operands(m: int, n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(m + n)
    a = rng.integers(-9, 10, (m, 64)).astype(np.float16)
    b = rng.integers(-9, 10, (n, 64)).astype(np.float16)
    return a, b, a.astype(np.float32) @ b.astype(np.float32).T


def map_of(array: Any, rows: int) -> TensorMap:
    return TensorMap.tiled(
        array,
        dtype="f16",
        dims=(64, len(array)),
        strides_bytes=(128,),
        box=(64, rows),
        swizzle="128B",
    )


def launch(ptx: str, m: int = 256, seed: int | None = None) -> tuple[RunReport, Any, Any]:
    a, b, d = operands(m, N)
    out = np.zeros((256, N if m == 256 else N // 2), np.float32)
    report = run_ptx(
        ptx, grid=2, block=128, cluster=2, dynamic_smem=32768, order_seed=seed,
        args=[map_of(a, m // 2), map_of(b, N // 2), Uninitialized(out)],
    )  # fmt: skip
    if m == 128:  # lanes 64.. hold the right half of the columns
        out = np.concatenate([np.hstack(np.split(half, 2)) for half in np.split(out, 2)])
    return report, out, d


@pytest.mark.parametrize("seed", (None, 0, 1))
@pytest.mark.parametrize("m", [256, 128])
def test_pair(m: int, seed: int | None) -> None:
    report, out, d = launch(pair(m), m, seed)
    assert report.ok and not report.findings, str(report)
    np.testing.assert_array_equal(out, d)


def codes(ptx: str) -> set[str]:
    found: set[str] = set()
    for seed in ORDERS:
        report, _, _ = launch(ptx, seed=seed)
        found |= {f.code for f in report.findings} | {e.code for e in report.errors}
        found |= {i.why for i in report.incomplete}
    return found


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (pair(end="bar.sync 0;"), "pair-dealloc"),
        (pair(end=""), "race"),
        (pair(mask=1), "deadlock"),
        (pair(group=""), "foreign-mbarrier"),
        (pair().replace("and.b32 %r11, %r5, 0xFEFFFFFF", "mov.b32 %r11, %r5"), "deadlock"),
        (pair().replace(" @!%p6 bra FINISH;\n", ""), "deadlock"),
        (
            pair().replace("tcgen05.alloc.cta_group::2", "tcgen05.alloc.cta_group::1"),
            "cta-group-mixed",
        ),
    ],
)
def test_wrong_pairs(wrong: str, code: str) -> None:
    assert wrong != pair() and code in codes(wrong)


def test_a_pair_needs_a_cluster() -> None:
    a, b, _ = operands(256, N)
    out = np.zeros((256, N), np.float32)
    report = run_ptx(
        pair(),
        grid=2,
        block=128,
        dynamic_smem=32768,
        args=[map_of(a, 128), map_of(b, N // 2), out],
    )
    assert [e.code for e in report.errors] == ["cta-pair"]


# --- .ws -----------------------------------------------------------------------------------------

ALONE = """
 @!%p2 bra FINISH;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], BYTES;
 LOAD [%r4], [%rd1, {%r10, %r10}], [%r5];
 LOAD [%r7], [%rd2, {%r10, %r10}], [%r5];
WAIT_FULL: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], 0; @!%p3 bra WAIT_FULL;
 tcgen05.fence::after_thread_sync;
 setp.ne.u32 %p4, %r10, 0; mov.b64 %rd30, COLUMNS;
STEPS
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
"""


def stationary(m: int, n: int, tail: str = "", columns: str = "0", shift: int = 0) -> str:
    """`shift`: rows of B beyond N; then the descriptor announces a shift of up to 8."""
    load = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
    form = "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill"
    steps = "\n".join(step(form, k).removesuffix(";") + tail + ";" for k in range(4))
    middle = ALONE.replace("LOAD", load).replace("STEPS", steps).replace("COLUMNS", columns)
    middle = middle.replace("BYTES", str((m + n + shift) * 128))
    bits = descriptor(m, n) | ((1 << 30) if shift else 0)
    return text(middle, n * m // 128, bits, 1, "bar.sync 0;")


@pytest.mark.parametrize(("m", "n"), [(32, 64), (32, 128), (64, 64), (128, 64)])
def test_weight_stationary(m: int, n: int) -> None:
    a, b, d = operands(m, n)
    columns = n * m // 128
    out = np.zeros((128, columns), np.float32)
    for tail in ("", ", %rd30"):
        report = run_ptx(
            stationary(m, n, tail),
            grid=1,
            block=128,
            dynamic_smem=40960,
            args=[map_of(a, m), map_of(b, n), Uninitialized(out)],
        )
        assert report.ok and not report.findings, str(report)
        np.testing.assert_array_equal(np.hstack(np.split(out, 128 // m)), d)
        assert report.counters["mma_untimed"] == report.counters["mma"] == 4


# PTX ISA 9.7.16.4.3, examples 2 to 4: M, start counts, first spans, skip, use, shift -> each bank's
# mask, its lowest column first.
MASKS = [
    (128, 0, 0, 2, 3, 0, ["0000111"]),
    (64, 0, 0b01, 2, 3, 0, ["1110000", "0000111"]),
    (32, 0x01020100, 0b0011, 2, 3, 2, ["1110000", "1100001", "0011100", "0001110"]),
]


def zero_mask(starts: int, firsts: int, skip: int, use: int, shift: int) -> str:
    return hex(starts | firsts << 32 | 1 << 39 | skip << 40 | use << 48 | shift << 56)


@pytest.mark.parametrize(("m", "starts", "firsts", "skip", "use", "shift", "patterns"), MASKS)
def test_zero_columns(
    m: int, starts: int, firsts: int, skip: int, use: int, shift: int, patterns: list[str]
) -> None:
    """Zeroed columns of D are 0 whatever B holds there, even where nothing was written."""
    n = 64
    a, b, _ = operands(m, n + shift)
    columns = n * m // 128
    out = np.zeros((128, columns), np.float32)
    text = stationary(m, n, ", %rd30", zero_mask(starts, firsts, skip, use, shift), shift)
    report = run_ptx(
        text,
        grid=1,
        block=128,
        dynamic_smem=40960,
        args=[map_of(a, m), map_of(b, n + shift), Uninitialized(out)],
    )
    assert report.ok and not report.findings, str(report)
    bank = n * m // 128
    zeroed = np.array([c == "1" for p in patterns for c in (p * 10)[:bank]])
    want = a.astype(np.float32) @ b[shift:].astype(np.float32).T
    want[:, zeroed] = 0
    np.testing.assert_array_equal(np.hstack(np.split(out, 128 // m)), want)
    # The words of PTX's table say the opposite of its examples: the spans' roles change.
    other = run_ptx(
        text,
        grid=1,
        block=128,
        dynamic_smem=40960,
        args=[map_of(a, m), map_of(b, n + shift), out],
        assumptions=Assumptions(zero_column_spans="use-is-zero"),
    )
    assert other.ok and (np.hstack(np.split(out, 128 // m)) != want).any()


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (zero_mask(4, 0, 2, 3, 0), "start count 0"),
        (zero_mask(0, 0, 2, 3, 9), "at most 8 for M = 32 and a max shift of 8"),
        (hex(1 << 36), "bits 38..36"),
        (hex(1 << 62), "bits 63..62"),
    ],
)
def test_wrong_zero_columns(mask: str, words: str) -> None:
    a, b, _ = operands(32, 66)
    report = run_ptx(
        stationary(32, 64, ", %rd30", mask, 2),
        grid=1,
        block=128,
        dynamic_smem=40960,
        args=[map_of(a, 32), map_of(b, 66), np.zeros((128, 16), np.float32)],
    )
    assert [e.code for e in report.errors] == ["bad-descriptor"] and words in str(report.errors[0])


def test_a_sparse_a() -> None:
    """Every row keeps the lower two of four: selectors 0x4 in all of a column of metadata."""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-9, 10, (rows, 64)).astype(np.float16) for rows in (128, 64))
    out = np.zeros((128, 64), np.float32)
    report = run_ptx(
        sparse(),
        grid=1,
        block=128,
        dynamic_smem=40960,
        args=[map_of(a, 128), map_of(b, 64), Uninitialized(out)],
    )
    assert report.ok and not report.findings, str(report)
    kept = b[:, :32].reshape(64, 8, 4)[:, :, :2].reshape(64, 16)
    np.testing.assert_array_equal(out, a[:, :16].astype(np.float32) @ kept.astype(np.float32).T)


def sparse() -> str:
    """One instruction, K = 32, metadata in column 64."""
    whole = stationary(128, 64).replace(hex(descriptor(128, 64)), hex(descriptor(128, 64) | 4))
    lines = [s for s in whole.splitlines() if "tcgen05.mma.ws" not in s or s.endswith("%p4;")]
    whole = (
        "\n".join(lines)
        .replace(
            "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill",
            "tcgen05.mma.sp.cta_group::1.kind::f16",
        )
        .replace("%rd11, %r9", "%rd11, [%r40], %r9")
    )
    store = """ add.u32 %r40, %r3, 64; shl.b32 %r41, %r2, 21; add.u32 %r41, %r41, %r40;
 mov.b32 %r42, 0x44444444; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r41], {%r42};
 tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @!%p2 bra FINISH;
"""
    return whole.replace(" @!%p2 bra FINISH;\n", store, 1)


def test_they_assemble(assemble: Any) -> None:
    for ptx in (pair(), pair(128), sparse(), stationary(32, 64), stationary(64, 64, ", %rd30")):
        assert assemble(ptx)
