"""Runs torch on the CPU for scripts that use the device "cuda"."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from tcir.doors.block_scaled import block_scales, scaled_mm
from tcir.doors.device import SimulatedDevice
from tcir.doors.launches import Launches
from tcir.doors.memory import Allocations
from tcir.doors.torch_devices import CPU, Devices, creates, named_device
from tcir.doors.torch_memory import called
from tcir.errors import Error, IncompleteError


class OnTheCpu(TorchFunctionMode):
    """Creates tensors for the device "cuda" on the CPU; the tensors report that they are on a GPU.

    taken:   called with each tensor whose address the script requests
    memory:  records which memory is initialised
    devices: the device of each tensor

    The replacement applies only to the thread that enters this context.
    """

    def __init__(
        self, taken: Callable[[torch.Tensor], None], memory: Allocations, devices: Devices
    ) -> None:
        super().__init__()
        self.taken, self.memory, self.devices = taken, memory, devices

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Handles a call of a torch function; torch calls this for each of them."""
        kwargs = kwargs or {}
        answer = _OF_DEVICES.get(getattr(func, "__self__", func))
        if answer is not None:
            return answer(self.devices.of(cast("torch.Tensor", args[0])))
        if func in _AS_THEY_ARE:
            return func(*args, **kwargs)
        if func is torch.Tensor.__repr__:
            with self:  # its text names the device
                return torch._tensor_str._str(*args, **kwargs)
        if func is torch._scaled_mm:
            scale = args[2] if len(args) > 2 else kwargs.get("scale_a")
            func = scaled_mm if block_scales(scale) else func

        def moved() -> object:
            return called(self.memory, *_on_the_cpu(func, args, kwargs))

        if isinstance(func, torch._ops.OpOverload):  # of C++ code, seen by a `TensorRecorder`
            return moved()
        made = self.devices.call(func, args, kwargs, moved)
        if func is torch.Tensor.data_ptr:
            self.taken(cast("torch.Tensor", args[0]))
        return made


_OF_DEVICES: dict[object, Callable[[torch.device], object]] = {
    torch.Tensor.device: lambda device: device,
    torch.Tensor.is_cuda: lambda device: device.type == "cuda",
    torch.Tensor.is_cpu: lambda device: device.type == "cpu",
    torch.Tensor.get_device: lambda device: -1 if device.index is None else device.index,
}
"""Properties and methods of a tensor that depend on its device alone."""
_AS_THEY_ARE = (torch.device, torch.set_default_device, torch._C._nn._parse_to)
"""Functions that name a device and create no tensor."""
_Call = tuple[Callable[..., object], list[object], dict[str, object]]


def _on_the_cpu(
    func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> _Call:
    """The same call with the CPU in place of each "cuda" device, and without pinned memory."""
    if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
        layout = {k: v for k, v in kwargs.items() if k == "memory_format"}
        return (torch.Tensor.to, [args[0], "cpu"], layout)
    named = {k: _moved(v) for k, v in kwargs.items() if k != "pin_memory"}
    device = named_device(func, args, kwargs)
    if device == "cuda" and kwargs.get("device") is None:  # the second argument of `to`
        return func, [args[0], "cpu", *args[2:]], named
    if device == "cuda" or (device is None and creates(func)):  # the default device may be "cuda"
        named["device"] = "cpu"
    return func, [*map(_moved, args)], named


def _moved(value: object) -> object:
    """Replaces a "cuda" device by the CPU; other values are returned as they are."""
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return CPU
    return value


@contextmanager
def cuda_on_the_cpu(launches: Launches, taken: Callable[[torch.Tensor], None]) -> Iterator[None]:
    """Context that replaces `torch.cuda` by a version with one B200 that completes work as soon as
    it is issued. It also applies to threads that are started in the context.

    taken: see `OnTheCpu`
    """
    start, devices = threading.Thread.start, Devices(launches.memory)

    def mode() -> OnTheCpu:
        return OnTheCpu(taken, launches.memory, devices)

    def start_with_it(thread: threading.Thread) -> None:
        run = thread.run

        def run_with_it() -> None:
            try:
                with mode():
                    run()
            except Error as error:  # Python prints it, and the script goes on
                launches.failed(error)
                raise

        thread.run = run_with_it  # type: ignore[method-assign]
        start(thread)

    run_backward = torch.autograd._engine_run_backward

    def backward(*given: object, **named: object) -> object:  # which runs Python of the script
        with mode():
            return run_backward(*given, **named)

    with ExitStack() as stack:
        stack.enter_context(mode())
        stack.enter_context(patch.object(threading.Thread, "start", start_with_it))
        for owner, name, value in (
            *((torch.cuda, name, value) for name, value in _CUDA.items()),
            *((torch.cuda, name, value) for name, value in _queries(launches.device).items()),
            *((torch.accelerator, name, value) for name, value in _ACCELERATOR.items()),
            *((owner, name, value(getattr(owner, name))) for owner, name, value in _AUTOCAST),
            (torch, "Generator", CpuGenerator),
            (torch, "compile", _uncompiled(launches)),
            (torch, "from_numpy", devices.on_host(torch.from_numpy)),
            (torch, "frombuffer", devices.on_host(torch.frombuffer)),
            (torch.Tensor, "record_stream", lambda *_: None),
            *((torch.cuda.profiler, name, lambda: None) for name in ("start", "stop")),
            (torch._C, "_cuda_getCurrentRawStream", lambda *_: 0),
            (torch.serialization, "_package_registry", _loaded()),
            (torch.autograd, "_engine_run_backward", backward),
            (torch.autograd.profiler.profile, "__init__", _without_a_gpu(launches)),
        ):
            missing = owner is torch._C  # in PyTorch for CPUs
            stack.enter_context(patch.object(owner, name, value, create=missing))
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


def _uncompiled(launches: Launches) -> Callable[..., object]:
    """Replacement for `torch.compile`, whose tracer does not know tensors of the simulated device:
    functions and modules stay as they are."""

    def compiled(model: object = None, **options: object) -> object:
        launches.say("torch.compile: functions are not compiled; PyTorch executes them op by op")
        return (lambda function: function) if model is None else model

    return compiled


def _autocast(function: Callable[..., object]) -> Callable[..., object]:
    """Wraps a function of `torch.amp`: "cuda" names the CPU, whose list of ops is similar."""

    @wraps(function)
    def called_with(*args: object, **kwargs: object) -> object:
        return function(*map(_moved, args), **{k: _moved(v) for k, v in kwargs.items()})

    return called_with


_AUTOCAST = (
    (torch.amp.autocast_mode.autocast, "__init__", _autocast),
    (torch, "is_autocast_enabled", _autocast),
    (torch, "get_autocast_dtype", _autocast),
    (torch, "set_autocast_dtype", _autocast),
    (torch, "set_autocast_enabled", _autocast),
)


def _loaded() -> list[tuple[int, Callable[..., object], Callable[..., object]]]:
    """Registry of `torch.load` in which storages for "cuda" stay on the CPU."""

    def restored(storage: object, location: str) -> object | None:
        return storage if location.startswith("cuda") else None

    return [(0, lambda _storage: None, restored), *torch.serialization._package_registry]


class OnDevice:
    """Replacement for `torch.cuda.device` and similar contexts. It has no effect, because there is
    only one device.
    """

    idx = prev_idx = 0

    def __init__(self, _device: object = None) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class CudaStream:
    """A stream that completes each piece of work as soon as it is issued."""

    cuda_stream = stream_id = device_index = priority = 0
    device = torch.device("cuda", 0)

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> CudaStream:
        return self

    def __exit__(self, *_: object) -> None: ...

    def synchronize(self, *_: object) -> None:
        """Returns at once, since all work is complete."""

    wait_stream = wait_event = synchronize

    def is_capturing(self) -> bool:
        """Whether a graph is being captured; always false."""
        return False

    def record_event(self, event: CudaEvent | None = None) -> CudaEvent:
        """Returns `event`, or a new event if it is None."""
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


class NoGraph:
    """Stands for torch's CUDA graphs, for instance in annotations. Creating one raises
    IncompleteError, because launches are executed when they are issued and cannot be captured.
    """

    def __init__(self, *_: object, **__: object) -> None:
        raise IncompleteError(
            "torch.cuda.CUDAGraph is not supported: launches are executed when they are issued, "
            "and a CUDA graph records them for later; launch the kernel without a graph"
        )


class CpuGenerator(torch.Generator):
    """A generator of random numbers on the CPU, whatever device the script requests."""

    def __new__(cls, device: object = None) -> CpuGenerator:
        """Leaves out the device."""
        return super().__new__(cls)


def _queries(device: SimulatedDevice) -> dict[str, Callable[..., object]]:
    """Replacements for functions of `torch.cuda` that depend on the chip."""
    memory = device.target.memory
    return {
        "get_device_properties": lambda *_: _properties(device),
        "get_device_name": lambda *_: device.chip.name,
        "get_device_capability": lambda *_: device.chip.capability,
        "mem_get_info": lambda *_: (memory, memory),
    }


def _properties(device: SimulatedDevice) -> SimpleNamespace:
    """Result of `torch.cuda.get_device_properties`."""
    known, (major, minor) = device.attributes, device.chip.capability
    return SimpleNamespace(
        name=device.chip.name, major=major, minor=minor, warp_size=32,
        total_memory=device.target.memory, multi_processor_count=device.multiprocessors,
        L2_cache_size=device.chip.l2,
        max_threads_per_multi_processor=known[39], regs_per_multiprocessor=known[82],
        shared_memory_per_block=known[8], shared_memory_per_multiprocessor=known[81],
        shared_memory_per_block_optin=known[97], is_integrated=0, is_multi_gpu_board=0,
    )  # fmt: skip


_CUDART = SimpleNamespace(cudaProfilerStart=lambda: 0, cudaProfilerStop=lambda: 0)
_CUDA = {
    "is_available": lambda: True,
    "current_device": lambda: 0,
    "device_count": lambda: 1,
    "synchronize": lambda *_: None,
    "set_device": lambda *_: None,
    "empty_cache": lambda: None,
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
    "manual_seed": torch.default_generator.manual_seed,
    "manual_seed_all": torch.default_generator.manual_seed,
    "get_rng_state": lambda *_: torch.get_rng_state(),
    "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    "CUDAGraph": NoGraph,
    "cudart": lambda: _CUDART,
    "memory_allocated": lambda *_: 0,
    "max_memory_allocated": lambda *_: 0,
    "memory_reserved": lambda *_: 0,
    "max_memory_reserved": lambda *_: 0,
    "reset_peak_memory_stats": lambda *_: None,
}
"""Replacements for attributes of `torch.cuda`."""
_ACCELERATOR = {
    "current_accelerator": lambda *_, **__: torch.device("cuda"),
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_device_index": lambda: 0,
    "current_device_idx": lambda: 0,
    "set_device_index": lambda *_: None,
    "synchronize": lambda *_: None,
    "current_stream": CudaStream,
}
"""Replacements for attributes of `torch.accelerator`."""
