"""The m16n8k16 example of an A100 whose printed result is public, to all 128 values.

A[i] = B[i] = f16(0.01 · i) (A 16 × 16 row-major, B 8 × 16: column n of the product's right side is
its row n), zero C, f16 accumulator. The A100 prints D, four values per thread, with two decimals.
They distinguish models: two fused sums of eight products, each rounded to f16, give all of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from tcir.machine.numerics.warp_mma import AMPERE, BLACKWELL, HOPPER, warp_mma

PRINTED = """
0.12 0.32 1.66 5.13   0.51 0.70 8.59 12.06   0.89 1.08 15.54 19.00   1.28 1.47 22.47 25.94
0.32 0.92 1.85 5.73   1.52 2.12 9.61 13.48   2.72 3.32 17.36 21.25   3.93 4.53 25.12 29.00
0.51 1.52 2.04 6.33   2.53 3.54 10.62 14.91  4.55 5.56 19.20 23.48   6.57 7.59 27.77 32.06
0.70 2.12 2.24 6.93   3.54 4.96 11.63 16.33  6.38 7.80 21.03 25.72   9.22 10.64 30.42 35.12
0.89 2.72 2.43 7.54   4.55 6.38 12.64 17.75  8.21 10.04 22.86 27.97  11.88 13.70 33.06 38.16
1.08 3.32 2.62 8.13   5.56 7.80 13.66 19.17  10.04 12.28 24.69 30.20 14.52 16.77 35.72 41.25
1.28 3.93 2.81 8.74   6.57 9.22 14.66 20.59  11.88 14.52 26.52 32.44 17.17 19.81 38.38 44.31
1.47 4.53 3.00 9.34   7.59 10.64 15.68 22.00 13.70 16.77 28.34 34.69 19.81 22.89 41.03 47.34
"""
"""Registers of threads 0..31 in order: (row g, columns 2c and 2c + 1), (row g + 8, same)."""


def printed() -> np.ndarray:
    registers = np.array(PRINTED.split(), np.float64).reshape(8, 4, 2, 2)  # g, c, half, column
    return registers.transpose(2, 0, 1, 3).reshape(16, 8)


def hundredths(values: np.ndarray) -> np.ndarray:
    """As printf("%.2f") prints them."""
    return np.vectorize(lambda v: float(f"{v:.2f}"))(values.astype(np.float64))


A = (np.arange(256) * 0.01).astype(np.float16).reshape(16, 16)
B = (np.arange(128) * 0.01).astype(np.float16).reshape(8, 16)


def product(part, d_type="f16"):
    d = warp_mma(
        A.view(np.uint16), B.view(np.uint16), np.zeros((16, 8), np.uint32),
        a_type="f16", b_type="f16", d_type=d_type, part=part,
    )  # fmt: skip
    return d.astype(np.uint16).view(np.float16) if d_type == "f16" else d.view(np.float32)


def test_all_printed_values():
    np.testing.assert_array_equal(hundredths(product(AMPERE)), printed())


@pytest.mark.parametrize(
    ("part", "d_type", "misses"),
    [(HOPPER, "f16", 14), (BLACKWELL, "f16", 14), (AMPERE, "f32", 27)],
)
def test_other_numerics_miss_some(part, d_type, misses):
    # One fused sum of sixteen, or an f32 accumulator, is not what that machine did.
    assert (hundredths(product(part, d_type)) != printed()).sum() == misses


def test_the_exact_product_differs():
    exact = A.astype(np.float64) @ B.astype(np.float64).T
    assert (hundredths(exact) != printed()).any()
    np.testing.assert_allclose(printed(), exact, rtol=1e-3, atol=6e-3)
