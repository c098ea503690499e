"""Launches that are replayed by a CUDA graph, which is possible because their parameters stay the
same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from tcir.runtime.driver import bindings, call
from tcir.runtime.module import Module

LEAST = 4
"""Minimum number of launches of a graph: its own launch takes as long as two or three
(docs/results/2026-11-29-h200-networks.md)."""


class LaunchGraph:
    """An executable CUDA graph of launches of a module's kernels. The module stays loaded as long
    as the graph exists.

    put: issues the launches on the capturing stream, whose handle is its argument

    Raises `CudaError` if the driver rejects the graph.
    """

    def __init__(self, module: Module, put: Callable[[int], None]) -> None:
        self.module = module
        module.device.activate()
        driver = bindings()
        side = call("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        try:
            # Other threads, and the owner of the caller's stream, notice nothing.
            mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
            call("cuStreamBeginCapture", side, mode)
            try:
                put(int(side))
            except BaseException:
                with contextlib.suppress(Exception):
                    call("cuGraphDestroy", call("cuStreamEndCapture", side))
                raise
            graph = call("cuStreamEndCapture", side)
            try:
                self.handle = call("cuGraphInstantiate", graph, 0)
            finally:
                call("cuGraphDestroy", graph)
        finally:
            call("cuStreamDestroy", side)

    def __del__(self) -> None:
        # The driver frees a graph that is being executed after its end.
        with contextlib.suppress(Exception):
            call("cuGraphExecDestroy", self.handle)
