"""A launch of any PTX on a GPU, on arrays of the host: `--gpu` of tc-run and of the doors.

A program for sm_100a is emulated where the GPU is a Hopper (docs/emulation.md). The driver compiles
the PTX: its compiler is as old as itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir.emulation import EmulatedLaunch, emulate
from tcir.errors import InputError
from tcir.runtime.devices import Device, device
from tcir.runtime.driver import NoDeviceError, call
from tcir.runtime.memory import DeviceArray, to_device
from tcir.runtime.module import Module, synchronize
from tcir.runtime.tensor_map import encode

NEEDED = (
    "--gpu needs an NVIDIA GPU of compute capability 9.0 (H100, H200, where programs for sm_100a "
    "are emulated) or 10.0, its driver (CUDA 13.0 or later) and the package cuda-python"
)


@dataclass(frozen=True)
class GpuRun:
    """What a launch took. emulated: for sm_100a, on another GPU."""

    device: str
    milliseconds: float
    emulated: bool

    def __str__(self) -> str:
        how = ", emulated" if self.emulated else ""
        return f"{self.milliseconds:.3f} ms on {self.device}{how}"


def gpu() -> Device:
    """The first GPU; NoDeviceError says what was looked for, and what is needed."""
    try:
        return device()
    except NoDeviceError as error:
        raise NoDeviceError(f"{error}. {NEEDED}") from None


def is_emulated(ptx: str, on: Device) -> bool:
    """Whether a program for sm_100 runs on this GPU by emulation; InputError if it does not run."""
    found = re.search(r"^\s*\.target\s+(sm_(\d+)([af]?))", ptx, re.MULTILINE)
    if found is None:
        raise InputError("expected PTX with a .target, got none")
    name, number, kind = found[1], int(found[2]), found[3]
    own = 10 * on.capability[0] + on.capability[1]
    if kind == "f" and number // 10 == own // 10 and number <= own:
        return False
    if number == own or (not kind and number < own):
        return False
    if number == 100 and own == 90:
        return True
    raise InputError(
        f"expected a program for {on} (.target sm_{own}a or an older one without letter), or one "
        f"for sm_100a on compute capability 9.0, got .target {name}; the simulated machine "
        "executes it (leave --gpu out)"
    )


class _Buffers:
    """Copies of the host's arrays on the device; one of each storage.

    storages: whole ones, parts of which arguments are.
    """

    def __init__(self, storages: Sequence[np.ndarray], on: Device) -> None:
        self.storages, self.device = list(storages), on
        self.copies: list[tuple[np.ndarray, DeviceArray]] = []

    def address(self, array: np.ndarray) -> int:
        """Of an array's copy."""
        start = array.ctypes.data
        for known, copy in self.copies:
            offset = start - known.ctypes.data
            if 0 <= offset and offset + array.nbytes <= known.nbytes:
                return copy.pointer + offset
        whole = next((s for s in self.storages if _within(array, s)), array)
        while isinstance(whole.base, np.ndarray) and whole.base.flags.c_contiguous:
            whole = whole.base
        if not whole.flags.c_contiguous:
            raise InputError(f"expected C-contiguous arrays, got strides {whole.strides}")
        flat = whole.reshape(-1).view(np.uint8)
        self.copies.append((flat, to_device(flat, self.device)))
        return self.copies[-1][1].pointer + start - flat.ctypes.data

    def value(self, argument: object) -> bytes:
        """The bytes of one parameter."""
        if isinstance(argument, list | tuple):
            return b"".join(self.value(part) for part in argument)
        if isinstance(argument, np.generic):
            return argument.tobytes()
        if isinstance(argument, bytes | bytearray):
            return bytes(argument)
        array = getattr(argument, "array", argument)
        if not isinstance(array, np.ndarray):
            raise InputError(
                "expected arrays, numpy scalars, bytes and tensor maps as arguments of a launch on "
                f"a GPU, got {type(argument).__name__}; np.int32(…) gives a number its type"
            )
        if fields := getattr(argument, "fields", None):  # a tensor map
            return encode(fields, self.address(array) + int(getattr(argument, "offset_bytes", 0)))
        return self.address(array).to_bytes(8, "little")

    def back(self) -> None:
        """Copies them to the host."""
        for array, copy in self.copies:
            if array.flags.writeable:
                array[...] = copy.numpy()


def _within(array: np.ndarray, whole: np.ndarray) -> bool:
    offset = array.ctypes.data - whole.ctypes.data
    return 0 <= offset and offset + array.nbytes <= whole.nbytes


def run_on_gpu(
    ptx: str,
    entry: str,
    launch: EmulatedLaunch,
    args: Sequence[object],
    storages: Sequence[np.ndarray] = (),
) -> GpuRun:
    """Launches a kernel once, waits, and copies what it wrote into the arrays.

    args: as of `tcir.run_ptx`, but numbers as numpy scalars. storages: see `_Buffers`. Raises
    NoDeviceError without a GPU; EmulationError, InputError, LaunchFailedError.
    """
    on = gpu()
    emulated = is_emulated(ptx, on)
    if emulated:
        made = emulate(ptx, launch, entry)
        ptx, launch = made.ptx, made.launch
    buffers, module = _Buffers(storages, on), Module(ptx.encode() + b"\0", on)
    values = [buffers.value(argument) for argument in args]
    function = module.function(entry)
    start, stop = (call("cuEventCreate", 0) for _ in range(2))
    call("cuEventRecord", start, 0)
    function.launch(
        values, grid=launch.grid, block=launch.block, cluster=launch.cluster,
        dynamic_smem=launch.dynamic_smem,
    )  # fmt: skip
    call("cuEventRecord", stop, 0)
    synchronize()
    milliseconds = float(call("cuEventElapsedTime", start, stop))
    for event in (start, stop):
        call("cuEventDestroy", event)
    buffers.back()
    return GpuRun(str(on), milliseconds, emulated)
