"""Launches kernels on tensors in GPU memory; each launch is prepared once for each stream."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import torch

from tcir.errors import InputError
from tcir.kernel import Kernel
from tcir.runtime.devices import device as gpu
from tcir.runtime.launching import device_buffer
from tcir.runtime.module import Module
from tcir.runtime.prepared import Prepared
from tcir.target import EMULATED
from tcir.torch.snapshot import CURRENT, Guard
from tcir.torch.tensors import as_bytes, is_emulated, kind_of, name_of_gpu, simulated

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
    """Context in which all kernels are prepared in `store`. The owner of `store` captures them in
    CUDA graphs and keeps their memory alive.
    """
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
    handle = torch._C._cuda_getCurrentRawStream(device.index)
    return int(handle), torch.cuda.is_current_stream_capturing()


class KernelLauncher:
    """Launches a kernel on the current stream of the GPU of its tensors.

    weights: indices of the inputs that are weights of a `Snapshot`; calls of the module do not
        check them while the snapshot's state is unchanged
    frozen:  whether results of launches that read only weights are kept until the state changes

    Any thread may call it. A pickle or copy contains only the kernel and these options.
    """

    def __init__(self, kernel: Kernel, weights: Collection[int] = (), frozen: bool = False) -> None:
        self.kernel, self.weights, self.frozen = kernel, tuple(weights), frozen
        self._ready: ByStream = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        return {"kernel": self.kernel, "weights": self.weights, "frozen": self.frozen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def clear(self) -> None:
        """Frees the prepared launches; the next call prepares them again."""
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
            once = self._prepare(tensors, device, stream, emulate, None, False)
            if once.prepared is not None:
                _CAPTURED.add(once.prepared.module)
            return once(tensors, None)
        kept = self._ready if store is None else store.setdefault(self, OrderedDict())
        state = CURRENT.get() if self.weights else None
        key = device, stream, emulate, state is None
        ready = kept.get(key)
        if ready is None or not ready.fits(tensors, state):
            ready = self._prepare(tensors, device, stream, emulate, state, store is None)
            with self._lock:
                kept[key] = ready
                if store is None and len(kept) > MOST_STREAMS:
                    kept.popitem(last=False)
        return ready(tensors, state)

    def _prepare(
        self,
        tensors: Sequence[torch.Tensor],
        device: torch.device,
        stream: int,
        emulate: bool,
        state: object,
        replay: bool,
    ) -> Ready:
        weights = () if state is None else self.weights
        with torch.cuda.device(device):  # loading code makes its context current
            return Ready(
                self.kernel, tensors, device, stream, emulate, weights, self.frozen, replay
            )


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
    """A kernel that is prepared for tensors of one layout on one stream.

    weights: indices of the tensors that are weights, which do not change between calls with equal
        state
    frozen:  whether results that depend only on weights are kept while the state is unchanged
    replay:  whether launches may be replayed as CUDA graphs; not on a stream that is being captured
    """

    def __init__(
        self,
        kernel: Kernel,
        tensors: Sequence[torch.Tensor],
        device: torch.device,
        stream: int,
        emulate: bool,
        weights: Sequence[int],
        frozen: bool,
        replay: bool,
    ) -> None:
        self.device, self.weights = device, weights
        self.others = [n for n in range(len(tensors)) if n not in {*weights}]
        self._fit, self._weights_fit = (
            Guard([tensors[n] for n in some]) for some in (self.others, weights)
        )
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
        kept = tuple(weights) if frozen else ()
        self.copied = [n for n in strided if n not in kept]
        self.copied_once = [n for n in strided if n in kept]
        self.lock = threading.Lock()
        self.state: object = None
        self.addresses = [0] * len(tensors)
        self.copies: list[torch.Tensor] = []
        self.prepared: Prepared | None = None
        if kernel.launches.launches:  # otherwise no result has an element
            on = gpu(device.index or 0)
            self.prepared = Prepared(program, on, stream, self._allocate, kept, replay=replay)

    def _allocate(self, size: int) -> tuple[torch.Tensor, int]:
        memory = torch.empty((size,), dtype=torch.uint8, device=self.device)
        return memory, memory.data_ptr()

    def fits(self, tensors: Sequence[torch.Tensor], state: object) -> bool:
        """Whether the kernel was prepared for tensors of these layouts. Weights are not checked if
        `state` is the state that they were prepared for."""
        return self._fit([tensors[n] for n in self.others]) and (
            state is self.state or self._weights_fit([tensors[n] for n in self.weights])
        )

    def __call__(self, tensors: Sequence[torch.Tensor], state: object) -> list[torch.Tensor]:
        with self.lock:
            if self.state is not state:
                self._update(tensors)
                self.state = state
            addresses = self.addresses.copy()
            for number in self.others:
                addresses[number] = tensors[number].data_ptr()
            copies = [tensors[number].contiguous() for number in self.copied]
            for number, copy in zip(self.copied, copies, strict=True):
                addresses[number] = copy.data_ptr()
            results = [
                torch.empty(shape, dtype=kind, device=self.device) for shape, kind in self.results
            ]
            if self.prepared is not None:
                self.prepared(addresses, [each.data_ptr() for each in results], self.state)
            return results

    def _update(self, tensors: Sequence[torch.Tensor]) -> None:
        """Notes the addresses of the weights, and copies frozen ones that are not contiguous."""
        self.state = None  # and if this is interrupted, so it stays
        for number in self.weights:
            self.addresses[number] = tensors[number].data_ptr()
        self.copies = [tensors[number].detach().contiguous() for number in self.copied_once]
        for number, copy in zip(self.copied_once, self.copies, strict=True):
            self.addresses[number] = copy.data_ptr()
