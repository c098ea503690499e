"""torch on the CPU for scripts that name the device "cuda"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import torch
import triton.testing
from torch.overrides import TorchFunctionMode

from tcir.target import DEFAULT_TARGET
from tcir.triton.driver import Launches


class OnTheCpu(TorchFunctionMode):
    """Tensors for "cuda" are made on the CPU, and say that they are on a GPU when asked."""

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
        return func(*map(_moved, args), **{k: _moved(v) for k, v in (kwargs or {}).items()})


def _moved(value: object) -> object:
    """The CPU for any "cuda"; a generator of one for one of the other."""
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


@contextmanager
def simulated(launches: Launches) -> Iterator[None]:
    """`torch.cuda` as of one B200 whose work is always done; no benchmark of Triton runs."""

    def skipped(*_: object, **__: object) -> None:
        launches.say("benchmarks are left out: nothing is timed here")

    def untimed(*_: object, **__: object) -> float:
        skipped()
        return float("nan")

    with ExitStack() as stack:
        stack.enter_context(OnTheCpu())
        for name, value in _CUDA.items():
            stack.enter_context(patch.object(torch.cuda, name, value))
        for name in ("do_bench", "do_bench_cudagraph"):
            stack.enter_context(patch.object(triton.testing, name, untimed))
        stack.enter_context(patch.object(triton.testing.Mark, "run", skipped))
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
