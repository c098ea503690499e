"""Calls of the CUDA driver, and their errors."""

from __future__ import annotations

from functools import cache
from typing import Any

from tcir.errors import Error, IncompleteError, MissingDependencyError


class CudaError(Error):
    """A driver call failed: `function` returned `code` (``CUDA_ERROR_…``)."""

    exit_code = 1

    def __init__(self, function: str, code: str, words: str) -> None:
        super().__init__(f"{function}: {code} ({words})")
        self.function, self.code, self.words = function, code, words


class NoDeviceError(IncompleteError):
    """This computer has no CUDA driver or no device."""


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
    """Result of a driver function: None, its one value, or a tuple. Raises `CudaError`."""
    driver = bindings()
    status, *values = getattr(driver, function)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        found, words = driver.cuGetErrorString(status)
        text = words.decode() if found == driver.CUresult.CUDA_SUCCESS else "unknown error"
        raise CudaError(function, status.name, text)
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)
