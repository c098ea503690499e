"""Block-scaled and narrow mma from PTX, against numpy and ml_dtypes; each assembles for sm_100a."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.run import Uninitialized, run_ptx

from .conftest import HEADER

M, N = 128, 64
NO_SWIZZLE = 128 >> 4 << 32 | 1 << 46
DESCRIPTOR_A, DESCRIPTOR_B = NO_SWIZZLE | 128 * 16 >> 4 << 16, NO_SWIZZLE | 64 * 16 >> 4 << 16

KERNEL = """
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 sfa, .param .u64 sfb, .param .u64 out)
.reqntid 128
{
 .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .b32 %d<64>;
 .shared .align 1024 .b8 tile_a[4096]; .shared .align 1024 .b8 tile_b[2048];
 .shared .align 512 .b8 scales_a[512]; .shared .align 512 .b8 scales_b[512];
 .shared .align 8 .b64 done; .shared .align 4 .b32 base;
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0;
 mov.u32 %r4, tile_a; mov.u32 %r5, tile_b; mov.u32 %r6, done; mov.u32 %r7, scales_a;
 mov.u32 %r8, scales_b;
 ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [sfa]; ld.param.u64 %rd4, [sfb];
 mul.wide.u32 %rd5, %r1, 32; add.s64 %rd1, %rd1, %rd5; mad.lo.u32 %r9, %r1, 32, %r4;
 ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd1];
 ld.global.v4.b32 {%r24, %r25, %r26, %r27}, [%rd1+16];
 st.shared.v4.b32 [%r9], {%r20, %r21, %r22, %r23};
 st.shared.v4.b32 [%r9+16], {%r24, %r25, %r26, %r27};
 mul.wide.u32 %rd5, %r1, 16; add.s64 %rd2, %rd2, %rd5; mad.lo.u32 %r9, %r1, 16, %r5;
 ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd2];
 st.shared.v4.b32 [%r9], {%r20, %r21, %r22, %r23};
 mul.wide.u32 %rd5, %r1, 4; add.s64 %rd3, %rd3, %rd5; add.s64 %rd4, %rd4, %rd5;
 mad.lo.u32 %r9, %r1, 4, %r7; ld.global.b32 %r20, [%rd3]; st.shared.b32 [%r9], %r20;
 mad.lo.u32 %r9, %r1, 4, %r8; ld.global.b32 %r20, [%rd4]; st.shared.b32 [%r9], %r20;
 fence.proxy.async.shared::cta;
 @!%p1 bra SET;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 128;
 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
 @!%p2 bra SET;
 mbarrier.init.shared::cta.b64 [done], 1;
 fence.mbarrier_init.release.cluster;
SET:
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 ld.shared.b32 %r3, [base];
 shr.u32 %r9, %r4, 4; cvt.u64.u32 %rd6, %r9; or.b64 %rd6, %rd6, DESCRIPTOR_A;
 shr.u32 %r9, %r5, 4; cvt.u64.u32 %rd7, %r9; or.b64 %rd7, %rd7, DESCRIPTOR_B;
 shr.u32 %r9, %r7, 4; cvt.u64.u32 %rd8, %r9; or.b64 %rd8, %rd8, DESCRIPTOR_S;
 shr.u32 %r9, %r8, 4; cvt.u64.u32 %rd9, %r9; or.b64 %rd9, %rd9, DESCRIPTOR_S;
 add.u32 %r10, %r3, 64; add.u32 %r11, %r3, 72; add.u32 %r12, %r3, 80; mov.b32 %r13, IDESC;
 @!%p2 bra FINISH;
BODY
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
FINISH:
WAIT_DONE: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], 0; @!%p4 bra WAIT_DONE;
 tcgen05.fence::after_thread_sync;
 shl.b32 %r20, %r2, 21; add.u32 %r20, %r20, %r3;
 tcgen05.ld.sync.aligned.32x32b.x64.b32 {REGISTERS}, [%r20];
 tcgen05.wait::ld.sync.aligned;
 ld.param.u64 %rd20, [out]; mul.wide.u32 %rd21, %r1, 256; add.s64 %rd20, %rd20, %rd21;
STORES
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128;
 ret;
}
"""
SCALES = """ tcgen05.cp.cta_group::1.32x128b.warpx4 [%r10], %rd8;
 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r11], %rd9;
"""


def mma(kind: str, qualifier: str, rest: str = "0", a: str = "%rd6") -> str:
    return (
        f" tcgen05.mma.cta_group::1.kind::{kind}.block_scale{qualifier} [%r3], {a}, %rd7, %r13,"
        f" [%r10], [%r11], {rest};\n"
    )


def whole(body: str, idesc: int) -> str:
    stores = "\n".join(
        f" st.global.v4.b32 [%rd20+{4 * n}], {{%d{n}, %d{n + 1}, %d{n + 2}, %d{n + 3}}};"
        for n in range(0, 64, 4)
    )
    text = HEADER + KERNEL.replace("BODY", body).replace("STORES", stores)
    for name, value in (
        ("IDESC", idesc),
        ("DESCRIPTOR_A", DESCRIPTOR_A),
        ("DESCRIPTOR_B", DESCRIPTOR_B),
        ("DESCRIPTOR_S", NO_SWIZZLE),
    ):
        text = text.replace(name, hex(value))
    return text.replace("REGISTERS", ", ".join(f"%d{n}" for n in range(64)))


def units(rows: np.ndarray) -> np.ndarray:
    """Bytes [rows, 32] as two columns of 16-byte units."""
    return np.ascontiguousarray(rows.reshape(len(rows), 2, 16).transpose(1, 0, 2)).reshape(-1)


def scale_block(codes: np.ndarray) -> np.ndarray:
    full = np.full((128, 4), 0x7F, np.uint8)
    full[: len(codes), : codes.shape[1]] = codes
    return np.ascontiguousarray(full.reshape(4, 32, 4).transpose(1, 0, 2)).reshape(-1)


def numbers(seed: int, dtype: Any, shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.array([0.5, 1, 1.5, 2, 3, 4, -0.5, -1, -1.5, -2, -6], np.float32)
    return rng.choice(values, shape).astype(dtype)


def problem(kind: str, scales: int, scale_type: Any) -> tuple[list[np.ndarray], np.ndarray, int]:
    fp4 = kind != "mxf8f6f4"
    dtype: Any = ml_dtypes.float4_e2m1fn if fp4 else ml_dtypes.float8_e4m3fn
    k = 64 if fp4 else 32
    a, b = numbers(1, dtype, (M, k)), numbers(2, dtype, (N, k))
    rng = np.random.default_rng(3)
    factors = [rng.choice([0.25, 0.5, 1, 2], (r, scales)).astype(scale_type) for r in (M, N)]
    values = [
        x.astype(np.float64) * np.repeat(s.astype(np.float64), k // scales, axis=1)
        for x, s in zip((a, b), factors)
    ]
    stored = [x.view(np.uint8) for x in (a, b)]
    if fp4:
        stored = [x[:, ::2] | x[:, 1::2] << 4 for x in stored]
    ue8m0 = scale_type == ml_dtypes.float8_e8m0fnu
    idesc = (9 << 7 if fp4 else 0) | N // 8 << 17 | ue8m0 << 23 | 1 << 27
    args = [units(x) for x in stored] + [scale_block(s.view(np.uint8)) for s in factors]
    return args, (values[0] @ values[1].T).astype(np.float32), idesc


UE8M0, UE4M3 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
FORMS = [
    ("mxf8f6f4", "", 1, UE8M0),
    ("mxf8f6f4", ".scale_vec::1X", 1, UE8M0),
    ("mxf8f6f4", ".block32", 1, UE8M0),
    ("mxf4", "", 2, UE8M0),
    ("mxf4", ".scale_vec::2X.collector::a::discard", 2, UE8M0),
    ("mxf4", ".block32", 2, UE8M0),
    ("mxf4nvf4", ".scale_vec::2X", 2, UE8M0),
    ("mxf4nvf4", ".block32", 2, UE8M0),
    ("mxf4nvf4", ".scale_vec::4X", 4, UE8M0),
    ("mxf4nvf4", ".block16", 4, UE4M3),
]


@pytest.mark.parametrize(("kind", "qualifier", "scales", "scale_type"), FORMS)
def test_block_scaled(
    kind: str, qualifier: str, scales: int, scale_type: Any, assemble: Any
) -> None:
    args, want, idesc = problem(kind, scales, scale_type)
    text = whole(SCALES + mma(kind, qualifier) + mma(kind, qualifier, "1"), idesc)
    for seed in (None, 1):
        out = np.zeros((M, N), np.float32)
        report = run_ptx(text, grid=1, block=128, args=[*args, Uninitialized(out)], order_seed=seed)
        assert report.ok and not report.findings, str(report)
        np.testing.assert_array_equal(out, 2 * want)
    assemble(text)


def test_a_from_tensor_memory(assemble: Any) -> None:
    args, want, idesc = problem("mxf4nvf4", 4, UE4M3)
    body = SCALES + " tcgen05.cp.cta_group::1.128x256b [%r12], %rd6;\n"
    text = whole(body + mma("mxf4nvf4", ".block16", a="[%r12]"), idesc)
    out = np.zeros((M, N), np.float32)
    report = run_ptx(text, grid=1, block=128, args=[*args, Uninitialized(out)])
    assert report.ok and not report.findings, str(report)
    np.testing.assert_array_equal(out, want)
    assemble(text)


def test_scales_that_nobody_copied_are_noticed() -> None:
    args, _, idesc = problem("mxf4", 2, UE8M0)
    for body in (
        mma("mxf4", ""),
        SCALES.splitlines()[0] + "\n" + mma("mxf4", ""),
        mma("mxf4", "") + SCALES,
    ):
        report = run_ptx(
            whole(body, idesc), grid=1, block=128, args=[*args, np.zeros((M, N), np.float32)]
        )
        assert "undefined-read" in {f.code for f in report.findings}, str(report)


@pytest.mark.parametrize("source", ["b4x16_p64", "b6x16_p32"])
@pytest.mark.parametrize("through_tmem", [True, False])
def test_narrow_operands(source: str, through_tmem: bool, assemble: Any) -> None:
    bits = int(source[1])
    dtype: Any = {4: ml_dtypes.float4_e2m1fn, 6: ml_dtypes.float6_e3m2fn}[bits]
    a, b = numbers(4, dtype, (M, 32)), numbers(5, dtype, (N, 32))

    def padded(x: np.ndarray) -> np.ndarray:
        out = np.full((len(x), 2, 16), 0xEE, np.uint8)
        for row, unit in np.ndindex(len(x), 2):
            codes = x[row, 16 * unit : 16 * unit + 16].view(np.uint8)
            number = sum(int(c) << (bits * i) for i, c in enumerate(codes))
            out[row, unit, : 2 * bits] = list(number.to_bytes(2 * bits, "little"))
        return units(out.reshape(len(x), 32))

    code = {4: 5, 6: 4}[bits]
    idesc = 1 << 4 | code << 7 | code << 10 | N // 8 << 17 | M // 16 << 24
    where = "%rd6"
    body = ""
    if through_tmem:
        body, where = f" tcgen05.cp.cta_group::1.128x256b.b8x16.{source} [%r12], %rd6;\n", "[%r12]"
    body += f" tcgen05.mma.cta_group::1.kind::f8f6f4 [%r3], {where}, %rd7, %r13, 0;\n"
    text = whole(body, idesc)
    out = np.zeros((M, N), np.float32)
    blank = np.zeros(512, np.uint8)
    report = run_ptx(
        text, grid=1, block=128, args=[padded(a), padded(b), blank, blank, Uninitialized(out)]
    )
    assert report.ok and not report.findings, str(report)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)
    assemble(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (mma("mxf4nvf4", ""), "scale_vec: expected 2X or 4X, got none"),
        (mma("mxf4", ".scale_vec::4X"), "scale_vec: expected 2X, got 4X"),
        (mma("mxf8f6f4", ".block16"), "block size: expected .block32, got .block16"),
        (mma("mxf4", ".scale_vec::2X.block32"), "expected one of .scale_vec::2X and .block32"),
        (mma("f16", ""), "block-scaled kind"),
        (mma("mxf4", ".ashift", a="[%r12]"), ".ashift cannot go with .block_scale"),
        (mma("mxf4", "", rest="0, 1"), "expected 7 operands"),
        (
            " tcgen05.mma.cta_group::1.kind::mxf4 [%r3], %rd6, %rd7, %r13, 0;\n",
            "needs .block_scale",
        ),
        (" tcgen05.cp.cta_group::1.128x256b.b8x16 [%r12], %rd6;\n", "expected .b8x16 and one of"),
        (" tcgen05.cp.cta_group::1.128x256b.b4x16_p64 [%r12], %rd6;\n", "expected .b8x16 and one"),
    ],
)
def test_malformed_forms(line: str, message: str, assemble: Any) -> None:
    text = whole(line, 0)
    with pytest.raises(PtxSyntaxError) as caught:
        run_ptx(text, grid=1, block=128, args=[np.zeros(4096, np.uint8)] * 5)
    assert message in str(caught.value)
    with pytest.raises(AssertionError):  # ptxas refuses it, too
        assemble(text)
