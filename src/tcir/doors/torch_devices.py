"""Tracks which tensors a script has put on the host and which on the GPU, although all tensors are
in CPU memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import cast

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _device

from tcir.doors.memory import Allocations
from tcir.doors.torch_memory import cloned

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
_ALIASES = (torch.as_tensor, torch.asarray)
"""Functions whose result shares memory with an array of numpy, unless "cuda" is named."""
_MOVES = (torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu)
_PURGE = 256
"""Number of recorded storages at which those that were freed are first removed."""


class Devices:
    """The device of each tensor as a script sees it: "cuda:0", or "cpu" for tensors on the host.

    The following tensors are on the host: tensors created without "cuda", copies by `.cpu()` and
    `.to("cpu")`, and results of functions whose tensor arguments are all on the host. Tensors that
    torch's C++ code creates on its own, such as gradients, are on the GPU.

    memory: records which memory is initialised
    """

    def __init__(self, memory: Allocations) -> None:
        self._memory = memory
        self._host: dict[int, StorageWeakRef] = {}
        self._limit = _PURGE

    def of(self, tensor: torch.Tensor) -> torch.device:
        """The device of a tensor; must be called outside the mode."""
        if tensor.device.type != "cpu":
            return tensor.device
        storage = _storage(tensor)
        return CPU if storage is not None and storage._cdata in self._host else CUDA

    def call(
        self,
        func: Callable[..., object],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        moved: Callable[[], object],
    ) -> object:
        """Calls one of torch's functions; returns its result, and records its device.

        moved: calls the function with devices replaced by the CPU
        """
        here, made = self._target(func, args, kwargs), moved()
        if func in _MOVES:
            copied = _shared(made, args[0]) and here != self.of(_tensor(args[0]))
        else:
            copied = func in _ALIASES and here != CPU and not isinstance(args[0], torch.Tensor)
        made = cloned(self._memory, _tensor(made)) if copied else made
        if here == CPU:
            for each in _tensors((made,)):
                self._record(each)
        return made

    def _target(
        self, func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> torch.device:
        """The device of a function's results."""
        if func in (torch.Tensor.cpu, torch.Tensor.cuda):
            return CPU if func is torch.Tensor.cpu else CUDA
        if (named := named_device(func, args, kwargs)) is not None:
            return CPU if named == "cpu" else CUDA
        given = [*_tensors(args), *_tensors(kwargs.values())]
        if func is torch.Tensor.to:
            given = given[1:] or given  # the tensor whose type and device are taken
        if given:
            return CPU if all(self.of(each) == CPU for each in given) else CUDA
        default = _device.CURRENT_DEVICE if creates(func) else None
        return CPU if default is None or default.type == "cpu" else CUDA

    def on_host(self, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Wraps a function that torch does not pass to modes (`TorchFunctionMode`); its results are
        on the host.
        """

        @wraps(make)
        def made(*args: object, **kwargs: object) -> torch.Tensor:
            tensor = make(*args, **kwargs)
            self._record(tensor)
            return tensor

        return made

    def _record(self, tensor: torch.Tensor) -> None:
        storage = _storage(tensor)
        if storage is None or storage.device != CPU or storage._cdata in self._host:
            return
        if len(self._host) >= self._limit:
            self._host = {k: each for k, each in self._host.items() if not each.expired()}
            self._limit = max(_PURGE, 2 * len(self._host))
        self._host[storage._cdata] = StorageWeakRef(storage)


def creates(func: Callable[..., object]) -> bool:
    """Whether the function creates a tensor on the default device."""
    return func in _device._device_constructors()


def named_device(
    func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> str | None:
    """The type of the device that a call names, or None."""
    given = kwargs.get("device")
    if given is None and func is torch.Tensor.to:
        given = next((each for each in args[1:2] if _is_device(each)), None)
    return None if given is None else "cuda" if _is_number(given) else str(given).split(":")[0]


def _is_device(value: object) -> bool:
    return _is_number(value) or isinstance(value, str | torch.device)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _tensors(values: Iterable[object]) -> Iterator[torch.Tensor]:
    """The tensors among values, and in lists and tuples among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _tensor(value: object) -> torch.Tensor:
    return cast("torch.Tensor", value)


def _storage(value: object) -> torch.UntypedStorage | None:
    try:
        return _tensor(value).untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, or of torch.func's transformations
        return None


def _shared(one: object, other: object) -> bool:
    """Whether two tensors have the same memory."""
    first, second = _storage(one), _storage(other)
    return first is not None and second is not None and first._cdata == second._cdata
