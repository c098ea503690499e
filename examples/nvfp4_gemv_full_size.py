"""A GEMV of real size, (M, K, L) = (7168, 2048, 4), from linalg to a cubin, and executed.

    python examples/nvfp4_gemv_full_size.py [CUBIN]

One tile of 128 rows, with all of K and L, is executed after every pass, with the record of hazards;
the whole problem, 56 such tiles a product, from PTX alone and without that record, as it would take
too long else. Its data make every sum exact, so numpy's result has to come out to the bit.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np

import tcir
from tcir import formats

SOURCE = Path(__file__).parent / "nvfp4_gemv_7168x2048x4.mlir"
M, K, L = 7168, 2048, 4
SCALES = np.array([0.5, 1, 2], ml_dtypes.float8_e4m3fn)


def operand(random: np.random.Generator, *shape: int) -> tuple[np.ndarray, ...]:
    """Packed elements and scales for the kernel, and the values they stand for."""
    codes = random.integers(0, 16, shape, dtype=np.uint8)
    scales = random.choice(SCALES, (*shape[:-1], K // 16))
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return formats.pack(codes, 4), scales, values * scales.astype(np.float32).repeat(16, -1)


def main() -> int:
    """0 if all results are equal, else 1."""
    text, start = SOURCE.read_text(), time.perf_counter()
    report = tcir.compile(text.replace(str(M), "128"), "gemv-padded-n", validate=True).report
    print(f"(128, {K}, {L}), a tile of each product, executed after every pass:\n{report}")
    if not report.ok:
        return 1

    kernel = tcir.compile(text, pipeline="gemv-padded-n")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_bytes(kernel.cubin)
    random = np.random.default_rng(2026)
    a, sa, a_values = operand(random, L, M, K)
    b, sb, b_values = operand(random, L, K)
    result = np.zeros((L, M), np.float32)
    kernel(a, sa, b, sb, result, hazards="off")
    want = np.einsum("lmk,lk->lm", a_values, b_values)
    equal = bool((result == want).all())
    grids = ", ".join(f"{x.name} {'x'.join(map(str, x.grid))}" for x in kernel.launches.launches)
    print(
        f"({M}, {K}, {L}), executed from PTX alone, hazards not recorded: "
        f"{'equal' if equal else 'DIFFERENT'} to numpy; kernels: {grids}; "
        f"{time.perf_counter() - start:.0f} s in all"
    )
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
