"""Arithmetic of `mma.sync` for types that do not use the fused sums of `warp_mma`: 4-bit and 1-bit
integers, and f64.

Integers are exact. f64 is a chain of fused multiply-adds, lowest k first, as on an H200.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INT = np.iinfo(np.int32)
BIT_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "xor": np.bitwise_xor,
    "and": np.bitwise_and,
}


def integer_values(codes: NDArray[Any], kind: str) -> NDArray[np.int64]:
    """Integer values of s8, u8, s4, u4 or b1 codes."""
    bits = int(kind[1:])
    values = codes.astype(np.int64)
    if kind[0] != "s":
        return values
    return np.where(values >> (bits - 1) != 0, values - (1 << bits), values)


def integer_sum(
    a: NDArray[np.int64], b: NDArray[np.int64], c: NDArray[np.uint32], saturate: bool
) -> NDArray[np.uint32]:
    """A · Bᵀ + C of int64 values, wrapped or saturated to 32 bits."""
    total = a @ b.T + c.view(np.int32)
    if saturate:
        total = np.clip(total, _INT.min, _INT.max)
    return (total & 0xFFFFFFFF).astype(np.uint32)


def bit_sum(
    a: NDArray[np.uint8], b: NDArray[np.uint8], c: NDArray[np.uint32], operation: str
) -> NDArray[np.uint32]:
    """C plus, for each row of A and row of B, the number of bits set in `operation`(row of A, row
    of B).
    """
    ones = BIT_OPERATIONS[operation](a[:, None, :], b[None, :, :]).sum(axis=-1, dtype=np.int64)
    return (ones + c.view(np.int32) & 0xFFFFFFFF).astype(np.uint32)


def double_sum(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    c: NDArray[np.float64],
    fma: Callable[[Any, Any, Any], Any],
) -> NDArray[np.float64]:
    """C + A · Bᵀ, computed by `fma`(a, b, c) for each k in turn."""
    shape = c.shape
    for k in range(a.shape[1]):
        left, right = np.broadcast_arrays(a[:, k, None], b[None, :, k])
        c = fma(left.ravel(), right.ravel(), c.ravel()).reshape(shape)
    return c
