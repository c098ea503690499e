"""Runs torch on the CPU for scripts that use the device "cuda"."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from tcir.doors.block_scaled import block_scales, scaled_mm
from tcir.doors.device import SimulatedDevice
from tcir.doors.launches import Launches
from tcir.doors.memory import Allocations
from tcir.doors.torch_memory import called
from tcir.errors import Error, IncompleteError
from tcir.target import DEFAULT_TARGET


class OnTheCpu(TorchFunctionMode):
    """Creates tensors for "cuda" on the CPU; they report that they are on a GPU.

    taken:  called with each tensor whose address is taken
    memory: records which memory is initialised

    A mode applies to one thread.
    """

    def __init__(self, taken: Callable[[torch.Tensor], None], memory: Allocations) -> None:
        super().__init__()
        self.taken, self.memory = taken, memory

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Handles a call of a torch function; torch calls this for each of them."""
        if getattr(func, "__self__", None) is torch.Tensor.is_cuda:
            return True
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch._scaled_mm:
            scale = args[2] if len(args) > 2 else (kwargs or {}).get("scale_a")
            func = scaled_mm if block_scales(scale) else func
        moved = {k: _moved(v) for k, v in (kwargs or {}).items()}
        made = called(self.memory, func, [*map(_moved, args)], moved)
        if func is torch.Tensor.data_ptr:
            self.taken(cast("torch.Tensor", args[0]))
        return made


def _moved(value: object) -> object:
    """Replaces a "cuda" device by the CPU; other values are returned as they are."""
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


@contextmanager
def cuda_on_the_cpu(launches: Launches, taken: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Context that replaces `torch.cuda` by one B200 that completes work when it is issued, also in
    threads started in the context.

    taken: see `OnTheCpu`
    """
    start = threading.Thread.start

    def start_with_it(thread: threading.Thread) -> None:
        run = thread.run

        def run_with_it() -> None:
            try:
                with OnTheCpu(taken, launches.memory):
                    run()
            except Error as error:  # Python prints it, and the script goes on
                launches.failed(error)
                raise

        thread.run = run_with_it  # type: ignore[method-assign]
        start(thread)

    run_backward = torch.autograd._engine_run_backward

    def backward(*given: object, **named: object) -> object:  # which runs Python of the script
        with OnTheCpu(taken, launches.memory):
            return run_backward(*given, **named)

    with ExitStack() as stack:
        stack.enter_context(OnTheCpu(taken, launches.memory))
        stack.enter_context(patch.object(threading.Thread, "start", start_with_it))
        for owner, name, value in (
            *((torch.cuda, name, value) for name, value in _CUDA.items()),
            (torch.cuda, "get_device_properties", lambda *_: _properties(launches.device)),
            (torch.autograd, "_engine_run_backward", backward),
            (torch.autograd.profiler.profile, "__init__", _without_a_gpu(launches)),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield


def _without_a_gpu(launches: Launches) -> Callable[..., None]:
    """Replacement for the initialiser of torch's profilers, which profiles only the CPU."""
    initialise = torch.autograd.profiler.profile.__init__

    def make(profiler: object, *given: object, **named: object) -> None:
        if named.get("use_cuda") or named.get("use_device") == "cuda":
            launches.say("torch.profiler: only the CPU is profiled, since no GPU work is timed")
            named |= {"use_device": None, "use_cpu": True}
            named.pop("use_cuda", None)  # PyTorch 2.15 has no such argument any more
        initialise(profiler, *given, **named)

    return make


class OnDevice:
    """Replacement for `torch.cuda.device` and similar contexts, without effect: there is only one
    device."""

    idx = prev_idx = 0

    def __init__(self, _device: object = None) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class CudaStream:
    """A stream that completes each piece of work when it is issued."""

    cuda_stream = stream_id = device_index = priority = 0
    device = torch.device("cpu")

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> CudaStream:
        return self

    def __exit__(self, *_: object) -> None: ...

    def synchronize(self, *_: object) -> None:
        """Returns at once, since all work is complete."""

    wait_stream = wait_event = synchronize

    def record_event(self, event: CudaEvent | None = None) -> CudaEvent:
        """Returns the event, or a new one."""
        return event or CudaEvent()

    def query(self) -> bool:
        """Whether all work is complete; always true."""
        return True


class CudaEvent:
    """An event that measures no time.

    cuda_event: a handle that no launch reads
    """

    cuda_event = 1

    def __init__(self, *_: object, **__: object) -> None: ...

    def record(self, *_: object) -> None:
        """Has no effect, since all work is complete."""

    synchronize = wait = record

    def query(self) -> bool:
        """Whether the work before the event is complete; always true."""
        return True

    def elapsed_time(self, _end: object) -> float:
        """Returns NaN milliseconds, since nothing is timed."""
        return math.nan


def no_graph(*_: object, **__: object) -> None:
    """Raises IncompleteError: launches are executed when they are issued, so none can be
    recorded."""
    raise IncompleteError(
        "torch.cuda.CUDAGraph is not supported: launches are executed when they are issued, and a "
        "CUDA graph records them for later; launch the kernel without a graph"
    )


_NAME = "simulated B200"


def _properties(device: SimulatedDevice) -> SimpleNamespace:
    """Result of `torch.cuda.get_device_properties`."""
    known = device.attributes
    return SimpleNamespace(
        name=_NAME, major=10, minor=0, warp_size=32, total_memory=device.target.memory,
        multi_processor_count=device.multiprocessors, L2_cache_size=device.chip.l2,
        max_threads_per_multi_processor=known[39], regs_per_multiprocessor=known[82],
        shared_memory_per_block=known[8], shared_memory_per_multiprocessor=known[81],
        shared_memory_per_block_optin=known[97], is_integrated=0, is_multi_gpu_board=0,
    )  # fmt: skip


_CUDA = {
    "is_available": lambda: True,
    "current_device": lambda: 0,
    "device_count": lambda: 1,
    "synchronize": lambda *_: None,
    "set_device": lambda *_: None,
    "empty_cache": lambda: None,
    "get_device_name": lambda *_: _NAME,
    "get_device_capability": lambda *_: (10, 0),
    "Stream": CudaStream,
    "Event": CudaEvent,
    "current_stream": CudaStream,
    "default_stream": CudaStream,
    "ExternalStream": CudaStream,
    "stream": nullcontext,
    "set_stream": lambda *_: None,
    "is_current_stream_capturing": lambda: False,
    "device": OnDevice,
    "device_of": OnDevice,
    "_DeviceGuard": OnDevice,
    "is_initialized": lambda: True,
    "init": lambda: None,
    "_lazy_init": lambda: None,
    "is_bf16_supported": lambda *_, **__: True,
    "can_device_access_peer": lambda *_: False,
    "ipc_collect": lambda: None,
    "mem_get_info": lambda *_: (DEFAULT_TARGET.memory, DEFAULT_TARGET.memory),
    "manual_seed": torch.default_generator.manual_seed,
    "manual_seed_all": torch.default_generator.manual_seed,
    "get_rng_state": lambda *_: torch.get_rng_state(),
    "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    "CUDAGraph": no_graph,
}
"""Replacements for attributes of `torch.cuda`."""
