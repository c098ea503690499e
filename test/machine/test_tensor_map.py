"""Tensor maps: the driver's limits in pairs, the encoding, and the walks against definitions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.im2col_walk import im2col_elements
from tcir.machine.tma.tensor_encoding import replace as replace_field
from tcir.machine.tma.tensor_map import DecodedMap, TensorMap, decode
from tcir.machine.tma.tensor_walk import OUTSIDE, tile_elements, whole_boxes

BASE = 0x70000
A = np.zeros((2, 5, 6, 8), np.float16)


def strides(array):
    return list(array.strides[-2::-1])


def dims(array):
    return list(array.shape[::-1])


def tiled(array=A, **changes):
    arguments = {
        "dtype": "f16",
        "dims": dims(array),
        "strides_bytes": strides(array),
        "box": [8, 4, 2, 1],
    }
    return TensorMap.tiled(array, **(arguments | changes))


def im2col(array=A, **changes):
    arguments = {
        "dtype": "f16",
        "dims": dims(array),
        "strides_bytes": strides(array),
        "lower_corner": [-1, -1],
        "upper_corner": [-1, -1],
        "channels_per_pixel": 8,
        "pixels_per_column": 16,
    }
    return TensorMap.im2col(array, **(arguments | changes))


def gather(array, addresses):
    """What a load writes: elements of `array` bound at BASE, zeros outside."""
    flat = np.append(array.reshape(-1), 0)
    size = array.itemsize
    assert (((addresses - BASE) % size == 0) | (addresses == OUTSIDE)).all()
    index = np.where(addresses == OUTSIDE, len(flat) - 1, (addresses - BASE) // size)
    assert (index >= 0).all() and (index < len(flat)).all()
    return flat[index]


def numbered(*shape):
    return (1 + np.arange(np.prod(shape), dtype=np.uint16)).reshape(shape)


# --- tile mode


def tile_by_definition(array, box, steps, coords):
    """Nested loops, innermost dimension last in `array`'s index."""
    counts = [-(-b // s) for b, s in zip(box, steps)]
    out = []
    for place in itertools.product(*(range(c) for c in reversed(counts))):
        at = [c + p * s for c, p, s in zip(reversed(coords), place, reversed(steps))]
        inside = all(0 <= i < n for i, n in zip(at, array.shape))
        out.append(array[tuple(at)] if inside else 0)
    return np.array(out)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_boxes(data):
    rank = data.draw(st.integers(1, 5))
    shape = [data.draw(st.integers(1, 5)) for _ in range(rank - 1)] + [
        8 * data.draw(st.integers(1, 3))
    ]
    box = [8 * data.draw(st.integers(1, 2))] + [data.draw(st.integers(1, 5)) for _ in shape[1:]]
    steps = [1] + [data.draw(st.integers(1, 3)) for _ in shape[1:]]
    coords = [data.draw(st.integers(-4, n + 2)) for n in reversed(shape)]
    coords[0] = coords[0] // 8 * 8
    x = numbered(*shape)
    m = TensorMap.tiled(
        x, dtype="u16", dims=dims(x), strides_bytes=strides(x), box=box, element_strides=steps
    )
    d = decode(m.encode(BASE))
    addresses, offsets = tile_elements(d, coords)
    defined = tile_by_definition(x, box, steps, coords)
    np.testing.assert_array_equal(gather(x, addresses), defined)
    np.testing.assert_array_equal(offsets, 2 * np.arange(len(addresses)))
    assert d.fields.box_bytes == 2 * len(addresses)
    first, inside = whole_boxes(d, np.array([coords, coords]))
    assert inside.tolist() == [(defined != 0).all()] * 2
    assert not inside[0] or first[1] == addresses[0]
    assert not whole_boxes(d, np.array([[coords[0] + 4, *coords[1:]]]))[1].any()  # 8 bytes on


def test_box_is_a_slice_of_the_padded_array():
    x = numbered(3, 7, 8)
    m = TensorMap.tiled(x, dtype="u16", dims=dims(x), strides_bytes=strides(x), box=[8, 4, 2])
    padded = np.pad(x, 5)
    for h, w in itertools.product(range(-3, 8), range(-2, 4)):
        addresses, _ = tile_elements(decode(m.encode(BASE)), (0, h, w))
        expected = padded[w + 5 : w + 7, h + 5 : h + 9, 5:13]
        np.testing.assert_array_equal(gather(x, addresses).reshape(2, 4, 8), expected)


def test_innermost_element_stride_is_ignored():
    x = numbered(4, 16)
    both = [
        TensorMap.tiled(
            x, dtype="u16", dims=[16, 4], strides_bytes=[32], box=[16, 4], element_strides=s
        )
        for s in ([1, 2], [4, 2])
    ]
    assert both[0].fields.box_bytes == both[1].fields.box_bytes == 64
    walks = [tile_elements(decode(m.encode(BASE)), (0, 0))[0] for m in both]
    np.testing.assert_array_equal(*walks)


# --- im2col mode


def pixels_by_definition(shape, lower, upper, steps, start, count):
    """Base positions (n, [d, [h,]] w) in walking order, from `start` on, by nested loops."""
    spatial = shape[1:-1]  # outermost first
    ranges = [
        range(lo, n + up, s) for lo, up, n, s in zip(lower[::-1], upper[::-1], spatial, steps[::-1])
    ]
    walk = itertools.product(range(-1, shape[0] + count), *ranges)
    after = itertools.dropwhile(lambda position: position != start, walk)
    return list(itertools.islice(after, count))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_im2col_walk(data):
    rank = data.draw(st.integers(3, 5))
    shape = [2] + [data.draw(st.integers(2, 5)) for _ in range(rank - 2)] + [16]
    lower = [data.draw(st.integers(-2, 1)) for _ in range(rank - 2)]
    upper = [data.draw(st.integers(-2, 1)) for _ in range(rank - 2)]
    for i, n in enumerate(reversed(shape[1:-1])):  # not empty
        upper[i] = max(upper[i], lower[i] - n + 1)
    steps = [data.draw(st.integers(1, 3)) for _ in range(rank - 2)]
    offsets = [data.draw(st.integers(0, 3)) for _ in range(rank - 2)]
    count = data.draw(st.integers(1, 40))
    channel = data.draw(st.sampled_from([-8, 0, 8, 16]))
    x = numbered(*shape)
    m = TensorMap.im2col(
        x,
        dtype="u16",
        dims=dims(x),
        strides_bytes=strides(x),
        lower_corner=lower,
        upper_corner=upper,
        channels_per_pixel=8,
        pixels_per_column=count,
        element_strides=[1, *steps, 1],
    )
    first = (-1, *lower[::-1])
    walk = pixels_by_definition(shape, lower, upper, steps, first, 30)
    start = data.draw(st.sampled_from(walk))
    positions = pixels_by_definition(shape, lower, upper, steps, start, count)
    expected = np.zeros((count, 8), np.uint16)
    for p, (image, *place) in enumerate(positions):
        at = [image, *(b + o for b, o in zip(place, offsets[::-1]))]
        for c in range(8):
            index = (*at, channel + c)
            if all(0 <= i < n for i, n in zip(index, shape)):
                expected[p, c] = x[index]
    coords = (channel, *start[:0:-1], start[0])
    addresses, shared = im2col_elements(decode(m.encode(BASE)), coords, offsets)
    np.testing.assert_array_equal(gather(x, addresses).reshape(count, 8), expected)
    np.testing.assert_array_equal(shared, 2 * np.arange(count * 8))
    assert m.fields.box_bytes == 2 * count * 8


@pytest.mark.parametrize(
    ("stride", "dilation", "pad"), [(1, 1, 1), (2, 1, 1), (1, 2, 2), (2, 2, 0)]
)
def test_convolution_by_its_definition(stride, dilation, pad):
    """Gathered taps times weights are the convolution: corners -pad and pad - dilation·(R - 1)."""
    rng = np.random.default_rng(3)
    images, height, width, channels, k_out, taps = 2, 9, 7, 8, 3, 3
    x = rng.integers(1, 200, (images, height, width, channels)).astype(np.uint16)
    w = rng.integers(1, 50, (taps, taps, channels, k_out)).astype(np.int64)
    p = (height + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
    q = (width + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
    padded = np.pad(x.astype(np.int64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    expected = np.zeros((images, p, q, k_out), np.int64)
    for n, i, j, r, s in itertools.product(*map(range, (images, p, q, taps, taps))):
        pixel = padded[n, i * stride + r * dilation, j * stride + s * dilation]
        expected[n, i, j] += pixel @ w[r, s]
    upper = pad - dilation * (taps - 1)
    m = im2col(
        x,
        dtype="u16",
        lower_corner=[-pad, -pad],
        upper_corner=[upper, upper],
        pixels_per_column=images * p * q,
        element_strides=[1, stride, stride, 1],
    )
    d = decode(m.encode(BASE))
    got = np.zeros((images * p * q, k_out), np.int64)
    for r, s in itertools.product(range(taps), range(taps)):
        addresses, _ = im2col_elements(d, (0, -pad, -pad, 0), (s * dilation, r * dilation))
        got += gather(x, addresses).reshape(-1, channels).astype(np.int64) @ w[r, s]
    np.testing.assert_array_equal(got.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("legal", "illegal", "offsets", "message"),
    [
        ((0, -1, -1, 0), (0, -2, -1, 0), (0, 0), r"im2col coordinate 1: expected -1\.\.4, got -2"),
        ((0, 4, 3, 0), (0, 4, 4, 0), (0, 0), r"im2col coordinate 2: expected -1\.\.3, got 4"),
        ((0, 0, 0, 0), (0, 0, 0), (0, 0), "number of coordinates: expected 4, got 3"),
    ],
)
def test_im2col_coordinates(legal, illegal, offsets, message):
    d = decode(im2col().encode(BASE))
    im2col_elements(d, legal, offsets)
    with pytest.raises(TensorMapError, match=message):
        im2col_elements(d, illegal, offsets)


def test_im2col_offsets():
    d = decode(im2col().encode(BASE))
    im2col_elements(d, (0, 0, 0, 0), (255, 0))
    for offsets, message in (((256, 0), r"0\.\.255"), ((0, -1), r"0\.\.255"), ((0,), "number of")):
        with pytest.raises(TensorMapError, match=message):
            im2col_elements(d, (0, 0, 0, 0), offsets)


def test_mode_of_the_instruction_must_fit_the_map():
    with pytest.raises(TensorMapError, match="expected im2col, got tiled"):
        tile_elements(decode(im2col().encode(BASE)), (0, 0, 0, 0))
    with pytest.raises(TensorMapError, match="expected tiled, got im2col"):
        im2col_elements(decode(tiled().encode(BASE)), (0, 0, 0, 0), (0, 0))


# --- limits

LONG = [8, 1 << 32, 5, 2]


@pytest.mark.parametrize(
    ("build", "legal", "illegal", "message"),
    [
        (tiled, {"dtype": "bf16"}, {"dtype": "e2m1"}, "dtype: expected one of u8"),
        (tiled, {"swizzle": "32B"}, {"swizzle": "96B"}, "swizzle: expected one of NONE"),
        (
            tiled,
            {"dims": LONG},
            {"dims": [8, (1 << 32) + 1, 5, 2]},
            r"dims\[1\]: expected 1\.\.2\^32",
        ),
        (tiled, {}, {"dims": [8, 0, 5, 2]}, r"dims\[1\]"),
        (tiled, {}, {"strides_bytes": [16, 96]}, "number of strides: expected 3, got 2"),
        (
            tiled,
            {},
            {"strides_bytes": [16, 100, 480]},
            r"strides_bytes\[1\]: expected a multiple of 16",
        ),
        (
            tiled,
            {"strides_bytes": [16, 96, (1 << 40) - 16]},
            {"strides_bytes": [16, 96, 1 << 40]},
            r"strides_bytes\[2\].*below 2\^40",
        ),
        (tiled, {"box": [8, 256, 1, 1]}, {"box": [8, 257, 1, 1]}, r"box\[1\]: expected 1\.\.256"),
        (tiled, {}, {"box": [8, 0, 1, 1]}, r"box\[1\]"),
        (tiled, {}, {"box": [8, 1, 1]}, "length of box: expected 4, got 3"),
        (tiled, {}, {"box": [4, 1, 1, 1]}, r"box\[0\].*multiple of 16 bytes, got 8"),
        (
            tiled,
            {"box": [64, 1, 1, 1], "swizzle": "128B"},
            {"box": [72, 1, 1, 1], "swizzle": "128B"},
            r"box\[0\].*at most 128 bytes with swizzle 128B, got 144",
        ),
        (
            tiled,
            {"box": [16, 1, 1, 1], "swizzle": "32B"},
            {"box": [24, 1, 1, 1], "swizzle": "32B"},
            "at most 32 bytes",
        ),
        (
            tiled,
            {"element_strides": [1, 8, 1, 1]},
            {"element_strides": [1, 9, 1, 1]},
            r"element_strides\[1\]: expected 1\.\.8",
        ),
        (tiled, {}, {"element_strides": [1, 1]}, "number of element strides"),
        (tiled, {"interleave": "16B"}, {"interleave": "64B"}, "interleave: expected one of NONE"),
        (
            tiled,
            {"oob_fill": "nan"},
            {"oob_fill": "nan", "dtype": "u16"},
            "oob_fill: expected zero with dtype u16",
        ),
        (tiled, {"oob_fill": "zero"}, {"oob_fill": "one"}, "oob_fill: expected one of zero, nan"),
        (
            tiled,
            {"offset_bytes": 16},
            {"offset_bytes": 8},
            "offset_bytes: expected a multiple of 16",
        ),
        (
            tiled,
            {"dims": [8], "strides_bytes": [], "box": [8]},
            {"dims": [], "strides_bytes": [], "box": []},
            r"rank: expected 1\.\.5, got 0",
        ),
        (
            im2col,
            {},
            {"dims": [8, 6], "strides_bytes": [16], "lower_corner": [], "upper_corner": []},
            r"rank: expected 3\.\.5, got 2",
        ),
        (im2col, {}, {"lower_corner": [-1]}, "length of lower_corner: expected 2"),
        (
            im2col,
            {"lower_corner": [-128, -128]},
            {"lower_corner": [-129, 0]},
            r"lower_corner\[0\]: expected -128\.\.127 for rank 4",
        ),
        (im2col, {"upper_corner": [127, 127]}, {"upper_corner": [0, 128]}, r"upper_corner\[1\]"),
        (
            im2col,
            {"lower_corner": [0, 0], "upper_corner": [-5, 0]},
            {"lower_corner": [0, 0], "upper_corner": [-6, 0]},
            "bounding box along spatial dimension 0",
        ),
        (im2col, {"channels_per_pixel": 256}, {"channels_per_pixel": 257}, r"channels.*1\.\.256"),
        (im2col, {}, {"channels_per_pixel": 4}, "multiple of 16 bytes"),
        (
            im2col,
            {"channels_per_pixel": 64, "swizzle": "128B"},
            {"channels_per_pixel": 128, "swizzle": "128B"},
            "at most 128 bytes",
        ),
        (im2col, {"pixels_per_column": 1024}, {"pixels_per_column": 1025}, r"pixels.*1\.\.1024"),
        (im2col, {}, {"pixels_per_column": 0}, r"pixels.*1\.\.1024"),
        (
            im2col,
            {"element_strides": [1, 2, 8, 3]},
            {"element_strides": [1, 2, 8, 9]},
            r"element_strides\[3\]: expected 1\.\.8",
        ),
    ],
)
def test_limits_of_the_driver(build, legal, illegal, message):
    build(**legal)
    with pytest.raises(TensorMapError, match=message):
        build(**illegal)


@pytest.mark.parametrize(
    ("rank", "low", "high"), [(3, -32768, 32767), (4, -128, 127), (5, -16, 15)]
)
def test_corner_ranges_by_rank(rank, low, high):
    x = np.zeros((1, *[20] * (rank - 2), 8), np.uint16)
    spatial = rank - 2
    im2col(x, lower_corner=[low] * spatial, upper_corner=[high] * spatial)
    for corner, value in (("lower_corner", low - 1), ("upper_corner", high + 1)):
        corners = {"lower_corner": [0] * spatial, "upper_corner": [0] * spatial}
        with pytest.raises(TensorMapError, match=rf"{corner}.*for rank {rank}"):
            im2col(x, **(corners | {corner: [value] * spatial}))


# --- encoding


@pytest.mark.parametrize(
    "built",
    [
        tiled(swizzle="128B", element_strides=[1, 2, 3, 1]),
        tiled(dims=LONG, strides_bytes=[0, (1 << 40) - 16, 480]),
        tiled(dims=[8], strides_bytes=[], box=[8]),
        im2col(swizzle="64B"),
        im2col(lower_corner=[-128, 3], upper_corner=[127, -1], pixels_per_column=1024),
        im2col(
            np.zeros((1, 2, 3, 4, 8), np.float16),
            lower_corner=[0, -16, 1],
            upper_corner=[0, 15, 0],
            element_strides=[1, 2, 3, 4, 1],
        ),
    ],
)
def test_encoding_round_trips(built):
    raw = built.encode(BASE)
    assert len(raw) == 128
    assert TensorMap.decode(raw) == DecodedMap(built.fields, BASE)
    moved = replace(built, offset_bytes=0x40)
    assert decode(moved.encode(BASE)).address == BASE + 0x40


def test_only_tensor_maps_decode():
    raw = tiled().encode(BASE)
    decode(raw)
    for wrong in (bytes(128), raw[:-1], raw + b"\0", b"x" + raw[1:]):
        with pytest.raises(TensorMapError, match="expected the 128 bytes of an encoded tensor map"):
            decode(wrong)
    for i in range(64):
        broken = bytearray(raw)
        broken[i] ^= 1
        with pytest.raises(TensorMapError):
            decode(bytes(broken))
    assert decode(raw[:64] + bytes(range(64))) == decode(raw[:64]) == decode(raw)


def test_global_address_must_be_aligned():
    with pytest.raises(
        TensorMapError, match="global address: expected a multiple of 16, got 0x70008"
    ):
        tiled().encode(BASE + 8)


# --- from zeros, field by field ------------------------------------------------------------------


def from_zeros(left_out: str = "") -> bytes:
    """As Triton's kernels make a map: every field of tensormap.replace, on 128 bytes of zeros."""
    written = [("global_address", BASE, 0), ("rank", 1, 0), ("elemtype", 6, 0)]
    written += [("interleave_layout", 0, 0), ("swizzle_mode", 3, 0), ("fill_mode", 0, 0)]
    written += [("box_dim", size, n) for n, size in enumerate((64, 16))]
    written += [("global_dim", size, n) for n, size in enumerate((128, 40))]
    written += [("global_stride", 256, 0), *[("element_stride", 1, n) for n in (0, 1)]]
    raw = bytes(128)
    for field, value, ordinal in written:
        if field != left_out:
            raw = replace_field(raw, field, value, ordinal)
    return raw


def test_a_map_made_from_zeros() -> None:
    whole = np.zeros((40, 128), np.float16)
    want = TensorMap.tiled(
        whole, dtype="f16", dims=[128, 40], strides_bytes=[256], box=[64, 16], swizzle="128B"
    )
    assert decode(from_zeros()).fields == want.fields
    assert decode(from_zeros()).address == BASE


@pytest.mark.parametrize("field", ["box_dim", "element_stride"])
def test_a_field_that_stays_zero_is_refused_where_it_must_not_be(field: str) -> None:
    with pytest.raises(TensorMapError, match=r"expected"):
        decode(from_zeros(field))


def test_a_bit_that_cute_dsl_clears_is_none_of_a_map() -> None:
    """Its kernels clear bit 21 of the third word after a change of global_dim."""
    made = TensorMap.tiled(
        np.zeros((64, 64), np.float32), dtype="f32", dims=[64, 64], strides_bytes=[256], box=[32, 8]
    )
    before = made.encode(0xFFFF_FFFF_FF00)
    raw = bytearray(before)
    raw[8 + 2] &= ~(1 << 5)
    assert raw == before and TensorMap.decode(before).address == 0xFFFF_FFFF_FF00
    raw[8 + 2] |= 1 << 5
    with pytest.raises(TensorMapError):
        TensorMap.decode(bytes(raw))
