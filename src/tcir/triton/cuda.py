"""torch on the CPU for scripts that name the device "cuda"."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import cast
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode
from triton._C.libtriton import nvidia

from tcir.doors.launches import Launches
from tcir.target import DEFAULT_TARGET
from tcir.triton.addresses import Addresses
from tcir.triton.benchmarks import VIEWER, stand_ins, viewer
from tcir.triton.cublas import CublasLt


class OnTheCpu(TorchFunctionMode):
    """Tensors for "cuda" are made on the CPU, and say that they are on a GPU when asked."""

    def __init__(self, addresses: Addresses) -> None:
        super().__init__()
        self.addresses = addresses

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """As torch calls it for each of its functions."""
        if getattr(func, "__self__", None) is torch.Tensor.is_cuda:
            return True
        if func is torch.Tensor.cuda:
            return args[0]
        made = func(*map(_moved, args), **{k: _moved(v) for k, v in (kwargs or {}).items()})
        if func is torch.Tensor.data_ptr:
            self.addresses.taken(cast("torch.Tensor", args[0]))
        return made


def _moved(value: object) -> object:
    """The CPU for any "cuda"."""
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


@contextmanager
def simulated(launches: Launches, addresses: Addresses) -> Iterator[None]:
    """`torch.cuda` as of one B200 whose work is always done; times of benchmarks are modelled."""
    with ExitStack() as stack:
        stack.enter_context(OnTheCpu(addresses))
        for name, value in _CUDA.items():
            stack.enter_context(patch.object(torch.cuda, name, value))
        stack.enter_context(patch.object(nvidia.cublas, "CublasLt", partial(CublasLt, launches)))
        for owner, name, value in stand_ins(launches):
            stack.enter_context(patch.object(owner, name, value))
        sys.modules[VIEWER] = viewer()
        stack.callback(sys.modules.pop, VIEWER, None)
        yield


_NAME = "simulated B200"
_PROPERTIES = SimpleNamespace(
    name=_NAME,
    major=10,
    minor=0,
    total_memory=DEFAULT_TARGET.memory,
    multi_processor_count=DEFAULT_TARGET.sms,
    shared_memory_per_block_optin=DEFAULT_TARGET.smem_per_cta,
    warp_size=32,
)
_CUDA = {
    "is_available": lambda: True,
    "current_device": lambda: 0,
    "device_count": lambda: 1,
    "synchronize": lambda *_: None,
    "set_device": lambda *_: None,
    "empty_cache": lambda: None,
    "get_device_name": lambda *_: _NAME,
    "get_device_capability": lambda *_: (10, 0),
    "get_device_properties": lambda *_: _PROPERTIES,
    "current_stream": lambda *_: SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
}
"""Of `torch.cuda`."""
