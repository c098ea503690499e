"""Launches and numpy oracles of the Triton kernels."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case, product, rng, small
from tcir.machine import TensorMap

NULL = np.uint64(0)
BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def launch(grid: tuple[int, ...], args: list[Any], *want: tuple[Any, Any, float]) -> Launch:
    """Triton's kernels take two more pointers, to scratch memory that these kernels do not need."""
    return Launch(grid, [*args, NULL, NULL], list(want))


def i32(value: int) -> np.int32:
    return np.int32(value)


@case("triton")
def axpy(meta: Any) -> Launch:
    r, n = rng(), 1000
    x, y = small(r, (n,), "f4"), small(r, (n,), "f4")
    out = np.zeros(n, "f4")
    return launch((4,), [x, y, out, i32(n), np.float32(2.5)], (out, 2.5 * x + y, 0))


@case("triton")
def gelu(meta: Any) -> Launch:
    from math import erf

    x = np.linspace(-5, 5, 1000).astype("f4")
    out = np.zeros(1000, "f2")
    want = [0.5 * v * (1 + erf(v * 0.70710678)) for v in x.tolist()]
    return launch((4,), [x, out, i32(1000)], (out, want, 2e-3))


@case("triton")
def silu_bf16(meta: Any) -> Launch:
    x = rng().standard_normal(1024).astype(BF16)
    out = np.zeros(1024, BF16)
    exact = x.astype("f8")
    return launch((2,), [x, out, i32(1024)], (out, exact / (1 + np.exp(-exact)), 2e-2))


@case("triton")
def softmax(meta: Any) -> Launch:
    x = rng().standard_normal((4, 512)).astype("f4")
    out = np.zeros_like(x)
    e = np.exp(x[:, :500].astype("f8"))
    want = np.zeros_like(x)
    want[:, :500] = e / e.sum(1, keepdims=True)
    return launch((4,), [x, out, i32(500), i32(512)], (out, want, 1e-6))


@case("triton")
def layernorm(meta: Any) -> Launch:
    r, n = rng(), 800
    x = (r.standard_normal((3, n)) * 2 + 1).astype("f2")
    gain, bias = r.standard_normal(n).astype("f4"), r.standard_normal(n).astype("f4")
    out = np.zeros_like(x)
    v = x.astype("f8")
    normal = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    args = [x, gain, bias, out, i32(n), np.float32(1e-5)]
    return launch((3,), args, (out, normal * gain + bias, 1e-2))


@case("triton")
def atomic_sum(meta: Any) -> Launch:
    x, out = small(rng(), (1000,), "f4"), np.zeros(1, "f4")
    return launch((4,), [x, out, i32(1000)], (out, [x.sum()], 0))


@case("triton")
def running_sum(meta: Any) -> Launch:
    x = rng().integers(-(1 << 30), 1 << 30, 512).astype("i4")
    out = np.zeros_like(x)
    want = np.cumsum(x.reshape(2, 256), axis=1, dtype=np.int32)
    return launch((2,), [x, out, i32(512)], (out, want.ravel(), 0))


@case("triton")
def argmax(meta: Any) -> Launch:
    x, out = rng().standard_normal((3, 400)).astype("f4"), np.zeros(3, "i4")
    return launch((3,), [x, out, i32(400)], (out, x.argmax(1), 0))


@case("triton")
def sort_rows(meta: Any) -> Launch:
    x = rng().integers(-99, 99, (2, 256)).astype("i4")
    out = np.zeros_like(x)
    return launch((2,), [x, out], (out, np.sort(x, axis=1), 0))


@case("triton")
def histogram(meta: Any) -> Launch:
    x, out = rng().integers(0, 32, 500).astype("u1"), np.zeros(32, "i4")
    return launch((1,), [x, out, i32(500)], (out, np.bincount(x, minlength=32), 0))


@case("triton")
def transpose(meta: Any) -> Launch:
    x = rng().standard_normal((64, 96)).astype("f4")
    out = np.zeros((96, 64), "f4")
    return launch((2, 3), [x, out, i32(64), i32(96)], (out, x.T, 0))


def philox(seed: int, counters: np.ndarray) -> np.ndarray:
    """First word of Philox4x32-10 (Salmon et al., 2011), key (seed, 0), counter (i, 0, 0, 0)."""
    low = np.uint64(0xFFFFFFFF)
    c = [counters.astype(np.uint64), *(np.zeros(len(counters), np.uint64) for _ in range(3))]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            b >> np.uint64(32) ^ c[1] ^ np.uint64(k0),
            b & low,
            a >> np.uint64(32) ^ c[3] ^ np.uint64(k1),
            a & low,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


@case("triton")
def dropout_mask(meta: Any) -> Launch:
    out = np.zeros(500, "f4")
    word = philox(42, np.arange(500)).view(np.int32).astype(np.int64)
    want = np.where(word < 0, -word - 1, word).astype("f4") * np.float32(4.6566127342e-10)
    return launch((2,), [out, i32(500), i32(42)], (out, want, 0))


def awkward() -> np.ndarray:
    """Values around every step of the narrow types, ties, overflow and underflow."""
    steps = np.arange(256, dtype=np.uint8).view(E4M3).astype("f4")
    wide = np.arange(256, dtype=np.uint8).view(E5M2).astype("f4")
    steps, wide = steps[np.isfinite(steps)], wide[np.isfinite(wide)]
    middle = (steps + np.float32(2.0**-10)) * np.float32(1.0625)
    more = np.array([1e9, -1e9, 1e-9, 460.0, 464.0, 61440.0, 57345.0], "f4")
    found = np.concatenate([more, steps, wide, middle])
    return found[: len(found) // 16 * 16]  # the kernel is compiled for such lengths


@case("triton")
def to_fp8(meta: Any) -> Launch:
    x = awkward()
    narrow, wide = np.zeros(len(x), "u1"), np.zeros(len(x), "u1")
    a = np.clip(x, -448, 448).astype(E4M3).view("u1")
    b = np.clip(x, -57344, 57344).astype(E5M2).view("u1")
    return launch((2,), [x, narrow, wide, i32(len(x))], (narrow, a, 0), (wide, b, 0))


@case("triton")
def from_fp8(meta: Any) -> Launch:
    x, out = np.arange(256, dtype="u1"), np.zeros(256, "f2")
    return launch((1,), [x, out, i32(256)], (out, x.view(E4M3).astype("f2"), 0))


@case("triton")
def gemv(meta: Any) -> Launch:
    r = rng()
    w, x, out = small(r, (112, 256), "f2"), small(r, (256,), "f2"), np.zeros(112, "f4")
    return launch((2,), [w, x, out, i32(112), i32(256)], (out, product(w, x), 0))


def _matmul(m: int, n: int, k: int, tile: tuple[int, int], dtype: Any, out: Any) -> Launch:
    r = rng()
    a, b, c = small(r, (m, k), dtype), small(r, (k, n), dtype), np.zeros((m, n), out)
    grid = (m // tile[0], n // tile[1])
    return launch(grid, [a, b, c, i32(m), i32(n), i32(k)], (c, product(a, b), 0))


for _name, _tile, _dtype, _out in (
    ("matmul_f16", (128, 64), np.float16, "f4"),
    ("matmul_bf16", (128, 128), BF16, "f4"),
    ("matmul_fp8", (128, 64), E4M3, "f4"),
    ("matmul_tf32", (128, 64), np.float32, "f4"),
    ("matmul_i8", (128, 64), np.int8, "i4"),
    ("matmul_mma_sync", (16, 32), np.float16, "f2"),
):

    def _build(meta: Any, tile: Any = _tile, dtype: Any = _dtype, out: Any = _out) -> Launch:
        return _matmul(tile[0], 2 * tile[1], 192, tile, dtype, out)

    case("triton", _name)(_build)


def described(array: np.ndarray, box: tuple[int, int]) -> list[Any]:
    """A descriptor argument: the tensor map, shape and strides."""
    rows, columns = array.shape
    tensor_map = TensorMap.tiled(
        array,
        dtype="f16",
        dims=[columns, rows],
        strides_bytes=[2 * columns],
        box=[box[1], box[0]],
        swizzle="128B",
    )
    return [tensor_map, i32(rows), i32(columns), np.int64(columns), np.int64(1)]


def _descriptors(m: int, n: int, k: int, grid: tuple[int, ...], *more: int) -> Launch:
    r = rng()
    a, b, c = small(r, (m, k), "f2"), small(r, (n, k), "f2"), np.zeros((m, n), "f2")
    args = [*described(a, (128, 64)), *described(b, (64, 64)), *described(c, (128, 64))]
    args += [i32(v) for v in (k, *more)]
    return launch(grid, args, (c, product(a, b.T), 0))


@case("triton")
def matmul_tma(meta: Any) -> Launch:
    return _descriptors(128, 128, 320, (1, 2))


@case("triton")
def matmul_tma_specialised(meta: Any) -> Launch:
    return _descriptors(128, 128, 320, (1, 2))


@case("triton")
def matmul_persistent(meta: Any) -> Launch:
    return _descriptors(256, 192, 192, (2,), 2, 6)


@case("triton")
def matmul_split_k(meta: Any) -> Launch:
    r = rng()
    a, b, c = small(r, (64, 128), "f2"), small(r, (128, 64), "f2"), np.zeros((64, 64), "f4")
    args = [a, b, c, i32(64), i32(64), i32(128)]
    return launch((1, 1, 2), args, (c, product(a, b), 0))


def _attention(queries: int, keys: int, grid: int) -> Launch:
    r = rng()
    q, k, v = (r.standard_normal((n, 64)).astype("f2") for n in (queries, keys, keys))
    out = np.zeros((queries, 64), "f4")
    s = product(q, k.T) / 8
    p = np.exp(s - s.max(1, keepdims=True))
    want = p @ v.astype("f8") / p.sum(1, keepdims=True)
    return launch((grid,), [q, k, v, out, i32(keys), np.float32(0.125)], (out, want, 5e-3))


@case("triton")
def attention(meta: Any) -> Launch:
    return _attention(128, 192, 1)


@case("triton")
def attention_mma_sync(meta: Any) -> Launch:
    return _attention(32, 96, 2)


def _scaled(meta: Any, fp4: bool) -> Launch:
    r = rng()
    m, n, k = 128, 128, 256
    dtype: Any = ml_dtypes.float4_e2m1fn if fp4 else E4M3
    codes = [
        r.integers(0, 16, (rows, k)).astype("u1") if fp4 else small(r, (rows, k), dtype).view("u1")
        for rows in (m, n)
    ]
    scales = [r.integers(124, 131, (rows, k // 32)).astype("u1") for rows in (m, n)]
    values = [
        c.view(dtype).astype("f8") * np.repeat(2.0 ** (s.astype("f8") - 127), 32, axis=1)
        for c, s in zip(codes, scales, strict=True)
    ]
    packed = [c[:, 0::2] | c[:, 1::2] << 4 if fp4 else c for c in codes]
    out = np.zeros((m, n), "f4")
    args = [packed[0], scales[0], packed[1], scales[1], out, i32(m), i32(n), i32(k)]
    want = values[0] @ values[1].T
    return launch((1, 1), args, (out, want, 0))


@case("triton")
def matmul_mxfp8(meta: Any) -> Launch:
    return _scaled(meta, False)


@case("triton")
def matmul_mxfp4(meta: Any) -> Launch:
    return _scaled(meta, True)
