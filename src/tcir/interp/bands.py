"""Band of an attention: the range of keys that each row attends to, given by the difference of the
key's number and the row's number.
"""

from __future__ import annotations

import numpy as np

from tcir.dialect.ops.attention import Band
from tcir.interp.types import Array


def allowed(
    rows: int, columns: int, keys: int, band: Band, first: tuple[int, int] = (0, 0)
) -> Array:
    """Mask [rows, columns], true for each key that a row attends to: a key inside the row's band
    whose number is less than `keys`.

    first: number of the first row, and number of the first key
    """
    row = first[0] + np.arange(rows)[:, None]
    key = first[1] + np.arange(columns)[None, :]
    kept = np.broadcast_to(key < keys, (rows, columns))
    if band.last is not None:
        kept = kept & (key <= row + band.last)
    if band.first is not None:
        kept = kept & (key >= row + band.first)
    return kept
