"""The bytes that one TMA instruction moves in the im2col modes (`tensor_walk` defines the terms).

Base positions traverse the bounding box, W fastest, then H, D and N. The instruction's offsets (the
filter tap) are added to each base position. The w modes traverse only W and N, and add halo pixels.

Sources: PTX ISA 5.5.4 (im2col), 5.5.5 (im2col::w and im2col::w::128), 5.5.6 (interleave).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.map_fields import DecodedMap
from tcir.machine.tma.tensor_limits import HALO_MAX, OFFSET_MAX, W_OFFSET_MAX
from tcir.machine.tma.tensor_walk import (
    OUTSIDE,
    check_mode,
    first_unit,
    shared_offsets,
    words,
)

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

GROUP = 32
"""Pixels between two halos of im2col::w::128."""


def _advance(steps: Index, start: int, first: int, last: int, stride: int) -> tuple[Index, Index]:
    """Walks `steps` from `start` by `stride`, wrapping from `last` to `first`: (position,
    wraps)."""
    left = (last - start) // stride + 1
    per_row = (last - first) // stride + 1
    over = steps - left
    wraps = np.where(over < 0, 0, 1 + over // per_row)
    position = np.where(over < 0, start + steps * stride, first + over % per_row * stride)
    return position, wraps


def _start(name: str, value: int, first: int | None, last: int, reason: str) -> None:
    if value > last or first is not None and value < first:
        allowed = f"at most {last}" if first is None else f"{first}..{last}"
        raise TensorMapError(name, value, allowed, reason)


def _range(name: str, value: int, largest: int, reason: str) -> None:
    if not 0 <= value <= largest:
        raise TensorMapError(name, value, f"0..{largest}", reason)


def im2col_elements(
    decoded: DecodedMap, coords: Sequence[int], offsets: Sequence[int]
) -> tuple[Index, Index]:
    """Returns (global byte addresses, shared byte offsets), int64 [words], for im2col mode.

    `coords` (C, W(, H(, D)), N): the first channel and the first base position; for an interleaved
        tensor (W(, H(, D)), C slice, N). `offsets`: W first, in elements, non-negative.
    """
    f = decoded.fields
    check_mode(decoded, "im2col", coords, f.rank)
    if len(offsets) != f.rank - 2:
        raise TensorMapError(
            "number of im2col offsets", len(offsets), str(f.rank - 2), "one per spatial dimension"
        )
    carry = np.arange(f.pixels_per_column, dtype=np.int64)
    pixel = np.full(f.pixels_per_column, decoded.address, np.int64)
    inside = np.ones(f.pixels_per_column, np.bool_)
    for i, offset in enumerate(offsets):
        _range(f"im2col offset {i}", offset, OFFSET_MAX[f.rank], "PTX ISA 5.5.4")
        first, last = f.bounds(i)
        axis = i + f.first_spatial
        start = coords[axis]
        why = "the first base position lies in the bounding box"
        _start(f"im2col coordinate {axis}", start, first, last, why)
        position, carry = _advance(carry, start, first, last, f.element_strides[axis])
        pixel, inside = _place(decoded, axis, position + offset, pixel, inside)
    image = coords[-1] + carry * f.element_strides[-1]
    pixel, inside = _place(decoded, f.rank - 1, image, pixel, inside)
    return _channels(decoded, coords, pixel, inside)


def wide_elements(
    decoded: DecodedMap,
    coords: Sequence[int],
    halo: int,
    offset: int,
    assumptions: Assumptions,
) -> tuple[Index, Index]:
    """Like `im2col_elements`, for the modes `.im2col::w` and `.im2col::w::128`.

    `halo`: number of extra pixels, after all other pixels (w) or after every 32 pixels (w::128).
        `offset` shifts the bounding box and the start along W. `assumptions` answer the questions
        that PTX leaves open.
    """
    f = decoded.fields
    check_mode(decoded, f.mode if f.mode in HALO_MAX else "im2col_w", coords, f.rank)
    _range("wHalo", halo, HALO_MAX[f.mode], "PTX ISA 9.7.9.27")
    _range("wOffset", offset, W_OFFSET_MAX, "PTX ISA 9.7.9.27")
    first, last = (bound + offset for bound in f.bounds(0))
    start = coords[1] + offset
    why = "the first pixel may lie outside the bounding box on its left side only"
    _start("im2col coordinate 1 + wOffset", start, None, last, why)
    steps = _wide_steps(f.mode, f.counts[1], halo, assumptions)
    stride = f.element_strides[1]
    column, images = _advance(steps[:, 0], start, first, last, stride)
    column = column + steps[:, 1] * stride  # of halo pixels that stay in their row
    inside = np.ones(len(steps), np.bool_)
    if assumptions.im2col_w_row_end == "fill":
        inside &= images == 0
    pixel = np.full(len(steps), decoded.address, np.int64)
    pixel, inside = _place(decoded, 1, column, pixel, inside)
    for axis in range(2, f.rank - 1):
        at = np.full(len(steps), coords[axis], np.int64)
        pixel, inside = _place(decoded, axis, at, pixel, inside)
    image = coords[-1] + images * f.element_strides[-1]
    pixel, inside = _place(decoded, f.rank - 1, image, pixel, inside)
    return _channels(decoded, coords, pixel, inside)


def _wide_steps(mode: str, pixels: int, halo: int, assumptions: Assumptions) -> Index:
    """Traversal step of each pixel in shared memory, and the pixel's distance past that step in
    strides: int64 [pixels, 2]."""
    group = GROUP if mode == "im2col_w128" else pixels
    main = np.arange(pixels).reshape(-1, group)
    extra = np.arange(halo)
    zero = np.zeros_like(main)
    ends = main[:, -1:]
    if assumptions.im2col_w_halo == "walk":
        halos, beyond = ends + 1 + extra, np.zeros((len(ends), halo), np.int64)
    else:
        halos, beyond = np.repeat(ends, halo, axis=1), np.tile(1 + extra, (len(ends), 1))
    if assumptions.im2col_w128_halo == "behind":
        # Row k of the halo of every group, then row k + 1: what tcgen05.cp.4x256b takes.
        steps = np.concatenate([main.reshape(-1), halos.T.reshape(-1)])
        far = np.concatenate([zero.reshape(-1), beyond.T.reshape(-1)])
    else:
        steps = np.concatenate([main, halos], axis=1).reshape(-1)
        far = np.concatenate([zero, beyond], axis=1).reshape(-1)
    return np.stack([steps, far], axis=1).astype(np.int64)


def _place(
    decoded: DecodedMap, axis: int, position: Index, pixel: Index, inside: Mask
) -> tuple[Index, Mask]:
    """Moves pixels to positions along an axis and masks out those outside the tensor."""
    f = decoded.fields
    pitch = f.strides_bytes[axis - 1] if axis else f.unit.global_bytes
    inside = inside & (position >= 0) & (position < f.dims[axis])
    return pixel + position * pitch, inside


def _channels(
    decoded: DecodedMap, coords: Sequence[int], pixel: Index, inside: Mask
) -> tuple[Index, Index]:
    """The channels of each pixel, or its one channel slice."""
    f, unit = decoded.fields, decoded.fields.unit
    if f.interleaved:
        at = coords[-2]
        if not 0 <= at < f.dims[-2]:
            inside = np.zeros_like(inside)
        units = np.where(inside, pixel + at * f.strides_bytes[-2], OUTSIDE)
        return words(units, unit), shared_offsets(f, len(pixel))
    count, dim = f.counts[0], f.dims[0] // unit.elements
    channel = first_unit(decoded, coords[0]) + np.arange(count, dtype=np.int64)
    address = pixel[:, None] + channel * unit.global_bytes
    if not inside.all() or channel[0] < 0 or channel[-1] >= dim:
        ok = inside[:, None] & (channel >= 0) & (channel < dim)
        address = np.where(ok, address, OUTSIDE)
    units = address.reshape(-1)
    return words(units, unit), shared_offsets(f, len(pixel))
