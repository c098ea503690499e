"""Launches any PTX on a GPU with arrays of the host; used for `--gpu` of tc-run and of ``python -m
tcir.cuda`` and similar commands.

A program for sm_100a is emulated if the GPU is a Hopper (docs/explanation/emulation.md). The driver
compiles the PTX with its built-in compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tcir.emulation import EmulatedLaunch, emulate, narrow
from tcir.errors import InputError
from tcir.runtime.cubin import DeviceBuffers, value_of
from tcir.runtime.devices import Device, device
from tcir.runtime.driver import NoDeviceError, call
from tcir.runtime.module import Module, synchronize
from tcir.storage import outermost

NEEDED = (
    "--gpu needs an NVIDIA GPU of compute capability 9.0 (H100, H200, where programs for sm_100a "
    "are emulated) or 10.0, its driver (CUDA 13.0 or later) and the package cuda-python"
)


@dataclass(frozen=True)
class GpuRun:
    """The device that executed a launch, and the time of the launch.

    emulated: whether a program for sm_100a ran on another GPU
    """

    device: str
    milliseconds: float
    emulated: bool

    def __str__(self) -> str:
        how = ", emulated" if self.emulated else ""
        return f"{self.milliseconds:.3f} ms on {self.device}{how}"


def gpu() -> Device:
    """The first GPU. Raises NoDeviceError, which names the missing component and the
    requirements.
    """
    try:
        return device()
    except NoDeviceError as error:
        raise NoDeviceError(f"{error}. {NEEDED}") from None


def is_emulated(ptx: str, on: Device) -> bool:
    """Whether this GPU can run a program for sm_100 only by emulation; raises InputError if it
    cannot run the program at all.
    """
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
        f"expected a program for {on} (target sm_{own}a or an older one without letter), or one "
        f"for sm_100a on compute capability 9.0, got .target {name}; the simulated machine "
        "executes it (leave --gpu out)"
    )


class _Stored(DeviceBuffers):
    """Buffers of arrays that may be parts of storages, which are copied whole; an array inside one
    that was copied already shares its copy."""

    def __init__(self, storages: Sequence[np.ndarray], on: Device) -> None:
        super().__init__(on)
        self.storages = storages

    def whole(self, array: np.ndarray) -> np.ndarray:
        known = [*(copied for copied, _ in self.copies.values()), *self.storages]
        whole = next((each for each in known if _within(array, each)), array)
        whole = outermost(whole, contiguous=True)
        if not whole.flags.c_contiguous:
            raise InputError(f"expected C-contiguous arrays, got strides {whole.strides}")
        return whole


def _within(array: np.ndarray, whole: np.ndarray) -> bool:
    offset = array.ctypes.data - whole.ctypes.data
    return 0 <= offset and offset + array.nbytes <= whole.nbytes


def types_of_maps(argument: object) -> Iterator[str]:
    """Element types of the tensor maps in an argument."""
    if isinstance(argument, list | tuple):
        for part in argument:
            yield from types_of_maps(part)
    elif hasattr(argument, "fields"):
        yield argument.fields.dtype


def run_on_gpu(
    ptx: str,
    entry: str,
    launch: EmulatedLaunch,
    args: Sequence[object],
    storages: Sequence[np.ndarray] = (),
) -> GpuRun:
    """Launches a kernel once, waits, and copies the bytes that it wrote into the arrays.

    args:     as in `tcir.run_ptx`, but numbers must be numpy scalars
    storages: arrays that are copied whole if an argument is a part of one of them

    Raises NoDeviceError without a GPU; EmulationError, InputError, LaunchFailedError.
    """
    on = gpu()
    emulated = is_emulated(ptx, on)
    buffers = _Stored(storages, on)
    if emulated:
        some = narrow.some(types_of_maps(list(args)))
        made = emulate(ptx, launch, entry, narrow=some)
        ptx, launch = made.ptx, made.launch
        if some:
            buffers.encode = narrow.encoder(buffers.encode)
    module = Module(ptx.encode() + b"\0", on)
    values = [value_of(argument, buffers) for argument in args]
    function = module.function(entry)
    start, stop = (call("cuEventCreate", 0) for _ in range(2))
    call("cuEventRecord", start, 0)
    function.launch(
        values,
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        dynamic_smem=launch.dynamic_smem,
    )
    call("cuEventRecord", stop, 0)
    synchronize()
    milliseconds = float(call("cuEventElapsedTime", start, stop))
    for event in (start, stop):
        call("cuEventDestroy", event)
    buffers.copy_back()
    return GpuRun(str(on), milliseconds, emulated)
