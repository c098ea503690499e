"""Calls of a compiled module as CUDA graphs (``graph=True``)."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from tcir.errors import Error, InputError
from tcir.torch.launching import Ready, Store, captured_for, stream_of
from tcir.torch.snapshot import Guard, Snapshot
from tcir.torch.tensors import is_emulated, with_strides

MOST_GRAPHS = 8
"""Maximum number of graphs for each stream; those used last are kept."""

Run = Callable[[], Sequence[object]]
Tensors = Sequence[torch.Tensor]


@dataclass
class _Captured:
    """A captured graph.

    It holds its results, which the next replay overwrites, and its conditions besides addresses:
    layouts and, if weights are frozen, their state.
    uses: the prepared kernels, whose memory is in the graph
    """

    graph: torch.cuda.CUDAGraph
    results: list[tuple[object, tuple[int, ...]]]
    fits: Guard
    weights_fit: Guard
    state: object
    uses: list[Ready]

    def is_for(self, arguments: Tensors, snapshot: Snapshot) -> bool:
        """Whether the arguments and weights have the addresses for which the graph was captured."""
        if not self.fits(arguments):
            return False
        if self.state is None:
            return snapshot.fits is self.weights_fit or self.weights_fit(snapshot.tensors)
        return self.state is snapshot.state

    def replay(self) -> tuple[object, ...]:
        """Puts the graph on the current stream; returns copies of its results."""
        self.graph.replay()
        return tuple(_copied(*each) for each in self.results)


class Graphs:
    """The CUDA graphs of a module's calls, by stream and by the addresses of arguments and weights.

    frozen: whether results that depend only on weights are kept between calls

    Any thread may call it. A pickle or copy contains no graphs.
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

    def __call__(
        self, run: Run, arguments: Tensors, snapshot: Snapshot, device: torch.device
    ) -> Sequence[object]:
        """The results of `run`, which computes from these arguments and the snapshot's weights on
        the current stream of the device, in new tensors.

        The first call for some addresses captures a graph, and so does one after a frozen weight
        was written. While the caller is capturing the stream, the call only executes `run`.

        InputError for results that are views of arguments or of each other, and for ops that cannot
        be captured.
        """
        key, capturing = _key(device)
        if capturing:
            return run()
        with self._lock, _current(device):
            results = self.replayed(arguments, snapshot, device)
            if results is None:
                try:
                    if key not in self._streams:
                        self._streams[key] = _Stream(device)
                    self._streams[key].capture(run, arguments, snapshot, self.frozen)
                except BaseException:
                    # PyTorch may leave its memory in the middle of a capture.
                    self._streams.pop(key, None)
                    raise
                results = self.replayed(arguments, snapshot, device)
                assert results is not None
            return results

    def replayed(
        self, arguments: Tensors, snapshot: Snapshot, device: torch.device
    ) -> Sequence[object] | None:
        """The results of the graph that was captured for these arguments and the snapshot's
        weights; None if there is no such graph. The caller must check that the snapshot is that of
        the current weights.
        """
        key, capturing = _key(device)
        stream = self._streams.get(key)
        if stream is None or capturing:
            return None
        with self._lock, _current(device):
            addresses = _addresses(arguments, snapshot)
            found = stream.graphs.get(addresses)
            if found is None or not found.is_for(arguments, snapshot):
                return None
            stream.graphs.move_to_end(addresses)
            return found.replay()


class _Stream:
    """State that the graphs of one stream share, since their replays follow each other: the stream
    on which they are captured, prepared launches with their workspaces, and the memory of their
    results."""

    def __init__(self, device: torch.device) -> None:
        self.side = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()
        self.ready: Store = {}
        self.graphs: OrderedDict[tuple[int | bytes, ...], _Captured] = OrderedDict()

    def capture(self, run: Run, arguments: Tensors, snapshot: Snapshot, frozen: bool) -> None:
        """Captures the launches of `run` as a graph. A call of `run` must have prepared everything
        that it launches.
        """
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        try:
            with torch.cuda.stream(self.side), captured_for(self.ready):
                run()
                graph, results = _capture(run, self.pool)
        finally:
            current.wait_stream(self.side)
        _check_aliases(results, [*arguments, *snapshot.tensors])
        uses = [ready for each in self.ready.values() for ready in each.values()]
        strides = [each.stride() if isinstance(each, torch.Tensor) else () for each in results]
        held = list(zip(results, strides, strict=True))
        state = snapshot.state if frozen else None
        fits = Guard(arguments), snapshot.fits
        self.graphs[_addresses(arguments, snapshot)] = _Captured(graph, held, *fits, state, uses)
        while len(self.graphs) > MOST_GRAPHS:
            self.graphs.popitem(last=False)


def _key(device: torch.device) -> tuple[object, bool]:
    """Key of a device's current stream, and whether it is being captured."""
    handle, capturing = stream_of(device)
    return (device, handle, is_emulated()), capturing


def _addresses(arguments: Tensors, snapshot: Snapshot) -> tuple[int | bytes, ...]:
    return (*[each.data_ptr() for each in arguments], snapshot.key)


def _capture(run: Run, pool: object) -> tuple[torch.cuda.CUDAGraph, Sequence[object]]:
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


def _copied(result: object, strides: tuple[int, ...]) -> object:
    if not isinstance(result, torch.Tensor):
        return result
    copy = result.clone()
    return copy if copy.stride() == strides else with_strides(copy, strides)


def _current(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Context in which the device is the current one."""
    if torch.cuda.current_device() == device.index:
        return contextlib.nullcontext()
    return torch.cuda.device(device)
