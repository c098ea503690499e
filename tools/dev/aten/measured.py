"""Measures a case of the table of ATen ops: exports, imports and compiles it, and runs it on the
simulated machine.

The layouts of results are not compared, because kernels return the layouts that PyTorch traced.
"""

from __future__ import annotations

import warnings
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_leaves

from tcir.errors import Error, InternalError
from tcir.kernel import Kernel
from tcir.session.apart import Compilers
from tcir.target import DEFAULT_TARGET
from tcir.tools.dev.aten.case import Case
from tcir.torch.calls import Call
from tcir.torch.compiled import KernelModule, short
from tcir.torch.exported import exported, torch_text
from tcir.torch.imports import checked, compared
from tcir.torch.lowering import without_place
from tcir.validation.against_f64 import Compared

TYPES = (torch.float16, torch.bfloat16, torch.float32)
PIPELINE = "layers"
FUNCTIONS_OFF, TF32_OFF = 2.0**-17, 2.0**-9
"""Additional allowed error of f32 results, relative to the largest: of functions of the special
function unit, and of tf32 products, beyond PyTorch's own error (docs/explanation/numerics.md)."""
LOWERED, LEFT, ABSENT, RED = "lowered", "left to PyTorch", "not in PyTorch", "red"


@dataclass(frozen=True)
class MeasuredOp:
    """The result for an op with one element type.

    state: LOWERED; LEFT: not lowered, for the reason in `words`; ABSENT: PyTorch does not have it
           on the CPU; RED: wrong, as `words` describes, or a fault of the compiler
    error: the largest error against f64, divided by the largest result
    eager: the error of eager PyTorch, computed in the same way
    """

    state: str
    words: str = ""
    error: float = 0.0
    eager: float = 0.0


@dataclass(frozen=True)
class _Call:
    """A case with tensors of one type and layout."""

    case: Case
    kind: torch.dtype
    strides: bool
    given: list[torch.Tensor]

    def run(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Runs the call; returns its results."""
        return list(tree_leaves(self.case.function(*(tensors or self.given))))


class _Each(torch.nn.Module):
    """Module of several calls, which take their tensors in order."""

    def __init__(self, calls: Sequence[_Call]) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        rest = iter(tensors)
        return [
            result for call in self.calls for result in call.run(*(next(rest) for _ in call.given))
        ]


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """Copies a tensor to a strided layout, which uses every other element of memory and has the
    dimensions in reverse order."""
    *outer, last = tensor.shape[::-1] or (1,)
    memory = torch.zeros((*outer, 2 * last), dtype=tensor.dtype)[..., ::2]
    result = memory.permute(*reversed(range(memory.ndim)))
    return result.copy_(tensor) if tensor.ndim else tensor


Key = tuple[torch.dtype, bool]
"""A type, and whether the arguments are strided."""
Cells = dict[str, dict[Key, MeasuredOp]]
"""Cells by name of the case."""


@dataclass
class CaseRunner:
    """Measures cases; child processes compile the cases' programs."""

    compilers: Compilers

    def cells(self, cases: Sequence[Case], types: Sequence[torch.dtype] = TYPES) -> Cells:
        """Measures the cells of each case. All cases are first one program; if it is not lowered or
        is wrong, it is split into programs of fewer cases, and finally into programs of one case
        and one element type."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cells = self._together(cases, types)
        states = {cell.state for found in cells.values() for cell in found.values()}
        if states == {LOWERED} or (len(cases) == 1 and len(types) == 1):
            return cells
        if len(cases) > 1:
            middle = len(cases) // 2
            return self.cells(cases[:middle], types) | self.cells(cases[middle:], types)
        apart = [self.cells(cases, [kind]) for kind in types]
        return {name: dict(ChainMap(*(each[name] for each in apart))) for name in cells}

    def _together(self, cases: Sequence[Case], types: Sequence[torch.dtype]) -> Cells:
        calls = [
            _Call(case, kind, strides, _given(case, kind, strides))
            for strides in (False, True)
            for kind in types
            for case in cases
        ]
        try:
            own = [call.run() for call in calls]
        except (RuntimeError, NotImplementedError) as error:
            return _all(calls, MeasuredOp(ABSENT, str(error).splitlines()[0]))
        try:
            return self._compared(calls, own)
        except InternalError as error:
            return _all(calls, MeasuredOp(RED, str(error)))
        except Error as error:
            return _all(calls, MeasuredOp(LEFT, short(without_place(str(error)))))

    def _compared(self, calls: Sequence[_Call], own: Sequence[list[torch.Tensor]]) -> Cells:
        """Measures the calls as two programs, with contiguous and with strided arguments; they are
        one program if PyTorch traces the same graph."""
        count = len(calls) // 2
        found = _all(calls, MeasuredOp(RED))
        same: dict[str, tuple[str, Kernel]] = {}
        for first, part in zip((0, count), _parts(calls), strict=True):
            if part.code not in same:
                mlir = self.compilers.linalg(torch_text(part))
                kernel = self.compilers.compile(mlir, PIPELINE, DEFAULT_TARGET.name)
                same[part.code] = (mlir, kernel)
            mlir, kernel = same[part.code]
            line = checked(part, mlir)
            if line.verdict == "different":
                return _all(calls, MeasuredOp(RED, f"imported: {line.compared}"))
            ours, theirs = calls[first : first + count], own[first : first + count]
            for call, cell in zip(ours, _run(ours, part, kernel, theirs), strict=True):
                found[call.case.name][call.kind, call.strides] = cell
        return found


def _all(calls: Sequence[_Call], cell: MeasuredOp) -> Cells:
    found: Cells = {call.case.name: {} for call in calls}
    for call in calls:
        found[call.case.name][call.kind, call.strides] = cell
    return found


def _given(case: Case, kind: torch.dtype, strides: bool) -> list[torch.Tensor]:
    given = [each.to(kind) if each.is_floating_point() else each for each in case.drawn()]
    return list(map(strided, given)) if strides else given


def _parts(calls: Sequence[_Call]) -> list[torch.fx.GraphModule]:
    """Graphs of the first and of the second half of the calls, from one export."""
    tensors = [tensor for call in calls for tensor in call.given]
    graph = exported(_Each(calls).eval(), Call.of(tensors, {}), {})
    places = [node for node in graph.graph.nodes if node.op == "placeholder"]
    results = tree_leaves(graph.graph.output_node().args[0])
    inputs, outputs = len(places) // 2, len(results) // 2
    return [
        _part(graph, places[n * inputs :][:inputs], results[n * outputs :][:outputs])
        for n in range(2)
    ]


def _part(
    graph: torch.fx.GraphModule, places: Sequence[torch.fx.Node], results: Sequence[torch.fx.Node]
) -> torch.fx.GraphModule:
    """The part of a graph between some of its arguments and some of its results."""
    wanted = {*places, *results}
    for node in reversed(graph.graph.nodes):
        if node in wanted:
            wanted.update(node.all_input_nodes)
    part = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.graph.nodes:
        if node in wanted:
            copies[node] = copy = part.node_copy(node, lambda each: copies[each])
            copy.name = f"value{len(copies)}"  # equal parts have equal code
            copy.target = copy.name if node.op == "placeholder" else node.target
    part.output(tuple(copies[each] for each in results))
    return torch.fx.GraphModule(graph, part)


def _run(
    calls: Sequence[_Call],
    part: torch.fx.GraphModule,
    kernel: Kernel,
    own: Sequence[list[torch.Tensor]],
) -> list[MeasuredOp]:
    """Runs the kernel on the simulated machine; returns a cell for each call."""
    ends = tree_leaves(part.graph.output_node().args[0])
    traced = [each.meta["val"] for each in ends]
    try:
        results = KernelModule(kernel, traced, True)(*(x for call in calls for x in call.given))
    except Error as error:
        return [MeasuredOp(RED, f"its kernel: {str(error).splitlines()[0]}")] * len(calls)
    rest = iter(results)
    return [
        _cell(call, [next(rest) for _ in theirs], theirs)
        for call, theirs in zip(calls, own, strict=True)
    ]


def _cell(call: _Call, mine: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> MeasuredOp:
    exact = call.run(*(x.double() if x.is_floating_point() else x for x in call.given))
    found = [_compared(call.case, *each) for each in zip(mine, theirs, exact, strict=True)]
    failures = [f"result {n}: {each.failure}" for n, each in enumerate(found) if each.failure]
    if failures:
        return MeasuredOp(RED, "; ".join(failures))
    worst = max(found, key=lambda each: each.error)
    return MeasuredOp(LOWERED, "", worst.error, worst.own)


def _compared(
    case: Case, mine: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor
) -> Compared:
    more = 0.0
    if theirs.dtype == torch.float32:
        more = TF32_OFF if case.multiplied else FUNCTIONS_OFF
    return compared(mine, theirs, exact, more)
