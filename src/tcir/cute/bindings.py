"""The CUDA driver and runtime of `cuda.bindings`, as far as scripts of CuTe DSL call them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from types import ModuleType

from cuda.bindings import driver, runtime

from tcir.cute.memory import Memory
from tcir.target import DEFAULT_TARGET

StandIn = tuple[ModuleType, str, Callable[..., object]]
ATTRIBUTES = {1: 1024, 10: 32, 16: DEFAULT_TARGET.sms, 39: 2048, 75: 10, 76: 0, 81: 228 << 10,
              97: DEFAULT_TARGET.smem_per_cta}  # fmt: skip
"""CUdevice_attribute of a B200."""
VERSION = 13000


def stand_ins(memory: Memory) -> Iterator[StandIn]:
    """Modules, names, and functions in their place: one device, whose work is always done."""
    drive, run = driver.CUresult.CUDA_SUCCESS, runtime.cudaError_t.cudaSuccess
    stream, context = driver.CUstream(0), driver.CUcontext(1)

    def copy(to: int, source: int, size: int, *_: object) -> tuple[object]:
        ctypes.memmove(int(to), int(source), size)
        memory.contents.copied(int(to), int(source), size)
        return (run,)

    def fill(to: int, value: int, size: int, *_: object) -> tuple[object]:
        ctypes.memset(int(to), value, size)
        memory.contents.wrote(int(to), size)
        return (run,)

    def free(base: int, *_: object) -> tuple[object]:
        known = memory.release(int(base))
        return (run if known else runtime.cudaError_t.cudaErrorInvalidValue,)

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
        lambda which, _device: (drive, ATTRIBUTES.get(int(which), 1)),
    )
    for name, values in {
        "cudaGetDeviceCount": (1,), "cudaGetDevice": (0,), "cudaSetDevice": (),
        "cudaDeviceSynchronize": (), "cudaStreamCreate": (runtime.cudaStream_t(0),),
        "cudaStreamSynchronize": (), "cudaStreamDestroy": (), "cudaRuntimeGetVersion": (VERSION,),
        "cudaDriverGetVersion": (VERSION,), "cudaLibraryUnload": (),
    }.items():  # fmt: skip
        yield runtime, name, _returns(run, *values)
    yield runtime, "cudaMalloc", lambda size: (run, memory.allocate(size))
    yield runtime, "cudaFree", free
    for name, work in {"cudaMemcpy": copy, "cudaMemset": fill}.items():
        yield runtime, name, work
        yield runtime, f"{name}Async", work


def _returns(*values: object) -> Callable[..., tuple[object, ...]]:
    return lambda *_, **__: values
