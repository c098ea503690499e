"""Calls of the CUDA driver, and their errors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from tcir.errors import Error, IncompleteError, MissingDependencyError


class CudaError(Error):
    """Raised for a driver call that failed: `function` returned `code` (``CUDA_ERROR_…``)."""

    exit_code = 1

    def __init__(self, function: str, code: str, words: str) -> None:
        super().__init__(f"{function}: {code} ({words})")
        self.function, self.code, self.words = function, code, words


class NoDeviceError(IncompleteError):
    """Raised if this computer has no CUDA driver or no device."""


@cache
def bindings() -> Any:
    """`cuda.bindings.driver`, initialised (cuInit)."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise MissingDependencyError(
            f"launching kernels needs cuda-python ({error}); pip install cuda-python"
        ) from None
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # libcuda is loaded by the first call
        raise NoDeviceError(
            "no CUDA driver on this computer (libcuda was not found): nothing can be launched; "
            "the simulated machine needs none"
        ) from error
    if status != driver.CUresult.CUDA_SUCCESS:
        raise NoDeviceError(
            f"no CUDA device on this computer (cuInit: {status.name}): nothing can be launched; "
            "the simulated machine needs none"
        )
    return driver


def call(function: str, *arguments: Any) -> Any:
    """Calls a driver function and returns its result: None, its single value, or a tuple. Raises
    `CudaError` if the call fails.
    """
    driver = bindings()
    status, *values = getattr(driver, function)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise failed(function, status)
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


def failed(function: str, status: int) -> CudaError:
    """Returns the error for a driver function that returned `status`, a CUresult."""
    driver = bindings()
    code = driver.CUresult(status)
    found, words = driver.cuGetErrorString(code)
    text = words.decode() if found == driver.CUresult.CUDA_SUCCESS else "unknown error"
    return CudaError(function, code.name, text)


def entry(function: str, since: int) -> int:
    """Address of a function of the CUDA driver's C interface.

    since: CUDA version that introduced this form of the function, 1000 times the major number plus
           10 times the minor one
    """
    address, _ = call("cuGetProcAddress", function.encode(), since, 0)
    if not address:
        raise NoDeviceError(
            f"expected a CUDA driver with {function} of CUDA {since // 1000}.{since % 1000 // 10}, "
            "got one without: nothing can be launched; install a newer driver"
        )
    return int(address)


def native(function: str, since: int, pointers: int) -> Callable[..., int]:
    """A driver function (see `entry`) as a ctypes function with this number of pointer arguments. A
    call takes half a microsecond, because it does not use cuda-python, which converts arguments.
    """
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * pointers)
    made: Callable[..., int] = kind(entry(function, since))
    return made
