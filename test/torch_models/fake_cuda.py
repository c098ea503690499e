"""Tensors of a GPU where there is none: their memory is that of `runtime.fake_driver`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from runtime.fake_driver import FakeDriver
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from tcir.runtime import dlpack
from tcir.torch.tensors import array_of

GPU = torch.device("cuda:0")


class FakeCuda(torch.Tensor):
    """A tensor of the GPU; its elements are those of `held`, whose memory the fake driver knows."""

    held: torch.Tensor
    driver: ClassVar[FakeDriver]

    @staticmethod
    def __new__(cls: type[FakeCuda], held: torch.Tensor) -> FakeCuda:
        make = torch.Tensor._make_wrapper_subclass  # type: ignore[attr-defined]
        made: FakeCuda = make(cls, held.shape, strides=held.stride(), dtype=held.dtype, device=GPU)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(
        cls, op: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """The op on what is held; a result that shares its memory does so here, too."""
        args, kwargs = tree_map(_held, (args, kwargs or {}))
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        return tree_map(_wrapped, op(*args, **kwargs))

    def __dlpack_device__(self) -> tuple[int, int]:  # type: ignore[override]
        return dlpack.CUDA, 0

    def __dlpack__(self, **_: Any) -> Any:
        array = array_of(self.held)
        self.driver.memory[array.ctypes.data] = array.reshape(-1).view(np.uint8)
        return dlpack.export(
            self, array.ctypes.data, array.shape, array.dtype, self.__dlpack_device__()
        )


def _held(each: Any) -> Any:
    return each.held if isinstance(each, FakeCuda) else each


def _wrapped(each: Any) -> Any:
    return FakeCuda(each) if isinstance(each, torch.Tensor) else each


class OnGpu(TorchFunctionMode):
    """Tensors that PyTorch makes on a GPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is torch.empty and kwargs.get("device") == GPU:
            return FakeCuda(torch.empty(*args, **{**kwargs, "device": "cpu"}))
        return function(*args, **kwargs)
