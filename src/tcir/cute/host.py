"""Replacements for a GPU in a CuTe DSL script: device queries, benchmarks, torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from unittest.mock import patch

import cutlass
import cutlass.cute.testing
import cutlass.testing
from cutlass.base_dsl.compiler import CompileOptions, EnableTVMFFI
from cutlass.cutlass_dsl.cutlass import CuTeDSL, CuteExperimentalDSL

from tcir.cute.bindings import stand_ins
from tcir.cute.direct_calls import Compiled, DirectCalls
from tcir.cute.memory import DlpackMemory
from tcir.doors.device import SimulatedDevice
from tcir.doors.launches import Launches
from tcir.doors.numpy_memory import noise_in_empty

DSLS = (CuTeDSL, CuteExperimentalDSL)
OF_TUNING = (
    "warmup_iterations", "iterations", "use_cold_l2", "print_verbose", "current_stream",
)  # fmt: skip
"""Options that an autotuner passes to its benchmark besides the kernel's arguments."""


class Hardware:
    """Replacement for `cutlass.utils.HardwareInfo` with the values of a B200."""

    def __init__(self, device: SimulatedDevice, device_id: int = 0) -> None:
        self.device = device

    def get_max_active_clusters(self, cluster_size: int, stream: object = None) -> int:
        """Number of clusters with one CTA on each SM."""
        return self.device.multiprocessors // cluster_size

    def get_device_multiprocessor_count(self) -> int:
        """Number of SMs of a B200."""
        return self.device.multiprocessors

    def get_l2_cache_size_in_bytes(self) -> int:
        """L2 size of a B200, in bytes."""
        return self.device.chip.l2


@contextmanager
def simulated(launches: Launches, memory: DlpackMemory) -> Iterator[None]:
    """Context that presents a B200 to CuTe DSL, to cuda.bindings and, if it is installed, to torch,
    in place of real devices.

    Benchmarks return modelled times.
    """

    def timed(call: Callable[..., object], *args: object, **named: object) -> float:
        launches.say("benchmark: times are modelled, of a sample of each launch; none is measured")
        return 1000 * launches.modelled_ms(lambda: call(*args, **named))

    def tried(call: Callable[..., object], *args: object, **given: object) -> float:
        named = {name: value for name, value in given.items() if name not in OF_TUNING}
        call(*args, **named)  # as on a GPU, what was timed has written its results
        return timed(call, *args, **named)

    def benchmark(call: Callable[..., object], **given: object) -> float:
        arguments = given.get("kernel_arguments")
        generator = given.get("workspace_generator")
        time = tried
        if arguments is None and callable(generator):  # nobody looks at what it makes
            arguments, time = generator(), timed
        args = getattr(arguments, "args", ())
        named = getattr(arguments, "kwargs", {})
        return time(call, *args, **named)

    with ExitStack() as stack:
        stack.enter_context(noise_in_empty(launches.memory))
        for owner, name, value in (
            *stand_ins(memory, launches.device),
            (CompileOptions, "enable_tvm_ffi", False),
            *((dsl, "compile_and_cache", _direct(dsl.compile_and_cache)) for dsl in DSLS),
            (cutlass.utils, "HardwareInfo", partial(Hardware, launches.device)),
            (cutlass.testing, "benchmark", benchmark),
            (cutlass.cute.testing, "benchmark", benchmark),
            (cutlass.testing, "_benchmark_for_autotune", tried),
        ):
            stack.enter_context(patch.object(owner, name, value))
        if importlib.util.find_spec("torch") is not None:
            from tcir.doors.torch_cuda import cuda_on_the_cpu
            from tcir.triton.addresses import Addresses

            addresses = Addresses()
            memory.addressed = addresses.reached
            stack.enter_context(cuda_on_the_cpu(launches, addresses.taken))
        yield


def _direct(compile_and_cache: Callable[..., Compiled]) -> Callable[..., Compiled]:
    """Replacement for a method of CuTe DSL that would return a TVM FFI function if FFI is
    enabled."""

    @wraps(compile_and_cache)
    def made(
        dsl: object,
        *given: object,
        full_args: Sequence[object] | None = None,
        full_kwargs: Mapping[str, object] | None = None,
        **named: object,
    ) -> Compiled:
        compiled = compile_and_cache(
            dsl, *given, full_args=full_args, full_kwargs=full_kwargs, **named
        )
        options = dsl.compile_options.options  # type: ignore[attr-defined]
        if not options[EnableTVMFFI].value or compiled is None:
            return compiled
        return DirectCalls(compiled, full_args or (), full_kwargs or {})

    return made
