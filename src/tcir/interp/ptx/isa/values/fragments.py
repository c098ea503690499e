"""Positions of the elements of warp matrices in registers (PTX ISA 9.7.14).

The functions map each element index of a lane to a row and a column, as two int arrays [elements,
32]. In the formulas g = lane / 4 and c = lane % 4. A register contains 32 / bits neighbouring
elements.
"""

from __future__ import annotations

import numpy as np

_LANE = np.arange(32)
_G, _C = _LANE >> 2, _LANE & 3


def fragment_a(bits: int, m: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column (along K) of the elements of A, m x k. With m = 16, a lane has two rows of
    each block of k.
    """
    per = max(1, 32 // bits)
    rows, columns = [], []
    for block in range(k // (4 * per)):
        for half in range(m // 8):
            for i in range(per):
                rows.append(_G + 8 * half)
                columns.append(_C * per + i + 4 * per * block)
    return np.array(rows), np.array(columns)


def fragment_b(bits: int, k: int, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Row (along K) and column of the elements of B, k x n, one block of 8 columns after the
    other.
    """
    per = max(1, 32 // bits)
    rows = [_C * per + i + 4 * per * block for block in range(k // (4 * per)) for i in range(per)]
    tiles = [_G + 8 * tile for tile in range(n // 8) for _ in rows]
    return np.array(rows * (n // 8)), np.array(tiles)


def fragment_c(m: int, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of the elements of C and D, m x n, one block of 8 columns after the other."""
    tiles = range(n // 8)
    rows = [_G + 8 * half for _ in tiles for half in range(m // 8) for _ in range(2)]
    columns = [2 * _C + i + 8 * tile for tile in tiles for _ in range(m // 8) for i in range(2)]
    return np.array(rows), np.array(columns)


def elements(words: np.ndarray, bits: int) -> np.ndarray:
    """Unpacks registers [..., r, 32] into codes of `bits` bits, [..., r · 32 / bits, 32]."""
    if bits >= 32:
        return words
    per = 32 // bits
    shifts = (bits * np.arange(per, dtype=np.uint32))[:, None]
    codes = words[..., :, None, :] >> shifts & np.uint32((1 << bits) - 1)
    return codes.reshape(*words.shape[:-2], -1, 32).astype(np.uint16 if bits == 16 else np.uint8)


# --- m8n8k4 of f16: four products at once, each of two groups of four lanes ---------------------

_UPPER = (_LANE >= 16) * 4  # the second group of a pair has rows (or columns) 4..7


def quad(lanes: np.ndarray) -> np.ndarray:
    """Number of the product in which a lane participates: m8n8k4 computes four products at once."""
    return lanes % 16 // 4


def volta_operand(transposed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Index along M or N, and index along K, of the four elements that a lane has of A or B.

    `transposed`: the elements of a lane lie along M (A is .col) or along N (B is .row).
    """
    i = np.arange(4)[:, None]
    if transposed:
        return i + _UPPER, np.broadcast_to(_LANE % 4, (4, 32))
    return np.broadcast_to(_LANE % 4 + _UPPER, (4, 32)), np.broadcast_to(i, (4, 32))


def volta_accumulator(half: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of the eight elements that a lane has of C or D; `half`: the elements are
    f16.
    """
    i = np.arange(8)[:, None]
    if half:
        return np.broadcast_to(_LANE % 4 + _UPPER, (8, 32)), np.broadcast_to(i, (8, 32))
    return (_LANE & 1) + (i & 2) + _UPPER, (i & 4) + (_LANE & 2) + (i & 1)
