"""Calls of a compiled module as CUDA graphs (``graph=True``)."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from tcir.errors import Error, InputError
from tcir.torch.launching import Contents, Guard, Ready, Store, captured_for, stream_of
from tcir.torch.tensors import is_emulated, with_strides

MOST_GRAPHS = 8
"""Maximum number of graphs for each stream; those used last are kept."""

Run = Callable[[], object]
Tensors = Sequence[torch.Tensor]


@dataclass
class _Captured:
    """A captured graph.

    It holds its results, which the next replay overwrites, and its conditions besides addresses:
    the layouts, and the contents of frozen weights.
    uses: the prepared kernels, whose memory is in the graph, and the sources of their kept results
    """

    graph: torch.cuda.CUDAGraph
    results: list[object]
    spec: TreeSpec
    fits: Guard
    frozen: Contents | None
    uses: list[tuple[Ready, Contents | None]]

    def is_for(self, tensors: Tensors, weights: Tensors) -> bool:
        """Whether the graph computes from these tensors, which have its addresses."""
        return (
            self.fits(tensors)
            and (self.frozen is None or self.frozen.are_of(weights, self.frozen.addresses))
            and all(ready.contents is contents for ready, contents in self.uses)
        )

    def replay(self) -> object:
        """Puts the graph on the current stream; returns copies of its results."""
        self.graph.replay()
        return tree_unflatten([_copied(each) for each in self.results], self.spec)


class Graphs:
    """The graphs of a module's calls, by stream and by the addresses of arguments and weights.

    frozen: whether weights are frozen

    Any thread may call it. A pickle or copy has no graphs.
    """

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen
        self._streams: dict[object, _Stream] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, object]:
        return {"frozen": self.frozen}

    def __setstate__(self, state: dict[str, bool]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def clear(self) -> None:
        """Frees the graphs and their memory."""
        with self._lock:
            self._streams.clear()

    def __call__(self, run: Run, tensors: Tensors, weights: Tensors) -> object:
        """The results of `run`, which computes from these tensors on the current stream, in new
        tensors. weights: the weights among the tensors

        The first call for some addresses captures a graph, and so does one after a frozen weight
        was written. While the stream is being captured by the caller, it is `run` alone.

        InputError for results that are views of arguments or of each other, and for ops that cannot
        be captured.
        """
        device = tensors[0].device
        handle, capturing = stream_of(device)
        if capturing:
            return run()
        key = device, handle, is_emulated()
        with self._lock, torch.cuda.device(device):
            if key not in self._streams:
                self._streams[key] = _Stream(device)
            stream = self._streams[key]
            addresses = tuple(each.data_ptr() for each in tensors)
            found = stream.graphs.get(addresses)
            if found is None or not found.is_for(tensors, weights):
                try:
                    found = stream.captured(run, tensors, weights if self.frozen else None)
                except BaseException:
                    # PyTorch may leave its memory in the middle of a capture.
                    del self._streams[key]
                    raise
                stream.graphs[addresses] = found
            stream.graphs.move_to_end(addresses)
            while len(stream.graphs) > MOST_GRAPHS:
                stream.graphs.popitem(last=False)
            return found.replay()


class _Stream:
    """State that the graphs of one stream share, since their replays follow each other: the stream
    on which they are captured, prepared launches with their workspaces, and the memory of their
    results."""

    def __init__(self, device: torch.device) -> None:
        self.side = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()
        self.ready: Store = {}
        self.graphs: OrderedDict[tuple[int, ...], _Captured] = OrderedDict()

    def captured(self, run: Run, tensors: Tensors, frozen: Tensors | None) -> _Captured:
        """Captures `run`, after a call that prepares everything that it launches."""
        contents = None if frozen is None else Contents(frozen)
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        try:
            with torch.cuda.stream(self.side), captured_for(self.ready):
                run()
                graph, results = _capture(run, self.pool)
        finally:
            current.wait_stream(self.side)
        leaves, spec = tree_flatten(results)
        _check_aliases(leaves, tensors)
        prepared = [ready for each in self.ready.values() for ready in each.values()]
        uses = [(ready, ready.contents) for ready in prepared]
        return _Captured(graph, leaves, spec, Guard(tensors), contents, uses)


def _capture(run: Run, pool: object) -> tuple[torch.cuda.CUDAGraph, object]:
    graph = torch.cuda.CUDAGraph()
    with _no_collection():
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            results = run()
        except BaseException as error:
            with contextlib.suppress(Exception):
                graph.capture_end()
            if isinstance(error, RuntimeError) and not isinstance(error, Error):
                raise _not_captured(error) from error
            raise
        try:
            graph.capture_end()
        except RuntimeError as error:
            raise _not_captured(error) from error
    return graph, results


def _not_captured(error: RuntimeError) -> InputError:
    first = str(error).strip().split("\n")[0]
    return InputError(
        f"graph=True: expected ops that a CUDA graph can hold, got {first}; an op that PyTorch "
        "runs waits for the GPU or reads its results: compile with graph=False"
    )


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Context without garbage collection: the end of some objects waits for the GPU, which a
    capture forbids."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _check_aliases(results: Sequence[object], tensors: Tensors) -> None:
    """InputError if a result shares memory with an argument, a weight or another result: a copy of
    it would not."""
    taken = {each.untyped_storage()._cdata for each in tensors}
    for number, each in enumerate(results):
        if not isinstance(each, torch.Tensor):
            continue
        memory = each.untyped_storage()._cdata
        if memory in taken:
            raise InputError(
                f"graph=True: expected results with memory of their own, got result {number}, "
                "which shares memory with an argument, a weight or another result; return a "
                "clone(), or compile with graph=False"
            )
        taken.add(memory)


def _copied(result: object) -> object:
    if not isinstance(result, torch.Tensor):
        return result
    return with_strides(result.clone(), result.stride())
