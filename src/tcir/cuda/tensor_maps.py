"""Tensor maps that a host program encodes with cuTensorMapEncodeTiled and
cuTensorMapEncodeIm2col."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcir.machine.tma.tensor_map import TYPES, TensorMap

SWIZZLES = ("NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
INTERLEAVES = ("NONE", "16B", "32B")
"""Values in the order of CUtensorMapSwizzle and CUtensorMapInterleave."""
ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz",
            "tf32", "tf32_ftz", "u4_align8b", "u4_align16b", "u6_align16b")  # fmt: skip
"""Values in the order of CUtensorMapDataType."""
assert set(ELEMENTS) == set(TYPES)


def encoded(fields: Sequence[int]) -> bytes:
    """Encodes the simulated machine's 128 bytes of a tensor map from the fields that runtime.c
    passes. Raises IndexError for an unknown value of an enumeration, and TensorMapError for invalid
    sizes.
    """
    im2col, element, rank, address = fields[:4]
    anywhere = np.zeros(0, np.uint8)
    kind, fill = ELEMENTS[element], ("zero", "nan")[fields[25]]
    interleave, swizzle = INTERLEAVES[fields[23]], SWIZZLES[fields[24]]
    dims, strides, steps = fields[4 : 4 + rank], fields[9 : 8 + rank], fields[18 : 18 + rank]
    if not im2col:
        return TensorMap.tiled(
            anywhere, dtype=kind, dims=dims, strides_bytes=strides, element_strides=steps,
            box=fields[13 : 13 + rank], interleave=interleave, swizzle=swizzle, oob_fill=fill,
        ).encode(address)  # fmt: skip
    lower, upper = (
        np.array(fields[at : at + rank - 2], np.uint64).view(np.int64).tolist() for at in (26, 29)
    )
    return TensorMap.im2col(
        anywhere, dtype=kind, dims=dims, strides_bytes=strides, element_strides=steps,
        lower_corner=lower, upper_corner=upper, channels_per_pixel=fields[32],
        pixels_per_column=fields[33], interleave=interleave, swizzle=swizzle, oob_fill=fill,
    ).encode(address)  # fmt: skip
