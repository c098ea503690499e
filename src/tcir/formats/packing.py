"""Packs codes of 2, 4 and 6 bits into bytes: densely, or in the padded 16-byte units of shared
memory.

Codes stored one per byte need no packing: this is how fp8 is stored, and fp6 in registers (``cvt``
leaves each value in the low six bits of a byte). Rows (the last axis) are packed separately.
"""

from __future__ import annotations

import numpy as np

from .elements import Codes, check_codes
from .errors import FormatError

UNIT = 16
"""Elements of a padded unit, and its bytes."""

PADDED_UNITS: dict[int, str] = {4: "b4x16_p64", 6: "b6x16_p32"}
"""Bits -> PTX name of the padded unit: 16 elements, then 64 or 32 bits of padding."""


def packed_bytes(k: int, bits: int) -> int:
    """Bytes of k codes stored densely."""
    _check_bits(bits)
    return -(-k * bits // 8)


def pack(codes: Codes, bits: int) -> Codes:
    """Packs densely, little-endian: code k occupies bits [k · bits, (k + 1) · bits) of its row.

    bits 2: four per byte. bits 4: two per byte, the lower k in the low nibble. bits 6: four in
    three bytes. uint8 [..., K] -> [..., ceil(K · bits / 8)]; unused bits of the last byte are 0.
    """
    _check_bits(bits)
    check_codes(codes, bits, f"{bits}-bit")
    k = _last(codes, "codes")
    group = 8 // np.gcd(bits, 8)  # codes that end at a byte
    groups = -(-k // group)
    padded = np.zeros((*codes.shape[:-1], groups * group), np.uint8)
    padded[..., :k] = codes
    per_code = padded.reshape(*codes.shape[:-1], groups, group)
    word = np.zeros(per_code.shape[:-1], np.uint32)
    for i in range(group):
        word |= per_code[..., i].astype(np.uint32) << np.uint32(i * bits)
    count = group * bits // 8
    result = np.stack([(word >> np.uint32(8 * j)).astype(np.uint8) for j in range(count)], axis=-1)
    result = result.reshape(*codes.shape[:-1], groups * count)
    return np.ascontiguousarray(result[..., : packed_bytes(k, bits)])


def unpack(packed: Codes, bits: int, k: int) -> Codes:
    """Inverts `pack`: uint8 [..., ceil(k · bits / 8)] -> codes [..., k]."""
    _check_bits(bits)
    check_codes(packed, 8, "packed")
    have = _last(packed, "packed bytes")
    if k < 0 or have != packed_bytes(k, bits):
        raise FormatError(
            "bytes of a packed row",
            have,
            f"{packed_bytes(max(k, 0), bits)} for k = {k}",
            f"{bits} bits each",
        )
    group = 8 // np.gcd(bits, 8)
    count = group * bits // 8
    groups = -(-k // group)
    padded = np.zeros((*packed.shape[:-1], groups * count), np.uint8)
    padded[..., :have] = packed
    per_byte = padded.reshape(*packed.shape[:-1], groups, count)
    word = np.zeros(per_byte.shape[:-1], np.uint32)
    for j in range(count):
        word |= per_byte[..., j].astype(np.uint32) << np.uint32(8 * j)
    mask = np.uint32((1 << bits) - 1)
    codes = [((word >> np.uint32(i * bits)) & mask).astype(np.uint8) for i in range(group)]
    result = np.stack(codes, axis=-1).reshape(*packed.shape[:-1], groups * group)
    return np.ascontiguousarray(result[..., :k])


def pack_units(codes: Codes, bits: int) -> Codes:
    """Packs codes into padded units, the form in which the kinds f8f6f4 and mxf8f6f4 read them from
    shared memory.

    Each 16 codes are packed densely at the start of a unit of 16 bytes. They fill 8 bytes
    (``b4x16_p64``) or 12 bytes (``b6x16_p32``); the rest of the unit is 0 here and unspecified in
    general (PTX ISA 9.7.16.10.4; TMA writes this form for the types 16U4_ALIGN16B and
    16U6_ALIGN16B). uint8 [..., K] -> [..., 16 · ceil(K / 16)]; codes beyond K are 0. In global
    memory the same codes are dense, 8 or 12 bytes per 16 codes: see `pack`.
    """
    _check_unit(bits)
    check_codes(codes, bits, f"{bits}-bit")
    k = _last(codes, "codes")
    units = -(-k // UNIT)
    padded = np.zeros((*codes.shape[:-1], units, UNIT), np.uint8)
    padded.reshape(*codes.shape[:-1], units * UNIT)[..., :k] = codes
    result = np.zeros_like(padded)
    result[..., : 2 * bits] = pack(padded, bits)
    return result.reshape(*codes.shape[:-1], units * UNIT)


def unpack_units(units: Codes, bits: int, k: int) -> Codes:
    """Inverts `pack_units`: uint8 [..., 16 · ceil(k / 16)] -> codes [..., k], without padding."""
    _check_unit(bits)
    check_codes(units, 8, "padded units")
    have = _last(units, "padded units")
    if k < 0 or have != -(-k // UNIT) * UNIT:
        raise FormatError(
            "bytes of a row of padded units",
            have,
            f"{-(-max(k, 0) // UNIT) * UNIT} for k = {k}",
            "16 bytes hold 16 elements",
        )
    per_unit = units.reshape(*units.shape[:-1], have // UNIT, UNIT)
    codes = unpack(per_unit[..., : 2 * bits], bits, UNIT)
    return np.ascontiguousarray(codes.reshape(*units.shape[:-1], have)[..., :k])


def _check_bits(bits: int) -> None:
    if bits not in (2, 4, 6, 8):
        raise FormatError(
            "bits of an element", bits, "2, 4, 6 or 8", "i2, i4, fp4, fp6 and fp8 have these"
        )


def _check_unit(bits: int) -> None:
    if bits not in PADDED_UNITS:
        raise FormatError("bits of a padded element", bits, "4 or 6", "fp8 needs no padding")


def _last(array: Codes, what: str) -> int:
    if array.ndim == 0:
        raise FormatError(f"shape of {what}", "()", "[..., K]", "rows lie along the last axis")
    return array.shape[-1]
