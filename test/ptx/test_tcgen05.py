"""Tensor-core kernels written by hand in PTX, against numpy; each assembles for sm_100a."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tcir.machine import TensorMap
from tcir.run import Uninitialized, run_ptx

from .conftest import HEADER

F16_128x64 = 1 << 4 | 64 // 8 << 17 | 128 // 16 << 24  # f32 D, f16 A and B, both K-major
DESCRIPTOR = 1 << 16 | 1024 >> 4 << 32 | 1 << 46 | 2 << 61  # 128B swizzle, 1024-byte groups
LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"

PROLOGUE = """
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 out)
.reqntid 128
{
 .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .b32 %d<64>;
 .shared .align 8 .b64 full; .shared .align 8 .b64 done; .shared .align 4 .b32 base;
 mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0;
 @!%p1 bra SET;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 128;
 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
 @!%p2 bra SET;
 mbarrier.init.shared::cta.b64 [full], 1; mbarrier.init.shared::cta.b64 [done], 1;
 fence.mbarrier_init.release.cluster;
SET:
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 ld.shared.b32 %r3, [base];
 mov.u64 %rd1, map_a; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, map_b; cvta.param.u64 %rd2, %rd2;
 mov.u32 %r4, tiles; mov.u32 %r5, full; mov.u32 %r6, done; add.u32 %r7, %r4, 16384;
 shr.u32 %r8, %r4, 4; cvt.u64.u32 %rd3, %r8; or.b64 %rd3, %rd3, DESCRIPTOR;
 add.s64 %rd4, %rd3, 1024;
 mov.b32 %r9, IDESC; mov.u32 %r10, 0;
 @!%p2 bra FINISH;
"""

EPILOGUE = """
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


def whole(middle: str) -> str:
    registers = ", ".join(f"%d{n}" for n in range(64))
    stores = "\n".join(
        f" st.global.v4.b32 [%rd20+{4 * n}], {{%d{n}, %d{n + 1}, %d{n + 2}, %d{n + 3}}};"
        for n in range(0, 64, 4)
    )
    text = HEADER + PROLOGUE + middle + EPILOGUE
    text = text.replace("DESCRIPTOR", hex(DESCRIPTOR)).replace("IDESC", hex(F16_128x64))
    return text.replace("REGISTERS", registers).replace("STORES", stores)


WAIT_FULL = (
    "WAIT_FULL: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], 0; @!%p3 bra WAIT_FULL;\n"
)
COMMIT = " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];\n"


def gemm() -> str:
    """D[128, 64] = A[128, 64] · B[64, 64]ᵀ: four instructions of K = 16."""
    middle = f"""
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 24576;
 {LOAD} [%r4], [%rd1, {{%r10, %r10}}], [%r5];
 {LOAD} [%r7], [%rd2, {{%r10, %r10}}], [%r5];
 {WAIT_FULL}
 setp.ne.u32 %p5, %r10, 0;
"""
    for k in range(4):
        middle += f"""
 add.s64 %rd10, %rd3, {2 * k}; add.s64 %rd11, %rd4, {2 * k};
 tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd10, %rd11, %r9, {"%p5" if k == 0 else 1};
"""
    return whole(middle + COMMIT)


def shifted(ashift: str = ".ashift", mask: str = "") -> str:
    """D = A·W0ᵀ + shift(A)·W1ᵀ + shift(shift(A))·W2ᵀ, A copied to TMEM columns 64..95."""
    middle = f"""
 add.u32 %r11, %r4, 24576; add.u32 %r12, %r4, 32768; mov.u32 %r13, 64; mov.u32 %r14, 128;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 40960;
 {LOAD} [%r4], [%rd1, {{%r10, %r10}}], [%r5];
 {LOAD} [%r7], [%rd2, {{%r10, %r10}}], [%r5];
 {LOAD} [%r11], [%rd2, {{%r10, %r13}}], [%r5];
 {LOAD} [%r12], [%rd2, {{%r10, %r14}}], [%r5];
 {WAIT_FULL}
 add.u32 %r15, %r3, 64;
 mov.b32 %r16, 0x80000000; mov.b32 %r17, 0;
"""
    for k in range(4):
        middle += f"""
 add.s64 %rd10, %rd3, {2 * k};
 tcgen05.cp.cta_group::1.128x256b [%r15+{8 * k}], %rd10;
"""
    for tap in range(3):
        for k in range(4):
            middle += f"""
 add.s64 %rd11, %rd4, {512 * tap + 2 * k};
 tcgen05.mma.cta_group::1.kind::f16{ashift if tap < 2 else ""}.collector::a::lastuse
   [%r3], [%r15+{8 * k}], %rd11, %r9, {mask if tap else ""} {int(tap + k > 0)};
"""
    return whole(middle + COMMIT)


def operands(rows_b: int, exact: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(7)
    if exact:
        a = (np.arange(128 * 64).reshape(128, 64) * 7 % 23 - 11).astype(np.float16)
        b = (np.arange(rows_b * 64).reshape(rows_b, 64) * 5 % 19 - 9).astype(np.float16)
    else:
        a = rng.standard_normal((128, 64)).astype(np.float16)
        b = rng.standard_normal((rows_b, 64)).astype(np.float16)
    maps = [
        TensorMap.tiled(x, dtype="f16", dims=(64, len(x)), strides_bytes=(128,),
                        box=(64, min(rows, len(x))),
                        swizzle="128B")
        for x, rows in ((a, 128), (b, 64))
    ]  # fmt: skip
    return a, b, maps, np.zeros((128, 64), np.float32)


def launch(text: str, maps: Any, out: np.ndarray, smem: int, **more: Any) -> Any:
    return run_ptx(
        text, grid=1, block=128, dynamic_smem=smem, args=[*maps, Uninitialized(out)], **more
    )


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_gemm(seed: int | None, assemble: Any) -> None:
    a, b, maps, out = operands(64, exact=True)
    report = launch(gemm(), maps, out, 24576, order_seed=seed)
    assert report.ok and not report.findings, str(report)
    assert (out == a.astype(np.float32) @ b.astype(np.float32).T).all()
    assert report.as_dict()["ok"] and "ok:" in str(report)
    if seed is None:
        assemble(gemm())


def test_gemm_on_random_numbers_stays_within_its_bound() -> None:
    a, b, maps, out = operands(64, exact=False)
    report = launch(gemm(), maps, out, 24576)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    # Four fused sums, each truncated to 24 bits below its largest term (hardware: window 25).
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T
    assert report.ok and (np.abs(out - want) <= scale * 2.0**-20).all()


def shift_rows(a: np.ndarray) -> np.ndarray:
    """Row r gets row r + 1, but the last of each 32 keeps its own."""
    out = np.roll(a, -1, axis=0)
    out[31::32] = a[31::32]
    return out


@pytest.mark.parametrize("seed", [None, 3])
def test_taps_by_ashift(seed: int | None, assemble: Any) -> None:
    a, b, maps, out = operands(192, exact=True)
    report = launch(shifted(), maps, out, 40960, order_seed=seed)
    f = a.astype(np.float32)
    taps = [b[64 * s : 64 * s + 64].astype(np.float32).T for s in range(3)]
    want = f @ taps[0] + shift_rows(f) @ taps[1] + shift_rows(shift_rows(f)) @ taps[2]
    assert report.ok and (out == want).all(), str(report)
    if seed is None:
        assemble(shifted())


def test_a_dropped_ashift_gives_other_numbers() -> None:
    a, b, maps, out = operands(192, exact=True)
    report = launch(shifted(ashift=""), maps, out, 40960)
    f = a.astype(np.float32)
    taps = [b[64 * s : 64 * s + 64].astype(np.float32).T for s in range(3)]
    assert report.ok and (out == f @ (taps[0] + taps[1] + taps[2])).all(), str(report)


def test_masked_lanes_keep_their_accumulator(assemble: Any) -> None:
    a, b, maps, out = operands(192, exact=True)
    text = shifted(mask="{%r16, %r17, %r16, %r17},")  # lanes 31 and 95 off in taps 1 and 2
    report = launch(text, maps, out, 40960)
    f = a.astype(np.float32)
    taps = [b[64 * s : 64 * s + 64].astype(np.float32).T for s in range(3)]
    rest = shift_rows(f) @ taps[1] + shift_rows(shift_rows(f)) @ taps[2]
    rest[[31, 95]] = 0
    assert report.ok and (out == f @ taps[0] + rest).all(), str(report)
    assemble(text)


# --- each omission is noticed ------------------------------------------------------------------


def noticed(text: str, maps: Any, out: np.ndarray, smem: int, want: np.ndarray) -> bool:
    for seed in (None, *range(9)):
        out[:] = 0
        report = launch(
            text, maps, out, smem, order_seed=seed, max_instructions=200_000, ordering="isa"
        )
        if not report.ok or (out != want).any():
            return True
    return False


OMISSIONS = [
    (WAIT_FULL, ""),
    (COMMIT, ""),
    (" tcgen05.wait::ld.sync.aligned;", ""),
    (" bar.sync 0;\n tcgen05.fence::after_thread_sync;\n ld", " ld"),
    ("WAIT_DONE: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], 0; @!%p4 bra WAIT_DONE;", ""),
    ("[%r5], 24576;", "[%r5], 24560;"),
    ("[%r5], 24576;", "[%r5], 24592;"),
    (" @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128;", ""),
    ("%p3, [%r5], 0;", "%p3, [%r5], 1;"),
    (" @!%p2 bra FINISH;", " @!%p1 bra FINISH;"),
    ("shl.b32 %r20, %r2, 21;", "shl.b32 %r20, %r2, 20;"),
]


@pytest.mark.parametrize("old,new", OMISSIONS, ids=range(len(OMISSIONS)))
def test_omissions_are_noticed(old: str, new: str) -> None:
    a, b, maps, out = operands(64, exact=True)
    want = a.astype(np.float32) @ b.astype(np.float32).T
    assert old in gemm()
    assert noticed(gemm().replace(old, new), maps, out, 24576, want)


def test_mma_by_a_whole_warp_is_reported() -> None:
    _, _, maps, out = operands(64, exact=True)
    text = gemm().replace(" @!%p2 bra FINISH;", " @!%p1 bra FINISH;")
    text = text.replace(" mbarrier.arrive.expect_tx", " @%p2 mbarrier.arrive.expect_tx")
    text = text.replace(f" {LOAD}", f" @%p2 {LOAD}")
    report = launch(text, maps, out, 24576)
    assert "double-issue" in {f.code for f in report.findings}, str(report)


# --- TMA ---------------------------------------------------------------------------------------

COPY = """
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 out, .param .align 64 .b8 back[128])
.reqntid 32
{
 .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
 .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, tile; mov.u32 %r3, bar;
 mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1; mov.b64 %rd1, back; cvta.param.u64 %rd3, %rd1;
 mov.b32 %r4, -4; mov.b32 %r5, 5;
 @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 @%p1 fence.mbarrier_init.release.cluster;
 @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
 @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r2], [%rd2, {%r4, %r5}], [%r3];
 bar.warp.sync -1;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra WAIT;
 ld.param.u64 %rd4, [out]; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd4, %rd4, %rd5;
 shl.b32 %r6, %r1, 4; add.u32 %r6, %r6, %r2;
 ld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [%r6]; st.global.v4.b32 [%rd4], {%r8, %r9, %r10, %r11};
 add.u32 %r8, %r8, 1; st.shared.b32 [%r6], %r8;
 fence.proxy.async.shared::cta;
 bar.warp.sync -1;
 @!%p1 bra OUT;
 mov.b32 %r7, 0;
 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {%r7, %r7}], [%r2];
 cp.async.bulk.commit_group;
 cp.async.bulk.wait_group 0;
OUT: ret;
}
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_tile_load_fills_with_zero_and_store_writes_back(seed: int | None, assemble: Any) -> None:
    x = np.arange(1, 8 * 16 + 1, dtype=np.uint32).reshape(8, 16)  # 8 rows of 16
    out, back = np.zeros((8, 16), np.uint32), np.zeros((8, 16), np.uint32)
    tile = {"dtype": "u32", "dims": (16, 8), "strides_bytes": (64,), "box": (16, 8)}
    args = [TensorMap.tiled(x, **tile), Uninitialized(out), TensorMap.tiled(back, **tile)]
    report = run_ptx(HEADER + COPY, grid=1, block=32, args=args, order_seed=seed)
    want = np.zeros((8, 16), np.uint32)
    want[:3, 4:] = x[5:, :12]
    assert report.ok and (out == want).all(), str(report)
    want.reshape(-1)[::4] += 1
    assert (back == want).all()
    if seed is None:
        assemble(HEADER + COPY)


def test_store_without_proxy_fence_is_noticed() -> None:
    x = np.arange(1, 8 * 16 + 1, dtype=np.uint32).reshape(8, 16)
    out, back = np.zeros((8, 16), np.uint32), np.zeros((8, 16), np.uint32)
    tile = {"dtype": "u32", "dims": (16, 8), "strides_bytes": (64,), "box": (16, 8)}
    args = [TensorMap.tiled(x, **tile), out, TensorMap.tiled(back, **tile)]
    text = HEADER + COPY.replace("fence.proxy.async.shared::cta;", "")
    assert not run_ptx(text, grid=1, block=32, args=args).ok


def test_bytes_that_are_no_tensor_map() -> None:
    x = np.zeros((8, 16), np.uint32)
    tile = {"dtype": "u32", "dims": (16, 8), "strides_bytes": (64,), "box": (16, 8)}
    args = [bytes(128), x, TensorMap.tiled(x, **tile)]
    report = run_ptx(HEADER + COPY, grid=1, block=32, args=args)
    assert [e.code for e in report.errors] == ["bad-tensor-map"], str(report)


def test_machine_and_rules_reach_nothing_of_the_compiler() -> None:
    code = (
        "import sys, tcir.machine, tcir.interp.ptx.program, tcir.run\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('torch_mlir', 'mlir')\n"
        "  or m.startswith(('tcir.dialect', 'tcir.passes', 'tcir.pipelines', 'tcir.codegen',\n"
        "  'tcir.layout', 'tcir._mlir', 'tcir.opt.command'))]\n"
        "assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


IM2COL = """
.visible .entry columns(.param .align 64 .b8 map[128], .param .u64 out)
.reqntid 32
{
 .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
 .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, tile; mov.u32 %r3, bar;
 mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;
 mov.b32 %r4, 8; mov.b32 %r5, -1; mov.b32 %r6, 1; mov.b32 %r7, 0; mov.b16 %h1, 2; mov.b16 %h2, 1;
 @!%p1 bra WAIT;
 mbarrier.init.shared::cta.b64 [%r3], 1;
 fence.mbarrier_init.release.cluster;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
      [%r2], [%rd2, {%r4, %r5, %r6, %r7}], [%r3], {%h1, %h2};
WAIT:
 bar.warp.sync -1;
SPIN: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra SPIN;
 ld.param.u64 %rd4, [out]; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd4, %rd4, %rd5;
 shl.b32 %r9, %r1, 4; add.u32 %r9, %r9, %r2;
 ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r9];
 st.global.v4.b32 [%rd4], {%r10, %r11, %r12, %r13};
 ret;
}
"""


def test_im2col_load_walks_the_box(assemble: Any) -> None:
    """32 pixels × 8 channels of an NHWC tensor, filter tap (h, w) = (1, 2), padding 1."""
    n, h, w, c = 2, 5, 7, 16
    x = (np.arange(n * h * w * c) + 1).astype(np.uint16).reshape(n, h, w, c)
    out = np.zeros((32, 8), np.uint16)
    tensor = TensorMap.im2col(
        x, dtype="u16", dims=(c, w, h, n), strides_bytes=(2 * c, 2 * c * w, 2 * c * w * h),
        lower_corner=(-1, -1), upper_corner=(-1, -1), channels_per_pixel=8, pixels_per_column=32,
    )  # fmt: skip
    args = [tensor, Uninitialized(out)]
    report = run_ptx(HEADER + IM2COL, grid=1, block=32, args=args)
    # Base positions run over w in -1..5, h in -1..3, then n; they start at w = -1, h = 1.
    want = []
    positions = [(b, y, z) for b in range(n) for y in range(-1, h - 1) for z in range(-1, w - 1)]
    for b, y, z in positions[positions.index((0, 1, -1)) :][:32]:
        y, z = y + 1, z + 2
        inside = 0 <= y < h and 0 <= z < w
        want.append(x[b, y, z, 8:16] if inside else np.zeros(8, np.uint16))
    assert report.ok and (out == np.array(want)).all(), str(report)
    assemble(HEADER + IM2COL)
