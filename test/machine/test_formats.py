"""Element formats against ml_dtypes and numpy: every code of every type up to 16 bits."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tcir.machine.numerics.formats import FLOATS, NO_EXPONENT, decode, integers
from tcir.machine.refusal import ElementTypeError
from tcir.machine.tensor_core.narrow import (
    CP_FORMATS,
    data_bytes,
    decompressed,
    from_holders,
    to_holders,
    unpack_pairs,
    unpack_units,
)

REFERENCE = {
    "f16": (np.float16, np.uint16),
    "bf16": (ml_dtypes.bfloat16, np.uint16),
    "e4m3": (ml_dtypes.float8_e4m3fn, np.uint8),
    "e5m2": (ml_dtypes.float8_e5m2, np.uint8),
    "e3m2": (ml_dtypes.float6_e3m2fn, np.uint8),
    "e2m3": (ml_dtypes.float6_e2m3fn, np.uint8),
    "e2m1": (ml_dtypes.float4_e2m1fn, np.uint8),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_every_code_has_its_value(name):
    dtype, word = REFERENCE[name]
    codes = np.arange(1 << FLOATS[name].bits).astype(word)
    with np.errstate(invalid="ignore"):
        expected = codes.view(dtype).astype(np.float64)
    values, exponents = decode(codes, name)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(np.signbit(values), codes >> (FLOATS[name].bits - 1) == 1)
    smallest = float(ml_dtypes.finfo(dtype).smallest_normal)
    for value, exponent in zip(expected.tolist(), exponents.tolist()):
        if value == 0 or not math.isfinite(value):
            assert exponent == NO_EXPONENT
        else:
            assert exponent == max(math.frexp(value)[1], math.frexp(smallest)[1]) - 1


def test_32_bit_codes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 1 << 32, 20000).astype(np.uint32)
    codes[:6] = [0, 1, 0x80000000, 0x7F800000, 0xFF800001, 0x007FFFFF]
    values, exponents = decode(codes, "f32")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(values, codes.view(np.float32).astype(np.float64))
        dropped = (codes & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    np.testing.assert_array_equal(decode(codes, "tf32")[0], dropped)
    assert exponents[1] == -126 and exponents[0] == exponents[3] == NO_EXPONENT
    # A NaN whose payload lies in the ignored bits is an infinity to the tensor core.
    assert decode(np.array([0x7F800001], np.uint32), "tf32")[0] == np.inf


def test_integer_codes():
    codes = np.arange(256).astype(np.uint8)
    np.testing.assert_array_equal(integers(codes, "u8"), np.arange(256))
    np.testing.assert_array_equal(integers(codes, "s8"), codes.view(np.int8))


def test_unknown_types_and_oversized_codes_are_refused():
    with pytest.raises(ElementTypeError, match="element type: expected one of f16"):
        decode(np.zeros(1, np.uint8), "e8m0")
    with pytest.raises(ElementTypeError, match="s8 or u8"):
        integers(np.zeros(1, np.uint8), "f16")
    decode(np.array([0x3F], np.uint8), "e3m2")
    with pytest.raises(ElementTypeError, match="e3m2 has 6 bits"):
        decode(np.array([0x40], np.uint8), "e3m2")


@pytest.mark.parametrize(("bits", "shift"), [(4, 2), (6, 1)])
def test_padded_units_and_holders(bits, shift):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1 << bits, (5, 3, 16)).astype(np.uint8)
    units = rng.integers(0, 256, (5, 3, 16)).astype(np.uint8)  # the padding holds anything
    for at in np.ndindex(5, 3):
        packed = sum(int(c) << bits * i for i, c in enumerate(codes[at]))
        units[at][: 2 * bits] = list(packed.to_bytes(2 * bits, "little"))
    np.testing.assert_array_equal(unpack_units(units, bits), codes)
    holders = to_holders(codes, bits)
    np.testing.assert_array_equal(holders, codes.astype(int) * 2**shift)
    others = np.uint8(0xFF ^ ((1 << bits) - 1) << shift)
    np.testing.assert_array_equal(from_holders(holders | others, bits), codes)


def test_only_padded_types_have_units():
    unpack_units(np.zeros((2, 16), np.uint8), 6)
    with pytest.raises(ElementTypeError, match="expected 4 or 6, got 8"):
        unpack_units(np.zeros((2, 16), np.uint8), 8)
    with pytest.raises(ElementTypeError, match="a unit has 16 bytes"):
        unpack_units(np.zeros((2, 8), np.uint8), 4)


@pytest.mark.parametrize("source", CP_FORMATS)
def test_decompression_of_cp_by_definition(source):
    bits = {"b4x16_p64": 4, "b6x16_p32": 6}[source]
    rng = np.random.default_rng(bits)
    units = rng.integers(0, 256, (5, 2, 16)).astype(np.uint8)  # two units a row, padding random
    used = data_bytes(bits, 32)
    assert used.tolist() == [16 * u + i for u in range(2) for i in range({4: 8, 6: 12}[bits])]
    got = decompressed(units.reshape(5, 32)[:, used], bits)
    for row in range(5):
        for unit in range(2):
            whole = int.from_bytes(units[row, unit].tobytes(), "little")
            for i in range(16):
                code = whole >> (bits * i) & ((1 << bits) - 1)
                # fp4 in bits 5..2, fp6 in bits 6..1, the others zero
                assert got[row, 16 * unit + i] == code << {4: 2, 6: 1}[bits]
    np.testing.assert_array_equal(
        from_holders(got, bits).reshape(5, 2, 16), unpack_units(units, bits)
    )
    with pytest.raises(ElementTypeError, match="multiple of 16"):
        data_bytes(bits, 24)
    with pytest.raises(ElementTypeError, match="4 or 6"):
        data_bytes(8, 32)


def test_pairs_hold_the_even_element_low():
    packed = np.array([[0x21, 0x43], [0xFE, 0x07]], np.uint8)
    assert unpack_pairs(packed).tolist() == [[1, 2, 3, 4], [14, 15, 7, 0]]
