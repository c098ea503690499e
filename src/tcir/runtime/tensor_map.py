"""Tensor maps encoded by the driver (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tcir.errors import InputError
from tcir.runtime.driver import CudaError, bindings, call

if TYPE_CHECKING:
    from tcir.machine.tma.tensor_map import MapFields

_DTYPES = {
    "u8": "UINT8",
    "u16": "UINT16",
    "u32": "UINT32",
    "s32": "INT32",
    "u64": "UINT64",
    "s64": "INT64",
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "f32": "FLOAT32",
    "f32_ftz": "FLOAT32_FTZ",
    "tf32": "TFLOAT32",
    "tf32_ftz": "TFLOAT32_FTZ",
    "f64": "FLOAT64",
    "u4_align8b": "16U4_ALIGN8B",
    "u4_align16b": "16U4_ALIGN16B",
    "u6_align16b": "16U6_ALIGN16B",
}
"""Suffix of CU_TENSOR_MAP_DATA_TYPE_… for each element type of `tcir.TensorMap`."""

_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}
"""Suffix of CU_TENSOR_MAP_FLOAT_OOB_FILL_… for each fill."""

_WIDE = {"im2col_w": "W", "im2col_w128": "W128"}
"""Suffix of CU_TENSOR_MAP_IM2COL_WIDE_MODE_… for each mode."""

MAP_BYTES = 128

Encode = Callable[["MapFields", int], bytes]
"""Type of `encode`, and of its replacement for a device that lacks some maps
(`tcir.emulation.narrow`)."""


@lru_cache(maxsize=1024)
def encode(fields: MapFields, address: int) -> bytes:
    """Encodes the tensor map `fields` for a tensor at byte address `address`; returns its 128
    opaque bytes.

    `fields` are those of `tcir.TensorMap.fields`. L2 promotion is 128 bytes. Raises `InputError` if
    the driver rejects a map that the limits of the simulated machine accept.
    """
    driver = bindings()
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    dtype = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_DTYPES[fields.dtype]}")
    common: list[Any] = [
        dtype,
        len(fields.dims),
        address,
        [wide(d) for d in fields.dims],
        # A tensor of one dimension has no stride, but the driver wants a pointer.
        [wide(s) for s in fields.strides_bytes] or [wide(0)],
    ]
    interleave = getattr(
        driver.CUtensorMapInterleave, f"CU_TENSOR_MAP_INTERLEAVE_{fields.interleave}"
    )
    steps = [narrow(s) for s in fields.element_strides]
    rest: list[Any] = [
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{fields.swizzle}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        getattr(
            driver.CUtensorMapFloatOOBfill,
            f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[fields.oob_fill]}",
        ),
    ]
    try:
        if fields.mode == "im2col":
            found = call(
                "cuTensorMapEncodeIm2col",
                *common,
                list(fields.lower_corner),
                list(fields.upper_corner),
                fields.channels_per_pixel,
                fields.pixels_per_column,
                steps,
                interleave,
                *rest,
            )
        elif fields.mode in _WIDE:
            found = call(
                "cuTensorMapEncodeIm2colWide",
                *common,
                fields.lower_corner[0],
                fields.upper_corner[0],
                fields.channels_per_pixel,
                fields.pixels_per_column,
                steps,
                interleave,
                getattr(
                    driver.CUtensorMapIm2ColWideMode,
                    f"CU_TENSOR_MAP_IM2COL_WIDE_MODE_{_WIDE[fields.mode]}",
                ),
                *rest,
            )
        else:
            box = [narrow(b) for b in fields.box]
            found = call("cuTensorMapEncodeTiled", *common, box, steps, interleave, *rest)
    except CudaError as error:
        raise InputError(f"the driver rejects the tensor map {fields}: {error}") from None
    return ctypes.string_at(found.getPtr(), MAP_BYTES)
