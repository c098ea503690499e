"""Launches kernels on tensors of GPUs; each launch is prepared once for each stream."""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import torch
from torch._C._dynamo.guards import TensorGuards

from tcir.errors import InputError
from tcir.kernel import Kernel
from tcir.runtime.devices import device as gpu
from tcir.runtime.launching import device_buffer
from tcir.runtime.module import Module
from tcir.runtime.prepared import Prepared
from tcir.torch.tensors import EMULATED, as_bytes, is_emulated, kind_of, name_of_gpu, simulated

MOST_STREAMS = 8
"""Maximum number of streams for which a kernel is kept prepared."""
ByStream: TypeAlias = "OrderedDict[object, Ready]"
"""Prepared kernels by device, stream, and whether they are emulated."""
Store: TypeAlias = "dict[KernelLauncher, ByStream]"
"""Prepared kernels by launcher."""
_CAPTURE: ContextVar[Store | None] = ContextVar("capture", default=None)
_CAPTURED: set[Module] = set()
"""Modules whose kernels are in a CUDA graph of the caller's, which may be replayed at any time:
they stay loaded."""


@contextmanager
def captured_for(store: Store) -> Iterator[None]:
    """Context in which all kernels are prepared in `store`, whose owner captures them in CUDA
    graphs and keeps their memory alive."""
    token = _CAPTURE.set(store)
    try:
        yield
    finally:
        _CAPTURE.reset(token)


def stream_of(device: torch.device) -> tuple[int, bool]:
    """Handle of PyTorch's current stream of a device, and whether the stream is being captured."""
    if torch.cuda.current_device() != device.index:
        with torch.cuda.device(device):
            return stream_of(torch.device(device.type, torch.cuda.current_device()))
    handle = int(torch.cuda.current_stream(device).cuda_stream)
    return handle, torch.cuda.is_current_stream_capturing()


class Guard:
    """Checks that tensors have the layouts of some others: shape, strides, type, device, class."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        nothing = {"dynamic_dims_sizes": None, "dynamic_dims_strides": None}
        self._guards = TensorGuards(*tensors, **nothing) if tensors else None
        self._count = len(tensors)

    def __call__(self, tensors: Sequence[torch.Tensor]) -> bool:
        if len(tensors) != self._count:
            return False
        return self._guards is None or bool(self._guards.check(*tensors))


class Contents:
    """Snapshot of weights: their identities, addresses and numbers of counted writes.

    It keeps the weights and their memory alive, so that no other tensor can take their `addresses`.
    InputError for a weight whose writes PyTorch does not count.
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        self._weights = list(weights)
        self._memory = [each.detach() for each in weights]
        self.addresses = [each.data_ptr() for each in weights]
        self._versions = _versions(weights)

    def are_of(self, weights: Sequence[torch.Tensor], addresses: Sequence[int]) -> bool:
        """Whether the snapshot is of these weights, at these addresses, and none was written
        since."""
        return (
            all(map(operator.is_, self._weights, weights))
            and self.addresses == addresses
            and self._versions == _versions(weights)
        )


def _versions(weights: Sequence[torch.Tensor]) -> list[int]:
    try:
        return [each._version for each in weights]
    except RuntimeError as error:
        raise InputError(
            "freeze=True: expected weights whose versions PyTorch counts, got one that was made in "
            "torch.inference_mode(); make it under torch.no_grad(), or compile with freeze=False"
        ) from error


class KernelLauncher:
    """A kernel that is launched on the current stream of its tensors' GPU.

    frozen: numbers of the inputs that are weights. Results of launches that read only weights are
            kept until a weight is replaced, or written in a way that PyTorch counts
            (`Tensor._version`)

    Any thread may call it. A pickle or copy has only the kernel.
    """

    def __init__(self, kernel: Kernel, frozen: Collection[int] = ()) -> None:
        self.kernel, self.frozen = kernel, tuple(frozen)
        self._ready: ByStream = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {"kernel": self.kernel, "frozen": self.frozen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def clear(self) -> None:
        """Frees what is prepared; the next call prepares it again."""
        with self._lock:
            self._ready.clear()

    def __call__(
        self, tensors: Sequence[torch.Tensor], device: torch.device | None = None
    ) -> list[torch.Tensor]:
        """Runs the kernel and returns its results, in new tensors. It is launched if its arguments
        are on a GPU, and simulated otherwise.

        device: device of a kernel without arguments; default: the CPU

        InputError for tensors of several devices, for a GPU of another target than the kernel's,
        and in `emulation` for a GPU that does not emulate the kernel's target.
        """
        device = tensors[0].device if tensors else device or torch.device("cpu")
        if device.type == "cpu":
            _check_devices(self.kernel, tensors)
            return simulated(self.kernel, tensors)
        if device.type != "cuda":
            _check_devices(self.kernel, tensors)
            raise InputError(
                f"@{self.kernel.name}: expected tensors on the CPU or on an NVIDIA GPU, got them "
                f"on {device}: no other device runs its kernels; move them with .to(device)"
            )
        emulate = is_emulated()
        stream, capturing = stream_of(device)
        store = _CAPTURE.get()
        if capturing and store is None:
            # The caller's graph keeps the memory that is allocated here, and computes from the
            # weights as they are when it is replayed.
            once = self._prepare(tensors, device, stream, emulate, ())
            if once.prepared is not None:
                _CAPTURED.add(once.prepared.module)
            return once(tensors)
        kept = self._ready if store is None else store.setdefault(self, OrderedDict())
        key = device, stream, emulate
        ready = kept.get(key)
        if ready is None or not ready.fits(tensors):
            ready = self._prepare(tensors, device, stream, emulate, self.frozen)
            with self._lock:
                kept[key] = ready
                if store is None and len(kept) > MOST_STREAMS:
                    kept.popitem(last=False)
        return ready(tensors)

    def _prepare(
        self,
        tensors: Sequence[torch.Tensor],
        device: torch.device,
        stream: int,
        emulate: bool,
        frozen: Sequence[int],
    ) -> Ready:
        with torch.cuda.device(device):  # loading code makes its context current
            return Ready(self.kernel, tensors, device, stream, emulate, frozen)


def _check_devices(kernel: Kernel, tensors: Sequence[torch.Tensor]) -> None:
    devices = {each.device for each in tensors}
    if len(devices) > 1:
        raise InputError(
            f"@{kernel.name}: expected tensors on one device, got {', '.join(map(str, devices))}: "
            "move the module and its inputs to the same one, with .to(device)"
        )


def _as_launched(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with the shape, type and strides that the launch receives: the tensor itself, or its
    copy at each call."""
    if tensor.is_contiguous():
        return tensor.detach()
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


class Ready:
    """A kernel prepared for tensors of one layout on one stream."""

    def __init__(
        self,
        kernel: Kernel,
        tensors: Sequence[torch.Tensor],
        device: torch.device,
        stream: int,
        emulate: bool,
        frozen: Sequence[int],
    ) -> None:
        self.fits, self.device, self.frozen = Guard(tensors), device, frozen
        _check_devices(kernel, tensors)
        if emulate and torch.cuda.get_device_capability(device) != (9, 0):
            raise InputError(
                f"@{kernel.name}: emulate=True: expected tensors on a GPU of compute capability "
                f"9.0 (H100, H200), which emulates {EMULATED}, got tensors on "
                f"{name_of_gpu(device)}; compile without emulate for another GPU"
            )
        inputs = kernel.signature.inputs
        for number, (spec, tensor) in enumerate(zip(inputs, tensors, strict=True)):
            given = as_bytes(tensor) if spec.dtype.name == "int8" else tensor
            what = f"@{kernel.name}: argument {number}"
            device_buffer(what, spec, _as_launched(given), stream)
        program = kernel.emulated._for_the_driver if emulate else kernel
        self.results = [(spec.shape, kind_of(spec.dtype)) for spec in kernel.signature.outputs]
        strided = [n for n, each in enumerate(tensors) if not each.is_contiguous()]
        self.copied = [n for n in strided if n not in frozen]
        self.copied_once = [n for n in strided if n in frozen]
        self.lock = threading.Lock()
        self.contents: Contents | None = None
        self.copies: dict[int, torch.Tensor] = {}
        self.prepared: Prepared | None = None
        if kernel.launches.launches:  # otherwise no result has an element
            on = gpu(device.index or 0)
            self.prepared = Prepared(program, on, stream, self._allocate, frozen)

    def _allocate(self, size: int) -> tuple[torch.Tensor, int]:
        memory = torch.empty((size,), dtype=torch.uint8, device=self.device)
        return memory, memory.data_ptr()

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        with self.lock:
            addresses = [each.data_ptr() for each in tensors]
            if self.frozen:
                self._update(*([all_[n] for n in self.frozen] for all_ in (tensors, addresses)))
            for number in self.copied_once:
                addresses[number] = self.copies[number].data_ptr()
            copies = [tensors[number].contiguous() for number in self.copied]
            for number, copy in zip(self.copied, copies, strict=True):
                addresses[number] = copy.data_ptr()
            results = [
                torch.empty(shape, dtype=kind, device=self.device) for shape, kind in self.results
            ]
            if self.prepared is not None:
                self.prepared(addresses, [each.data_ptr() for each in results], self.contents)
            return results

    def _update(self, weights: Sequence[torch.Tensor], addresses: Sequence[int]) -> None:
        """Notes what the frozen weights contain, and copies those that are not contiguous, unless
        they are as at the previous call."""
        if self.contents is None or not self.contents.are_of(weights, addresses):
            self.contents = None
            found = Contents(weights)
            by_number = dict(zip(self.frozen, weights, strict=True))
            self.copies = {n: by_number[n].detach().contiguous() for n in self.copied_once}
            self.contents = found
