"""A module some of whose parts are kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch

from tcir.imported.program import Table, lowered
from tcir.kernel import Kernel
from tcir.program.inputs import Kind
from tcir.session.entry import validate as validate_program
from tcir.torch.calls import Call
from tcir.torch.exported import weights_of
from tcir.torch.imports import checked
from tcir.torch.tensors import as_bytes, emulation, run, with_strides
from tcir.validation.report import Report


@dataclass(frozen=True)
class Part:
    """A run of ops. kernel: None where PyTorch runs them, for `reason`, which is the whole error of
    the pipeline; of a kernel `reason` is why a larger part was cut. mlir: of the kernel; graph: the
    part in PyTorch, of one that was imported."""

    ops: tuple[str, ...]
    kernel: Kernel | None = None
    mlir: str = ""
    pipeline: str = ""
    reason: str = ""
    graph: torch.fx.GraphModule | None = None

    def __str__(self) -> str:
        if self.kernel is None:
            return f"{', '.join(self.ops)}: left to PyTorch: {short(self.reason)}"
        words = lowered(self.ops, self.pipeline, self.kernel)
        return f"{words}; cut: {short(self.reason)}" if self.reason else words


def short(reason: str) -> str:
    """What was not expected, without all that is."""
    first = reason.splitlines()[0]
    found = re.search(r"^expected .*?, (got .*?)(; |$)", first)
    return found[1] if found else first


class KernelModule(torch.nn.Module):
    """A part, run by its kernel: on the simulated machine, or on the GPU that its inputs are on.

    traced: each result, as PyTorch traced the graph, which has their strides and types: what it
    runs behind the part relies on them. several: whether the part returns a tuple. device: that of
    results without inputs
    """

    def __init__(self, kernel: Kernel, traced: Sequence[torch.Tensor], several: bool) -> None:
        super().__init__()
        self.kernel, self.several = kernel, several
        self.strides = tuple(each.stride() for each in traced)
        self.kinds = tuple(each.dtype for each in traced)
        self.device = torch.device("cpu")

    def forward(self, *inputs: torch.Tensor) -> object:
        results = run(self.kernel, inputs, self.device)
        each = zip(results, self.strides, self.kinds, strict=True)
        tensors = tuple(as_bytes(with_strides(x, strides), kind) for x, strides, kind in each)
        return tensors if self.several else tensors[0]


class Compiled(torch.nn.Module):
    """The module: call it as the one that it was made from, with tensors of the same shapes.

    With tensors of the CPU its kernels run on the simulated machine. With tensors of a GPU of the
    target, after `.to(device)`, which moves the weights, they are launched, on the current stream;
    with emulate, where the target is sm_100a, on one of compute capability 9.0 (see
    `tcir.Kernel.launch`). Its `state_dict` is the module's.

    module: whose weights they read; table: what became of each op; kernels: those of the lowered
    parts, in their order
    """

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        parts: Sequence[Part],
        call: Call,
        module: torch.nn.Module,
        target: str,
        emulate: bool = False,
    ) -> None:
        super().__init__()
        self.table, self.target, self.emulate = Table(parts), target, emulate
        self.kernels = [part.kernel for part in parts if part.kernel is not None]
        self._call = call.without_data()
        self.module = module
        # Not a submodule: its constants are no state of the module's.
        self.__dict__["graph"] = graph
        self.register_load_state_dict_pre_hook(_with_prefix)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The module's."""
        return self.module.state_dict(*args, **kwargs)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        self.graph._apply(fn)
        return super()._apply(fn, recurse)

    def forward(self, *args: object, **kwargs: object) -> object:
        """The module's results. `tcir.HazardError` of a kernel with a hazard, InputError for
        arguments of another structure, shapes, types or numbers than the example's."""
        call = Call.of(args, kwargs)
        self._call.check(call)
        weights = tuple(weights_of(self.module).values())
        devices = [each.device for each in (*call.tensors, *weights)]
        if devices:
            move(self.graph, devices[0])
        with torch.no_grad(), emulation(self.emulate):
            return self.graph(*call.tensors, *weights)

    def validate(
        self, *, seed: int = 0, inputs: Kind = "integers", orders: int = 1
    ) -> list[Report]:
        """Executes the program of each kernel after every pass, see `tcir.validate`.

        The first line of a report, "PyTorch → linalg", compares the program that was imported with
        the part in PyTorch, in f64 and in its own types.
        """
        return [
            self._validated(part, seed=seed, inputs=inputs, orders=orders)
            for part in self.table
            if part.kernel is not None
        ]

    def _validated(self, part: Part, seed: int, **options: Any) -> Report:
        report = validate_program(
            part.mlir, part.pipeline, target=self.target, seed=seed, **options
        )
        if part.graph is not None:
            report.passes.insert(0, checked(part.graph, part.mlir, seed))
        return report


def _with_prefix(
    module: torch.nn.Module, state: dict[str, object], prefix: str, *_: object
) -> None:
    """Names of the module's state as those of a `Compiled`, whose submodule it is."""
    for name in [name for name in state if name.startswith(prefix)]:
        state[f"{prefix}module.{name.removeprefix(prefix)}"] = state.pop(name)


def move(graph: torch.fx.GraphModule, device: torch.device) -> None:
    """Has what the graph makes itself (`arange`, constants) made on a device."""
    for module in graph.modules():
        if isinstance(module, KernelModule):
            module.device = device
    changed = False
    for node in graph.graph.nodes:
        given = node.kwargs.get("device")
        if given is not None and torch.device(given) != device:
            node.update_kwarg("device", device)
            changed = True
    if changed:
        graph.recompile()
