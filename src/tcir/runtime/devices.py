"""Devices and their primary contexts, which are shared with PyTorch, CuPy and the CUDA runtime."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from tcir.runtime.driver import NoDeviceError, bindings, call


@dataclass(frozen=True)
class Device:
    """A GPU.

    ordinal:    its number in the driver, from 0
    name:       its name
    capability: its compute capability (major, minor)
    driver:     version of the driver
    """

    ordinal: int
    name: str
    capability: tuple[int, int]
    driver: int
    handle: Any
    context: Any

    @property
    def architecture(self) -> str:
        """Name of the architecture, for example ``sm_90``."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    def attribute(self, name: str) -> int:
        """Value of the attribute ``CU_DEVICE_ATTRIBUTE_<name>``."""
        attributes = bindings().CUdevice_attribute
        value = call(
            "cuDeviceGetAttribute", getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}"), self.handle
        )
        return int(value)

    def activate(self) -> None:
        """Makes the primary context current in this thread."""
        call("cuCtxSetCurrent", self.context)

    def __str__(self) -> str:
        return f"{self.name} ({self.architecture})"


def count() -> int:
    """Number of devices visible to the driver."""
    return int(call("cuDeviceGetCount"))


@cache
def device(ordinal: int = 0) -> Device:
    """Returns device `ordinal`; raises `NoDeviceError` if it does not exist."""
    found = count()
    if not 0 <= ordinal < found:
        raise NoDeviceError(
            f"expected a CUDA device numbered below {found}, got {ordinal}"
            if found
            else "no CUDA device on this computer: nothing can be launched; the simulated machine "
            "needs none"
        )
    handle = call("cuDeviceGet", ordinal)
    attributes = bindings().CUdevice_attribute
    major, minor = (
        int(
            call("cuDeviceGetAttribute", getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}"), handle)
        )
        for name in ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR")
    )
    name = call("cuDeviceGetName", 256, handle).split(b"\0")[0].decode()
    context = call("cuDevicePrimaryCtxRetain", handle)
    return Device(ordinal, name, (major, minor), int(call("cuDriverGetVersion")), handle, context)
