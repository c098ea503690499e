"""Tensor copies of CTAs in lockstep: boxes inside a tensor, and boxes that reach out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import TensorMap
from tcir.run import run_ptx

from .conftest import HEADER
from .test_lockstep import check_alike

CTAS, ROWS, COLUMNS = 8, 60, 96
BOX = (32, 8)
KERNEL = """
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 y, .param .s32 right, .param .s32 down)
.reqntid 32
{
 .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
 .shared .align 1024 .b8 tile[BYTES]; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, tile; mov.u32 %r3, bar;
 mov.u32 %r4, %ctaid.x; ld.param.b32 %r5, [right]; ld.param.b32 %r6, [down];
 mad.lo.s32 %r5, %r4, 8, %r5; mad.lo.s32 %r6, %r4, 8, %r6;
 mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [y];
 mul.wide.u32 %rd3, %r4, BYTES; add.s64 %rd2, %rd2, %rd3;
 @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 @%p1 fence.mbarrier_init.release.cluster;
 bar.sync 0;
 @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], BYTES;
 @%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r2],
      [%rd1, {%r5, %r6}], [%r3];
 WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra WAIT;
 shl.b32 %r7, %r1, 2;
 OUT: add.u32 %r8, %r2, %r7; ld.shared.b32 %r9, [%r8];
 cvt.u64.u32 %rd4, %r7; add.s64 %rd4, %rd4, %rd2; st.global.b32 [%rd4], %r9;
 add.u32 %r7, %r7, 128; setp.lt.u32 %p2, %r7, BYTES; @%p2 bra OUT;
 ret;
}
"""


def tensor(x: Any, dtype: str, swizzle: str) -> TensorMap:
    return TensorMap.tiled(
        x,
        dtype=dtype,
        dims=[COLUMNS, ROWS],
        strides_bytes=[COLUMNS * x.itemsize],
        box=[*BOX],
        swizzle=swizzle,
    )


def run(x: Any, source: Any, right: int, down: int, hazards: str, together: bool) -> Any:
    y = np.zeros((CTAS, BOX[1], BOX[0]), x.dtype)
    ptx = HEADER + KERNEL.replace("BYTES", str(y[0].nbytes))
    report = run_ptx(
        ptx,
        grid=CTAS,
        block=32,
        args=[source, y, np.int32(right), np.int32(down)],
        hazards=hazards,
        lockstep=together,
    )
    return report, y


def taken(x: Any, right: int, down: int) -> Any:
    """What each CTA loads, without a swizzle; zeros outside."""
    wide = np.pad(x, 64)
    starts = [(64 + right + 8 * n, 64 + down + 8 * n) for n in range(CTAS)]
    return np.stack([wide[d : d + BOX[1], r : r + BOX[0]] for r, d in starts])


@pytest.mark.parametrize("hazards", ["report", "off"])
@pytest.mark.parametrize("down", [-4, 0, -12])
@pytest.mark.parametrize("right", [0, -8, 16, 64])
@pytest.mark.parametrize("dtype", ["f16", "f32", "u8"])
def test_boxes(dtype: str, right: int, down: int, hazards: str) -> None:
    """Of the first CTA, of the last one, of some or of all a part is outside."""
    numbers = 1 + np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    x = (numbers % 251 + 1).astype({"f16": np.float16, "f32": np.float32, "u8": np.uint8}[dtype])
    if dtype == "u8":
        right *= 2
    source = tensor(x, dtype, "NONE")
    without, together = (run(x, source, right, down, hazards, t) for t in (False, True))
    check_alike(without, together)
    if dtype == "u8":  # coordinates that are no multiples of 16 bytes
        assert not together[0].ok
        return
    assert together[0].ok and together[0].lockstep == CTAS - 1
    np.testing.assert_array_equal(together[1], taken(x, right, down))


@pytest.mark.parametrize("swizzle", ["64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B"])
def test_swizzles(swizzle: str) -> None:
    half = swizzle == "64B"
    x = 1 + np.arange(ROWS * COLUMNS, dtype=np.uint16 if half else np.uint32) % 251
    x = x.reshape(ROWS, COLUMNS)
    source = tensor(x, "u16" if half else "u32", swizzle)
    without, together = (run(x, source, 0, -8, "report", t) for t in (False, True))
    check_alike(without, together)
    assert together[0].lockstep == CTAS - 1
    for found, box in zip(together[1], taken(x, 0, -8), strict=True):
        assert sorted(found.flat) == sorted(box.flat)


def test_numbers_that_are_rounded() -> None:
    """Loads of a tf32 tensor."""
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    without, together = (
        run(x, tensor(x, "tf32", "128B"), 8, 0, "report", t) for t in (False, True)
    )
    check_alike(without, together)
    assert together[0].lockstep == CTAS - 1
    assert not (together[1].view(np.uint32) & 0x1FFF).any()
