"""Swizzles, operand layouts and tensor-memory layouts against the formulas of the ISA."""

from __future__ import annotations

import itertools

import pytest

from tcir.layout import (
    SWIZZLES,
    LayoutError,
    Swizzle,
    is_injective,
    operand_layout,
    shared_descriptor,
)
from tcir.layout.smem import SPANS
from tcir.layout.tmem import accumulator, lane_column, ld_st, operand_a
from tcir.machine.tensor_core.descriptor import decode_matrix, element_addresses


@pytest.mark.parametrize(
    ("mode", "formula"),
    [
        ("NONE", lambda a: a),
        ("32B", lambda a: a ^ (((a >> 7) & 1) << 4)),
        ("64B", lambda a: a ^ (((a >> 7) & 3) << 4)),
        ("128B", lambda a: a ^ (((a >> 7) & 7) << 4)),
        ("128B_ATOM_32B", lambda a: a ^ (((a >> 7) & 3) << 5)),
    ],
)
def test_swizzles(mode: str, formula) -> None:
    swizzle = SWIZZLES[mode]
    for address in range(4096):
        assert swizzle(address) == formula(address)
        assert swizzle(swizzle(address)) == address


def test_overlapping_swizzle_is_refused() -> None:
    Swizzle(3, 4, 3)
    with pytest.raises(LayoutError, match="must not overlap"):
        Swizzle(3, 4, 2)


def isa_address(mn: int, k: int, eb: int, major: str, mode: str, lbo: int, sbo: int) -> int:
    """PTX ISA 9.7.16.10.6: byte offset before the swizzle, from the descriptor's strides."""
    t, s = 16 // eb, SPANS[mode]
    if major == "K":
        if mode == "NONE":
            return (mn % 8) * 16 + (mn // 8) * sbo + (k // t) * lbo + (k % t) * eb
        return (mn % 8) * s + (mn // 8) * sbo + k * eb
    if mode == "NONE":
        return (mn % t) * eb + (mn // t) * sbo + (k % 8) * 16 + (k // 8) * lbo
    if mode == "128B_ATOM_32B":
        return (mn % 32) * 4 + (mn // 32) * lbo + (k % 4) * 128 + (k // 4) * sbo
    return (mn % (s // eb)) * eb + (mn // (s // eb)) * lbo + (k % 8) * s + (k // 8) * sbo


CASES = [
    (major, mode, eb)
    for major, mode, eb in itertools.product(("K", "MN"), SPANS, (1, 2, 4))
    if (mode == "128B_ATOM_32B") == (major == "MN" and eb == 4)
]


@pytest.mark.parametrize(("major", "mode", "eb"), CASES)
def test_operand_layouts(major: str, mode: str, eb: int) -> None:
    mn, k = 64, SPANS[mode] // eb
    if major == "MN":
        mn, k = 2 * 128 // eb, 32
    operand = operand_layout(mn, k, eb, major, mode)
    for m, kk in itertools.product(range(mn), range(k)):
        expected = isa_address(m, kk, eb, major, mode, operand.leading, operand.stride)
        assert operand.layout(m, kk) == expected
    assert is_injective(operand.layout)
    tile = operand.at(operand.alignment * 3)
    image = {tile(m, kk) for m, kk in itertools.product(range(mn), range(k))}
    assert len(image) == mn * k
    assert min(image) == operand.alignment * 3
    assert max(image) + eb == operand.alignment * 3 + mn * k * eb


def test_panels_follow_each_other() -> None:
    two = operand_layout(128, 128, 2, "K", "128B")
    assert two.layout(5, 64 + 3) == 128 * 128 + 5 * 128 + 6
    assert two.stride == 1024


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((128, 64, 2, "N", "128B"), "expected major K or MN"),
        ((128, 64, 2, "K", "96B"), "expected swizzle in"),
        ((128, 60, 2, "K", "128B"), "multiple of 64"),
        ((12, 64, 2, "K", "128B"), "multiple of 8"),
        ((64, 32, 4, "MN", "128B"), "need 128B_ATOM_32B"),
        ((64, 32, 2, "MN", "128B_ATOM_32B"), "MN-major 32-bit types only"),
    ],
)
def test_illegal_operand_layouts(arguments, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        operand_layout(*arguments)
    with pytest.raises(LayoutError, match="multiple of 1024"):
        operand_layout(128, 64, 2).at(512)


@pytest.mark.parametrize(("major", "mode", "eb"), CASES)
def test_descriptors_are_what_the_machine_decodes(major: str, mode: str, eb: int) -> None:
    """The simulated machine decodes with code of its own, written from the ISA."""
    mn, k = 64, SPANS[mode] // eb
    if major == "MN":
        mn, k = 2 * 128 // eb, 32
    operand = operand_layout(mn, k, eb, major, mode)
    tile = operand.at(3 * operand.alignment)
    described = decode_matrix(shared_descriptor(operand, 3 * operand.alignment))
    addresses = element_addresses(described, mn, k, 8 * eb, major)
    for m, kk in itertools.product(range(mn), range(k)):
        assert addresses[m, kk] == tile(m, kk)


def test_descriptor_refusals() -> None:
    operand = operand_layout(128, 64, 2)
    shared_descriptor(operand, 227 * 1024)
    with pytest.raises(LayoutError, match="multiple of 1024, got 512"):
        shared_descriptor(operand, 512)
    with pytest.raises(LayoutError, match="the start a multiple of 16 bytes below 262144"):
        shared_descriptor(operand, 1 << 18)
    far = operand_layout(4096, 64, 2, "MN", "128B")
    shared_descriptor(far, 0)
    with pytest.raises(LayoutError, match=r"the leading dimension offset .* got 262144"):
        shared_descriptor(operand_layout(128, 2048, 2, "MN", "128B"), 0)


ACCUMULATORS = {
    "A": ({"m": 256, "n": 32, "cta_group": 2}, lambda m, n: (m, n)),
    "B": ({"m": 128, "n": 32, "cta_group": 2}, lambda m, n: (m + 64 * (n >= 16), n % 16)),
    "D": ({"m": 128, "n": 32}, lambda m, n: (m, n)),
    "E": ({"m": 64, "n": 64, "weight_stationary": True}, lambda m, n: (m + 64 * (n >= 32), n % 32)),
    "F": ({"m": 64, "n": 32}, lambda m, n: (m % 16 + 32 * (m // 16), n)),
    "G": ({"m": 32, "n": 64, "weight_stationary": True}, lambda m, n: (m + 32 * (n // 16), n % 16)),
}


@pytest.mark.parametrize("name", ACCUMULATORS)
def test_accumulators(name: str) -> None:
    arguments, formula = ACCUMULATORS[name]
    layout = accumulator(**arguments)
    rows = layout[0].size
    for m, n in itertools.product(range(rows), range(arguments["n"])):
        assert lane_column(layout(m, n)) == formula(m, n)


def test_accumulator_refusal() -> None:
    with pytest.raises(LayoutError, match="got M=256 cta_group::1"):
        accumulator(256, 64)


@pytest.mark.parametrize("eb", [1, 2, 4])
def test_operand_a(eb: int) -> None:
    layout = operand_a(32, eb)
    for row, k in itertools.product(range(128), range(32)):
        word, byte = divmod(layout(row, k), 4)
        assert lane_column(word) == (row, k * eb // 4)
        assert byte == k * eb % 4
    if eb < 4:
        with pytest.raises(LayoutError, match="multiple of"):
            operand_a(33, eb)


def test_operand_a_lies_on_the_lanes_of_d() -> None:
    for m, group in ((256, 2), (128, 1), (64, 1)):
        a, d = operand_a(16, 2, m, group), accumulator(m, 16, cta_group=group)
        for row in range(d[0].size):
            assert lane_column(a(row, 0) // 4)[0] == lane_column(d(row, 0))[0]
    pair = operand_a(16, 2, 128, 2)
    d = accumulator(128, 16, cta_group=2)
    for row, copy in itertools.product(range(64), range(2)):
        # Copy 1 serves the columns of D that lie on lanes 64 to 127.
        assert lane_column(pair(row, 0, copy) // 4)[0] == lane_column(d(row, 8 * copy))[0]
    with pytest.raises(LayoutError, match="got M=32 cta_group::1"):
        operand_a(16, 2, 32)


LD_ST = {
    "32x32b": lambda t, r: (t, r),
    "16x64b": lambda t, r: ((t >> 2) + 8 * (t & 1), ((t >> 1) & 1) + 2 * r),
    "16x128b": lambda t, r: ((t >> 2) + 8 * (r & 1), (t & 3) + 4 * (r >> 1)),
    "16x256b": lambda t, r: ((t >> 2) + 8 * ((r >> 1) & 1), 2 * (t & 3) + (r & 1) + 8 * (r >> 2)),
    "16x32bx2": lambda t, r: (t & 15, r + (5 if t >= 16 else 0)),
}


@pytest.mark.parametrize(("shape", "num"), list(itertools.product(LD_ST, (1, 2, 4))))
def test_ld_st(shape: str, num: int) -> None:
    layout = ld_st(shape, num, 5 if shape == "16x32bx2" else None)
    for thread, register in itertools.product(range(32), range(layout[1].size)):
        assert lane_column(layout(thread, register)) == LD_ST[shape](thread, register)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("32x32b", 3), "power of two"),
        (("16x256b", 64), ".x1 to .x32"),
        (("8x8b", 1), "expected one of"),
        (("16x32bx2", 2), "half_split exists only for 16x32bx2"),
    ],
)
def test_ld_st_refusals(arguments, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        ld_st(*arguments)
