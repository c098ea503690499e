"""Values and numpy oracles of the CUTLASS examples; the launches are recorded ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case, product, rng, small
from peers.cases_blackwell import E4M3, FP4, scale_block
from peers.cases_flash_attn import attention
from peers.recorded import Recorded

F16, BF16 = np.float16, ml_dtypes.bfloat16


@case("cutlass", "70_fp16_gemm")
def fp16_gemm(meta: Any) -> Launch:
    """Two CTAs, 256 x 128 x 64, cluster 2 x 2; C and D are column-major."""
    r, run = rng(), Recorded(meta)
    a, b = run.fill(0, small(r, (256, 256), F16)), run.fill(1, small(r, (128, 256), F16))
    return run.launch((run.array(3, "f4", (128, 256)), product(b, a.T), 0))


def scale_blocks(scales: np.ndarray) -> np.ndarray:
    """Blocks of 128 rows and 4 scales, those along k next to each other."""
    rows, columns = scales.shape
    blocks = [
        scale_block(np.ascontiguousarray(scales[m : m + 128, k : k + 4]))
        for m in range(0, rows, 128)
        for k in range(0, columns, 4)
    ]
    return np.frombuffer(b"".join(blocks), "u1")


@case("cutlass", "72a_nvfp4_bf16_gemm")
def nvfp4_bf16_gemm(meta: Any) -> Launch:
    """Two CTAs, 256 x 128 x 256, cluster 2 x 4; D is row-major."""
    r, run = rng(), Recorded(meta)
    values = []
    for codes_at, scales_at in ((0, 5), (1, 6)):
        codes = r.integers(0, 16, (256, 256), "u1")
        scales = (r.integers(1, 5, (256, 16)) / 2).astype("f4").astype(E4M3)
        run.fill(codes_at, codes[:, ::2] | codes[:, 1::2] << 4)
        run.fill(scales_at, scale_blocks(scales))
        values.append(FP4[codes].astype("f8") * np.repeat(scales.astype("f8"), 16, axis=1))
    want = product(values[0], values[1].T).astype(BF16)
    return run.launch((run.array(3, BF16, (256, 256)), want, 0))


@case("cutlass", "72c_mixed_mxfp8_bf16_gemm")
def mixed_mxfp8_bf16_gemm(meta: Any) -> Launch:
    """Two CTAs, 256 x 256 x 256, cluster 2 x 4; A of e4m3, B of e2m1, scales of 32 elements."""
    r, run = rng(), Recorded(meta)
    a = run.fill(0, small(r, (256, 256), E4M3)).astype("f8")
    codes = r.integers(0, 16, (256, 256), "u1")
    run.fill(1, codes[:, ::2] | codes[:, 1::2] << 4)
    factors = []
    for scales_at in (5, 6):
        exponents = r.integers(126, 129, (256, 8), "u1")
        run.fill(scales_at, scale_blocks(exponents))
        factors.append(np.repeat(2.0 ** (exponents.astype("f8") - 127), 32, axis=1))
    want = product(a * factors[0], (FP4[codes] * factors[1]).T).astype(BF16)
    return run.launch((run.array(3, BF16, (256, 256)), want, 0))


def _tutorial(m: int, n: int, k: int) -> Any:
    """The result is the first buffer, then A, B and C (times 0)."""

    def build(meta: Any) -> Launch:
        r, run = rng(), Recorded(meta)
        a, b = run.fill(1, small(r, (m, k), F16)), run.fill(2, small(r, (n, k), F16))
        return run.launch((run.array(0, "f4", (m, n)), product(a, b.T), 0))

    return build


for _name, _sizes in {
    "tutorial_01": (256, 256, 128),
    "tutorial_02": (256, 256, 128),
    "tutorial_03": (512, 1024, 128),
    "tutorial_04": (512, 1024, 128),
    "tutorial_05": (512, 1024, 128),
}.items():
    case("cutlass", _name)(_tutorial(*_sizes))


@case("cutlass", "76_conv_fprop")
def conv_fprop(meta: Any) -> Launch:
    """Activations [1, 8, 16, 64], filters [128, 3, 3, 64], pad 1: [1, 8, 16, 128]."""
    r, run = rng(), Recorded(meta)
    x = run.fill(0, small(r, (1, 8, 16, 64), F16))
    w = run.fill(1, small(r, (128, 3, 3, 64), F16))
    padded = np.pad(x.astype("f8"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(
        padded[:, i : i + 8, j : j + 16] @ w[:, i, j].astype("f8").T
        for i in range(3)
        for j in range(3)
    )
    return run.launch((run.array(3, F16, (1, 8, 16, 128)), np.asarray(want).astype(F16), 0))


def fmha(meta: Any, keys: int = 512, size: int = 64) -> Launch:
    """256 queries of one head. P is rounded to f16 before the second product."""
    r, run = rng(), Recorded(meta)
    shapes = [(1, rows, 1, size) for rows in (256, keys, keys)]
    q, k, v = (run.fill(n, r.standard_normal(s).astype(F16)) for n, s in enumerate(shapes))
    out, lse = attention(q, k, v, causal=False)
    return run.launch(
        (run.array(3, F16, out.shape), out, 4e-3), (run.array(4, "f4", lse.shape), lse, 1e-3)
    )


for _size in (64, 128):
    case("cutlass", f"77_fmha_{_size}")(partial(fmha, size=_size))
