"""Triton GEMMs for `gemm_sass`, without a GPU: ``f16``, ``f16-roles``, ``nvfp4``, to kernel.ptx."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ROLES: tl.constexpr):
    """Tiles by TMA, B with K innermost; ROLES: warp-specialised by the compiler."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, k, BK, warp_specialize=ROLES):
        acc = tl.dot(a.load([m, at]), b.load([n, at]).T, acc)
    c.store([m, n], acc.to(tl.float16))


@triton.jit
def scaled(a, sa, b, sb, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """NVFP4, scales in blocks of 128 x 4: as in Triton's tutorial on block-scaled products."""
    pm, pn = tl.program_id(0), tl.program_id(1)
    REP_M: tl.constexpr = BM // 128
    REP_N: tl.constexpr = BN // 128
    REP_K: tl.constexpr = BK // 64
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, k // BK):
        x = a.load([pm * BM, at * BK // 2])
        y = b.load([pn * BN, at * BK // 2])
        xs = sa.load([0, pm * REP_M, at * REP_K, 0, 0]).reshape(REP_M, REP_K, 32, 4, 4)
        ys = sb.load([0, pn * REP_N, at * REP_K, 0, 0]).reshape(REP_N, REP_K, 32, 4, 4)
        xs = xs.trans(0, 3, 2, 1, 4).reshape(BM, BK // 16)
        ys = ys.trans(0, 3, 2, 1, 4).reshape(BN, BK // 16)
        acc = tl.dot_scaled(x, xs, "e2m1", y.T, ys, "e2m1", acc)
    c.store([pm * BM, pn * BN], acc)


def compiled(fn: Any, types: dict[str, str], tile: dict[str, Any], **options: Any) -> str:
    """Compiles the source to PTX."""
    signature = {**types, **dict.fromkeys(tile, "constexpr")}
    names = list(signature)
    aligned = {(names.index(n),): [["tt.divisibility", 16]] for n, t in types.items() if t == "i32"}
    source = ASTSource(fn=fn, signature=signature, constexprs=tile, attrs=aligned)
    target = GPUTarget("cuda", 100, 32)
    text: str = triton.compile(source, target=target, options=options).asm["ptx"]
    return text


def f16(roles: bool) -> str:
    tiles = dict.fromkeys("ab", "tensordesc<fp16[128,64]>") | {"c": "tensordesc<fp16[128,128]>"}
    tile = {"BM": 128, "BN": 128, "BK": 64, "ROLES": roles}
    # Left alone Triton asks for 256 registers a thread with roles, which ptxas has not.
    most = {"maxnreg": 128} if roles else {}
    return compiled(matmul, tiles | {"k": "i32"}, tile, num_warps=4, num_stages=4, **most)


def nvfp4() -> str:
    types = {
        "a": "tensordesc<u8[128,128]>", "sa": "tensordesc<fp8e4nv[1,1,4,2,256]>",
        "b": "tensordesc<u8[128,128]>", "sb": "tensordesc<fp8e4nv[1,1,4,2,256]>",
        "c": "tensordesc<fp32[128,128]>", "k": "i32",
    }  # fmt: skip
    tile = {"BM": 128, "BN": 128, "BK": 256}
    return compiled(scaled, types, tile, num_warps=4, num_stages=3)


if __name__ == "__main__":
    problem = sys.argv[1]
    Path("kernel.ptx").write_text(nvfp4() if problem == "nvfp4" else f16(problem == "f16-roles"))
