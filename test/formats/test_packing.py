"""Packed codes and blocked scales, against bits placed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcir import formats
from tcir.formats import FormatError


def random_codes(shape: tuple[int, ...], bits: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 1 << bits, shape).astype(np.uint8)


def stream(codes: list[int], bits: int) -> list[int]:
    """The definition: one large little-endian integer."""
    number = sum(code << (k * bits) for k, code in enumerate(codes))
    return list(number.to_bytes(-(-len(codes) * bits // 8), "little"))


def test_two_per_byte() -> None:
    assert formats.pack(np.array([0x1, 0x2, 0xF], np.uint8), 4).tolist() == [0x21, 0x0F]


@given(
    outer=st.lists(st.integers(0, 3), max_size=2),
    k=st.integers(0, 70),
    bits=st.sampled_from([2, 4, 6, 8]),
)
def test_round_trip(outer: list[int], k: int, bits: int) -> None:
    codes = random_codes((*outer, k), bits)
    packed = formats.pack(codes, bits)
    assert packed.shape == (*outer, formats.packed_bytes(k, bits))
    for row in np.ndindex(*outer):
        assert packed[row].tolist() == stream(codes[row].tolist(), bits)
    np.testing.assert_array_equal(formats.unpack(packed, bits, k), codes)
    if bits in formats.PADDED_UNITS:
        units = formats.pack_units(codes, bits)
        assert units.shape == (*outer, -(-k // 16) * 16)
        for row in np.ndindex(*outer):
            for u in range(0, k, 16):
                data = stream((codes[row].tolist()[u : u + 16] + [0] * 16)[:16], bits)
                assert units[row][u : u + 16].tolist() == data + [0] * (16 - 2 * bits)
        units.reshape(*outer, -1 if codes.size else 0, 16)[..., 2 * bits :] = 0xA5
        np.testing.assert_array_equal(formats.unpack_units(units, bits, k), codes)


@given(
    outer=st.lists(st.integers(0, 2), max_size=2), rows=st.integers(0, 300), n=st.integers(0, 13)
)
def test_blocked(outer: list[int], rows: int, n: int) -> None:
    """Every scale is where the formula says, everything else is 0, and the way back is exact."""
    scales = np.random.default_rng(rows + n).integers(1, 256, (*outer, rows, n)).astype(np.uint8)
    blocked = formats.to_blocked(scales)
    size = formats.blocked_bytes(rows, n)
    assert blocked.shape == (*outer, -(-rows // 128), -(-n // 4), 512)
    assert blocked.flags.c_contiguous
    o, i = np.meshgrid(np.arange(rows), np.arange(n), indexing="ij")
    block = o // 128 * -(-n // 4) + i // 4
    offset = block * 512 + (o % 32) * 16 + (o % 128) // 32 * 4 + i % 4
    assert len(np.unique(offset)) == rows * n  # a bijection onto rows x n bytes of the image
    np.testing.assert_array_equal(formats.blocked_offset(o, i, n), offset)
    expected = np.zeros((*outer, size), np.uint8)
    expected[..., offset] = scales
    np.testing.assert_array_equal(blocked.reshape(*outer, size), expected)
    np.testing.assert_array_equal(formats.from_blocked(blocked, rows, n), scales)


def test_blocked_fills_whole_blocks() -> None:
    o, i = np.meshgrid(np.arange(256), np.arange(12), indexing="ij")
    offsets = formats.blocked_offset(o, i, 12).ravel()
    np.testing.assert_array_equal(np.sort(offsets), np.arange(formats.blocked_bytes(256, 12)))


def test_as_the_layout_algebra_has_it() -> None:
    layout = pytest.importorskip("tcir.layout.scale_factors").memory(256, 12)
    for row, scale in [(0, 0), (1, 0), (32, 1), (127, 3), (128, 4), (255, 11)]:
        assert layout((row, scale)) == formats.blocked_offset(row, scale, 12)


def test_refusals() -> None:
    codes = np.array([[1, 2, 16]], np.uint8)
    image = formats.to_blocked(np.ones((200, 5), np.uint8))
    cases = [
        (lambda: formats.pack(codes, 4), "4-bit code: expected below 0x10, got 0x10"),
        (lambda: formats.pack(codes, 5), "expected 2, 4, 6 or 8, got 5"),
        (lambda: formats.pack(codes.astype(int), 8), "expected uint8, got int64"),
        (lambda: formats.pack(np.array(1, np.uint8), 4), r"expected \[..., K\], got \(\)"),
        (lambda: formats.unpack(codes, 4, 8), "expected 4 for k = 8, got 3"),
        (lambda: formats.unpack(codes, 4, -1), "for k = -1"),
        (lambda: formats.pack_units(codes, 8), "expected 4 or 6, got 8"),
        (lambda: formats.unpack_units(codes, 6, 3), "expected 16 for k = 3, got 3"),
        (lambda: formats.to_blocked(codes[0]), r"expected \[..., rows, scales\], got \(3,\)"),
        (lambda: formats.from_blocked(image, 200, 9), r"\[..., 2, 3, 512\], got \(2, 2, 512\)"),
        (lambda: formats.from_blocked(image.ravel(), 200, 5), r"got \(2048,\)"),
        (lambda: formats.blocked_bytes(-1, 4), "none below 0, got -1 x 4"),
        (lambda: formats.blocked_offset(3, 5, 5), r"scale in \[0, 5\), got row 3, scale 5"),
    ]
    for call, message in cases:
        with pytest.raises(FormatError, match=message):
            call()
