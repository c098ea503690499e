"""Descriptors that the compiler encodes, read back by the machine's own decoder.

The order in which TMA fills a tile (rows of one swizzle span, see `SmemType`) is stated here once
more, so encoder, decoder and definition have to agree.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tcir.machine.tensor_core.descriptor import decode_matrix, element_addresses, element_table
from tcir.machine.tensor_core.instruction_descriptor import decode_instruction
from tcir.passes.nvvm.descriptors import OperandTile, instruction_descriptor

SPANS = {"128B": 128, "64B": 64, "32B": 32}
ATOM_32B = "128B_ATOM_32B"
PATTERN = {"128B": (7, 4), "64B": (3, 4), "32B": (1, 4), ATOM_32B: (3, 5)}
"""Lines that take part, and log2 of the bytes that move together."""


def _where_tma_puts(tile: OperandTile, start: int, mn: int, k: int) -> int:
    """Byte address of element (mn, k) of a tile filled box by box."""
    inner, outer = (k, mn) if tile.major == "K" else (mn, k)
    outer_extent = tile.mn if tile.major == "K" else tile.k
    panel, inside = divmod(inner * tile.element_bytes, tile.span)
    address = start + (panel * outer_extent + outer) * tile.span + inside
    lines, atom = PATTERN[tile.swizzle]
    return address ^ ((address >> 7 & lines) << atom)


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", SPANS)
@pytest.mark.parametrize(("mn", "k"), [(128, 64), (64, 32), (16, 128), (48, 16), (256, 16)])
def test_every_slice_reads_what_tma_wrote(mn: int, k: int, swizzle: str, major: str) -> None:
    tile = OperandTile(mn, k, 2, major, swizzle, SPANS[swizzle])
    start = 0x8400  # 1024-aligned
    for index in range(k // 16):
        bits = tile.constant_bits() | (start + tile.slice_offset(index)) >> 4
        found = element_addresses(decode_matrix(bits), mn, 16, 16, major)
        expected = np.array(
            [
                [_where_tma_puts(tile, start, m, 16 * index + kk) for kk in range(16)]
                for m in range(mn)
            ]
        )
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [4, 8])
@pytest.mark.parametrize(("mn", "k"), [(128, 32), (32, 8), (48, 16), (256, 40)])
def test_every_slice_of_mn_major_tf32(mn: int, k: int, rows: int) -> None:
    """Whatever number of rows of K the stride steps over (assumption atom_32b_rows)."""
    tile = OperandTile(mn, k, 4, "MN", ATOM_32B, 128)
    start = 0x8400
    for index in range(k // 8):
        bits = tile.constant_bits() | (start + tile.slice_offset(index)) >> 4
        base, table = element_table(decode_matrix(bits), mn, 8, 32, "MN", atom_32b_rows=rows)
        expected = np.array(
            [
                [_where_tma_puts(tile, start, m, 8 * index + kk) for kk in range(8)]
                for m in range(mn)
            ]
        )
        np.testing.assert_array_equal(base + table, expected)


def test_the_fields_of_mn_major_tf32() -> None:
    """As CUTLASS's make_umma_desc has it for tiles of Layout_MN_SW128_32B_Atom, K first."""
    bits = OperandTile(128, 32, 4, "MN", ATOM_32B, 128).constant_bits()
    assert (bits >> 61, bits >> 46 & 7, bits >> 52 & 1) == (1, 1, 0)
    assert (bits >> 16 & 0x3FFF) << 4 == 32 * 128  # LBO: 32 rows of K to the next 32 of M or N
    assert (bits >> 32 & 0x3FFF) << 4 == 4 * 128  # SBO: an atom of 4 rows of K


def test_a_wrong_offset_is_seen() -> None:
    """The comparison above can fail."""
    tile = OperandTile(128, 64, 2, "K", "128B", 128)
    bits = tile.constant_bits() + (1 << 32) | 0x8400 >> 4
    found = element_addresses(decode_matrix(bits), 128, 16, 16, "K")
    expected = [_where_tma_puts(tile, 0x8400, m, 0) for m in range(128)]
    assert list(found[:, 0]) != expected


@pytest.mark.parametrize(
    ("n", "a_major", "b_major", "element"),
    list(itertools.product([16, 48, 128, 256], ["K", "MN"], ["K", "MN"], ["f16", "bf16"])),
)
def test_instruction_descriptor(n: int, a_major: str, b_major: str, element: str) -> None:
    bits = instruction_descriptor(
        m=128, n=n, a=element, b=element, a_major=a_major, b_major=b_major
    )
    found = decode_instruction(bits, "f16")
    assert (found.m, found.n, found.k) == (128, n, 16)
    assert (found.a_type, found.b_type, found.d_type) == (element, element, "f32")
    assert (found.a_major, found.b_major) == (a_major, b_major)


def test_the_known_word() -> None:
    """f16 x f16 -> f32, 128 x 256, both K-major (PTX ISA 9.7.16.4.2)."""
    word = instruction_descriptor(m=128, n=256, a="f16", b="f16", a_major="K", b_major="K")
    assert word == 0x08400010


def test_a_field_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="14 bits"):
        OperandTile(64, 4096, 2, "MN", "128B", 128).constant_bits()
