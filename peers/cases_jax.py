"""Values and numpy oracles of the kernels of JAX's Mosaic GPU; the launches are recorded ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case, product, rng, small
from peers.recorded import Recorded

F16, BF16 = np.float16, ml_dtypes.bfloat16


def _matmul(meta: Any, dtype: Any, m: int, n: int, k: int) -> Launch:
    r, run = rng(), Recorded(meta)
    a = run.fill(0, small(r, (m, k), dtype))
    b = run.fill(1, small(r, (k, n), dtype))
    return run.launch((run.array(2, dtype, (m, n)), product(a, b).astype(dtype), 0))


for _name, _sizes in {
    "matmul_f16": (F16, 256, 128, 256),
    "matmul_bf16_wide": (BF16, 128, 256, 192),
    "matmul_bf16_pair": (BF16, 256, 512, 128),
    "matmul_f16_pair_narrow": (F16, 512, 128, 256),
    "matmul_bf16_narrow": (BF16, 256, 128, 320),
    "matmul_f16_deep": (F16, 128, 256, 512),
    "matmul_bf16_minor_m": (BF16, 512, 512, 64),
    "matmul_bf16_pair_minor_m": (BF16, 512, 512, 128),
    "matmul_f16_pair_deep": (F16, 256, 256, 384),
}.items():

    def _build(meta: Any, sizes: Any = _sizes) -> Launch:
        return _matmul(meta, *sizes)

    case("jax", _name)(_build)


def _ragged(meta: Any, dtype: Any, n: int, k: int, sizes: list[int]) -> Launch:
    r, run, m = rng(), Recorded(meta), sum(sizes)
    a = run.fill(0, small(r, (m, k), dtype))
    b = run.fill(1, small(r, (len(sizes), k, n), dtype))
    run.fill(2, np.array(sizes, "i4"))
    want = np.concatenate(
        [product(rows, w) for rows, w in zip(np.split(a, np.cumsum(sizes)[:-1]), b, strict=True)]
    )
    return run.launch((run.array(3, dtype, (m, n)), want.astype(dtype), 0))


@case("jax")
def ragged_dot_f16_pair(meta: Any) -> Launch:
    return _ragged(meta, F16, 256, 64, [100, 60, 96])


@case("jax")
def ragged_dot_bf16_pair(meta: Any) -> Launch:
    return _ragged(meta, BF16, 128, 128, [250, 6, 256])


@case("jax")
def ragged_dot_bf16_pair_deep(meta: Any) -> Launch:
    return _ragged(meta, BF16, 128, 320, [128, 100, 28])


@case("jax")
def ragged_dot_f16_pair_one(meta: Any) -> Launch:
    return _ragged(meta, F16, 128, 128, [255, 0, 1])


@case("jax")
def pipelined_add(meta: Any) -> Launch:
    r, run = rng(), Recorded(meta)
    x, y = (run.fill(n, small(r, (128, 128), "f4")) for n in range(2))
    return run.launch((run.array(2, "f4", (128, 128)), x + y, 0))
