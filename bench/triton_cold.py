"""Triton kernels for sm_100a, compiled without a GPU, for `compile_time`: ``f16`` or ``nvfp4``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """TMA loads, tcgen05 mma, warp-specialised loop: the same structure as ours."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc)


@triton.jit
def scaled(a, sa, b, sb, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """NVFP4: two e2m1 to a byte, an e4m3 scale for 16 of them."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    byte, block = tl.arange(0, BK // 2), tl.arange(0, BK // 16)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        x = tl.load(a + m[:, None] * (k // 2) + at // 2 + byte[None, :])
        y = tl.load(b + j[:, None] * (k // 2) + at // 2 + byte[None, :])
        xs = tl.load(sa + m[:, None] * (k // 16) + at // 16 + block[None, :])
        ys = tl.load(sb + j[:, None] * (k // 16) + at // 16 + block[None, :])
        acc = tl.dot_scaled(x, xs, "e2m1", y.T, ys, "e2m1", acc)
    tl.store(c + m[:, None] * n + j[None, :], acc)


def f16() -> bytes:
    """Compiles the source to a cubin."""
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    sizes = {"M": "i32", "N": "i32", "K": "i32"}
    return _compile(matmul, pointers | sizes, {"BM": 128, "BN": 128, "BK": 64}, num_stages=4)


def nvfp4() -> bytes:
    """Compiles the source to a cubin."""
    pointers = {"a": "*u8", "sa": "*fp8e4nv", "b": "*u8", "sb": "*fp8e4nv", "c": "*fp32"}
    tile = {"BM": 128, "BN": 128, "BK": 128}
    return _compile(scaled, pointers | {"n": "i32", "k": "i32"}, tile)


def _compile(fn: Any, types: dict[str, str], tile: dict[str, int], **options: int) -> bytes:
    signature = {**types, **dict.fromkeys(tile, "constexpr")}
    source = ASTSource(fn=fn, signature=signature, constexprs=tile)
    target = GPUTarget("cuda", 100, 32)
    compiled = triton.compile(source, target=target, options={"num_warps": 4, **options})
    cubin: bytes = compiled.asm["cubin"]
    return cubin


if __name__ == "__main__":
    Path("kernel.cubin").write_bytes({"f16": f16, "nvfp4": nvfp4}[sys.argv[1]]())
