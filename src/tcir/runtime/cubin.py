"""`run_cubin`: the counterpart of `tcir.run_ptx` on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcir.errors import InputError
from tcir.runtime.devices import Device
from tcir.runtime.memory import DeviceArray, to_device
from tcir.runtime.module import load, synchronize
from tcir.runtime.tensor_map import Encode, encode
from tcir.storage import outermost


def triple(value: Sequence[int] | int) -> tuple[int, int, int]:
    """Completes one to three sizes to three by appending ones."""
    x, y, z = (*((value,) if isinstance(value, int) else value), 1, 1)[:3]
    return x, y, z


class DeviceBuffers:
    """Copies of the caller's arrays in device memory; views of one array share its copy.

    encode: the function that encodes tensor maps
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.encode: Encode = encode
        self.copies: dict[int, tuple[np.ndarray, DeviceArray]] = {}

    def whole(self, array: np.ndarray) -> np.ndarray:
        """The array that is copied for `array`: the outermost array of which `array` is a view."""
        whole = outermost(array)
        if not (array.flags.c_contiguous and whole.flags.c_contiguous):
            raise InputError(f"expected C-contiguous arrays, got strides {array.strides}")
        return whole

    def address(self, array: np.ndarray) -> int:
        """Address of an array in its device copy, which is made on first use."""
        whole = self.whole(array)
        if id(whole) not in self.copies:
            self.copies[id(whole)] = (whole, to_device(whole, self.device))
        return self.copies[id(whole)][1].pointer + array.ctypes.data - whole.ctypes.data

    def copy_back(self) -> None:
        """Copies the device memory back into the caller's arrays, except the arrays that are not
        writable.
        """
        for array, copy in self.copies.values():
            if array.flags.writeable:
                array.reshape(-1).view(np.uint8)[:] = copy.numpy().reshape(-1).view(np.uint8)


MAP_ALIGNMENT = 64
"""Alignment of a tensor map inside a parameter (PTX ISA 9.7.9.27.1.2)."""


def _struct(parts: Sequence[Any], buffers: DeviceBuffers) -> bytes:
    """The concatenated parts of a by-value parameter, padding included."""
    out = b""
    for number, part in enumerate(parts):
        if isinstance(part, list | tuple):
            raise InputError(f"part {number}: expected no parts inside parts, got {part!r}")
        if hasattr(part, "fields") and len(out) % MAP_ALIGNMENT:
            raise InputError(
                f"part {number} at byte {len(out)}: expected a tensor map at a multiple of "
                f"{MAP_ALIGNMENT} bytes; insert bytes({-len(out) % MAP_ALIGNMENT}) before it"
            )
        out += value_of(part, buffers)
    return out


def value_of(argument: Any, buffers: DeviceBuffers) -> bytes:
    """The bytes of one kernel parameter."""
    if isinstance(argument, list | tuple):
        return _struct(argument, buffers)
    if isinstance(argument, np.generic):
        return argument.tobytes()
    if isinstance(argument, bytes | bytearray):
        return bytes(argument)
    if hasattr(argument, "fields"):  # a TensorMap
        address = buffers.address(argument.array) + argument.offset_bytes
        return buffers.encode(argument.fields, address)
    array = getattr(argument, "array", argument)  # Uninitialized: its contents do not matter
    if isinstance(array, np.ndarray):
        return buffers.address(array).to_bytes(8, "little")
    raise InputError(
        "expected a numpy array or scalar, bytes, a TensorMap or a tuple of such parts, got "
        f"{type(argument).__name__}; np.int32(…) gives a number its type"
    )


def run_cubin(
    cubin: bytes,
    *,
    entry: str,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    cluster: Sequence[int] | int = (1, 1, 1),
    dynamic_smem: int = 0,
    args: Sequence[Any] = (),
    device: Device | None = None,
) -> None:
    """Launches kernel `entry` on copies of the arrays in `args`, waits, and copies the results back
    into the arrays.

    `args` are those of `tcir.run_ptx`: numpy arrays (C-contiguous, written in place), numpy
        scalars, bytes, `tcir.TensorMap`, or a tuple of such parts for a struct. Raises
        `LaunchFailedError` if the launch is rejected or the kernel fails.
    """
    module = load(cubin, device)
    function = module.function(entry)
    buffers = DeviceBuffers(module.device)
    function.launch(
        [value_of(argument, buffers) for argument in args],
        grid=triple(grid),
        block=triple(block),
        cluster=triple(cluster),
        dynamic_smem=dynamic_smem,
    )
    synchronize()
    buffers.copy_back()
