"""Tensor maps encoded by the driver (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col)."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tcir.errors import InputError
from tcir.runtime.driver import CudaError, bindings, call

if TYPE_CHECKING:
    from tcir.machine.tensor_map import MapFields

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
}
"""Element type of `tcir.TensorMap` -> CU_TENSOR_MAP_DATA_TYPE_…"""

MAP_BYTES = 128


@lru_cache(maxsize=1024)
def encode(fields: MapFields, address: int) -> bytes:
    """The 128 opaque bytes of the map of `fields` over the tensor at `address` (bytes).

    `fields` are those of `tcir.TensorMap.fields`. Lines come to L2 in 128 bytes; elements outside
    read as zero. `InputError` when the driver refuses what the machine's limits accept.
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
    rest: list[Any] = [
        [narrow(s) for s in fields.element_strides],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{fields.swizzle}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
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
                *rest,
            )
        else:
            found = call("cuTensorMapEncodeTiled", *common, [narrow(b) for b in fields.box], *rest)
    except CudaError as error:
        raise InputError(f"the driver refuses the tensor map {fields}: {error}") from None
    return ctypes.string_at(found.getPtr(), MAP_BYTES)
