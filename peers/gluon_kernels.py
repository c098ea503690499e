"""Gluon kernels: `python gluon_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

KERNELS: list[tuple[str, Any, dict[str, str], dict[str, Any]]] = []
LAYOUT = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
ACC = TensorMemoryLayout([128, 64], col_stride=1)


def kernel(*types: str, name: str = "", **const: Any) -> Any:
    """Registers a compilation: types of the run-time parameters in order, then constants."""

    def register(fn: Any) -> Any:
        names = [a for a in fn.arg_names if a not in const]
        signature = dict(zip(names, types, strict=True))
        KERNELS.append((name or fn.__name__, fn, signature, const))
        return fn

    return register


@kernel("*fp32", "*fp32", "i32", BLOCK=512, LAYOUT=gl.BlockedLayout([4], [32], [4], [0]))
@gluon.jit
def square(x, out, n, BLOCK: gl.constexpr, LAYOUT: gl.constexpr):
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, LAYOUT)
    v = gl.load(x + i, i < n)
    gl.store(out + i, v * v, i < n)


@kernel("*fp32", "*fp32", "i32", STEPS=4, BLOCK=512, LAYOUT=gl.BlockedLayout([4], [32], [4], [0]))
@gluon.jit
def pipelined_copy(x, out, n, STEPS: gl.constexpr, BLOCK: gl.constexpr, LAYOUT: gl.constexpr):
    """cp.async two steps ahead."""
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    ring = gl.allocate_shared_memory(gl.float32, [2, BLOCK], layout=shared)
    i = gl.arange(0, BLOCK, LAYOUT)
    async_copy.async_load(ring.index(0), x + i, mask=i < n)
    async_copy.commit_group()
    for step in gl.static_range(STEPS):
        if step + 1 < STEPS:
            j = i + (step + 1) * BLOCK
            async_copy.async_load(ring.index((step + 1) % 2), x + j, mask=j < n)
        async_copy.commit_group()
        async_copy.wait_group(1)
        v = ring.index(step % 2).load(LAYOUT)
        j = i + step * BLOCK
        gl.store(out + j, v + 1.0, j < n)


TILES = ["tensordesc<fp16[128,64]>", "tensordesc<fp16[64,64]>", "*fp32", "i32", "i32"]


@gluon.jit
def _store(acc, out, n, pm, pn):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])
    value = gl.convert_layout(acc.load(), layout)
    rows = pm + gl.arange(0, 128, gl.SliceLayout(1, layout))
    columns = pn + gl.arange(0, 64, gl.SliceLayout(0, layout))
    gl.store(out + rows[:, None] * n + columns[None, :], value)


@kernel(*TILES, name="matmul", LAYOUT=LAYOUT, ACC=ACC)
@gluon.jit
def matmul(a, b, out, n, k, LAYOUT: gl.constexpr, ACC: gl.constexpr):
    """One buffer: load, multiply, wait."""
    pm, pn = gl.program_id(0) * 128, gl.program_id(1) * 64
    sa = gl.allocate_shared_memory(gl.float16, [128, 64], LAYOUT)
    sb = gl.allocate_shared_memory(gl.float16, [64, 64], LAYOUT)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    mbarrier.init(bars.index(0), count=1)
    mbarrier.init(bars.index(1), count=1)
    acc = allocate_tensor_memory(gl.float32, [128, 64], ACC)
    phase = 0
    for k0 in range(0, k, 64):
        mbarrier.expect(bars.index(0), 128 * 64 * 2 + 64 * 64 * 2)
        tma.async_load(a, [pm, k0], bars.index(0), sa)
        tma.async_load(b, [pn, k0], bars.index(0), sb)
        mbarrier.wait(bars.index(0), phase)
        tcgen05_mma(sa, sb.permute((1, 0)), acc, use_acc=k0 > 0)
        tcgen05_commit(bars.index(1))
        mbarrier.wait(bars.index(1), phase)
        phase ^= 1
    mbarrier.invalidate(bars.index(0))
    mbarrier.invalidate(bars.index(1))
    _store(acc, out, n, pm, pn)


@gluon.jit
def _producer(a, b, pm, pn, k, ra, rb, full, empty):
    for step in range(k // 64):
        slot, phase = step % 2, step // 2 & 1
        mbarrier.wait(empty.index(slot), phase ^ 1)
        mbarrier.expect(full.index(slot), 128 * 64 * 2 + 64 * 64 * 2)
        tma.async_load(a, [pm, step * 64], full.index(slot), ra.index(slot))
        tma.async_load(b, [pn, step * 64], full.index(slot), rb.index(slot))


@gluon.jit
def _multiplier(acc, k, ra, rb, full, empty, done):
    for step in range(k // 64):
        slot, phase = step % 2, step // 2 & 1
        mbarrier.wait(full.index(slot), phase)
        tcgen05_mma(ra.index(slot), rb.index(slot).permute((1, 0)), acc, use_acc=step > 0)
        tcgen05_commit(empty.index(slot))
    tcgen05_commit(done)


@gluon.jit
def _epilogue(acc, out, n, pm, pn, done):
    mbarrier.wait(done, 0)
    _store(acc, out, n, pm, pn)


@kernel(*TILES, name="matmul_specialised", LAYOUT=LAYOUT, ACC=ACC)
@gluon.jit
def matmul_specialised(a, b, out, n, k, LAYOUT: gl.constexpr, ACC: gl.constexpr):
    """Producer warp, mma warp, epilogue warps."""
    pm, pn = gl.program_id(0) * 128, gl.program_id(1) * 64
    ra = gl.allocate_shared_memory(gl.float16, [2, 128, 64], LAYOUT)
    rb = gl.allocate_shared_memory(gl.float16, [2, 64, 64], LAYOUT)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(2):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    mbarrier.init(done, count=1)
    acc = allocate_tensor_memory(gl.float32, [128, 64], ACC)
    gl.warp_specialize(
        [
            (_epilogue, (acc, out, n, pm, pn, done)),
            (_producer, (a, b, pm, pn, k, ra, rb, full, empty)),
            (_multiplier, (acc, k, ra, rb, full, empty, done)),
        ],
        [1, 1],
        [24, 24],
    )


WIDE = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)


@kernel("tensordesc<fp32[32,32]>", "tensordesc<fp32[32,32]>", LAYOUT=WIDE)
@gluon.jit
def tma_accumulate(x, out, LAYOUT: gl.constexpr):
    """Every CTA adds its tile to one output tile: TMA load, TMA reduce."""
    tile = gl.allocate_shared_memory(gl.float32, [32, 32], LAYOUT)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, 32 * 32 * 4)
    tma.async_load(x, [gl.program_id(0) * 32, 0], bar, tile)
    mbarrier.wait(bar, 0)
    fence_async_shared()
    tma.async_atomic_add(out, [0, 0], tile)
    tma.store_wait(0)
    mbarrier.invalidate(bar)


def compile_all(out: Path) -> None:
    for name, fn, types, const in KERNELS:
        try:
            shared = f"],{const['LAYOUT']!r}>"  # descriptors name the layout of their tiles
            signature = {
                p: types[p].replace("]>", shared) if p in types else "constexpr"
                for p in fn.arg_names
            }
            aligned = {
                (n,): [["tt.divisibility", 16]]
                for n, p in enumerate(fn.arg_names)
                if p in types and types[p].startswith("*")
            }
            source = GluonASTSource(fn, signature, const, attrs=aligned)
            compiled = triton.compile(source, target=GPUTarget("cuda", 100, 32), options={})
        except Exception as error:
            traceback.print_exc()
            (out / f"{name}.json").write_text(json.dumps({"error": f"{error!r}"[:300]}))
            continue
        meta = compiled.metadata
        (out / f"{name}.ptx").write_text(compiled.asm["ptx"])
        record = {
            "entry": meta.name,
            "block": [32 * meta.num_warps, 1, 1],
            "dynamic_smem": meta.shared,
            "scratch": 2,
        }
        (out / f"{name}.json").write_text(json.dumps(record))


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]))
