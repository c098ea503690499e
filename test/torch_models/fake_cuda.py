"""A GPU for PyTorch where there is none: the memory of its tensors is that of
`runtime.fake_driver`, and what its graphs hold is executed when they are replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

import pytest
import torch
from runtime.fake_driver import FakeDriver
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

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
        results = op(*args, **kwargs)
        captured = cls.driver.captured if hasattr(cls, "driver") else None
        if captured is not None:
            captured.append(lambda: _again(op, args, kwargs, results))
        return tree_map(_wrapped, results)

    def __dlpack_device__(self) -> tuple[int, int]:  # type: ignore[override]
        return dlpack.CUDA, 0

    def __dlpack__(self, **_: Any) -> Any:
        array = array_of(self.held)
        self._register()
        return dlpack.export(
            self, array.ctypes.data, array.shape, array.dtype, self.__dlpack_device__()
        )

    def data_ptr(self) -> int:
        self._register()
        return self.held.data_ptr()

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.held.untyped_storage()

    def _register(self) -> None:
        """Tells the driver of the memory."""
        storage = torch.empty(0, dtype=torch.uint8).set_(self.held.untyped_storage())
        self.driver.memory[storage.data_ptr()] = storage.numpy()


def _held(each: Any) -> Any:
    return each.held if isinstance(each, FakeCuda) else each


def _wrapped(each: Any) -> Any:
    return FakeCuda(each) if isinstance(each, torch.Tensor) else each


def _again(op: Callable[..., Any], args: Any, kwargs: Any, results: Any) -> None:
    """An op of a graph, at a replay: into the memory of its results."""
    for result, new in zip(tree_leaves(results), tree_leaves(op(*args, **kwargs)), strict=True):
        if isinstance(result, torch.Tensor) and result.data_ptr() != new.data_ptr():
            result.copy_(new)


class OnGpu(TorchFunctionMode):
    """Tensors that PyTorch makes on a GPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is torch.empty and kwargs.get("device") == GPU:
            return FakeCuda(torch.empty(*args, **{**kwargs, "device": "cpu"}))
        if function is torch.Tensor.contiguous and isinstance(args[0], FakeCuda):
            held = args[0].held
            if held.is_contiguous():
                return args[0]
            copy = held.contiguous()
            if FakeCuda.driver.captured is not None:
                FakeCuda.driver.captured.append(lambda: copy.copy_(held))
            return FakeCuda(copy)
        return function(*args, **kwargs)


def _at_addresses(tensors: list[FakeCuda], addresses: list[int], numbers: list[int]) -> bool:
    return all(tensors[n].data_ptr() == addresses[n] for n in numbers)


class FakeStream:
    """A stream; everything on it is done at once."""

    def __init__(self, cuda_stream: int) -> None:
        self.cuda_stream, self.waited = cuda_stream, list[int]()

    def wait_stream(self, other: FakeStream) -> None:
        self.waited.append(other.cuda_stream)


class FakeRuntime:
    """Streams and graphs of `torch.cuda`.

    current:  handle of the current stream
    graphs:   the graphs that were captured
    capturing: handle of the stream that is being captured
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current, self.graphs = FakeStream(7), list[FakeGraph]()
        self.capturing: int | None = None
        made = iter(range(100, 1 << 20))
        for name, value in {
            "device": lambda device: nullcontext(),
            "current_device": lambda: 0,
            "Stream": lambda device=None: FakeStream(next(made)),
            "stream": self.stream,
            "current_stream": lambda device=None: self.current,
            "is_current_stream_capturing": lambda: self.capturing == self.current.cuda_stream,
            "graph_pool_handle": lambda: (0, next(made)),
            "CUDAGraph": lambda: FakeGraph(self),
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)
        for name, value in {
            "_cuda_getCurrentRawStream": lambda number: self.current.cuda_stream,
            "_tensors_data_ptrs_at_indices_equal": _at_addresses,
        }.items():
            monkeypatch.setattr(torch._C, name, value)

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before


class FakeGraph:
    """A CUDA graph: launches and ops of PyTorch in order."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime, self.work = runtime, list[Any]()
        self.replays = 0
        runtime.graphs.append(self)

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        assert capture_error_mode == "thread_local" and self.runtime.capturing is None
        self.runtime.capturing = self.runtime.current.cuda_stream
        FakeCuda.driver.captured = self.work

    def capture_end(self) -> None:
        self.runtime.capturing = FakeCuda.driver.captured = None

    def replay(self) -> None:
        assert FakeCuda.driver.captured is None
        self.replays += 1
        for each in self.work:
            each() if callable(each) else FakeCuda.driver.execute(each)
