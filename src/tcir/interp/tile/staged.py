"""Offsets of the elements of a ``!tc.staged`` tile, computed from the definition of the type alone.

Like `addresses`, this code is deliberately independent of the compiler's address arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tcir._mlir import ir
from tcir.interp.types import Array, dtype_of


@dataclass(frozen=True)
class StagedLayout:
    """The parameters of the type ``!tc.staged`` as plain data."""

    mn: int
    k: int
    element_bytes: int
    k_major: bool
    swizzle: tuple[int, int, int]

    def offsets(self) -> Array:
        """Byte offset of every element in the tile: int64[mn, k]."""
        return _offsets(self)


@lru_cache(maxsize=256)
def _offsets(tile: StagedLayout) -> Array:
    mn = np.arange(tile.mn, dtype=np.int64)[:, None]
    k = np.arange(tile.k, dtype=np.int64)[None, :]
    linear = mn * tile.k + k if tile.k_major else k * tile.mn + mn
    byte = linear * tile.element_bytes
    bits, base, shift = tile.swizzle
    field = ((byte >> (base + shift)) % (1 << bits)) << base
    swizzled: Array = byte ^ field
    swizzled.setflags(write=False)
    return swizzled


def staged_layout(type_: ir.Type) -> StagedLayout:
    """Returns the parameters of a `!tc.staged` type as plain data."""
    mn, k = type_.shape
    return StagedLayout(mn, k, dtype_of(type_.element).itemsize, type_.major == "K", type_.swizzle)
