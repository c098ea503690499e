"""Checks the import of a whole module: compares the user's module in PyTorch with its imported
parts in numpy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tcir.errors import Error
from tcir.imported import check
from tcir.interp import OutputSpec
from tcir.interp.types import Array
from tcir.torch.calls import Call
from tcir.torch.exported import DECOMPOSITIONS, functional, weights_of
from tcir.torch.imports import REFERENCE, REPLACED, WIDE, arrays_of, wide_type
from tcir.torch.tensors import array_of, tensor_of
from tcir.validation.report import Line

NAME = "module → linalg"
DRAWS = ("of the module", "of the module, its weights changed")
"""Weights with which the module is executed: its own, and others of about their size, so that a
factor of 1 or a summand of 0 is none."""
ROUNDINGS = dict.fromkeys(("float16", "bfloat16", "float32"), 4)
"""Roundings of the largest result that the parts may differ in addition: each rounds its results,
as PyTorch rounds those of each op, but elsewhere."""


class _As(TorchDispatchMode):
    """Mode in which PyTorch runs a module as it is, with stable sorts; wide: in f64, also where the
    module names another floating-point type."""

    def __init__(self, wide: bool) -> None:
        super().__init__()
        self.wide = wide

    def __torch_dispatch__(
        self,
        op: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = args, dict(kwargs or {})
        table: dict[object, Callable[..., object]] = {**REPLACED}
        if self.wide:
            table |= {**WIDE, **DECOMPOSITIONS}
            given = tree_map(wide_type, given)
        return table.get(op, op)(*given[0], **given[1])


class _InNumpy(torch.fx.Interpreter):
    """Runs a compiled module's graph: its parts by numpy, from the imported programs.

    programs: the program of each part
    """

    def __init__(self, graph: torch.fx.GraphModule, programs: Mapping[str, str]) -> None:
        super().__init__(graph)
        self.programs, self.executed = programs, dict[str, list[check.Executed]]()
        self.kind = ""

    def call_module(
        self, target: str, args: tuple[torch.Tensor, ...], kwargs: dict[str, object]
    ) -> object:
        if target not in self.programs:
            return super().call_module(target, args, kwargs)
        given = [array_of(each) for each in args]
        results = check.executed(self.programs[target], given)
        self.executed.setdefault(target, []).append(check.Executed(self.kind, given, results))
        return self.fetch_attr(target).rebuilt(list(map(tensor_of, results)))


def checked(
    graph: torch.fx.GraphModule,
    programs: Mapping[str, str],
    module: torch.nn.Module,
    call: Call,
    seed: int = 0,
) -> tuple[Line, dict[str, list[check.Executed]]]:
    """Compares the parts of a compiled module, run one after the other, with the user's module in
    f64. The comparison is made with the module's own weights and with changed weights. Returns the
    line of the report, and the arguments and results of each part.

    The line is `different` if the error exceeds the bound of `imports.checked`, with `ROUNDINGS`.
    It is `incomplete` if the module has random ops, or if PyTorch cannot run it in f64.
    """
    started = time.perf_counter()
    weights = [each.detach().cpu() for each in weights_of(module).values()]
    like = (array_of(torch.zeros((), dtype=each.dtype)) for each in call.tensors)
    specs = [OutputSpec(tuple(t.shape), a.dtype) for t, a in zip(call.tensors, like, strict=True)]
    tensors = [tensor_of(each).clone() for each in check.draw(specs, check.DRAWS[0], seed)]
    parts = _InNumpy(graph, programs)
    line = Line(0, NAME, level="tensor")
    compared: list[check.Results] = []
    try:
        _refuse_random(graph)
        for parts.kind in DRAWS:
            if compared:
                weights = _changed(weights, seed)
            given = *tensors, *weights
            own, exact = (_run(module, call, given, wide) for wide in (False, True))
            with torch.no_grad():
                got = arrays_of(parts.run(*given))
            compared.append((parts.kind, got, own, exact))
    except Error as error:
        line.incomplete = [str(error)]
    check.judge(line, ROUNDINGS, REFERENCE, compared)
    line.execute_seconds = time.perf_counter() - started
    return line, parts.executed


def _changed(weights: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Floating-point weights times 0.8 to 1.2, plus up to 2 % of the largest in either direction;
    zeros become numbers up to a quarter. Weights that are nowhere negative stay so (variances), and
    infinities and the largest numbers of a type stay (masks)."""
    generator = torch.Generator().manual_seed(seed)
    changed = []
    for each in weights:
        if not each.is_floating_point() or not each.numel():
            changed.append(each)
            continue
        kept = each.double()
        usual = kept.abs() < torch.finfo(each.dtype).max / 2
        largest = float(kept[usual].abs().max()) if usual.any() else 0.0
        factor, summand = (
            torch.rand(each.shape, generator=generator, dtype=torch.float64) for _ in range(2)
        )
        size = 0.02 * largest or 0.25
        made = kept * (0.8 + 0.4 * factor) + size * (2 * summand - 1)
        made = made.abs() if largest and bool((kept >= 0).all()) else made
        changed.append(torch.where(usual, made, kept).to(each.dtype))
    return changed


def _refuse_random(graph: torch.fx.GraphModule) -> None:
    for node in graph.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags:
            raise Error(f"{node.target}: results of two runs differ, so there is no reference")


def _run(
    module: torch.nn.Module, call: Call, given: Sequence[torch.Tensor], wide: bool
) -> list[Array]:
    """Results of the user's module. `Error` if PyTorch does not run it."""
    if wide:
        given = [each.double() if each.is_floating_point() else each for each in given]
    try:
        with torch.no_grad(), _As(wide):
            found = functional(module, call)(*given)
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        raise Error(f"{REFERENCE}{' in f64' if wide else ''}: {first}") from error
    return arrays_of(tree_leaves(found))
