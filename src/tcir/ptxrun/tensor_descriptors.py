"""Descriptor arguments of Triton's kernels: `--arg desc=ARRAY`, as `tensordesc_meta` wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tcir.machine import TensorMap
from tcir.machine.tma.tensor_types import TYPES
from tcir.run import LaunchError

SWIZZLES = ("NONE", "32B", "64B", "128B")
"""By number, as CUtensorMapSwizzle has them."""
FIELDS = ("swizzle", "elem_size", "elem_type", "block_size", "fp4_padded")


def check_metadata(entries: object) -> tuple[Mapping[str, object], ...]:
    """The entries of `tensordesc_meta`, one per descriptor. Raises LaunchError."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise LaunchError(f"tensordesc_meta: expected a list of objects, got {entries!r}")
    return tuple(entries)


def descriptor(
    array: object, number: int, entries: Sequence[Mapping[str, object]]
) -> list[TensorMap | np.int32 | np.int64]:
    """What a kernel gets for its descriptor `number`: a tensor map, the shape, the strides.

    The numbers of `elem_type` are those of tensormap.replace; `block_size` has the outermost
    dimension first; 4-bit elements (`fp4_padded`) come two in a byte. Raises LaunchError.
    """
    if number >= len(entries):
        raise LaunchError(
            f"expected at most {len(entries)} descriptors, as many as tensordesc_meta has"
        )
    meta = entries[number]
    missing = [name for name in FIELDS if name not in meta]
    if missing or meta.get("is_im2col"):
        what = f"no {missing[0]}" if missing else "is_im2col"
        raise LaunchError(
            f"tensordesc_meta[{number}] has {what}: expected a tile; give map= and the shape and "
            "strides behind it by hand"
        )
    swizzle, size, kind, block = (_numbers(meta[name], name) for name in FIELDS[:4])
    if not isinstance(array, np.ndarray):
        raise LaunchError("expected an array, got a scalar or bytes")
    if array.itemsize != size[0] or array.ndim != len(block):
        raise LaunchError(
            f"expected an array of {len(block)} dimensions and {size[0]} bytes an element, got "
            f"{array.dtype.name}{list(array.shape)}"
        )
    if swizzle[0] >= len(SWIZZLES) or kind[0] >= len(TYPES):
        raise LaunchError(f"tensordesc_meta[{number}]: unknown swizzle or elem_type in {meta}")
    dims = list(array.shape)
    if meta["fp4_padded"]:
        dims[-1] *= 2
    tensor_map = TensorMap.tiled(
        array,
        dtype=list(TYPES)[kind[0]],
        dims=dims[::-1],
        strides_bytes=array.strides[-2::-1] if array.ndim > 1 else [],
        box=block[::-1],
        swizzle=SWIZZLES[swizzle[0]],
    )
    strides = [np.int64(n // array.itemsize) for n in array.strides]
    return [tensor_map, *map(np.int32, array.shape), *strides]


def _numbers(value: object, name: str) -> list[int]:
    found = value if isinstance(value, list) else [value]
    numbers = [n for n in found if isinstance(n, int) and n >= 0]
    if not found or len(numbers) != len(found):
        raise LaunchError(f"tensordesc_meta: {name}: expected numbers, got {value!r}")
    return numbers
