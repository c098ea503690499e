"""Layouts of block scales in memory: row-major, or in blocks of 512 bytes for 128 rows x 4 scales.

Rows are rows of A or columns of B; k is the last dimension. In the blocked layout, a scale is in
block ``(row / 128, scale / 4)``, and the blocks of the same 128 rows are consecutive. Sources:
cuBLAS, "1D block scaling factors layout"; CUTLASS ``sm100_blockscaled_layout.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .elements import Codes, check_codes
from .errors import FormatError

ROWS, SCALES, BLOCK_BYTES = 128, 4, 512


def blocked_bytes(rows: int, scales: int) -> int:
    """Number of bytes of rows x scales in the blocked layout, padding included."""
    _check_extent(rows, scales)
    return -(-rows // ROWS) * -(-scales // SCALES) * BLOCK_BYTES


def blocked_offset(row: Any, scale: Any, scales: int) -> NDArray[np.int64]:
    """Byte offset of a scale in the blocked layout of an operand with `scales` scales per row;
    accepts arrays.

    The offset within the block is ``(row % 32) · 16 + (row % 128) / 32 · 4 + scale % 4``.
    """
    r, s = np.asarray(row, dtype=np.int64), np.asarray(scale, dtype=np.int64)
    if (r < 0).any() or (s < 0).any() or (s >= scales).any():
        raise FormatError(
            "coordinate",
            f"row {row}, scale {scale}",
            f"row ≥ 0, scale in [0, {scales})",
            "outside the operand",
        )
    block = r // ROWS * -(-scales // SCALES) + s // SCALES
    return block * BLOCK_BYTES + r % 32 * 16 + r % ROWS // 32 * SCALES + s % SCALES


def to_blocked(scales: Codes) -> Codes:
    """Rearranges scales [..., rows, scales] to blocks [..., ceil(rows/128), ceil(scales/4), 512].

    Padding is 0x00, finite in both scale formats (the elements there are zeros or do not exist).
    The result is contiguous: its bytes in order are the memory image.
    """
    check_codes(scales, 8, "scale")
    if scales.ndim < 2:
        raise FormatError("shape of scales", scales.shape, "[..., rows, scales]", "K / block last")
    *outer, rows, n = scales.shape
    down, across = -(-rows // ROWS), -(-n // SCALES)
    padded = np.zeros((*outer, down * ROWS, across * SCALES), np.uint8)
    padded[..., :rows, :n] = scales
    tiles = padded.reshape(*outer, down, 4, 32, across, SCALES)
    # (down, group of 32, row, across, scale) -> (down, across, row, group of 32, scale)
    tiles = np.moveaxis(tiles, (-5, -2, -3, -4, -1), (-5, -4, -3, -2, -1))
    return np.ascontiguousarray(tiles).reshape(*outer, down, across, BLOCK_BYTES)


def from_blocked(blocked: Codes, rows: int, scales: int) -> Codes:
    """Inverse of `to_blocked`; removes the padding. Raises FormatError unless the blocks have the
    right shape.
    """
    check_codes(blocked, 8, "scale")
    _check_extent(rows, scales)
    down, across = -(-rows // ROWS), -(-scales // SCALES)
    if blocked.shape[-3:] != (down, across, BLOCK_BYTES):
        raise FormatError(
            "shape of blocked scales",
            blocked.shape,
            f"[..., {down}, {across}, {BLOCK_BYTES}]",
            f"{rows} rows are padded to {down * ROWS}, {scales} scales to {across * SCALES}; "
            "reshape a flat image first",
        )
    outer = blocked.shape[:-3]
    tiles = blocked.reshape(*outer, down, across, 32, 4, SCALES)
    tiles = np.moveaxis(tiles, (-5, -2, -3, -4, -1), (-5, -4, -3, -2, -1))
    padded = np.ascontiguousarray(tiles).reshape(*outer, down * ROWS, across * SCALES)
    return np.ascontiguousarray(padded[..., :rows, :scales])


def _check_extent(rows: int, scales: int) -> None:
    if rows < 0 or scales < 0:
        raise FormatError("rows x scales", f"{rows} x {scales}", "none below 0", "they are counts")
