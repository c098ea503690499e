"""Descriptors: every field, legal beside illegal; element addresses against their definition."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from tcir.machine.memory.swizzle import SWIZZLES, swizzle_address
from tcir.machine.refusal import DescriptorError
from tcir.machine.tensor_core.descriptor import (
    MatrixDescriptor,
    cp_addresses,
    decode_matrix,
    element_addresses,
    element_table,
)
from tcir.machine.tensor_core.instruction_descriptor import decode_instruction

# --- instruction descriptor

F16 = (1 << 4) | (32 << 17) | (8 << 24)  # f16 x f16 -> f32, 128 x 256, K-major


def idesc(m, n, *, d=1, a=0, b=0, extra=0):
    return (d << 4) | (a << 7) | (b << 10) | (n // 8 << 17) | (m // 16 << 24) | extra


def test_example_of_the_isa():
    assert F16 == 0x08400010 == idesc(128, 256)
    i = decode_instruction(F16, "f16")
    assert (i.m, i.n, i.k, i.a_type, i.b_type, i.d_type) == (128, 256, 16, "f16", "f16", "f32")
    assert (i.a_major, i.b_major, i.negate_a, i.negate_b) == ("K", "K", False, False)
    i = decode_instruction(F16 | 1 << 13 | 1 << 16, "f16")
    assert (i.a_major, i.b_major, i.negate_a, i.negate_b) == ("K", "MN", True, False)
    i = decode_instruction(F16 | 1 << 14 | 1 << 15, "f16")
    assert (i.a_major, i.b_major, i.negate_a, i.negate_b) == ("MN", "K", False, True)


KINDS = {  # kind: (D code, A code, B code, K)
    "f16": (1, 1, 1, 16),
    "tf32": (1, 2, 2, 8),
    "f8f6f4": (1, 0, 5, 32),
    "i8": (2, 1, 0, 32),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("group", "ws"), [(1, False), (2, False), (1, True)])
def test_every_shape(kind, group, ws):
    d, a, b, k = KINDS[kind]
    accepted = set()
    for m16, n8 in itertools.product(range(32), range(64)):
        bits = idesc(16 * m16, 8 * n8, d=d, a=a, b=b)
        try:
            i = decode_instruction(bits, kind, cta_group=group, ws=ws)
        except DescriptorError as error:
            assert re.search(r": [MN]: expected .*, got \d+; PTX ISA 9\.7\.16\.2\.1", str(error))
            continue
        assert (i.m, i.n, i.k, i.cta_group, i.ws) == (16 * m16, 8 * n8, k, group, ws)
        accepted.add((i.m, i.n))
    ms = {(1, False): {64, 128}, (2, False): {128, 256}, (1, True): {32, 64, 128}}[group, ws]
    if ws:
        ns = {64, 128, 256}
    elif kind == "i8":
        ns = {8, 16, 24, 32, *range(48, 257, 16)} if group == 1 else set(range(32, 257, 32))
    else:
        ns = set(range(8 * group, 257, 8 * group))
    assert accepted == set(itertools.product(ms, ns))


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_code(kind):
    names = {
        "f16": {0: "f16", 1: "bf16"},
        "tf32": {2: "tf32"},
        "f8f6f4": {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"},
        "i8": {0: "u8", 1: "s8"},
    }[kind]
    results = {
        "f16": {0: "f16", 1: "f32"},
        "tf32": {1: "f32"},
        "f8f6f4": {0: "f16", 1: "f32"},
        "i8": {2: "s32"},
    }[kind]
    for d, a, b in itertools.product(range(4), range(8), range(8)):
        legal = d in results and a in names and b in names
        if kind == "f16":
            legal = legal and a == b and not (a == 1 and d == 0)
        bits = idesc(128, 64, d=d, a=a, b=b)
        if legal:
            i = decode_instruction(bits, kind)
            assert (i.d_type, i.a_type, i.b_type) == (results[d], names[a], names[b])
        else:
            with pytest.raises(DescriptorError, match=f"kind {kind}: [ABD] type"):
                decode_instruction(bits, kind)


E4M3 = idesc(128, 64)
E2M1 = idesc(128, 64, a=5, b=5)
S8 = idesc(128, 64, d=2, a=1, b=1)


@pytest.mark.parametrize(
    ("legal", "illegal", "kind", "options", "message"),
    [
        (F16, F16 | 1 << 6, "f16", {}, "bit 6: expected 0"),
        (F16, F16 | 1 << 23, "f16", {}, "bit 23: expected 0"),
        (F16, F16 | 1 << 29, "f16", {}, "bit 29: expected 0"),
        (F16 | 1 << 2 | 3, F16 | 3, "f16", {}, "sparsity selector: expected 0 when dense"),
        (S8 | 1 << 3, F16 | 1 << 3, None, {}, "saturate"),
        (S8, S8 | 1 << 13, "i8", {}, "negate A/B"),
        (S8, S8 | 1 << 14, "i8", {}, "negate A/B"),
        (E4M3 | 1 << 15, E2M1 | 1 << 15, "f8f6f4", {}, "A major.*K-major. for e2m1"),
        (E4M3 | 1 << 16, E2M1 | 1 << 16, "f8f6f4", {}, "B major.*K-major. for e2m1"),
        (F16, F16 | 2 << 30, "f16", {}, "max shift"),
        (F16, F16 | 1 << 32, "f16", {}, "32 bits"),
        # An N-major 8-bit B doubles the step of N.
        (
            idesc(64, 48, extra=1 << 16),
            idesc(64, 40, extra=1 << 16),
            "f8f6f4",
            {},
            r"N: expected a multiple of 16 in \[16, 256\], got 40",
        ),
        (
            idesc(128, 64, extra=1 << 16),
            idesc(128, 48, extra=1 << 16),
            "f8f6f4",
            {"cta_group": 2},
            r"N: expected a multiple of 32 in \[32, 256\], got 48",
        ),
        (
            idesc(128, 32, d=2, extra=1 << 16),
            idesc(128, 24, d=2, extra=1 << 16),
            "i8",
            {},
            "got 24",
        ),
        (idesc(64, 128, extra=4), idesc(64, 256, extra=4), "f16", {"ws": True}, "N: expected 64"),
    ],
)
def test_illegal_beside_legal(legal, illegal, kind, options, message):
    if kind is None:
        decode_instruction(legal, "i8")
        kind = "f16"
    else:
        decode_instruction(legal, kind, **options)
    with pytest.raises(DescriptorError, match=message):
        decode_instruction(illegal, kind, **options)


def test_ws_shift_and_unknown_kinds():
    shifts = [decode_instruction(F16 | c << 30, "f16", ws=True).max_shift for c in range(4)]
    assert shifts == [0, 8, 16, 32]
    with pytest.raises(DescriptorError, match="mma kind: expected one of f16"):
        decode_instruction(F16, "mxf4")
    with pytest.raises(DescriptorError, match="cta_group: expected 1, got 2"):
        decode_instruction(F16, "f16", cta_group=2, ws=True)
    with pytest.raises(DescriptorError, match="cta_group: expected 1 or 2, got 3"):
        decode_instruction(F16, "f16", cta_group=3)


# --- matrix descriptor


def mdesc(start, lbo, sbo, code, extra=0):
    return start >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | 1 << 46 | code << 61 | extra


def test_matrix_fields():
    for code, name in ((0, "NONE"), (1, "128B_ATOM_32B"), (2, "128B"), (4, "64B"), (6, "32B")):
        d = decode_matrix(mdesc(0x12340, 0x80, 0x400, code))
        assert d == MatrixDescriptor(0x12340, 0x80, 0x400, name)
    assert decode_matrix(mdesc(0x3FFF0, 0x3FFF0, 0x3FFF0, 2)).sbo == 0x3FFF0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *[(1 << i, "reserved") for i in (14, 15, 30, 31, *range(53, 61))],
        (1 << 47, "48..46.*expected 0b001"),
        (1 << 48, "48..46.*expected 0b001"),
        *[(1 << i | 2 << 61, "base offset: expected 0") for i in (49, 50, 51)],
        (1 << 52, "leading dimension mode.*sm_103a"),
        (3 << 61, "swizzle code"),
        (5 << 61, "swizzle code"),
        (7 << 61, "swizzle code"),
        (1 << 64, "64 bits"),
    ],
)
def test_illegal_matrix_fields(change, message):
    legal = mdesc(0, 16, 1024, 0)
    decode_matrix(legal)
    with pytest.raises(DescriptorError, match=message):
        decode_matrix(legal ^ change)


@pytest.mark.parametrize("offset", range(8))
def test_no_swizzle_no_base_offset(offset):
    """Triton sets it to address bits 9..7 in descriptors without a swizzle."""
    legal = mdesc(0x400, 16, 1024, 0)
    assert decode_matrix(legal | offset << 49) == decode_matrix(legal)


def test_the_constant_may_be_zero():
    """JAX's Mosaic GPU never sets it; the pipe warns of it."""
    legal = mdesc(0x400, 16, 1024, 2)
    assert decode_matrix(legal ^ 1 << 46) == decode_matrix(legal)


def test_swizzles_by_their_pictures():
    """Chunk c of row r moves to chunk c xor (a function of r), rows of 128 bytes."""
    for r, c in itertools.product(range(64), range(8)):
        at = r * 128 + c * 16
        assert swizzle_address(at, "NONE") == at
        assert swizzle_address(at, "128B") == r * 128 + (c ^ (r % 8)) * 16
        assert swizzle_address(at, "64B") == r * 128 + (c ^ (r % 4)) * 16
        assert swizzle_address(at, "32B") == r * 128 + (c ^ (r % 2)) * 16
        atom = r * 128 + (c ^ 2 * (r % 4)) * 16
        assert swizzle_address(at, "128B_ATOM_32B") == atom
        assert swizzle_address(at, "128B_ATOM_64B") == r * 128 + (c ^ 4 * (r % 2)) * 16
        for half in (0, 8):  # the halves of 16 bytes change places in every other line
            flipped = swizzle_address(at + half, "128B_ATOM_32B_FLIP_8B")
            assert flipped == atom + (8 - half if r % 2 else half)
    everything = np.arange(4096)
    for mode, s in SWIZZLES.items():
        moved = swizzle_address(everything, mode)
        np.testing.assert_array_equal(swizzle_address(moved, mode), everything)
        kept = 8 if s.flip else 16
        np.testing.assert_array_equal(moved % kept, everything % kept)
        period = s.period
        np.testing.assert_array_equal(moved[:-period] + period, moved[period:])
    with pytest.raises(DescriptorError, match="swizzle mode"):
        swizzle_address(0, "96B")


def definition(d, mn, k, bits, major):
    """Byte address of one element, step by step: which 8-row group, which unit, which byte."""
    per_unit = 128 // bits
    if major == "K":
        group, row = divmod(mn, 8)
        if d.swizzle == "NONE":
            unit, inside = divmod(k, per_unit)
            linear = group * d.sbo + unit * d.lbo + row * 16 + inside * bits // 8
        else:
            pitch = {"32B": 32, "64B": 64, "128B": 128}[d.swizzle]
            linear = group * d.sbo + row * pitch + k * bits // 8
    elif d.swizzle == "NONE":
        unit, inside = divmod(mn, per_unit)
        group, row = divmod(k, 8)
        linear = unit * d.sbo + group * d.lbo + row * 16 + inside * bits // 8
    else:
        pitch = {"32B": 32, "64B": 64, "128B": 128, "128B_ATOM_32B": 128}[d.swizzle]
        rows = 4 if d.swizzle == "128B_ATOM_32B" else 8
        atom, inside = divmod(mn, pitch * 8 // bits)
        group, row = divmod(k, rows)
        linear = atom * d.lbo + group * d.sbo + row * pitch + inside * bits // 8
    address = d.start + linear
    line, chunk = address // 128, address // 16 % 8
    change = {
        "NONE": 0,
        "32B": line % 2,
        "64B": line % 4,
        "128B": line % 8,
        "128B_ATOM_32B": line % 4 * 2,
    }[d.swizzle]
    return line * 128 + (chunk ^ change) * 16 + address % 16


K_BITS = {4: 64, 8: 32, 16: 16, 32: 8}
LAYOUTS = [("K", bits, mode) for bits in K_BITS for mode in ("NONE", "32B", "64B", "128B")] + [
    *[("MN", bits, mode) for bits in (8, 16) for mode in ("NONE", "32B", "64B", "128B")],
    ("MN", 32, "128B_ATOM_32B"),
]


@pytest.mark.parametrize(("major", "bits", "mode"), LAYOUTS)
def test_every_element_address(major, bits, mode):
    rows, k = 128, K_BITS[bits]
    for start, lbo, sbo in ((0, 256, 128), (0x1C00, 0x4000, 0x800), (0x1400, 0x90, 0x2010)):
        d = MatrixDescriptor(start, lbo, sbo, mode)
        got = element_addresses(d, rows, k, bits, major)
        expected = [[definition(d, m, i, bits, major) for i in range(k)] for m in range(rows)]
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == np.int64 and got.shape == (rows, k)


def test_start_may_advance_inside_the_pattern():
    """K steps of 32 bytes and whole rows: the swizzle follows the absolute address."""
    whole = element_addresses(MatrixDescriptor(0x2000, 16, 1024, "128B"), 64, 64, 16, "K")
    for step in range(4):
        part = MatrixDescriptor(0x2000 + 32 * step, 16, 1024, "128B")
        got = element_addresses(part, 64, 16, 16, "K")
        np.testing.assert_array_equal(got, whole[:, 16 * step : 16 * step + 16])
    lower = element_addresses(MatrixDescriptor(0x2000 + 3 * 128, 16, 1024, "128B"), 8, 64, 16, "K")
    np.testing.assert_array_equal(lower, whole[3:11])
    with pytest.raises(DescriptorError, match="run out of the swizzle row"):
        element_addresses(MatrixDescriptor(0x2000 + 112, 16, 1024, "128B"), 8, 16, 16, "K")


@pytest.mark.parametrize(("mode", "pitch"), [("NONE", 16), ("32B", 32), ("64B", 64), ("128B", 128)])
def test_packed_tiles_fill_memory_without_holes(mode, pitch):
    rows, k = 64, pitch // 2
    d = MatrixDescriptor(0x400, 16, 8 * pitch, mode)
    got = element_addresses(d, rows, k, 16, "K")
    np.testing.assert_array_equal(np.sort(got.ravel()), 0x400 + 2 * np.arange(rows * k))


def test_values_printed_in_the_isa():
    """PTX ISA 9.7.16.3: strides of canonical layouts make neighbouring units touch."""
    tf32 = element_addresses(MatrixDescriptor(0, 256, 128, "NONE"), 16, 8, 32, "K")
    assert tf32[8, 0] == 128 and tf32[0, 4] == 256 and tf32[1, 0] == 16 and tf32[0, 1] == 4
    bf16 = element_addresses(MatrixDescriptor(0, 256, 128, "NONE"), 16, 16, 16, "MN")
    assert bf16[8, 0] == 128 and bf16[0, 8] == 256 and bf16[0, 1] == 16 and bf16[1, 0] == 2
    wide = element_addresses(MatrixDescriptor(0, 512, 1024, "64B"), 64, 16, 16, "MN")
    assert wide[32, 0] == 512 and wide[0, 8] == 1024 and wide[0, 1] == 64


@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        (("K", 16, "128B"), ("K", 16, "128B_ATOM_32B")),
        (("MN", 16, "128B"), ("MN", 16, "128B_ATOM_32B")),
        (("MN", 32, "128B_ATOM_32B"), ("MN", 32, "128B")),
        (("K", 4, "NONE"), ("MN", 4, "NONE")),
        (("K", 8, "NONE"), ("K", 6, "NONE")),
        (("K", 8, "NONE"), ("M", 8, "NONE")),
    ],
)
def test_illegal_layouts(legal, illegal):
    for (major, bits, mode), good in ((legal, True), (illegal, False)):
        d = MatrixDescriptor(0, 256, 128, mode)
        if good:
            element_addresses(d, 8, 8, bits, major)
        else:
            with pytest.raises(DescriptorError, match="expected"):
                element_addresses(d, 8, 8, bits, major)


def test_tables_are_shared_between_equal_phases():
    a = MatrixDescriptor(0x0400, 16, 1024, "128B")
    b = MatrixDescriptor(0x8400, 16, 1024, "128B")
    (base_a, table_a), (base_b, table_b) = (element_table(d, 64, 16, 16, "K") for d in (a, b))
    assert table_a is table_b and base_b - base_a == 0x8000
    assert not table_a.flags.writeable


def test_cp_addresses():
    d = MatrixDescriptor(0x600, 0, 128, "NONE")
    block = cp_addresses(d, "32x128b")
    np.testing.assert_array_equal(block, 0x600 + np.arange(512).reshape(32, 16))
    shapes = {"128x256b": (128, 32), "128x128b": (128, 16), "64x128b": (64, 16), "4x256b": (4, 32)}
    for shape, size in shapes.items():
        assert cp_addresses(d, shape).shape == size
    swizzled = MatrixDescriptor(0x400 + 64, 16, 1024, "128B")
    np.testing.assert_array_equal(
        cp_addresses(swizzled, "128x256b")[:, ::2],
        element_addresses(swizzled, 128, 16, 16, "K"),
    )
    with pytest.raises(DescriptorError, match=r"tcgen05\.cp shape"):
        cp_addresses(d, "16x128b")
