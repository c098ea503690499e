"""Tensor maps as CuTe DSL's host code writes them: those of tensors whose sizes are known.

The third word of each was printed by CuTe DSL 4.8 for an array of 160 x 384 elements and boxes of 8
rows.
"""

from __future__ import annotations

import struct

import pytest

import tcir
from tcir.cute.tensor_maps import machine_map, with_machine_maps
from tcir.machine.tma.tensor_map import decode

ADDRESS = 0x557A_F9FE_E9E0


def written(kinds: int, element_bytes: int, columns: int, **changed: int) -> bytes:
    """The words; changed: others, as w7=1."""
    words = [ADDRESS & 0xFFFF_FFFF, ADDRESS >> 32, kinds, 384 * element_bytes // 16]
    words += [0, 0, 0, 0, 383, 159, 0, 0, 0, (columns - 1) << 24, 7, 0]
    for name, value in changed.items():
        words[int(name[1:])] = value
    return struct.pack("<16I", *words) + bytes(range(64))


SEEN = [
    (0x240392, 4, 32, "f32", "NONE"),
    (0x246392, 4, 32, "f32", "128B"),
    (0x250392, 4, 32, "tf32", "NONE"),
    (0x040312, 2, 64, "f16", "NONE"),
    (0x046312, 2, 64, "f16", "128B"),
    (0x044312, 2, 32, "f16", "64B"),
    (0x042312, 2, 16, "f16", "32B"),
    (0x240112, 4, 32, "u32", "NONE"),
    (0x040012, 1, 64, "u8", "NONE"),
    (0x040092, 2, 64, "u16", "NONE"),
    (0x240212, 8, 16, "u64", "NONE"),
    (0x240492, 8, 16, "f64", "NONE"),
]


@pytest.mark.parametrize(("kinds", "size", "columns", "dtype", "swizzle"), SEEN)
def test_maps_that_were_seen(kinds: int, size: int, columns: int, dtype: str, swizzle: str) -> None:
    found = decode(machine_map(written(kinds, size, columns)))
    fields = found.fields
    assert (found.address, fields.dtype, fields.swizzle) == (ADDRESS, dtype, swizzle)
    assert (fields.dims, fields.box, fields.strides_bytes) == (
        (384, 160),
        (columns, 8),
        (384 * size,),
    )
    assert fields.mode == "tiled" and fields.oob_fill == "zero" and fields.interleave == "NONE"


@pytest.mark.parametrize(
    "raw",
    [
        written(0x240392 | 1 << 11, 4, 32),  # an interleave
        written(0x240392 | 1 << 15, 4, 32),
        written(0x240612, 4, 32),  # an element behind those that were seen
        written(0x240391, 4, 32),  # not tiled
        written(0x240392, 4, 32, w7=1),
        written(0x240392, 4, 32, w13=0x1F00_0001),
    ],
)
def test_maps_of_other_kinds(raw: bytes) -> None:
    with pytest.raises(
        tcir.LaunchError, match=r"tensor map: expected tiles of u8, .* another kind"
    ):
        machine_map(raw)


def test_maps_in_a_parameter() -> None:
    """At multiples of 64, where the address is that of a memory; all else stays as it is."""
    raw = written(0x240392, 4, 32)
    held = ((ADDRESS - 64, ADDRESS + 4096),)
    other = bytes(64) + raw
    assert with_machine_maps(raw, 64, held) == machine_map(raw)
    assert with_machine_maps(other, 64, held) == bytes(64) + machine_map(raw)
    assert with_machine_maps(raw, 8, held) == raw
    assert with_machine_maps(raw, 64, ((0, 4096),)) == raw
    struct_of_numbers = written(2, 4, 32)
    assert with_machine_maps(struct_of_numbers, 64, held) == struct_of_numbers
