"""Replacements for the CUDA driver and runtime of `cuda.bindings`, as far as CuTe DSL scripts call
them."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import SupportsInt

import numpy as np
from cuda.bindings import driver, runtime

from tcir.cute.memory import DlpackMemory
from tcir.doors.device import SimulatedDevice

StandIn = tuple[ModuleType, str, Callable[..., object]]
VERSION = 13000


def stand_ins(memory: DlpackMemory, device: SimulatedDevice) -> Iterator[StandIn]:
    """Replacements for functions of `cuda.bindings`, as triples of module, name and function. They
    present one device, which completes work as soon as it is issued.
    """
    known = device.attributes
    drive, run = driver.CUresult.CUDA_SUCCESS, runtime.cudaError_t.cudaSuccess
    stream, context = driver.CUstream(0), driver.CUcontext(1)

    work = Copies(memory)

    for name, values in {
        "cuInit": (), "cuDeviceGetCount": (1,), "cuDeviceGet": (driver.CUdevice(0),),
        "cuCtxGetCurrent": (context,), "cuDevicePrimaryCtxRetain": (context,),
        "cuCtxCreate": (context,), "cuCtxGetDevice": (driver.CUdevice(0),),
        "cuCtxSetCurrent": (), "cuCtxSynchronize": (), "cuStreamCreate": (stream,),
        "cuStreamSynchronize": (), "cuStreamDestroy": (), "cuDriverGetVersion": (VERSION,),
    }.items():  # fmt: skip
        yield driver, name, _returns(drive, *values)
    yield (
        driver,
        "cuDeviceGetAttribute",
        lambda which, _device: (drive, known.get(int(which), 0)),
    )
    for name, values in {
        "cudaGetDeviceCount": (1,), "cudaGetDevice": (0,), "cudaSetDevice": (),
        "cudaDeviceSynchronize": (), "cudaStreamCreate": (runtime.cudaStream_t(0),),
        "cudaStreamSynchronize": (), "cudaStreamDestroy": (), "cudaRuntimeGetVersion": (VERSION,),
        "cudaDriverGetVersion": (VERSION,), "cudaLibraryUnload": (),
    }.items():  # fmt: skip
        yield runtime, name, _returns(run, *values)
    pointer, invalid = driver.CUdeviceptr, driver.CUresult.CUDA_ERROR_INVALID_VALUE
    for name, call in {
        "cuMemAlloc": _answers(drive, lambda size: pointer(memory.allocate(size))),
        "cuMemFree": lambda base, *_: (drive if memory.release(int(base)) else invalid,),
        "cuMemcpy": _answers(drive, work.copy),
        "cuMemcpyHtoD": _answers(drive, work.copy),
        "cuMemcpyDtoH": _answers(drive, work.copy),
        "cuMemcpyDtoD": _answers(drive, work.copy),
        "cuMemsetD8": _answers(drive, partial(work.fill, 1)),
        "cuMemsetD16": _answers(drive, partial(work.fill, 2)),
        "cuMemsetD32": _answers(drive, partial(work.fill, 4)),
    }.items():
        yield driver, name, call
        yield driver, f"{name}Async", call
    refused = runtime.cudaError_t.cudaErrorInvalidValue
    for name, call in {
        "cudaMalloc": _answers(run, memory.allocate),
        "cudaFree": lambda base, *_: (run if memory.release(int(base)) else refused,),
        "cudaMemcpy": _answers(run, work.copy),
        "cudaMemset": _answers(run, partial(work.fill, 1)),
    }.items():
        yield runtime, name, call
        yield runtime, f"{name}Async", call


class Copies:
    """Copies and fills of memory, executed at once. Sizes of copies are in bytes, sizes of fills in
    elements.
    """

    def __init__(self, memory: DlpackMemory) -> None:
        self.memory = memory

    def copy(self, to: object, source: object, size: int) -> None:
        """Copies `size` bytes; source and destination must not overlap."""
        where, origin = _address(to), _address(source)
        ctypes.memmove(where, origin, size)
        self.memory.contents.copied(where, origin, size)

    def fill(self, width: int, to: object, value: int, count: int) -> None:
        """Writes `count` elements of a value.

        width: size of an element in bytes
        """
        where, element = _address(to), (value % (1 << 8 * width)).to_bytes(width, "little")
        ctypes.memmove(where, element * count, width * count)
        self.memory.contents.wrote(where, width * count)


def _address(of: object) -> int:
    """Address of memory that a script passes as a number, a driver pointer, or an object with a
    buffer.

    TypeError for an object without memory.
    """
    if isinstance(of, SupportsInt) and not isinstance(of, np.ndarray):
        return int(of)
    return np.frombuffer(of, np.uint8).ctypes.data  # type: ignore[call-overload]


def _answers(status: object, call: Callable[..., object]) -> Callable[..., tuple[object, ...]]:
    """Wraps a call in the bindings' convention: the result is a tuple of a status and the results.
    A flag or a stream after the arguments is ignored."""
    count = len(inspect.signature(call).parameters)

    def made(*given: object) -> tuple[object, ...]:
        result = call(*given[:count])
        return (status,) if result is None else (status, result)

    return made


def _returns(*values: object) -> Callable[..., tuple[object, ...]]:
    return lambda *_, **__: values
