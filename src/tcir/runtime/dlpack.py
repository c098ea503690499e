"""Reads and creates DLPack capsules with ctypes (dmlc/dlpack, dlpack.h, DLManagedTensor)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir.errors import InputError

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
"""Values of DLDeviceType."""

_NAME = b"dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_NARROW = {
    "bfloat16": 4,
    "float8_e4m3fn": 10,
    "float8_e5m2": 12,
    "float8_e8m0fnu": 14,
    "float6_e2m3fn": 15,
    "float6_e3m2fn": 16,
    "float4_e2m1fn": 17,
}
"""DLDataTypeCode of each type of ml_dtypes, by name."""


def type_code(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The DLDataTypeCode of an element type, and the number of bits that an element occupies."""
    code = _NARROW.get(dtype.name)
    return (_KINDS[dtype.kind] if code is None else code), 8 * dtype.itemsize


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any] | None:
    if lanes != 1 or bits % 8:
        return None
    narrow = {number: name for name, number in _NARROW.items()}
    if code in narrow:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, narrow[code]))
    kinds = {number: kind for kind, number in _KINDS.items()}
    if code not in kinds:
        return None
    return np.dtype("?" if kinds[code] == "b" else f"{kinds[code]}{bits // 8}")


@dataclass(frozen=True)
class View:
    """Memory of another library: address, shape, strides in elements, device."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any] | None
    type_words: str
    device_type: int
    device_id: int

    @property
    def contiguous(self) -> bool:
        """Whether the elements are in C order without gaps; true if there are no elements."""
        if 0 in self.shape:
            return True
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent > 1 and stride != expected:
                return False
            expected *= extent
        return True


def view(obj: Any, stream: int | None = None) -> View:
    """The memory that `obj` exports by ``__dlpack__``. Pending writes to it complete before work
    that is put on the CUDA stream `stream` later.

    The memory belongs to `obj`, which must outlive the view.
    """
    capsule = obj.__dlpack__() if stream is None else obj.__dlpack__(stream=stream)
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    # Not renamed: the capsule's own destructor gives the export back.
    address = api.PyCapsule_GetPointer(capsule, _NAME)
    t = _Managed.from_address(address).tensor
    shape = tuple(t.shape[i] for i in range(t.ndim))
    if t.strides:
        strides = tuple(t.strides[i] for i in range(t.ndim))
    else:
        strides, step = (), 1
        for extent in reversed(shape):
            strides, step = (step, *strides), step * extent
    return View(
        pointer=(t.data or 0) + t.byte_offset,
        shape=shape,
        strides=strides,
        dtype=_dtype(t.code, t.bits, t.lanes),
        type_words=f"DLPack type {t.code} of {t.bits} bits x {t.lanes}",
        device_type=t.device_type,
        device_id=t.device_id,
    )


# --- making capsules ---------------------------------------------------------------------------

_ALIVE: dict[int, tuple[Any, ...]] = {}
"""Exports that were not released yet, by the address of their DLManagedTensor."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    _ALIVE.pop(address, None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _capsule_gone(capsule: int) -> None:
    """Deletes a capsule that was not consumed (a consumer renames it)."""
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    if valid(capsule, _NAME):
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )
        _ALIVE.pop(pointer(capsule, _NAME), None)


def export(
    owner: Any, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: tuple[int, int]
) -> Any:
    """Creates a DLPack capsule for C-contiguous memory at `pointer`; the capsule keeps `owner`
    alive.
    """
    if dtype.kind not in _KINDS and dtype.name not in _NARROW:
        raise InputError(f"expected an element type that DLPack supports, got {dtype.name}")
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    code, bits = type_code(dtype)
    managed = _Managed()
    managed.tensor = _Tensor(
        pointer, device[0], device[1], len(shape), code, bits, 1, extents, None, 0
    )
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p).value
    address = ctypes.addressof(managed)
    _ALIVE[address] = (managed, extents, owner)
    api = ctypes.pythonapi
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return api.PyCapsule_New(address, _NAME, ctypes.cast(_capsule_gone, ctypes.c_void_p))
