"""Triton kernels: `python triton_kernels.py OUT` writes OUT/NAME.ptx and OUT/NAME.json."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGET = GPUTarget("cuda", 100, 32)
KERNELS: list[tuple[str, Any, dict[str, str], dict[str, Any], dict[str, Any]]] = []


def kernel(signature: str, name: str = "", options: dict[str, Any] | None = None, **const: Any):
    """Registers a compilation: types of the run-time parameters in order, then constants."""

    def register(fn: Any) -> Any:
        jitted = fn if hasattr(fn, "arg_names") else triton.jit(fn)
        names = [a for a in jitted.arg_names if a not in const]
        types = dict(zip(names, signature.split(), strict=True))
        KERNELS.append((name or jitted.__name__, jitted, types, const, options or {}))
        return jitted

    return register


@kernel("*fp32 *fp32 *fp32 i32 fp32", BLOCK=256)
@triton.jit
def axpy(x, y, out, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, alpha * tl.load(x + i, m) + tl.load(y + i, m), m)


@kernel("*fp32 *fp16 i32", BLOCK=256)
@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    tl.store(out + i, (0.5 * v * (1.0 + tl.erf(v * 0.70710678))).to(tl.float16), i < n)


@kernel("*bf16 *bf16 i32", BLOCK=512)
@triton.jit
def silu_bf16(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n).to(tl.float32)
    tl.store(out + i, (v * tl.sigmoid(v)).to(tl.bfloat16), i < n)


@kernel("*fp32 *fp32 i32 i32", BLOCK=512)
@triton.jit
def softmax(x, out, cols, stride, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * stride + c, c < cols, float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + r * stride + c, e / tl.sum(e, 0), c < cols)


@kernel("*fp16 *fp32 *fp32 *fp16 i32 fp32", BLOCK=1024)
@triton.jit
def layernorm(x, gain, bias, out, cols, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < cols
    v = tl.load(x + r * cols + c, m, 0.0).to(tl.float32)
    mean = tl.sum(v, 0) / cols
    d = tl.where(m, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, 0) / cols + eps)
    y = d * scale * tl.load(gain + c, m) + tl.load(bias + c, m)
    tl.store(out + r * cols + c, y.to(tl.float16), m)


@kernel("*fp32 *fp32 i32", BLOCK=256)
@triton.jit
def atomic_sum(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, i < n, 0.0), 0))


@kernel("*i32 *i32 i32", BLOCK=256)
@triton.jit
def running_sum(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i, i < n, 0), 0), i < n)


@kernel("*fp32 *i32 i32", BLOCK=512)
@triton.jit
def argmax(x, out, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * cols + c, c < cols, float("-inf"))
    tl.store(out + r, tl.argmax(v, 0))


@kernel("*i32 *i32", BLOCK=256)
@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@kernel("*u8 *i32 i32", BLOCK=512)
@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n, 0).to(tl.int32)
    tl.store(out + tl.arange(0, 32), tl.histogram(v, 32, i < n))


@kernel("*fp32 *fp32 i32 i32", TILE=32)
@triton.jit
def transpose(x, out, rows, cols, TILE: tl.constexpr):
    r = tl.program_id(0) * TILE + tl.arange(0, TILE)
    c = tl.program_id(1) * TILE + tl.arange(0, TILE)
    v = tl.load(x + r[:, None] * cols + c[None, :])
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v))


@kernel("*fp32 i32 i32", BLOCK=256)
@triton.jit
def dropout_mask(out, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i), i < n)


@kernel("*fp32 *fp8e4nv *fp8e5 i32", BLOCK=512)
@triton.jit
def to_fp8(x, narrow, wide, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    tl.store(narrow + i, v.to(tl.float8e4nv), i < n)
    tl.store(wide + i, v.to(tl.float8e5), i < n)


@kernel("*fp8e4nv *fp16 i32", BLOCK=512)
@triton.jit
def from_fp8(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n).to(tl.float16), i < n)


@kernel("*fp16 *fp16 *fp32 i32 i32", BLOCK_N=64, BLOCK_K=128)
@triton.jit
def gemv(w, x, out, n, k, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    on = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), tl.float32)
    for k0 in range(0, k, BLOCK_K):
        ok = k0 + tl.arange(0, BLOCK_K)
        a = tl.load(w + on[:, None] * k + ok[None, :], on[:, None] < n, 0.0).to(tl.float32)
        acc += tl.sum(a * tl.load(x + ok).to(tl.float32)[None, :], 1)
    tl.store(out + on, acc, on < n)


MATMUL = "*{t} *{t} *{o} i32 i32 i32"


@kernel(MATMUL.format(t="i8", o="i32"), "matmul_i8", BM=128, BN=64, BK=64)
@kernel(MATMUL.format(t="fp32", o="fp32"), "matmul_tf32", BM=128, BN=64, BK=32)
@kernel(MATMUL.format(t="fp8e4nv", o="fp32"), "matmul_fp8", BM=128, BN=64, BK=64)
@kernel(MATMUL.format(t="bf16", o="fp32"), "matmul_bf16", BM=128, BN=128, BK=32)
@kernel(MATMUL.format(t="fp16", o="fp16"), "matmul_mma_sync", {"num_warps": 2}, BM=16, BN=32, BK=32)
@kernel(MATMUL.format(t="fp16", o="fp32"), "matmul_f16", BM=128, BN=64, BK=64)
@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    om = tl.program_id(0) * BM + tl.arange(0, BM)
    on = tl.program_id(1) * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    pa = a + om[:, None] * k + ok[None, :]
    pb = b + ok[:, None] * n + on[None, :]
    acc = tl.zeros((BM, BN), tl.int32 if c.dtype.element_ty == tl.int32 else tl.float32)
    for _ in range(0, k, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * n
    tl.store(c + om[:, None] * n + on[None, :], acc.to(c.dtype.element_ty))


TMA = "tensordesc<fp16[128,64]> tensordesc<fp16[64,64]> tensordesc<fp16[128,64]> i32"


@kernel(TMA, "matmul_tma_specialised", BM=128, BN=64, BK=64, SPECIALISED=True)
@kernel(TMA, "matmul_tma", BM=128, BN=64, BK=64, SPECIALISED=False)
@triton.jit
def matmul_descriptors(
    a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr
):
    pm = tl.program_id(0) * BM
    pn = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, k, BK, warp_specialize=SPECIALISED):
        acc = tl.dot(a.load([pm, k0]), b.load([pn, k0]).T, acc)
    c.store([pm, pn], acc.to(tl.float16))


@kernel(TMA + " i32 i32", "matmul_persistent", BM=128, BN=64, BK=64)
@triton.jit
def matmul_persistent(
    a, b, c, k, tiles_m, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        pm = tile % tiles_m * BM
        pn = tile // tiles_m * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, k, BK):
            acc = tl.dot(a.load([pm, k0]), b.load([pn, k0]).T, acc)
        c.store([pm, pn], acc.to(tl.float16))


@kernel("*fp16 *fp16 *fp32 i32 i32 i32", BM=64, BN=64, BK=32, SPLIT=2)
@triton.jit
def matmul_split_k(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr
):
    om = tl.program_id(0) * BM + tl.arange(0, BM)
    on = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(tl.program_id(2) * BK, k, BK * SPLIT):
        ok = k0 + tl.arange(0, BK)
        x = tl.load(a + om[:, None] * k + ok[None, :])
        acc = tl.dot(x, tl.load(b + ok[:, None] * n + on[None, :]), acc)
    tl.atomic_add(c + om[:, None] * n + on[None, :], acc)


@kernel(
    "*fp16 *fp16 *fp16 *fp32 i32 fp32", "attention_mma_sync", {"num_warps": 4}, BQ=16, BK=32, D=64
)
@kernel("*fp16 *fp16 *fp16 *fp32 i32 fp32", "attention", BQ=128, BK=64, D=64)
@triton.jit
def attention(q, k, v, out, keys, scale, BQ: tl.constexpr, BK: tl.constexpr, D: tl.constexpr):
    oq = tl.program_id(0) * BQ + tl.arange(0, BQ)
    od = tl.arange(0, D)
    query = tl.load(q + oq[:, None] * D + od[None, :])
    top = tl.full((BQ,), float("-inf"), tl.float32)
    total = tl.zeros((BQ,), tl.float32)
    acc = tl.zeros((BQ, D), tl.float32)
    for k0 in range(0, keys, BK):
        ok = k0 + tl.arange(0, BK)
        key = tl.load(k + ok[:, None] * D + od[None, :])
        s = tl.dot(query, key.T) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(top - new)
        total = total * shrink + tl.sum(p, 1)
        value = tl.load(v + ok[:, None] * D + od[None, :])
        acc = tl.dot(p.to(tl.float16), value, acc * shrink[:, None])
        top = new
    tl.store(out + oq[:, None] * D + od[None, :], acc / total[:, None])


SCALED = "*{t} *u8 *{t} *u8 *fp32 i32 i32 i32"


@kernel(SCALED.format(t="u8"), "matmul_mxfp4", BM=128, BN=128, BK=128, KIND="e2m1", PER=2)
@kernel(SCALED.format(t="fp8e4nv"), "matmul_mxfp8", BM=128, BN=128, BK=128, KIND="e4m3", PER=1)
@triton.jit
def matmul_scaled(
    a,
    sa,
    b,
    sb,
    c,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    KIND: tl.constexpr,
    PER: tl.constexpr,
):
    om = tl.program_id(0) * BM + tl.arange(0, BM)
    on = tl.program_id(1) * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK // PER)
    os = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        x = tl.load(a + om[:, None] * (k // PER) + k0 // PER + ok[None, :])
        y = tl.load(b + on[:, None] * (k // PER) + k0 // PER + ok[None, :])
        xs = tl.load(sa + om[:, None] * (k // 32) + k0 // 32 + os[None, :])
        ys = tl.load(sb + on[:, None] * (k // 32) + k0 // 32 + os[None, :])
        acc = tl.dot_scaled(x, xs, KIND, y.T, ys, KIND, acc)
    tl.store(c + om[:, None] * n + on[None, :], acc)


def compile_all(out: Path) -> None:
    for name, fn, types, const, options in KERNELS:
        try:
            aligned = {
                (n,): [["tt.divisibility", 16]]
                for n, p in enumerate(fn.arg_names)
                if p in types and (types[p].startswith("*") or types[p] == "i32" and p in "mnk")
            }
            signature = {p: types.get(p, "constexpr") for p in fn.arg_names}
            source = ASTSource(fn, signature, const, attrs=aligned)
            compiled = triton.compile(source, target=TARGET, options=options)
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
            "maps": list(meta.tensordesc_meta or ()),
            "scratch": 2,  # pointers to scratch memory, passed after the kernel's own
        }
        (out / f"{name}.json").write_text(json.dumps(record))


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]))
