"""Compiled modules, in which some parts run as kernels."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias, cast

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_unflatten

from tcir.imported.check import Executed
from tcir.imported.program import PartTable, lowered
from tcir.kernel import Kernel
from tcir.modelled import ModelledProgram
from tcir.program.inputs import Kind
from tcir.session.entry import validate as validate_program
from tcir.torch import whole
from tcir.torch.calls import Call
from tcir.torch.exported import RESULTS, is_getitem, on_device
from tcir.torch.graphs import Graphs
from tcir.torch.imports import checked
from tcir.torch.launching import KernelLauncher
from tcir.torch.snapshot import CURRENT
from tcir.torch.tensors import as_bytes, emulation, has_strides, is_tensor, kind_of, with_strides
from tcir.torch.weights import Weights
from tcir.validation.report import Line, Report

Tensors: TypeAlias = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Part:
    """A group of ops that either one kernel or PyTorch runs.

    ops:      names of the ops
    kernel:   the kernel; None if PyTorch runs the ops
    mlir:     the program that was compiled to the kernel
    pipeline: the pipeline that compiled it
    reason:   without a kernel, the whole error of the pipeline; with a kernel, the reason why a
              larger part was split
    graph:    the part as a PyTorch graph, if it was imported
    """

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
    """The "got …" clause of the first line of an error; the whole line if it has no such clause."""
    first = reason.splitlines()[0]
    found = re.search(r"^expected .*?, (got .*?)(; |$)", first)
    return found[1] if found else first


class KernelModule(torch.nn.Module):
    """A part that runs as a kernel: on the simulated machine, or on the GPU whose memory contains
    its inputs.

    traced:  the results as PyTorch traced them; later ops rely on their strides and types
    several: whether the part returns a tuple
    weights: indices of the inputs that are weights
    frozen:  whether results that depend only on weights are kept between calls
    device:  device of the results if the part has no inputs
    """

    def __init__(
        self,
        kernel: Kernel,
        traced: Sequence[torch.Tensor],
        several: bool,
        weights: Sequence[int] = (),
        frozen: bool = False,
    ) -> None:
        super().__init__()
        self.kernel, self.several = kernel, several
        self.strides = tuple(each.stride() for each in traced)
        self.kinds = tuple(each.dtype for each in traced)
        self.device = torch.device("cpu")
        self.launcher = KernelLauncher(kernel, weights, frozen)
        self._as_traced = all(
            kind_of(spec.dtype) == each.dtype and has_strides(spec.shape, each.stride())
            for spec, each in zip(kernel.signature.outputs, traced, strict=True)
        )

    def forward(self, *inputs: torch.Tensor) -> object:
        return self.rebuilt(self.launcher(inputs, self.device))

    def rebuilt(self, results: Sequence[torch.Tensor]) -> object:
        """Returns the results of the kernel with the types and strides that PyTorch traced."""
        if self._as_traced:
            return tuple(results) if self.several else results[0]
        each = zip(results, self.strides, self.kinds, strict=True)
        tensors = tuple(as_bytes(with_strides(x, strides), kind) for x, strides, kind in each)
        return tensors if self.several else tensors[0]


@dataclass(frozen=True)
class GpuOptions:
    """Options of a compiled module's execution on a GPU; see `tcir.torch.compile`."""

    emulate: bool = False
    graph: bool = False
    freeze: bool = False


class Compiled(torch.nn.Module):
    """A compiled module; it is called like the original, with tensors of the same shapes.

    With CPU tensors its kernels run on the simulated machine. With tensors on a GPU of the target,
    the kernels are launched on the current stream; first move the weights by `.to(device)`. With
    `emulate`, if the target is sm_100a, the tensors may also be on a GPU of compute capability 9.0
    (see `tcir.Kernel.launch`). `state_dict` is that of the original module.

    module:  the original module, which contains the weights
    options: see `GpuOptions`
    table:   the `Part` of each op, as a table
    kernels: kernels of the lowered parts, in order
    """

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        parts: Sequence[Part],
        call: Call,
        module: torch.nn.Module,
        target: str,
        options: GpuOptions,
    ) -> None:
        super().__init__()
        self.table, self.target, self.options = PartTable(parts), target, options
        self.kernels = [part.kernel for part in parts if part.kernel is not None]
        self._call = call.without_data()
        self.module = module
        places = graph.graph.find_nodes(op="placeholder")[len(call.tensors) :]
        read = [number for number, each in enumerate(places) if each.users]
        self._weights, self._spec = Weights(module, read), graph.meta.get(RESULTS)
        # Tensors as the only arguments are compared without flattening.
        is_flat = Call.of(call.tensors, {}).spec == call.spec
        self._flat = [(each.shape, each.dtype) for each in call.tensors] if is_flat else None
        self._graphs = Graphs(options.freeze) if options.graph and pays(graph) else None
        # Not a submodule: its constants are no state of the module's.
        self.__dict__["graph"] = graph
        self.register_load_state_dict_pre_hook(_with_prefix)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """State of the original module."""
        return self.module.state_dict(*args, **kwargs)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        self.graph._apply(fn)
        self.clear()
        return super()._apply(fn, recurse)

    def clear(self) -> None:
        """Frees the memory that calls on GPUs keep: workspaces, frozen weights, CUDA graphs. The
        next call prepares them again."""
        self._weights.clear()
        if self._graphs is not None:
            self._graphs.clear()
        for module in self.graph.modules():
            if isinstance(module, KernelModule):
                module.launcher.clear()

    def __del__(self) -> None:
        # The graph consists of cycles, which the garbage collection may end much later.
        with contextlib.suppress(Exception):
            self.clear()

    def forward(self, *args: object, **kwargs: object) -> object:
        """Computes the module's results.

        Raises `tcir.HazardError` for a kernel with a hazard, and InputError for arguments whose
        structure, shapes, types or numbers differ from the example's.
        """
        tensors = self._tensors(args, kwargs)
        first = tensors or self._weights()
        device = first[0].device if first else None
        if device is not None:
            move(self.graph, device)
        if torch.is_grad_enabled() or self.options.emulate:
            with torch.no_grad(), emulation(self.options.emulate):
                return self._results(tensors, device)
        return self._results(tensors, device)

    def _tensors(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Tensors:
        """The tensors among the arguments. InputError if these differ from the example's."""
        if self._flat is not None and not kwargs and all(map(is_tensor, args)):
            found = cast("Tensors", args)
            if [(each.shape, each.dtype) for each in found] == self._flat:
                return found
        call = Call.of(args, kwargs)
        self._call.check(call)
        return call.tensors

    def _results(self, tensors: Tensors, device: torch.device | None) -> object:
        found = self._run(tensors, device)
        if self._spec is None:
            return found
        return found[0] if self._spec.is_leaf() else tree_unflatten(found, self._spec)

    def _run(self, tensors: Tensors, device: torch.device | None) -> Sequence[object]:
        """The results of the graph, as a flat sequence."""
        early, last = None, self._weights.last
        if self._graphs is not None and last is not None and device is not None and last.frozen:
            # The GPU computes while the weights are checked.
            early = self._graphs.replayed(tensors, last, device)
        weights = self._weights()
        given = (*tensors, *weights)
        if device is None or device.type == "cpu":
            return cast("Sequence[object]", self.graph.forward(*given))
        snapshot = self._weights.snapshot(weights, self.options.freeze)
        if early is not None and snapshot is last:
            return early
        token = CURRENT.set(snapshot.state)
        try:
            if self._graphs is None:
                return cast("Sequence[object]", self.graph.forward(*given))
            run = partial(self.graph.forward, *given)
            return self._graphs(run, tensors, snapshot, device)
        finally:
            CURRENT.reset(token)

    def modelled(self) -> ModelledProgram:
        """Modelled time of each launch of the kernels (`tcir.Kernel.modelled`); the parts that
        PyTorch runs are left out.
        """
        launches = (each for kernel in self.kernels for each in kernel.modelled().launches)
        return ModelledProgram(tuple(launches))

    def validate(
        self,
        *,
        seed: int = 0,
        inputs: Kind = "integers",
        orders: int = 1,
        jobs: int = 1,
        budget: float | None = None,
        kinds: bool = True,
    ) -> list[Report]:
        """Executes the program of each kernel after every pass; see `tcir.validate`.

        kinds:  whether the simulated machine executes each kind of launch only once; the reports
                name the other launches of each kind
        budget: seconds for each program; kinds and states beyond it are not executed, and the
            "incomplete" reports name them; without `kinds` a sample of the CTAs is executed

        The very first line, "module → linalg", compares the imported programs, run one after
        another, with the user's module and its weights. The first line of each report, "PyTorch →
        linalg", compares one imported program with its part in PyTorch. Each of these lines
        compares in f64 and in the module's own types.
        """
        reports = []
        line, executed = self._whole(self._named(), seed)
        for name, part in self._named().items():
            report = validate_program(
                part.mlir, part.pipeline, target=self.target, seed=seed, inputs=inputs,
                orders=orders, jobs=jobs, budget=budget, kinds=kinds,
            )  # fmt: skip
            if part.graph is not None:
                known = executed.get(name, ())
                report.passes.insert(0, checked(part.graph, part.mlir, seed, known))
            reports.append(report)
        if reports and line is not None:
            reports[0].passes.insert(0, line)
        return reports

    def _named(self) -> dict[str, Part]:
        """The parts that are kernels, by the names of their submodules of the graph."""
        names = [node.target for node in self.graph.graph.nodes if node.op == "call_module"]
        parts = (part for part in self.table if part.kernel is not None)
        return {str(name): part for name, part in zip(names, parts, strict=True)}

    def _whole(
        self, parts: Mapping[str, Part], seed: int
    ) -> tuple[Line | None, Mapping[str, Sequence[Executed]]]:
        """The line of the whole module, and what each part computed; none where the module is only
        a graph of PyTorch's (`backend`), has an op that generates its own program (NVFP4, MX) and
        that only the machine computes, or weights of tensor subclasses (torchao), not of f64.
        """
        weights = (*self.module.parameters(), *self.module.buffers())
        if self._spec is None or any(part.graph is None for part in parts.values()):
            return None, {}
        if any(map(is_traceable_wrapper_subclass, weights)):
            return None, {}
        move(self.graph, torch.device("cpu"))
        programs = {name: part.mlir for name, part in parts.items()}
        return whole.checked(self.graph, programs, self.module, self._call, seed)


LEAST_LAUNCHES = 4
"""Least number of launches that a CUDA graph holds. The replay and the copy of its results take as
long as three launches (docs/results/2026-11-29-h200-networks.md)."""


def pays(graph: torch.fx.GraphModule) -> bool:
    """Whether CUDA graphs would make calls with `graph=True` faster; calls of few launches do not
    replay graphs.
    """
    if any(node.op == "call_function" and not is_getitem(node) for node in graph.graph.nodes):
        return True
    kernels = [each.kernel for each in graph.modules() if isinstance(each, KernelModule)]
    return sum(len(each.launches.launches) for each in kernels) >= LEAST_LAUNCHES


def _with_prefix(
    module: torch.nn.Module, state: dict[str, object], prefix: str, *_: object
) -> None:
    """Prefixes the names of the module's state, as those of a submodule of a `Compiled`."""
    for name in [name for name in state if name.startswith(prefix)]:
        state[f"{prefix}module.{name.removeprefix(prefix)}"] = state.pop(name)


def move(graph: torch.fx.GraphModule, device: torch.device) -> None:
    """Moves tensors that the graph creates (`arange`, constants) to a device."""
    if graph.meta.get(_MOVED) == device:
        return
    for module in graph.modules():
        if isinstance(module, KernelModule):
            module.device = device
    on_device(graph, device)
    graph.meta[_MOVED] = device


_MOVED = "tcir_device"
"""Key in the metadata of a graph: the device to which it was moved."""
