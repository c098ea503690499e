"""The 64-bit shared-memory matrix descriptor, and the address of every element that it describes.

Sources: PTX ISA 9.7.16.4.1 (matrix descriptor), 9.7.16.3 and 9.7.16.10.6 (layouts, swizzles);
CUTLASS cute/atom/mma_traits_sm100.hpp, make_umma_desc (the formulas in its comments).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.swizzle import swizzle, swizzle_address
from tcir.machine.refusal import DescriptorError
from tcir.machine.tensor_core.instruction_descriptor import (
    InstructionDescriptor,
    decode_instruction,
)

__all__ = [
    "CP_SHAPES",
    "InstructionDescriptor",
    "MatrixDescriptor",
    "cp_addresses",
    "decode_instruction",
    "decode_matrix",
    "element_addresses",
    "element_table",
]

_FIELDS = "PTX ISA 9.7.16.4.1, matrix descriptor"

SWIZZLE_CODES: dict[int, str] = {
    0: "NONE",
    1: "128B_ATOM_32B",
    2: "128B",
    4: "64B",
    6: "32B",
}
"""Code in bits 63..61 -> swizzle. Hopper has two-bit codes instead."""

CP_SHAPES: dict[str, tuple[int, int]] = {
    "128x256b": (128, 32),
    "128x128b": (128, 16),
    "64x128b": (64, 16),
    "32x128b": (32, 16),
    "4x256b": (4, 32),
}
"""Shape of tcgen05.cp -> (source rows, bytes per row). PTX ISA 9.7.16.9."""


@dataclass(frozen=True)
class MatrixDescriptor:
    """Decoded fields of a descriptor, in bytes. `lbo` and `sbo`: leading and stride dimension byte
    offset.
    """

    start: int
    lbo: int
    sbo: int
    swizzle: str


@lru_cache(maxsize=4096)
def decode_matrix(bits: int) -> MatrixDescriptor:
    """Decodes and checks a matrix descriptor. Raises DescriptorError, which names the illegal
    field.
    """
    if not 0 <= bits < 1 << 64:
        raise DescriptorError("matrix descriptor", hex(bits), "64 bits", _FIELDS)

    def field(high: int, low: int) -> int:
        return (bits >> low) & ((1 << (high - low + 1)) - 1)

    for high, low in ((15, 14), (31, 30), (60, 53)):
        if field(high, low):
            raise DescriptorError(
                f"matrix descriptor bits {high}..{low}",
                hex(field(high, low)),
                "0 (reserved)",
                _FIELDS,
            )
    if field(48, 46) > 1:  # 0 works, too: `SharedDesc.lacks_constant`
        raise DescriptorError("matrix descriptor bits 48..46", field(48, 46), "0b001", _FIELDS)
    if field(52, 52):
        raise DescriptorError(
            "leading dimension mode (bit 52)", 1, "0 (byte offset)", "absolute needs sm_103a"
        )
    code = field(63, 61)
    if code not in SWIZZLE_CODES:
        allowed = ", ".join(f"{c} ({name})" for c, name in SWIZZLE_CODES.items())
        raise DescriptorError("swizzle code (bits 63..61)", code, allowed, _FIELDS)
    if code and field(51, 49):  # without a swizzle there is no pattern for it to shift
        raise DescriptorError(
            "base offset",
            field(51, 49),
            "0 with a swizzle: start the pattern at an aligned address",
            "a row phase other than that of the address is not modelled here",
        )
    return MatrixDescriptor(
        start=field(13, 0) << 4,
        lbo=field(29, 16) << 4,
        sbo=field(45, 32) << 4,
        swizzle=SWIZZLE_CODES[code],
    )


def _check_layout(desc: MatrixDescriptor, rows: int, k: int, bits: int, major: str) -> None:
    if major not in ("K", "MN"):
        raise DescriptorError("major", major, "K or MN", "an operand is one or the other")
    if bits not in (4, 8, 16, 32):
        raise DescriptorError("element bits", bits, "4, 8, 16 or 32", "bits in shared memory")
    where = "PTX ISA 9.7.16.10.3, majorness and swizzle"
    if major == "K" and desc.swizzle == "128B_ATOM_32B":
        raise DescriptorError("K-major swizzle", desc.swizzle, "NONE, 32B, 64B or 128B", where)
    if major == "MN":
        if bits == 4:
            raise DescriptorError("major of a 4-bit operand", "MN", "K", where)
        if (bits == 32) != (desc.swizzle == "128B_ATOM_32B"):
            allowed = "128B_ATOM_32B" if bits == 32 else "NONE, 32B, 64B or 128B"
            raise DescriptorError(f"MN-major {bits}-bit swizzle", desc.swizzle, allowed, where)
    span = swizzle(desc.swizzle).span
    if span:
        used = min(span, (k if major == "K" else rows) * bits // 8)
        if desc.start % span + used > span:
            raise DescriptorError(
                "matrix start address",
                f"{hex(desc.start)} ({desc.start % span} bytes into a row of the pattern)",
                f"at most {span - used} bytes into a row of {span} bytes",
                f"the operand's {used} contiguous bytes would run out of the swizzle row",
            )


def _linear_offsets(
    desc: MatrixDescriptor, rows: int, k: int, bits: int, major: str, atom_32b_rows: int
) -> NDArray[np.int64]:
    """Byte offset from the start address of element (mn, k), before the swizzle."""
    lbo, sbo, mode = desc.lbo, desc.sbo, desc.swizzle
    mn = np.arange(rows, dtype=np.int64)[:, None]
    kk = np.arange(k, dtype=np.int64)[None, :]
    unit = 128 // bits
    span = swizzle(mode).span
    if major == "K":
        if not span:
            along_k = kk // unit * lbo + kk % unit * bits // 8
            return mn % 8 * 16 + mn // 8 * sbo + along_k
        return mn % 8 * span + mn // 8 * sbo + kk * bits // 8
    size = bits // 8
    if not span:
        return mn % unit * size + mn // unit * sbo + kk % 8 * 16 + kk // 8 * lbo
    wide = span // size
    lines = atom_32b_rows if mode == "128B_ATOM_32B" else 8
    return mn % wide * size + mn // wide * lbo + kk % lines * span + kk // lines * sbo


LINE = 128
"""Bytes of a line; a swizzle moves bytes only within their line."""


@lru_cache(maxsize=512)
def _swizzled_table(
    desc: MatrixDescriptor, rows: int, k: int, bits: int, major: str, atom_32b_rows: int
) -> NDArray[np.int64]:
    linear = desc.start + _linear_offsets(desc, rows, k, bits, major, atom_32b_rows)
    table = swizzle_address(linear, desc.swizzle)
    table.flags.writeable = False
    return table


def element_table(
    desc: MatrixDescriptor,
    rows: int,
    k: int,
    elem_bits: int,
    major: str,
    *,
    from_start: bool = False,
    atom_32b_rows: int = 4,
) -> tuple[int, NDArray[np.int64]]:
    """Returns (base, table): element (mn, k) is at base + table[mn, k].

    from_start: whether the swizzle counts rows from the descriptor's start, whatever the start's
        phase in the pattern. atom_32b_rows: rows of K that SBO steps over in mode 128B_ATOM_32B; no
        document states this number.

    The table is read-only. All descriptors of the same layout whose starts have the same phase in
    the swizzle pattern share one table, so its identity may serve as a key.
    """
    _check_layout(desc, rows, k, elem_bits, major)
    phase = desc.start % (LINE if from_start else swizzle(desc.swizzle).period)
    pattern = MatrixDescriptor(phase, desc.lbo, desc.sbo, desc.swizzle)
    table = _swizzled_table(pattern, rows, k, elem_bits, major, atom_32b_rows)
    return desc.start - phase, table


def element_addresses(
    desc: MatrixDescriptor, rows: int, k: int, elem_bits: int, major: str
) -> NDArray[np.int64]:
    """Absolute shared-memory byte address of every element, int64 [rows, k].

    `elem_bits` 4 means two elements per byte (kinds mxf4), with the even k in the low half of the
    byte. The narrow types of f8f6f4 are stored in padded 16-byte units; for them pass `elem_bits`
    8, see `narrow.py`.
    """
    base, table = element_table(desc, rows, k, elem_bits, major)
    return base + table


def cp_addresses(desc: MatrixDescriptor, shape: str) -> NDArray[np.int64]:
    """Absolute shared-memory byte addresses that tcgen05.cp reads, int64 [rows, bytes per row]."""
    if shape not in CP_SHAPES:
        raise DescriptorError(
            "tcgen05.cp shape", shape, "one of " + ", ".join(CP_SHAPES), "PTX ISA 9.7.16.9"
        )
    rows, width = CP_SHAPES[shape]
    return element_addresses(desc, rows, width, 8, "K")
