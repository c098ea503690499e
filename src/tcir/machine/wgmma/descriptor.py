"""The matrix descriptor of wgmma, and the addresses of the elements that it describes.

Sources: PTX ISA 9.7.15.5.1.2 (canonical layouts, matrix descriptor). Three cases that the ISA
leaves open are modelled as observed on an H200 (test/hopper/wgmma.json): the base offset; rows
longer than the swizzle's span; and starts inside a row of the swizzle pattern, from which an
operand continues into the next row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.swizzle import swizzle
from tcir.machine.refusal import DescriptorError

SWIZZLES = {0: "NONE", 1: "128B", 2: "64B", 3: "32B"}
"""Code in bits 63..62 -> swizzle. Blackwell has three-bit codes instead."""
_FIELDS = "PTX ISA 9.7.15.5.1.2.2, matrix descriptor of wgmma"


@dataclass(frozen=True)
class WgmmaDescriptor:
    """Decoded fields of a descriptor, in bytes. line: number, modulo 8, of the 128-byte line at
    which the swizzle's pattern starts (the base offset).
    """

    start: int
    lbo: int
    sbo: int
    swizzle: str
    line: int


@lru_cache(maxsize=4096)
def decode_matrix(bits: int) -> WgmmaDescriptor:
    """Decodes and checks a descriptor. Raises DescriptorError, which names the illegal field."""

    def field(high: int, low: int) -> int:
        return (bits >> low) & ((1 << (high - low + 1)) - 1)

    for high, low in ((15, 14), (31, 30), (48, 46), (61, 52)):
        if field(high, low):
            raise DescriptorError(
                f"wgmma descriptor bits {high}..{low}",
                hex(field(high, low)),
                "0" + " (0b001 is tcgen05's)" * (high == 48),
                _FIELDS,
            )
    return WgmmaDescriptor(
        start=field(13, 0) << 4,
        lbo=field(29, 16) << 4,
        sbo=field(45, 32) << 4,
        swizzle=SWIZZLES[field(63, 62)],
        line=field(51, 49),
    )


def element_table(
    desc: WgmmaDescriptor, rows: int, k: int, bits: int, major: str
) -> tuple[int, NDArray[np.int64]]:
    """Returns (base, table): element (mn, k) of `bits` bits is at base + table[mn, k], int64 [rows,
    k].

    The table is read-only. Descriptors with the same layout and the same phase in the swizzle
    pattern share one table.
    """
    phase = desc.start % swizzle(desc.swizzle).period
    return desc.start - phase, _table(replace(desc, start=phase), rows, k, bits, major)


@lru_cache(maxsize=512)
def _table(desc: WgmmaDescriptor, rows: int, k: int, bits: int, major: str) -> NDArray[np.int64]:
    """Offsets with the swizzle, which XORs by the line number counted from the start of the
    pattern."""
    mode = swizzle(desc.swizzle)
    linear = desc.start + _linear(desc, mode.span, rows, k, bits, major)
    table = linear ^ ((linear >> 7) - desc.line & mode.lines_mask) << mode.chunk_shift
    table.flags.writeable = False
    return table


def _linear(
    desc: WgmmaDescriptor, span: int, rows: int, k: int, bits: int, major: str
) -> NDArray[np.int64]:
    """Byte offsets from the start, before the swizzle. span: bytes of a row of the swizzle; 0: no
    swizzle."""
    lbo, sbo, size, unit = desc.lbo, desc.sbo, bits // 8, 128 // bits
    mn = np.arange(rows, dtype=np.int64)[:, None]
    kk = np.arange(k, dtype=np.int64)[None, :]
    if major == "K":
        row = span or 16
        return mn % 8 * row + mn // 8 * sbo + kk * size % row + kk * size // row * lbo
    if not span:
        return mn % unit * size + mn // unit * sbo + kk % 8 * 16 + kk // 8 * lbo
    wide = span // size
    return mn % wide * size + mn // wide * lbo + kk % 8 * span + kk // 8 * sbo
