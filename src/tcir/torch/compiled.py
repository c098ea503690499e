"""A module some of whose parts are kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.utils._pytree import TreeSpec, tree_unflatten

from tcir.errors import InputError
from tcir.kernel import Kernel
from tcir.program.inputs import Kind
from tcir.session.entry import validate as validate_program
from tcir.torch.exported import weights_of
from tcir.torch.tensors import run, with_strides
from tcir.validation.report import Report


@dataclass(frozen=True)
class Part:
    """A run of ops. kernel: None where PyTorch runs them, for `reason`; mlir: of the kernel."""

    ops: tuple[str, ...]
    kernel: Kernel | None = None
    mlir: str = ""
    pipeline: str = ""
    reason: str = ""

    def __str__(self) -> str:
        ops = ", ".join(self.ops)
        if self.kernel is None:
            return f"{ops}: left to PyTorch: {self.reason}"
        launches = len(self.kernel.launches.launches)
        return f"{ops}: {self.pipeline}, {launches} launch{'es' * (launches > 1)}"


class Table(tuple[Part, ...]):
    """What became of each op; a line for each part as text."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


class KernelModule(torch.nn.Module):
    """A part, run by its kernel: on the simulated machine, or on the GPU that its inputs are on.

    strides: of each result, as PyTorch traced the graph: what it runs behind the part relies on
    them. several: whether the part returns a tuple.
    """

    def __init__(
        self, kernel: Kernel, strides: Sequence[tuple[int, ...]], several: bool
    ) -> None:
        super().__init__()
        self.kernel, self.strides, self.several = kernel, tuple(strides), several

    def forward(self, *inputs: torch.Tensor) -> object:
        results = run(self.kernel, inputs)
        pairs = zip(results, self.strides, strict=True)
        tensors = tuple(with_strides(*pair) for pair in pairs)
        return tensors if self.several else tensors[0]


class Compiled(torch.nn.Module):
    """The module: call it as the one that it was made from, with tensors of the same shapes.

    With tensors of the CPU its kernels run on the simulated machine. With tensors of a GPU of the
    target, after `.to(device)`, which moves the weights, they are launched, on the current stream.

    module: whose weights they read; table: what became of each op; kernels: those of the lowered
    parts, in their order
    """

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        parts: Sequence[Part],
        inputs: Sequence[torch.Tensor],
        module: torch.nn.Module,
        results: TreeSpec,
        target: str,
    ) -> None:
        super().__init__()
        self.graph, self.table, self.target = graph, Table(parts), target
        self.kernels = [part.kernel for part in parts if part.kernel is not None]
        self._results = results
        self.module = module
        self._shapes = [(tuple(each.shape), each.dtype) for each in inputs]

    def forward(self, *inputs: torch.Tensor) -> object:
        """The module's results. `tcir.HazardError` of a kernel with a hazard, InputError for
        tensors of other shapes or types."""
        for number, each in enumerate(inputs):
            if not isinstance(each, torch.Tensor):
                raise InputError(f"input {number}: expected a tensor, got {type(each).__name__}")
        got = [(tuple(each.shape), each.dtype) for each in inputs]
        if got != self._shapes:
            raise InputError(
                f"expected tensors {_words(self._shapes)}, those of the example inputs, got "
                f"{_words(got)}: shapes are fixed in a kernel; compile again for others"
            )
        with torch.no_grad():
            flat = self.graph(*inputs, *weights_of(self.module).values())
        return tree_unflatten(flat, self._results)

    def validate(
        self, *, seed: int = 0, inputs: Kind = "integers", orders: int = 1
    ) -> list[Report]:
        """Executes the program of each kernel after every pass, see `tcir.validate`."""
        return [
            validate_program(
                part.mlir,
                part.pipeline,
                target=self.target,
                seed=seed,
                inputs=inputs,
                orders=orders,
            )
            for part in self.table
            if part.kernel is not None
        ]


def _words(shapes: Sequence[tuple[tuple[int, ...], torch.dtype]]) -> str:
    return ", ".join(f"{list(shape)} of {str(kind)[6:]}" for shape, kind in shapes) or "none"
