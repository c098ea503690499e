"""Walks of the forms of TMA: interleave, packed types, gather4, the w modes; each by definition."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tcir.machine import Machine, MachineError, TensorOperand
from tcir.machine.assumptions import Assumptions
from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.box import load_box
from tcir.machine.tma.im2col_walk import im2col_elements, wide_elements
from tcir.machine.tma.tensor_encoding import LIMITS, decode, encode
from tcir.machine.tma.tensor_encoding import replace as replace_field
from tcir.machine.tma.tensor_map import TensorMap
from tcir.machine.tma.tensor_walk import OUTSIDE, row_elements, tile_elements
from tcir.machine.tma.values import reduced
from tcir.run_options import RunOptions

BASE = 0x70000


def built(kind, array, **changes):
    return decode(getattr(TensorMap, kind)(array, **changes).encode(BASE))


# --- interleave

SLICES = np.zeros((2, 3, 6, 10, 8), np.uint16)  # N, C/8, H, W, slice of 8 channels
IL = {
    "dtype": "u16",
    "dims": [10, 6, 3, 2],
    "strides_bytes": [160, 960, 2880],
    "interleave": "16B",
}


def address_of(n, c, h, w):
    inside = all(0 <= i < d for i, d in zip((n, c, h, w), SLICES.shape))
    return BASE + n * 2880 + c * 960 + h * 160 + w * 16 if inside else OUTSIDE


@pytest.mark.parametrize("steps", [(1, 1, 1, 1), (2, 1, 1, 1), (3, 2, 1, 1)])
@pytest.mark.parametrize("coords", [(1, 1, 1, 0), (-3, 4, 2, 1), (1, 1, 3, 0)])
@pytest.mark.parametrize("slices", [1, 2])
def test_interleaved_box_has_one_slice(steps, coords, slices):
    d = built("tiled", SLICES, box=[8, 3, slices, 2], element_strides=steps, **IL)
    addresses, offsets = tile_elements(d, coords)
    expected = []
    for n, h, w in itertools.product(range(2), range(-(-3 // steps[1])), range(-(-8 // steps[0]))):
        at = address_of(
            coords[3] + n, coords[2], coords[1] + h * steps[1], coords[0] + w * steps[0]
        )
        expected += [at, at if at == OUTSIDE else at + 8]
    assert addresses.tolist() == expected
    assert offsets.tolist() == [8 * i for i in range(len(expected))]
    assert d.fields.box_bytes == 8 * len(expected)


@pytest.mark.parametrize("channels", [8, 16])
def test_interleaved_im2col_takes_one_slice_of_a_pixel(channels):
    d = built(
        "im2col", SLICES, lower_corner=[-1, -1], upper_corner=[-1, -1],
        channels_per_pixel=channels, pixels_per_column=25, **IL,
    )  # fmt: skip
    addresses, _ = im2col_elements(d, (-1, -1, 1, 0), (1, 0))
    walk = list(itertools.product(range(2), range(-1, 5), range(-1, 9)))[:25]
    expected = [address_of(n, 1, h, w + 1) for n, h, w in walk]
    assert addresses[::2].tolist() == expected


# --- packed types


@pytest.mark.parametrize(
    ("dtype", "row", "pairs"),
    [
        ("u4_align8b", 64, [(i, i) for i in range(64)]),
        ("u4_align16b", 64, [(i, i // 8 * 16 + i % 8) for i in range(64)]),
        ("u6_align16b", 96, [(i, i // 12 * 16 + i % 12) for i in range(96)]),
    ],
)
def test_packed_rows(dtype, row, pairs):
    """Byte i of a row of 128 elements lands where the gaps leave it."""
    x = np.zeros((5, 2 * row), np.uint8)
    d = built("tiled", x, dtype=dtype, dims=[256, 5], strides_bytes=[2 * row], box=[128, 2])
    for first, y in ((0, 1), (128, 4), (-128, 0), (256, 2)):
        words, offsets = tile_elements(d, (first, y))
        got = {}
        for word, offset in zip(words.tolist(), offsets.tolist()):
            for k in range(d.fields.piece_bytes):
                got[offset + k] = OUTSIDE if word == OUTSIDE else word + k
        pitch = 64 if dtype == "u4_align8b" else 128
        expected = {}
        for r, (i, at) in itertools.product(range(2), pairs):
            inside = 0 <= first < 256 and y + r < 5
            byte = BASE + (y + r) * 2 * row + first // 128 * row + i
            expected[r * pitch + at] = byte if inside else OUTSIDE
        assert got == expected
    assert d.fields.box_bytes == 2 * pitch


# --- gather4


def test_gather4_takes_rows_by_name():
    x = np.zeros((9, 64), np.uint16)
    d = built("tiled", x, dtype="u16", dims=[64, 9], strides_bytes=[128], box=[16, 1])
    rows = (7, 0, 9, 7)
    addresses, offsets = row_elements(d, (8, *rows))
    expected = [BASE + r * 128 + 2 * (8 + c) if r < 9 else OUTSIDE for r in rows for c in range(16)]
    assert addresses.tolist() == expected
    assert offsets.tolist() == list(range(0, 128, 2))
    tall = built("tiled", x, dtype="u16", dims=[64, 9], strides_bytes=[128], box=[16, 2])
    with pytest.raises(TensorMapError, match=r"box\[1\]: expected 1, got 2"):
        row_elements(tall, (8, *rows))
    with pytest.raises(TensorMapError, match="number of coordinates: expected 5, got 2"):
        row_elements(d, (8, 1))


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_swizzled_rows_lie_a_span_apart(swizzle):
    x = np.zeros((4, 64), np.uint16)
    d = built(
        "tiled", x, dtype="u16", dims=[64, 4], strides_bytes=[128], box=[8, 4], swizzle=swizzle
    )
    _, offsets = tile_elements(d, (0, 0))
    span = int(swizzle[:-1])
    assert offsets.tolist() == [r * span + 2 * c for r in range(4) for c in range(8)]
    assert d.fields.box_bytes == 64


# --- the w modes

IMAGE = np.zeros((4, 5, 9, 64), np.float16)  # N, H, W, C


def wide(mode="W", **changes):
    arguments = {
        "dtype": "f16", "dims": [64, 9, 5, 4], "strides_bytes": [128, 1152, 5760],
        "lower_corner_width": 0, "upper_corner_width": 0, "channels_per_pixel": 64,
        "pixels_per_column": 12, "mode": mode, "swizzle": "128B",
    }  # fmt: skip
    return built("im2col_wide", IMAGE, **(arguments | changes))


def walked(lower, upper, offset, stride, start, h, n, count, row_end):
    """Pixels of the walk as (n, w), `upper` inclusive, by stepping."""
    w, out = start + offset, []
    images = n
    for _ in range(count):
        while w > upper + offset:
            w, images = lower + offset, images + 1
        out.append((images if row_end == "next-image" or images == n else -1, w))
        w += stride
    return out


def pixel_address(n, h, w):
    return BASE + n * 5760 + h * 1152 + w * 128 if 0 <= n < 4 and 0 <= w < 9 else OUTSIDE


@pytest.mark.parametrize("row_end", ["next-image", "fill"])
@pytest.mark.parametrize("halo_from", ["walk", "row"])
@pytest.mark.parametrize(
    ("lower", "upper", "stride", "start", "halo", "offset"),
    [(0, 0, 1, 2, 2, 0), (-1, 0, 2, -1, 1, 1), (-1, -1, 3, -2, 3, 2), (0, -2, 1, 6, 0, 0)],
)
def test_im2col_w(lower, upper, stride, start, halo, offset, halo_from, row_end):
    d = wide(lower_corner_width=lower, upper_corner_width=upper, element_strides=[1, stride, 1, 1])
    chosen = Assumptions(im2col_w_halo=halo_from, im2col_w_row_end=row_end)
    addresses, offsets = wide_elements(d, (0, start, 3, 1), halo, offset, chosen)
    pixels = walked(lower, 8 + upper, offset, stride, start, 3, 1, 12 + halo, row_end)
    if halo_from == "row":
        n, w = pixels[11]
        pixels[12:] = [(n, w + stride * (k + 1)) for k in range(halo)]
    expected = [pixel_address(n, 3, w) for n, w in pixels]
    assert addresses.reshape(-1, 64)[:, 0].tolist() == expected
    assert offsets.size == 64 * (12 + halo)


@pytest.mark.parametrize("layout", ["behind", "after-each-group"])
def test_im2col_w128(layout):
    d = wide("W128", pixels_per_column=1)
    addresses, _ = wide_elements(d, (0, 2, 3, 0), 2, 0, Assumptions(im2col_w128_halo=layout))
    walk = [pixel_address(n, 3, w) for n, w in walked(0, 8, 0, 1, 2, 3, 0, 140, "next-image")]
    groups = [walk[32 * g : 32 * g + 32] for g in range(4)]
    halos = [walk[32 * g + 32 : 32 * g + 34] for g in range(4)]
    if layout == "behind":
        expected = [*itertools.chain(*groups), *(halos[g][k] for k in range(2) for g in range(4))]
    else:
        expected = [*itertools.chain(*(a + b for a, b in zip(groups, halos)))]
    assert addresses.reshape(-1, 64)[:, 0].tolist() == expected


@pytest.mark.parametrize(
    ("coords", "halo", "offset", "message"),
    [
        ((0, 9, 0, 0), 0, 0, "at most 8, got 9"),
        ((0, 0, 0, 0), 512, 0, r"wHalo: expected 0\.\.511"),
        ((0, 0, 0, 0), 0, 32, r"wOffset: expected 0\.\.31"),
        ((4, 0, 0, 0), 0, 0, "coordinate 0: expected a multiple of 8"),
    ],
)
def test_im2col_w_refuses(coords, halo, offset, message):
    wide_elements(wide(), (8, -5, 0, 0), 511, 31, Assumptions())
    with pytest.raises(TensorMapError, match=message):
        wide_elements(wide(), coords, halo, offset, Assumptions())


# --- what documents leave open


@pytest.mark.parametrize(("counted", "nbytes"), [("all", 14 * 128), ("main", 12 * 128)])
def test_bytes_of_the_halo(counted, nbytes):
    chosen = Assumptions(im2col_w_bytes=counted)
    box = load_box(TensorOperand(wide(), (0, 0, 0, 0), "im2col::w", (2, 0)), 0, chosen, "here")
    assert box.nbytes == nbytes and box.high == 14 * 128


@pytest.mark.parametrize(
    ("dtype", "counted", "nbytes"),
    [
        ("u6_align16b", "padded", 256),
        ("u6_align16b", "payload", 192),
        ("u4_align16b", "padded", 256),
        ("u4_align16b", "payload", 128),
    ],
)
def test_bytes_of_the_gaps(dtype, counted, nbytes):
    row, used = (96, 12) if dtype == "u6_align16b" else (64, 8)
    x = np.zeros((2, row), np.uint8)
    d = built("tiled", x, dtype=dtype, dims=[128, 2], strides_bytes=[row], box=[128, 2])
    chosen = Assumptions(padded_bytes=counted)
    box = load_box(TensorOperand(d, (0, 0), "tile", ()), 0, chosen, "here")
    assert box.nbytes == nbytes
    assert sorted(box.gaps) == [16 * i + k for i in range(16) for k in range(used, 16)]


def test_loads_with_atoms_of_64_bytes():
    x = np.zeros((2, 64), np.uint16)
    d = built(
        "tiled", x, dtype="u16", dims=[64, 2], strides_bytes=[128], box=[64, 2],
        swizzle="128B_ATOM_64B",
    )  # fmt: skip
    load_box(TensorOperand(d, (0, 0), "tile", ()), 0, Assumptions(), "here")
    with pytest.raises(MachineError, match="expected another for a load"):
        load_box(
            TensorOperand(d, (0, 0), "tile", ()), 0, Assumptions(atom_64b_load="refused"), "here"
        )


@pytest.mark.parametrize("choice", ["low-bits", "first-bytes"])
def test_what_a_store_of_six_bits_reads(choice):
    out = np.zeros((1, 96), np.uint8)
    shared = (37 * np.arange(1, 129)).astype(np.uint8)
    machine = Machine(
        grid=(1, 1, 1),
        block=(32, 1, 1),
        dynamic_smem=128,
        options=RunOptions(assumptions=Assumptions(u6_store=choice)),
    )
    tensor = TensorMap.tiled(
        out, dtype="u6_align16b", dims=[128, 1], strides_bytes=[96], box=[128, 1]
    )
    decoded = decode(tensor.encode(machine.memory.bind(out)))

    def body(agent):
        agent.memory.store("shared", np.array([0]), shared[None], site="fill")
        agent.fence("proxy.async", site="fence")
        agent.tma.store(0, TensorOperand(decoded, (0, 0)), site="store")
        agent.bulk.commit(site="commit")
        yield from agent.bulk.wait(0, site="wait")

    machine.run(lambda cta: [cta.agent("warp", warp=0, body=body)])
    assert not machine.findings
    if choice == "first-bytes":
        expected = shared.reshape(8, 16)[:, :12].reshape(-1)
    else:
        bits = "".join(f"{byte & 63:06b}"[::-1] for byte in shared)
        expected = [int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8)]
    np.testing.assert_array_equal(out[0], expected)


# --- values


@pytest.mark.parametrize(
    ("operation", "dtype", "old", "new", "expected"),
    [  # as an H200 has them
        ("add", "f32", 0x7F800000, 0xFF800000, 0x7FFFFFFF),
        ("add", "f32", 0x00000001, 0x00000001, 0x00000002),
        ("add", "f32_ftz", 0x007FFFFF, 0x007FFFFF, 0x00000000),
        ("add", "tf32", 0x3F800FFF, 0x3F800000, 0x40000800),
        ("add", "f16", 0x7C01, 0x0000, 0x7FFF),
        ("min", "f16", 0x7E00, 0x3F80, 0x3F80),
        ("max", "f16", 0x8000, 0x0000, 0x0000),
        ("min", "bf16", 0x0000, 0x8000, 0x8000),
        ("min", "bf16", 0xFFFF, 0xFFC0, 0x7FFF),
        ("inc", "u32", 5, 5, 0),
        ("inc", "u32", 5, 6, 6),
        ("dec", "u32", 0, 9, 9),
        ("dec", "u32", 10, 9, 9),
        ("dec", "u32", 9, 9, 8),
    ],
)
def test_reductions_of_special_values(operation, dtype, old, new, expected):
    x = np.zeros(64, np.uint32)
    d = built("tiled", x, dtype=dtype, dims=[32], strides_bytes=[], box=[32])
    kind = f"u{d.fields.piece_bytes}"
    got = reduced(operation, d.fields, np.array([old], kind), np.array([new], kind))
    assert hex(int(got[0])) == hex(expected)


# --- limits

PACKED = {"dims": [128, 4], "box": [128, 2]}


@pytest.mark.parametrize(
    ("kind", "array", "legal", "illegal", "message"),
    [
        (
            "tiled", SLICES, IL | {"box": [8, 1, 1, 1]}, {"interleave": "32B"},
            "swizzle: expected 32B",
        ),
        (
            "tiled", SLICES, IL | {"box": [8, 1, 1, 1]}, {"box": [4, 1, 1, 1]},
            r"box\[0\].*got 8 bytes",
        ),
        (
            "tiled", SLICES, IL | {"box": [8, 1, 1, 1]},
            {"dims": [10, 6], "strides_bytes": [160], "box": [8, 1]}, r"rank: expected 3\.\.5",
        ),
        (
            "tiled", SLICES,
            IL | {"interleave": "32B", "swizzle": "32B", "box": [8, 1, 1, 1]},
            {"strides_bytes": [176, 960, 2880]}, r"strides_bytes\[0\]: expected a multiple of 32",
        ),
        (
            "tiled", SLICES, PACKED | {"dtype": "u4_align16b", "strides_bytes": [64]},
            {"box": [64, 2]}, r"box\[0\]: expected 128, got 64",
        ),
        (
            "tiled", SLICES, PACKED | {"dtype": "u6_align16b", "strides_bytes": [96]},
            {"dims": [192, 4]}, r"dims\[0\]: expected a multiple of 128, got 192",
        ),
        (
            "tiled", SLICES, PACKED | {"dtype": "u6_align16b", "strides_bytes": [96]},
            {"strides_bytes": [112]}, r"strides_bytes\[0\]: expected a multiple of 32, got|below",
        ),
        (
            "tiled", SLICES,
            PACKED | {"dtype": "u6_align16b", "strides_bytes": [96], "swizzle": "128B"},
            {"swizzle": "128B_ATOM_32B_FLIP_8B"}, "swizzle: expected one of NONE, 128B",
        ),
        (
            "tiled", SLICES, PACKED | {"dtype": "u4_align8b", "strides_bytes": [64]},
            {"dims": [127, 4]}, r"dims\[0\]: expected even, got 127",
        ),
        (
            "tiled", SLICES, PACKED | {"dtype": "u4_align8b", "strides_bytes": [64]},
            {"oob_fill": "nan"}, "oob_fill: expected zero with dtype u4_align8b",
        ),
    ],
)  # fmt: skip
def test_limits(kind, array, legal, illegal, message):
    built(kind, array, **legal)
    with pytest.raises(TensorMapError, match=message):
        built(kind, array, **(legal | illegal))


@pytest.mark.parametrize(
    ("legal", "illegal", "message"),
    [
        ({"swizzle": "64B", "channels_per_pixel": 32}, {"swizzle": "NONE"}, "swizzle: expected"),
        ({}, {"swizzle": "128B_ATOM_64B"}, "64B, 128B, 128B_ATOM_32B"),
        ({"lower_corner_width": -32768}, {"lower_corner_width": -32769}, r"-32768\.\.32767"),
        ({}, {"mode": "X"}, "mode: expected one of tiled"),
    ],
)
def test_limits_of_the_w_modes(legal, illegal, message):
    wide(**legal)
    with pytest.raises(TensorMapError, match=message):
        wide(**(legal | illegal))


# --- replacement of fields


def test_every_field_is_replaced():
    x = np.zeros((8, 64), np.uint16)
    m = TensorMap.tiled(x, dtype="u16", dims=[64, 8], strides_bytes=[128], box=[16, 4])
    raw = m.encode(BASE)
    for field, value, ordinal, expected in (
        ("global_address", BASE + 64, 0, {"address": BASE + 64}),
        ("global_dim", 33, 0, {"dims": (33, 8)}),
        ("global_stride", 160, 0, {"strides_bytes": (160,)}),
        ("box_dim", 8, 1, {"box": (16, 8)}),
        ("element_stride", 2, 1, {"element_strides": (1, 2)}),
        ("elemtype", 10, 0, {"dtype": "bf16"}),
        ("swizzle_mode", 2, 0, {"swizzle": "64B"}),
    ):
        found = decode(replace_field(raw, field, value, ordinal))
        base = decode(raw)
        fields = {k: v for k, v in expected.items() if k != "address"}
        want = replace(base, fields=replace(base.fields, **fields))
        assert found == replace(want, address=expected.get("address", BASE))
    rank1 = decode(replace_field(raw, "rank", 0))
    assert rank1.fields.dims == (64,) and rank1.fields.strides_bytes == ()
    both = replace_field(replace_field(raw, "swizzle_mode", 3), "swizzle_atomicity", 1)
    assert decode(both).fields.swizzle == "128B_ATOM_32B"
    nan = replace_field(replace_field(raw, "elemtype", 6), "fill_mode", 1)
    assert decode(nan).fields.oob_fill == "nan"
    with pytest.raises(TensorMapError, match="swizzle_mode, swizzle_atomicity"):
        decode(replace_field(raw, "swizzle_atomicity", 1))
    with pytest.raises(TensorMapError, match=r"interleave|rank"):
        decode(replace_field(raw, "interleave_layout", 1))
    counts = {"box_dim": 5, "global_dim": 5, "global_stride": 4, "element_stride": 5}
    for field, (low, high) in LIMITS.items():
        count = counts.get(field, 1)
        replace_field(raw, field, low)
        replace_field(raw, field, high)
        for value, ordinal in ((low - 1, 0), (high + 1, 0), (low, count)):
            with pytest.raises(TensorMapError, match=f"{field}|ord"):
                replace_field(raw, field, value, ordinal)
    assert encode(decode(raw)) == raw
