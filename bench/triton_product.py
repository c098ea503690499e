"""A product of f16 matrices in Triton's interpreter (`TRITON_INTERPRET=1` before the import).

Tiles are widened to f32 in front of the dot: numpy multiplies those faster than f16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

TILE = 128, 128, 64
"""Rows, columns and k of a program's step."""


@triton.jit
def product(
    a,
    b,
    c,
    n,
    k,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STEP: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for first in range(0, k, STEP):
        at = first + tl.arange(0, STEP)
        left = tl.load(a + row[:, None] * k + at[None, :]).to(tl.float32)
        right = tl.load(b + at[:, None] * n + column[None, :]).to(tl.float32)
        total += tl.dot(left, right)
    tl.store(c + row[:, None] * n + column[None, :], total)


class Host:
    """A numpy array with the attributes of a PyTorch tensor that the interpreter reads; it is on
    the host."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, array.dtype

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Host:
        return self

    cpu = untyped_storage

    def new_empty(self, _: int, device: str) -> Host:
        return Host(self.array)

    def set_(self, storage: Host, *_: object) -> None:
        self.array = storage.array

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def copy_(self, _: Host) -> None:
        """Returns the same memory."""


def multiply(a: Any, b: Any) -> Any:
    """``a @ b`` in f32; sizes are multiples of `TILE`."""
    (m, k), n = a.shape, b.shape[1]
    rows, columns, step = TILE
    out = np.full((m, n), np.nan, np.float32)
    grid = m // rows, n // columns
    product[grid](Host(a), Host(b), Host(out), n, k, ROWS=rows, COLUMNS=columns, STEP=step)
    return out
