"""A matrix product in Triton for the GPU at hand, tiles in groups of rows for the L2 cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

#: BM, BN, BK, warps, stages
CONFIGS = (
    (128, 256, 64, 8, 3),
    (128, 256, 64, 8, 4),
    (128, 128, 64, 8, 4),
    (128, 128, 64, 4, 4),
    (256, 128, 64, 8, 3),
)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """C = A · B, all row-major and whole tiles; sums in f32, C in f32."""
    rows, columns = M // BM, N // BN
    tile = tl.program_id(0)
    group = tile // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    m = (group * GROUP + tile % (GROUP * columns) % height) * BM
    n = (tile % (GROUP * columns) // height) * BN
    rm, rn, rk = m + tl.arange(0, BM), n + tl.arange(0, BN), tl.arange(0, BK)
    a = a_ptr + rm[:, None] * K + rk[None, :]
    b = b_ptr + rk[:, None] * N + rn[None, :]
    sums = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += BK
        b += BK * N
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], sums)


def launches(a: Any, b: Any, c: Any) -> dict[str, Callable[[], Any]]:
    """Returns a launch for each configuration."""
    m, k = a.shape
    n = b.shape[1]

    def launch(bm: int, bn: int, bk: int, warps: int, stages: int) -> Callable[[], Any]:
        grid = ((m // bm) * (n // bn),)
        return lambda: matmul[grid](
            a, b, c, m, n, k, bm, bn, bk, 8, num_warps=warps, num_stages=stages
        )

    return {f"{c[0]}x{c[1]}x{c[2]}, {c[3]} warps, {c[4]} stages": launch(*c) for c in CONFIGS}
