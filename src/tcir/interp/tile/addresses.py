"""Addresses of the elements of a shared tile, computed from the definition of ``!tc.smem`` alone.

This code is deliberately independent of the compiler's layouts and descriptors. If it shared their
code, a wrong address would be wrong on both sides, and no comparison would show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tcir.interp.types import Array

_PHASES = {"NONE": (0, 4), "32B": (1, 4), "64B": (3, 4), "128B": (7, 4), "128B_ATOM_32B": (3, 5)}
"""Swizzle mode -> the bits of (address / 128) that are XORed into the chunk's number, and log2 of
the chunk's bytes. PTX ISA 9.7.16.10.6; CUTLASS cute/swizzle.hpp: Swizzle<1,4,3>, <2,4,3>, <3,4,3>,
<2,5,2>."""


@dataclass(frozen=True)
class TileLayout:
    """The parameters of the type ``!tc.smem<[mn, k], element, major, swizzle>`` as plain data."""

    mn: int
    k: int
    element_bytes: int
    major: str
    swizzle: str

    @property
    def span(self) -> int:
        """Bytes of one row that are adjacent in memory: the swizzle span."""
        return {"NONE": 16, "32B": 32, "64B": 64}.get(self.swizzle, 128)

    @property
    def nbytes(self) -> int:
        """Bytes of the tile: whole columns as wide as the swizzle span, rounded up to 128 bytes for
        TMA boxes.
        """
        inner, outer = (self.k, self.mn) if self.major == "K" else (self.mn, self.k)
        rows = -(-inner * self.element_bytes // self.span) * outer
        return -(-rows * self.span // 128) * 128

    def elements(
        self, base: int, k_first: int, k_count: int, rows: tuple[int, int] | None = None
    ) -> Array:
        """Byte addresses of the elements (mn, k_first + j) of a tile at address `base`: int64[mn,
        k_count]. rows: limits mn to [first, last)
        """
        if rows is None:
            return _elements(self, base, k_first, k_count)
        return _rows(self, base, k_first, k_count, rows)

    def elements_from(self, row: int, base: int, k_first: int, k_count: int) -> Array:
        """Byte addresses as in `elements`, of 128 consecutive rows from `row` on. After the last
        row of the tile, the rows continue in the next column: int64[128, k_count].

        Only for tiles whose rows are equidistant (K-major, not swizzled).
        """
        return _elements_from(self, row, base, k_first, k_count)


_OPERAND_ROWS = np.arange(128, dtype=np.int64)[:, None]


@lru_cache(maxsize=4096)
def _elements(tile: TileLayout, base: int, k_first: int, k_count: int) -> Array:
    if not 0 <= k_first <= k_first + k_count <= tile.k:
        raise IndexError(f"expected k below {tile.k}, got {k_first} to {k_first + k_count - 1}")
    mn = np.arange(tile.mn, dtype=np.int64)[:, None]
    k = np.arange(k_first, k_first + k_count, dtype=np.int64)[None, :]
    inner, outer, rows = (k, mn, tile.mn) if tile.major == "K" else (mn, k, tile.k)
    column, byte = np.divmod(inner * tile.element_bytes, tile.span)
    address = base + (column * rows + outer) * tile.span + byte
    lines, chunk = _PHASES[tile.swizzle]
    address = address ^ (((address >> 7) & lines) << chunk)
    address.setflags(write=False)
    return address


@lru_cache(maxsize=4096)
def _rows(tile: TileLayout, base: int, k_first: int, k_count: int, rows: tuple[int, int]) -> Array:
    """Returns the addresses of some rows. Equal arguments give the same array, because the machine
    caches its tables of an operand by the array's identity."""
    first, last = rows
    if not 0 <= first < last <= tile.mn:
        raise IndexError(f"rows {first}..{last - 1} of a tile of {tile.mn}")
    return _elements(tile, base, k_first, k_count)[first:last]


@lru_cache(maxsize=4096)
def _elements_from(tile: TileLayout, row: int, base: int, k_first: int, k_count: int) -> Array:
    address = _elements(tile, base, k_first, k_count)[:1] + tile.span * (row + _OPERAND_ROWS)
    address.setflags(write=False)
    return address


@lru_cache(maxsize=4096)
def slice_bytes(
    tile: TileLayout, base: int, k_first: int, k_count: int, rows: tuple[int, int] | None = None
) -> Array:
    """Byte addresses of a slice along K, row by row: int64[mn, k_count * element_bytes].

    rows: limits mn to [first, last); see `_rows`.
    """
    element = _elements(tile, base, k_first, k_count)[slice(*rows) if rows else slice(None)]
    every = element[:, :, None] + np.arange(tile.element_bytes, dtype=np.int64)
    flat = every.reshape(len(element), -1)
    flat.setflags(write=False)
    return flat
