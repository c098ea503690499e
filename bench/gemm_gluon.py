"""Gluon GEMMs for `gemm_sass`, without a GPU: ``f16`` or ``nvfp4``; writes kernel.ptx.

A producer warp, an mma warp, four epilogue warps; slot and phase of the ring are counted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
    fence_async_shared,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma,
    tcgen05_mma_scaled,
)
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

ACC = TensorMemoryLayout([128, 128], col_stride=1)
HALF = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
WORD = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
BYTE = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=8, rank=2)
SCALES = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=8, rank=5)
STAGES = {"f16": 4, "nvfp4": 3}


@gluon.jit
def _next(slot, phase, STAGES: gl.constexpr):
    slot += 1
    wrapped = slot == STAGES
    return gl.where(wrapped, 0, slot), gl.where(wrapped, phase ^ 1, phase)


@gluon.jit
def _barriers(STAGES: gl.constexpr):
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    mbarrier.init(done, count=1)
    return full, empty, done


@gluon.jit
def _epilogue(acc, c, tile, done):
    mbarrier.wait(done, 0)
    tile.store(acc.load().to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [gl.program_id(0) * 128, gl.program_id(1) * 128], tile)
    tma.store_wait(0)


@gluon.jit
def _load_f16(a, b, k, ra, rb, full, empty, STAGES: gl.constexpr):
    pm, pn = gl.program_id(0) * 128, gl.program_id(1) * 128
    slot, phase = 0, 1
    for at in range(0, k, 64):
        mbarrier.wait(empty.index(slot), phase)
        mbarrier.expect(full.index(slot), 2 * 128 * 64 * 2)
        tma.async_load(a, [pm, at], full.index(slot), ra.index(slot))
        tma.async_load(b, [pn, at], full.index(slot), rb.index(slot))
        slot, phase = _next(slot, phase, STAGES)


@gluon.jit
def _mma_f16(acc, k, ra, rb, full, empty, done, STAGES: gl.constexpr):
    slot, phase = 0, 0
    for at in range(0, k, 64):
        mbarrier.wait(full.index(slot), phase)
        tcgen05_mma(ra.index(slot), rb.index(slot).permute((1, 0)), acc, use_acc=at > 0)
        tcgen05_commit(empty.index(slot))
        slot, phase = _next(slot, phase, STAGES)
    tcgen05_commit(done)


@gluon.jit
def f16(a, b, c, k, TILE: gl.constexpr, OUT: gl.constexpr, ACC: gl.constexpr, STAGES: gl.constexpr):
    ra = gl.allocate_shared_memory(gl.float16, [STAGES, 128, 64], TILE)
    rb = gl.allocate_shared_memory(gl.float16, [STAGES, 128, 64], TILE)
    out = gl.allocate_shared_memory(gl.float16, [128, 128], OUT)
    full, empty, done = _barriers(STAGES)
    acc = allocate_tensor_memory(gl.float32, [128, 128], ACC)
    gl.warp_specialize(
        [
            (_epilogue, (acc, c, out, done)),
            (_load_f16, (a, b, k, ra, rb, full, empty, STAGES)),
            (_mma_f16, (acc, k, ra, rb, full, empty, done, STAGES)),
        ],
        [1, 1],
        [24, 24],
    )


@gluon.jit
def _load_nvfp4(a, sa, b, sb, k, ra, rsa, rb, rsb, full, empty, STAGES: gl.constexpr):
    pm, pn = gl.program_id(0), gl.program_id(1)
    slot, phase = 0, 1
    for at in range(k // 256):
        mbarrier.wait(empty.index(slot), phase)
        bar = full.index(slot)
        mbarrier.expect(bar, 2 * (128 * 128 + 4 * 512))
        tma.async_load(a, [pm * 128, at * 128], bar, ra.index(slot))
        tma.async_load(b, [pn * 128, at * 128], bar, rb.index(slot))
        tma.async_load(sa, [0, pm, at * 4, 0, 0], bar, rsa.index(slot))
        tma.async_load(sb, [0, pn, at * 4, 0, 0], bar, rsb.index(slot))
        slot, phase = _next(slot, phase, STAGES)


@gluon.jit
def _of_rows(scales):
    """Scales of 128 rows, 16 each, from four blocks of 128 x 4."""
    blocks = scales.reshape((1, 4, 32, 4, 4)).permute((0, 3, 2, 1, 4))
    return blocks.reshape((128, 16))


@gluon.jit
def _mma_nvfp4(acc, tsa, tsb, k, ra, rsa, rb, rsb, full, empty, done, STAGES: gl.constexpr):
    slot, phase = 0, 0
    for at in range(k // 256):
        mbarrier.wait(full.index(slot), phase)
        tcgen05_copy(_of_rows(rsa.index(slot)), tsa)
        tcgen05_copy(_of_rows(rsb.index(slot)), tsb)
        tcgen05_mma_scaled(
            ra.index(slot), rb.index(slot).permute((1, 0)), acc, tsa, tsb, "e2m1", "e2m1",
            use_acc=at > 0,
        )  # fmt: skip
        tcgen05_commit(empty.index(slot))
        slot, phase = _next(slot, phase, STAGES)
    tcgen05_commit(done)


@gluon.jit
def nvfp4(
    a,
    sa,
    b,
    sb,
    c,
    k,
    TILE: gl.constexpr,
    FACTORS: gl.constexpr,
    OUT: gl.constexpr,
    ACC: gl.constexpr,
    STAGES: gl.constexpr,
):
    ra = gl.allocate_shared_memory(gl.uint8, [STAGES, 128, 128], TILE)
    rb = gl.allocate_shared_memory(gl.uint8, [STAGES, 128, 128], TILE)
    rsa = gl.allocate_shared_memory(gl.float8e4nv, [STAGES, 1, 1, 4, 2, 256], FACTORS)
    rsb = gl.allocate_shared_memory(gl.float8e4nv, [STAGES, 1, 1, 4, 2, 256], FACTORS)
    out = gl.allocate_shared_memory(gl.float32, [128, 128], OUT)
    full, empty, done = _barriers(STAGES)
    acc = allocate_tensor_memory(gl.float32, [128, 128], ACC)
    layout: gl.constexpr = TensorMemoryScalesLayout()
    tsa = allocate_tensor_memory(gl.float8e4nv, [128, 16], layout)
    tsb = allocate_tensor_memory(gl.float8e4nv, [128, 16], layout)
    gl.warp_specialize(
        [
            (_epilogue, (acc, c, out, done)),
            (_load_nvfp4, (a, sa, b, sb, k, ra, rsa, rb, rsb, full, empty, STAGES)),
            (_mma_nvfp4, (acc, tsa, tsb, k, ra, rsa, rb, rsb, full, empty, done, STAGES)),
        ],
        [1, 1],
        [24, 24],
    )


def tile(element: str, shape: str, layout: Any) -> str:
    """A tensor map's type: it names the layout of its tiles."""
    return f"tensordesc<{element}[{shape}],{layout!r}>"


def source(problem: str) -> GluonASTSource:
    """The kernel with its types and constants."""
    const: dict[str, Any] = {"ACC": ACC, "STAGES": STAGES[problem]}
    if problem == "f16":
        fn, const = f16, const | {"TILE": HALF, "OUT": HALF}
        types = {n: tile("fp16", "128,64", HALF) for n in "ab"}
        types["c"] = tile("fp16", "128,128", HALF)
    else:
        fn, const = nvfp4, const | {"TILE": BYTE, "FACTORS": SCALES, "OUT": WORD}
        types = {n: tile("u8", "128,128", BYTE) for n in "ab"}
        types |= {n: tile("fp8e4nv", "1,1,4,2,256", SCALES) for n in ("sa", "sb")}
        types["c"] = tile("fp32", "128,128", WORD)
    signature = {p: types.get(p, "constexpr") for p in fn.arg_names} | {"k": "i32"}
    return GluonASTSource(
        fn, signature, const, attrs={(fn.arg_names.index("k"),): [["tt.divisibility", 16]]}
    )


if __name__ == "__main__":
    # Left alone it asks for 256 registers a thread, which ptxas has not.
    most = {"maxnreg": 128}
    built = triton.compile(source(sys.argv[1]), target=GPUTarget("cuda", 100, 32), options=most)
    Path("kernel.ptx").write_text(built.asm["ptx"])
