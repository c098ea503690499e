"""Arguments `--arg desc=ARRAY` of tc-run for the descriptor parameters of Triton kernels, which
`tensordesc_meta` describes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcir.machine import TensorMap
from tcir.machine.tma.tensor_types import TYPES
from tcir.run import LaunchError

SWIZZLES = ("NONE", "32B", "64B", "128B")
"""Swizzles by their number in CUtensorMapSwizzle."""
FIELDS = ("swizzle", "elem_size", "elem_type", "block_size", "fp4_padded")


@dataclass(frozen=True)
class Pixels:
    """Pixels of an im2col descriptor, outermost dimension first.

    lower, upper:    corners of the box of pixels, in D, H and W
    element_strides: strides of all dimensions; None: 1
    """

    lower: Sequence[int]
    upper: Sequence[int]
    element_strides: Sequence[int] | None = None


def check_metadata(entries: object) -> tuple[Mapping[str, object], ...]:
    """Checks and returns the entries of `tensordesc_meta`, one per descriptor. Raises
    LaunchError.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise LaunchError(f"tensordesc_meta: expected a list of objects, got {entries!r}")
    return tuple(entries)


def descriptor(
    array: object,
    number: int,
    entries: Sequence[Mapping[str, object]],
    *,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    oob_fill: str = "zero",
    tf32: bool = False,
    pixels: Pixels | None = None,
) -> list[TensorMap | np.int32 | np.int64]:
    """The kernel's parameters for descriptor `number`: a tensor map, the shape, the strides.

    shape, strides: in elements; None: those of `array`
    tf32:           whether TMA rounds f32 to tf32

    `elem_type` is numbered as in tensormap.replace. `block_size` has the outermost dimension first;
    for im2col (`pixels`) it has the number of pixels first. A byte of the array holds two 4-bit
    elements (`fp4_padded`). Raises LaunchError.
    """
    if number >= len(entries):
        raise LaunchError(
            f"expected at most {len(entries)} descriptors, the number of entries in tensordesc_meta"
        )
    meta = entries[number]
    missing = [name for name in FIELDS if name not in meta]
    if missing or meta.get("is_im2col") and pixels is None:
        what = f"no {missing[0]}" if missing else "is_im2col"
        raise LaunchError(
            f"tensordesc_meta[{number}] has {what}, so it does not describe a tile; give map= and "
            "the shape and strides as arguments of their own instead of desc="
        )
    swizzle, size, kind, block = (_numbers(meta[name], name) for name in FIELDS[:4])
    if not isinstance(array, np.ndarray):
        raise LaunchError("expected an array, got a scalar or bytes")
    dims = list(array.shape if shape is None else shape)
    steps = [n // array.itemsize for n in array.strides] if strides is None else list(strides)
    rank = len(block) if pixels is None else len(pixels.lower) + 2
    if array.itemsize != size[0] or len(dims) != rank:
        raise LaunchError(
            f"expected an array of {rank} dimensions and {size[0]} bytes per element, got "
            f"{array.dtype.name}{dims}"
        )
    if swizzle[0] >= len(SWIZZLES) or kind[0] >= len(TYPES):
        raise LaunchError(f"tensordesc_meta[{number}]: unknown swizzle or elem_type in {meta}")
    last = dims[-1] * (2 if meta["fp4_padded"] else 1)
    dtype, kept = "tf32" if tf32 else list(TYPES)[kind[0]], SWIZZLES[swizzle[0]]
    extents = [last, *dims[:-1][::-1]]
    steps_bytes = [step * array.itemsize for step in steps[:-1][::-1]]
    if pixels is None:
        tensor_map = TensorMap.tiled(
            array, dtype=dtype, dims=extents, strides_bytes=steps_bytes, box=block[::-1],
            swizzle=kept, oob_fill=oob_fill,
        )  # fmt: skip
    else:
        tensor_map = TensorMap.im2col(
            array, dtype=dtype, dims=extents, strides_bytes=steps_bytes,
            lower_corner=pixels.lower[::-1], upper_corner=pixels.upper[::-1],
            channels_per_pixel=block[1], pixels_per_column=block[0],
            element_strides=pixels.element_strides and pixels.element_strides[::-1],
            swizzle=kept, oob_fill=oob_fill,
        )  # fmt: skip
    return [tensor_map, *map(np.int32, dims), *map(np.int64, steps)]


def _numbers(value: object, name: str) -> list[int]:
    found = value if isinstance(value, list) else [value]
    numbers = [n for n in found if isinstance(n, int) and n >= 0]
    if not found or len(numbers) != len(found):
        raise LaunchError(f"tensordesc_meta: {name}: expected numbers, got {value!r}")
    return numbers
