"""Which elements one TMA instruction moves: global byte address and shared byte offset of each.

Pure functions of a `DecodedMap` and the instruction's coordinates. Elements come in shared-memory
order (innermost first, packed); a global address of -1 is an element outside the tensor: a load
fills it with zeros, a store skips it. The swizzle is not applied here: it acts on the absolute
shared address, `swizzle_address(destination + offset, mode)`.

Sources: PTX ISA 5.5.3 (tiled mode), 5.5.4 (im2col mode).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import TensorMapError
from tcir.machine.tensor_map import OFFSET_MAX, DecodedMap, MapFields

OUTSIDE = -1
"""Global address of an element outside the tensor."""


@cache
def shared_offsets(fields: MapFields) -> NDArray[np.int64]:
    """Shared byte offset of each element of the box, before the swizzle: they are packed."""
    offsets = np.arange(0, fields.box_bytes, fields.element_bytes, dtype=np.int64)
    offsets.flags.writeable = False
    return offsets


def _check(decoded: DecodedMap, mode: str, coords: Sequence[int]) -> None:
    f = decoded.fields
    if f.mode != mode:
        raise TensorMapError(
            "mode of the instruction", mode, f.mode, "the tensor map was encoded for that mode"
        )
    if len(coords) != f.rank:
        raise TensorMapError(
            "number of coordinates", len(coords), str(f.rank), "one per dimension of the tensor map"
        )


def tile_elements(
    decoded: DecodedMap, coords: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(global byte addresses, shared byte offsets), int64 [elements], of a box in tile mode.

    `coords` are in elements, innermost first, and may be negative or past the end.
    """
    _check(decoded, "tiled", coords)
    f = decoded.fields
    address = np.full((1,) * f.rank, decoded.address, np.int64)
    inside: NDArray[np.bool_] | None = None
    for i, (start, count, dim) in enumerate(zip(coords, f.counts, f.dims)):
        step = f.element_strides[i] if i else 1
        pitch = f.strides_bytes[i - 1] if i else f.element_bytes
        index = start + step * np.arange(count, dtype=np.int64)
        shape = [1] * f.rank
        shape[f.rank - 1 - i] = count
        address = address + (index * pitch).reshape(shape)
        if start < 0 or index[-1] >= dim:
            ok = ((index >= 0) & (index < dim)).reshape(shape)
            inside = ok if inside is None else inside & ok
    if inside is not None:
        address = np.where(inside, address, OUTSIDE)
    return address.reshape(-1), shared_offsets(f)


def _advance(
    steps: NDArray[np.int64], start: int, first: int, last: int, stride: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Walk `steps` from `start` in [first, last] by `stride`, wrapping: (position, wraps)."""
    left = (last - start) // stride + 1
    per_row = (last - first) // stride + 1
    over = steps - left
    wraps = np.where(over < 0, 0, 1 + over // per_row)
    position = np.where(over < 0, start + steps * stride, first + over % per_row * stride)
    return position, wraps


def im2col_elements(
    decoded: DecodedMap, coords: Sequence[int], offsets: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(global byte addresses, shared byte offsets), int64 [pixels · channels], in im2col mode.

    `coords` (C, W(, H(, D)), N) is the first channel and the first base position. Base positions
    run over the bounding box, W fastest, then H, D and N; each is displaced by `offsets` (W first,
    in elements, not negative): the filter tap.
    """
    _check(decoded, "im2col", coords)
    f = decoded.fields
    if len(offsets) != f.rank - 2:
        raise TensorMapError(
            "number of im2col offsets", len(offsets), str(f.rank - 2), "one per spatial dimension"
        )
    carry = np.arange(f.pixels_per_column, dtype=np.int64)
    pixel = np.full(f.pixels_per_column, decoded.address, np.int64)
    inside = np.ones(f.pixels_per_column, np.bool_)
    for i, offset in enumerate(offsets):
        if not 0 <= offset <= OFFSET_MAX[f.rank]:
            raise TensorMapError(
                f"im2col offset {i}", offset, f"0..{OFFSET_MAX[f.rank]}", "PTX ISA 5.5.4"
            )
        first, last = f.bounds(i)
        start = coords[i + 1]
        if not first <= start <= last:
            raise TensorMapError(
                f"im2col coordinate {i + 1}",
                start,
                f"{first}..{last}",
                "the first base position lies in the bounding box",
            )
        position, carry = _advance(carry, start, first, last, f.element_strides[i + 1])
        position = position + offset
        inside &= (position >= 0) & (position < f.dims[i + 1])
        pixel += position * f.strides_bytes[i]
    image = coords[-1] + carry
    inside &= (image >= 0) & (image < f.dims[-1])
    pixel += image * f.strides_bytes[-1]
    channel = coords[0] + np.arange(f.channels_per_pixel, dtype=np.int64)
    address = pixel[:, None] + channel * f.element_bytes
    if not inside.all() or channel[0] < 0 or channel[-1] >= f.dims[0]:
        ok = inside[:, None] & (channel >= 0) & (channel < f.dims[0])
        address = np.where(ok, address, OUTSIDE)
    return address.reshape(-1), shared_offsets(f)
