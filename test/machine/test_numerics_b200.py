"""Words that a B200 computed, as published by sf-tensor/tcgen05 (tcgen05_model/validation.py).

The publication gives, per instruction form, a seed of Python's `random` and the order in which the
inputs are drawn from it, and the resulting word of D. Nothing here comes from a model.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tcir.machine.numerics.block_scaled import Fp4Params
from tcir.machine.numerics.fused import integer_mma

from .products import block_scaled_mma, fused_mma


def finite_f32(rng: random.Random) -> int:
    bits = rng.getrandbits(32)
    return bits & 0x807FFFFF if bits & 0x7F800000 == 0x7F800000 else bits


def row(values, dtype=np.uint8):
    return np.array([list(values)], np.uint64).astype(dtype)


UNSCALED: list[tuple[str, int, int, Callable[[random.Random], int], tuple[int, int]]] = [
    ("tf32", 8, 104, finite_f32, (0xFF800000, 0xFC347E7C)),
    ("bf16", 16, 104, finite_f32, (0x7F800000, 0x7F800000)),
    ("f16", 16, 103, lambda rng: rng.getrandbits(16), (0x7FFFFFFF, 0x49776BBA)),
    ("e4m3", 32, 104, lambda rng: rng.randrange(0x7F), (0xEC63D12A, 0x452AF963)),
    ("e5m2", 32, 300, lambda rng: rng.randrange(0x7C), (0x4D92B09A, 0x4C9C1102)),
    ("e2m3", 32, 301, lambda rng: rng.randrange(0x40), (0xC29DD800, 0x449D14C1)),
    ("e3m2", 32, 302, lambda rng: rng.randrange(0x40), (0x52C9EC63, 0xC33B7700)),
    ("e2m1", 32, 303, lambda rng: rng.randrange(0x10), (0xC1FE0000, 0xDC3B62A3)),
]
WORD = {"tf32": np.uint32, "bf16": np.uint16, "f16": np.uint16}


def codes(values, name):
    # bf16 is drawn as the f32 word whose high half it is.
    return row((v >> 16 for v in values) if name == "bf16" else values, WORD.get(name, np.uint8))


@pytest.mark.parametrize(("name", "k", "seed", "element", "expected"), UNSCALED)
def test_unscaled(name, k, seed, element, expected):
    rng = random.Random(seed)
    for word in expected:
        a, b = ([element(rng) for _ in range(k)] for _ in range(2))
        d = row([finite_f32(rng)], np.uint32)
        got = fused_mma(codes(a, name), codes(b, name), d, a_type=name, b_type=name)
        assert hex(got[0, 0]) == hex(word)


INTEGERS = [
    ("u8", "u8", False, 500, 0x078A5C64),
    ("s8", "u8", False, 501, 0xF66E2FA6),
    ("u8", "s8", False, 502, 0xD73F1A46),
    ("s8", "s8", True, 503, 0x8063D12F),
    ("s8", "s8", False, 504, 0xA4679E93),
    ("u8", "u8", True, 505, 0x55DB8BB8),
    ("s8", "u8", True, 506, 0xB47F6330),
    ("u8", "s8", True, 507, 0x8533C14D),
]


@pytest.mark.parametrize(("a_type", "b_type", "saturate", "seed", "word"), INTEGERS)
def test_integers(a_type, b_type, saturate, seed, word):
    rng = random.Random(seed)
    a, b = (row(rng.randrange(256) for _ in range(32)) for _ in range(2))
    d = row([finite_f32(rng)], np.uint32)
    got = integer_mma(a, b, d, a_type=a_type, b_type=b_type, saturate=saturate)
    assert hex(got[0, 0]) == hex(word)


def test_nvfp4():
    rng = random.Random(700)
    for word in (0x4429730B, 0xC30545D3):
        a, b = (row(rng.randrange(16) for _ in range(64)) for _ in range(2))
        d = row([finite_f32(rng)], np.uint32)
        scales = [row(rng.randrange(0x77) for _ in range(4)) for _ in range(2)]
        got = block_scaled_mma(a, b, d, *scales, kind="mxf4nvf4", scale_type="ue4m3")
        assert hex(got[0, 0]) == hex(word)


CARRY_A = "eeb608f9ab39f7e0 2615a8647c6b1c6d bb86c8c5041f16f5 2465a7b701adbfe7"
CARRY_B = "6cb289b43d299c18 7263d29a59f5a860 8dd2cc52834ff11a ba5bf3bea571178a"


def carry(**options):
    a, b = (row(int(c, 16) for c in text if c != " ") for text in (CARRY_A, CARRY_B))
    scales = row((0x09, 0x7C, 0x6D, 0x44)), row((0x07, 0x78, 0x26, 0x79))
    d = row([0x094E5986], np.uint32)
    return hex(
        block_scaled_mma(a, b, d, *scales, kind="mxf4nvf4", scale_type="ue4m3", **options)[0, 0]
    )


def test_groups_of_four_keep_their_carry():
    assert carry() == "0x49fcafb7"
    # The word tells groups of four from single products.
    assert carry(fp4=Fp4Params(ue4m3_group=1)) != "0x49fcafb7"


MX = [
    ("mxf8f6f4", 1, 910, 32, 0x3F094000),
    ("mxf4", 2, 920, 64, 0x46BA8000),
    ("mxf4nvf4", 2, 921, 64, 0x40580000),
    ("mxf4nvf4", 4, 922, 64, 0xC6A88896),
]


@pytest.mark.parametrize(("kind", "count", "seed", "k", "word"), MX)
def test_ue8m0(kind, count, seed, k, word):
    rng = random.Random(seed)
    a, b = (row(rng.randrange(16) for _ in range(k)) for _ in range(2))
    scales = [row(rng.randrange(115, 140) for _ in range(count)) for _ in range(2)]
    d = np.zeros((1, 1), np.uint32)
    got = block_scaled_mma(a, b, d, *scales, kind=kind, scale_type="ue8m0")
    assert hex(got[0, 0]) == hex(word)


EDGES = [
    # type, K, one, smallest subnormal, its product with one, NaN, infinity
    ("tf32", 8, 0x3F800000, 0x2000, 0x2000, 0x7FC00000, 0x7F800000),
    ("bf16", 16, 0x3F80, 0x1, 0x10000, 0x7FC0, 0x7F80),
    ("f16", 16, 0x3C00, 0x1, 0x33800000, 0x7E00, 0x7C00),
    ("e4m3", 32, 0x38, 0x1, 0x3B000000, 0x7F, None),
    ("e5m2", 32, 0x3C, 0x1, 0x37800000, 0x7F, 0x7C),
]


@pytest.mark.parametrize(("name", "k", "one", "tiny", "product", "nan", "inf"), EDGES)
def test_edges(name, k, one, tiny, product, nan, inf):
    def word(a, b, d=0):
        operands = [row([x] + [0] * (k - 1), WORD.get(name, np.uint8)) for x in (a, b)]
        got = fused_mma(*operands, row([d], np.uint32), a_type=name, b_type=name)
        return int(got[0, 0])

    assert word(0, 0, 0x80000000) == 0
    assert word(tiny, one) == product
    assert word(nan, one) == 0x7FFFFFFF
    if inf is not None:
        assert word(inf, one) == 0x7F800000
        assert word(inf, 0) == 0x7FFFFFFF


def test_tf32_drops_its_low_bits_before_it_looks():
    one = row([0x3F800000] + [0] * 7, np.uint32)
    nan = row([0x7F800001] + [0] * 7, np.uint32)
    assert fused_mma(nan, one, None, a_type="tf32", b_type="tf32")[0, 0] == 0x7F800000


def test_nan_scales_and_f16_nans():
    ones, scale = row([1] * 64), row([0x38] * 4)
    nan = row([0x7F, 0x38, 0x38, 0x38])
    kind = {"kind": "mxf4nvf4", "scale_type": "ue4m3"}
    assert block_scaled_mma(ones, ones, None, nan, scale, **kind)[0, 0] == 0x7FFFFFFF
    ones, scale, nan = row([1] * 32), row([0x7F]), row([0xFF])
    kind = {"kind": "mxf8f6f4", "scale_type": "ue8m0"}
    assert block_scaled_mma(ones, ones, None, nan, scale, **kind)[0, 0] == 0x7FFFFFFF
    types = {"a_type": "e2m1", "b_type": "e4m3", "d_type": "f16"}
    one = row([0], np.uint32)
    assert fused_mma(ones, row([0x7F] + [0] * 31), one, **types)[0, 0] == 0x7FFF
    zeros = row([0] * 32)
    assert fused_mma(zeros, zeros, row([0x7E00], np.uint32), **types)[0, 0] == 0x7FFF


def test_a_nan_at_a_deselected_position_is_harmless():
    # tf32 1:2, selector 0x4 everywhere: the lower element of each pair; B is NaN at the others.
    a = row([0x3F800000] * 8, np.uint32)
    b = row([0x3F800000, 0x7FC00000] * 8, np.uint32)
    select = np.arange(0, 16, 2, dtype=np.int32)[None]
    got = fused_mma(a, b, None, a_type="tf32", b_type="tf32", select=select)
    assert got[0, 0] == 0x41000000
    assert fused_mma(a, b, None, a_type="tf32", b_type="tf32", select=select + 1)[0, 0] > 0x7F800000
