"""The backend ``tcir`` of `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch._dynamo import register_backend
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from tcir.errors import InputError
from tcir.passmanager.pipeline import as_pipeline
from tcir.session.apart import compilers
from tcir.session.session import check_target
from tcir.torch.calls import Call
from tcir.torch.compiled import Compiled, GpuOptions
from tcir.torch.entry import chosen_target, compiled
from tcir.torch.exported import traced

MOST_SHAPES = 8
"""Maximum number of shapes for which a graph is compiled; PyTorch runs it for any others."""
OPTIONS = ("pipeline", "target", "emulate", "graph", "verbose")


@register_backend(name="tcir")
def backend(
    module: torch.fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    *,
    options: Mapping[str, object] | None = None,
    mode: str | None = None,
) -> Callable[..., object]:
    """The `torch.compile` backend ``tcir``; PyTorch calls it with each traced graph.

    Kernels run the forward graph. It is compiled at the first call for the shapes of the arguments,
    and again for other shapes. PyTorch itself runs the backward graph. options: `pipeline`,
    `target`, `emulate`, `graph` and `verbose`, as in `tcir.torch.compile`. Raises InputError for
    other options or a `mode`.
    """
    if mode is not None:
        raise InputError(
            f"torch.compile(backend='tcir'): expected no mode, or mode='default', got {mode!r}: "
            "modes are of PyTorch's own compiler; options={'pipeline': …} chooses the schedule"
        )
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise InputError(
            f"torch.compile(backend='tcir'): options: expected {', '.join(OPTIONS)}, got "
            f"{', '.join(map(repr, unknown))}"
        )

    def forward(graph: torch.fx.GraphModule, _: Sequence[torch.Tensor]) -> Callable[..., object]:
        boxed: Callable[..., object] = make_boxed_func(_Specialised(graph, dict(options or {})))
        return boxed

    def backward(graph: torch.fx.GraphModule, _: Sequence[torch.Tensor]) -> Callable[..., object]:
        boxed: Callable[..., object] = make_boxed_func(graph.forward)
        return boxed

    traced: Callable[..., object] = aot_autograd(
        fw_compiler=forward, bw_compiler=backward, inference_compiler=forward
    )(module, inputs)
    return traced


class _Specialised:
    """A graph that is compiled at its first call for each set of argument shapes."""

    def __init__(self, graph: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        self.graph, self.options = graph, options
        self.compiled: dict[object, Compiled] = {}

    def __call__(self, *args: object) -> object:
        call = Call.of(args, {})
        key = (call.others, tuple((t.shape, t.dtype, t.device) for t in call.tensors))
        found = self.compiled.get(key)
        if found is None:
            if len(self.compiled) == MOST_SHAPES:
                return self.graph(*args)
            # In a thread of its own: here PyTorch's dispatcher runs a compiled graph, under whose
            # state `torch.export` fails.
            with ThreadPoolExecutor(1) as thread:
                found = self.compiled[key] = thread.submit(self._compile, call).result()
        return found(*args)

    def _compile(self, call: Call) -> Compiled:
        emulate = bool(self.options.get("emulate"))
        target = chosen_target(call, self.options.get("target"), emulate)
        pipeline = self.options.get("pipeline", "layers")
        as_pipeline(pipeline)
        check_target(pipeline, target)
        compilers().start()  # while PyTorch traces the graph
        graph = traced(self.graph, call)
        empty = torch.nn.Module()  # its weights are among the arguments
        verbose = self.options.get("verbose")
        how = GpuOptions(emulate, bool(self.options.get("graph")))
        return compiled(empty, graph, call, pipeline, target, verbose, how)
