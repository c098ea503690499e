"""Tensors in CPU memory that other libraries treat as tensors of a GPU."""

from __future__ import annotations

import ctypes

from tcir.runtime.dlpack import CUDA

DEVICE_TYPE = 8
"""Offset in bytes of the device type in a DLManagedTensor."""


def moved_to_gpu(capsule: object) -> object:
    """Changes the device of a DLPack tensor to a GPU, without moving its data; returns the
    capsule.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    where = pointer(capsule, b"dltensor")
    ctypes.c_int32.from_address(where + DEVICE_TYPE).value = CUDA
    return capsule
