"""Arrays in device memory, shared with other libraries through DLPack."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from tcir.runtime import dlpack
from tcir.runtime.devices import Device, device
from tcir.runtime.driver import call
from tcir.runtime.module import synchronize


class DeviceArray:
    """A C-contiguous array in device memory that this object owns.

    `pointer` is its address. `torch.from_dlpack(a)` and `cupy.from_dlpack(a)` share it without a
    copy and keep it alive; `numpy()` copies it back.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, on: Device | None = None) -> None:
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        self.device = on or device()
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self.device.activate()
        self.pointer = int(call("cuMemAlloc", max(1, self.nbytes)))

    def copy_from(self, source: np.ndarray[Any, Any], stream: int = 0) -> None:
        """Copies the bytes of `source`. Raises ValueError unless `source` has the same size."""
        raw = np.ascontiguousarray(source)
        if raw.nbytes != self.nbytes:
            raise ValueError(f"expected {self.nbytes} bytes, got {raw.nbytes}")
        self.device.activate()
        if raw.nbytes:
            call("cuMemcpyHtoDAsync", self.pointer, raw.ctypes.data, raw.nbytes, stream)
            synchronize(stream)

    def numpy(self, stream: int = 0) -> np.ndarray[Any, Any]:
        """A copy on the host, made after all work on `stream`."""
        out = np.empty(self.shape, self.dtype)
        self.device.activate()
        if out.nbytes:
            call("cuMemcpyDtoHAsync", out.ctypes.data, self.pointer, out.nbytes, stream)
        synchronize(stream)
        return out

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device.ordinal

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        # Work on other streams than the consumer's may still be writing.
        if stream != -1:
            self.device.activate()
            call("cuCtxSynchronize")
        return dlpack.export(self, self.pointer, self.shape, self.dtype, self.__dlpack_device__())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
            "strides": None,
        }

    def free(self) -> None:
        """Frees the memory after the work that uses it is complete."""
        pointer, self.pointer = self.pointer, 0
        if pointer:
            self.device.activate()
            call("cuMemFree", pointer)

    def __del__(self) -> None:
        # At interpreter exit, or after a fault of the device, there is nothing left to free.
        with contextlib.suppress(Exception):
            self.free()


def empty(shape: tuple[int, ...], dtype: Any, on: Device | None = None) -> DeviceArray:
    """A new device array with unspecified contents."""
    return DeviceArray(shape, dtype, on)


def to_device(array: np.ndarray[Any, Any], on: Device | None = None) -> DeviceArray:
    """A new device array with the contents of a numpy (or ml_dtypes) array."""
    copy = DeviceArray(array.shape, array.dtype, on)
    copy.copy_from(array)
    return copy
