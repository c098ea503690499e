"""Bands of an attention: the keys that each row attends to, by the numbers of row and key."""

from __future__ import annotations

import numpy as np

from tcir.dialect.ops.attention import Band
from tcir.interp.types import Array


def allowed(
    rows: int, columns: int, keys: int, band: Band, first: tuple[int, int] = (0, 0)
) -> Array:
    """Mask [rows, columns] of the keys below `keys` that each row attends to. first: numbers of the
    first row and of the first key"""
    row = first[0] + np.arange(rows)[:, None]
    key = first[1] + np.arange(columns)[None, :]
    kept = np.broadcast_to(key < keys, (rows, columns))
    if band.last is not None:
        kept = kept & (key <= row + band.last)
    if band.first is not None:
        kept = kept & (key >= row + band.first)
    return kept
