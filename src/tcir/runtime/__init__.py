"""Launches cubins on NVIDIA GPUs through cuda-python (``pip install tcir[gpu]``).

    kernel.launch(x, w, out)                 # torch, cupy, anything with DLPack; or numpy, copied
    runtime.run_cubin(cubin, entry="k", grid=4, block=128, args=[x, out])     # as `tcir.run_ptx`
    times = runtime.measure(lambda: kernel.launch(x, w, out))                 # milliseconds

Names are imported on first use. This package needs neither the MLIR bindings nor LLVM, and does not
use the driver before the first call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcir.runtime.cubin import run_cubin as run_cubin
    from tcir.runtime.devices import Device as Device
    from tcir.runtime.devices import device as device
    from tcir.runtime.driver import CudaError as CudaError
    from tcir.runtime.driver import NoDeviceError as NoDeviceError
    from tcir.runtime.launching import launch as launch
    from tcir.runtime.memory import DeviceArray as DeviceArray
    from tcir.runtime.memory import empty as empty
    from tcir.runtime.memory import to_device as to_device
    from tcir.runtime.module import LaunchFailedError as LaunchFailedError
    from tcir.runtime.module import Module as Module
    from tcir.runtime.module import WrongArchitectureError as WrongArchitectureError
    from tcir.runtime.module import load as load
    from tcir.runtime.module import synchronize as synchronize
    from tcir.runtime.tensor_map import encode as encode
    from tcir.runtime.timing import measure as measure

_EXPORTS = {
    "CudaError": "driver",
    "Device": "devices",
    "DeviceArray": "memory",
    "LaunchFailedError": "module",
    "Module": "module",
    "NoDeviceError": "driver",
    "WrongArchitectureError": "module",
    "device": "devices",
    "empty": "memory",
    "encode": "tensor_map",
    "launch": "launching",
    "load": "module",
    "measure": "timing",
    "run_cubin": "cubin",
    "synchronize": "module",
    "to_device": "memory",
}

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tcir.runtime.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value
