"""A driver for Triton's ``driver.active`` that presents the simulated machine as a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Protocol, cast

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import compiler

from tcir.doors.device import SimulatedDevice
from tcir.doors.launches import DoorLaunch, Launches, scratch
from tcir.interp.ptx.launch_sizes import checked_grid
from tcir.triton.addresses import Addresses
from tcir.triton.tensors import Storages, arguments


class Utils:
    """The functions that Triton expects in the C part of a driver."""

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[bytes, tuple[str, bytes], int, int, int]:
        """Returns module, function, registers, spills, and maximum threads."""
        return kernel, (name, kernel), 255, 0, 1024

    def unload_module(self, module: bytes) -> None:
        """Has no effect, since nothing was loaded."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Properties of the simulated chip; clocks in kHz."""
        target, chip = self.device.target, self.device.chip
        return {
            "max_shared_mem": target.smem_per_cta,
            "max_num_regs": target.registers,
            "multiprocessor_count": self.device.multiprocessors,
            "warpSize": 32,
            "sm_clock_rate": chip.clock,
            "mem_clock_rate": chip.memory_clock,
            "mem_bus_width": chip.bus,
        }


class KernelMetadata(Protocol):
    """Metadata of a compiled kernel."""

    shared: int
    num_ctas: int
    global_scratch_size: int
    profile_scratch_size: int
    launch_pdl: bool
    launch_cooperative_grid: bool


class Launcher:
    """Launcher of one kernel, which Triton creates and calls."""

    launches: Launches
    addresses: Addresses
    ptx: dict[bytes, str]

    def __init__(self, src: compiler.ASTSource, metadata: KernelMetadata) -> None:
        self.signature, self.metadata = tuple(src.signature.values()), metadata
        self.descriptors = tuple(getattr(metadata, "tensordesc_meta", None) or ())

    def __call__(self, *given: object) -> None:
        """Executes the kernel.

        given: Triton's arguments: the grid, stream, function, metadata for the kernel and for the
               hooks, the hooks, and the kernel's arguments, including constants
        """
        x, y, z = cast("tuple[int, int, int]", given[:3])
        name, cubin = cast("tuple[str, bytes]", given[4])
        said, *hooks = given[6:9]
        enter, leave = cast("list[Callable[[object], None] | None]", hooks)
        meta, ctas = self.metadata, self.metadata.num_ctas
        # TLX: a cluster of CTAs of the grid; Triton's are CTAs of one program
        cluster = getattr(meta, "ctas_per_cga", None) or (ctas, 1, 1)
        storages = Storages()
        args = arguments(self.signature, given[9:], self.descriptors, storages)
        addressed = self.addresses.reached(args)
        grid = None if 0 in (x, y, z) else checked_grid((x * ctas, y, z))
        for size in (meta.global_scratch_size, meta.profile_scratch_size):
            args.append(scratch(size * math.prod(grid or (0,))))
        if enter is not None:
            enter(said)
        if grid is not None:
            memory = {array.ctypes.data: array for array in (*storages.arrays(), *addressed)}
            launch = DoorLaunch(
                self.ptx[cubin], name, grid, tuple(cluster), meta.shared, bool(meta.launch_pdl),
                args, list(memory.values()), addressed,
                cooperative=bool(meta.launch_cooperative_grid),
            )  # fmt: skip
            self.launches.execute(launch)
        if leave is not None:
            leave(said)


class SimulatedDriver(DriverBase):
    """Triton driver of a simulated B200 or H100, which uses the memory of the CPU."""

    def __init__(self, launches: Launches, addresses: Addresses, autotune: str = "first") -> None:
        super().__init__()
        self.utils, self.autotune = Utils(launches.device), autotune
        self.launches = launches
        texts: dict[bytes, str] = {}
        kept = {"launches": launches, "addresses": addresses, "ptx": texts}
        self.launcher_cls = type("Launcher", (Launcher,), kept)
        initialise = compiler.CompiledKernel.__init__

        def keep(kernel: compiler.CompiledKernel, *given: object, **named: object) -> None:
            initialise(kernel, *given, **named)  # a launcher gets the cubin only
            texts[kernel.asm["cubin"]] = kernel.asm["ptx"]

        compiler.CompiledKernel.__init__ = keep

    @classmethod
    def is_active(cls) -> bool:
        """Whether Triton may choose this driver by itself. The answer is no: the driver must be set
        explicitly.
        """
        return False

    def map_python_to_cpp_type(self, kind: str) -> str:
        """Returns the type unchanged, since no launcher in C is generated."""
        return kind

    def get_current_target(self) -> GPUTarget:
        """Target with the compute capability of the simulated chip."""
        major, minor = self.utils.device.chip.capability
        return GPUTarget("cuda", 10 * major + minor, 32)

    def get_active_torch_device(self) -> torch.device:
        """Device of the tensors, as scripts see it."""
        return torch.device("cuda", 0)

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Returns the benchmark function for autotuners. It returns the same time for all
        configurations, so that the autotuner chooses the first configuration that fits into an SM.

        With ``autotune="all"`` each configuration is executed and checked; with "modelled" the
        function returns modelled times.
        """

        def measure(call: Callable[[], object], **_: object) -> list[float]:
            if self.autotune == "modelled":
                self.launches.say("autotuning: by modelled times, of a sample of each launch")
                time = self.launches.modelled_ms(call)
                return [math.inf if math.isnan(time) else time] * 3
            self.launches.say(
                "autotuning: nothing is timed here; the first configuration that fits is taken"
                + (", all are executed" if self.autotune == "all" else "")
            )
            if self.autotune == "all":
                call()
            else:
                self.launches.tried(call)
            return [0.0, 0.0, 0.0]

        return measure

    def get_current_device(self) -> int:
        """Number of the only device, 0."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Has no effect, since there is only one device."""

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Compute capability of the simulated chip."""
        return self.utils.device.chip.capability

    def get_current_stream(self, device: int) -> int:
        """Stream 0; launches are complete when they return."""
        return 0

    def get_device_interface(self) -> ModuleType:
        """`torch.cuda`, with the replacements of `tcir.triton.cuda`."""
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Returns a placeholder of one element, because nothing is timed and so no cache has to be
        cleared.
        """
        return torch.empty(1)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Has no effect, since nothing is timed."""
