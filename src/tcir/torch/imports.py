"""The import as a checked step: a part in PyTorch beside the `linalg` that was made of it."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_leaves, tree_map

from tcir.interp.tensor import run
from tcir.passes.build.calls import inlined
from tcir.program.programs import find_program
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.torch.tensors import array_of, tensor_of
from tcir.validation.report import Line

NAME = "PyTorch → linalg"
FACTOR = 1.5
"""The error against f64 that is allowed, over PyTorch's own; beside it one rounding."""
DRAWS = ("N(0, 1)", "[0, 1)")
"""Inputs that cancel, and inputs whose sums grow."""


def checked(part: torch.fx.GraphModule, mlir: str, seed: int = 0) -> Line:
    """The line of a report: the results of `mlir` against those of the part in PyTorch, in f64.

    An error of more than 1.5 times that of PyTorch in the part's own types, and one rounding of the
    largest result, is `different`; so are NaN and infinities in other places than PyTorch's.
    """
    started = time.perf_counter()
    line = Line(0, NAME, level="tensor", verdict="within bound")
    words = []
    reference = _stable(part)
    for number, kind in enumerate(DRAWS):
        given = _draw(part, number, seed)
        own = [each.detach() for each in tree_leaves(reference(*copy.deepcopy(given)))]
        wide = _wide(reference)(*(_f64(each) for each in given))
        got = _linalg(mlir, given, line)
        if line.incomplete:
            line.verdict = "incomplete"
            break
        for result, (mine, theirs, exact) in enumerate(
            zip(got, own, map(torch.Tensor.detach, tree_leaves(wide)), strict=True)
        ):
            found = compared(mine, theirs, exact)
            if found.failure:
                line.verdict = "different"
                words.append(f"result {result} of inputs {kind}: {found.failure}")
            line.max_error_over_bound = max(line.max_error_over_bound or 0.0, found.ratio)
    ratio = line.max_error_over_bound or 0.0
    line.compared = "; ".join(words) or (
        f"with PyTorch in f64: at most {ratio:.2f} of the error allowed, {FACTOR} times eager "
        f"PyTorch's and a rounding; inputs {' and '.join(DRAWS)}"
    )
    line.execute_seconds = time.perf_counter() - started
    return line


def _draw(part: torch.fx.GraphModule, number: int, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    given = []
    for node in part.graph.nodes:
        if node.op == "placeholder":
            value = node.meta["val"]
            draw = torch.randn if number == 0 else torch.rand
            if value.dtype.is_floating_point:
                made = draw(tuple(value.shape), generator=generator)
            else:
                made = torch.randint(0, 2, tuple(value.shape), generator=generator)
            given.append(made.to(value.dtype))
    return given


def _stable(part: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The part with equal elements sorted in their order, which PyTorch leaves open."""
    stable = copy.deepcopy(part)
    for node in stable.graph.nodes:
        if node.target is torch.ops.aten.sort.default:
            node.target = torch.ops.aten.sort.stable
            node.kwargs = {**node.kwargs, "stable": True}
        elif node.target is torch.ops.aten.topk.default:
            node.target = _topk
    stable.recompile()
    return stable


def _topk(
    x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


def _f64(value: object) -> object:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def _wide(part: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The part with every floating type f64."""
    wide = copy.deepcopy(part).double()

    def widened(value: object) -> object:
        floating = isinstance(value, torch.dtype) and value.is_floating_point
        return torch.float64 if floating else value

    for node in wide.graph.nodes:
        node.args = tree_map(widened, node.args)
        node.kwargs = tree_map(widened, node.kwargs)
    wide.recompile()
    return wide


def _linalg(mlir: str, given: Sequence[torch.Tensor], line: Line) -> list[torch.Tensor]:
    with mlir_context() as context:
        module = inlined(load_module(mlir, context))
        outputs = signature_of(module).outputs
        name = find_program(module).name
        outcome = run(module, name, [array_of(each) for each in given], outputs)
    line.incomplete = list(outcome.incomplete)
    return [tensor_of(each) for each in outcome.outputs] if not outcome.incomplete else []


@dataclass(frozen=True)
class Compared:
    """A result beside PyTorch's.

    failure: what is wrong, if anything; ratio: the error over that allowed
    error, eager: the largest error against f64, over the largest result, and PyTorch's own
    """

    failure: str = ""
    ratio: float = 0.0
    error: float = 0.0
    eager: float = 0.0


def compared(
    mine: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor, more: float = 0.0
) -> Compared:
    """`mine` beside eager PyTorch's result and that in f64.

    more: of the largest result, what `mine` may be off besides 1.5 times PyTorch's own error and a
    rounding
    """
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        words = [f"{list(each.shape)} of {str(each.dtype)[6:]}" for each in (theirs, mine)]
        return Compared(f"expected {words[0]}, got {words[1]}", float("inf"))
    if not theirs.is_floating_point():
        sure = theirs == exact.to(theirs.dtype)
        wrong = int(((mine != theirs) & sure).sum())
        return Compared(
            f"{wrong} of {mine.numel()} elements differ from PyTorch's" if wrong else ""
        )
    a, b = mine.double(), theirs.double()
    finite = b.isfinite()
    if not bool(((a == b) | (a.isnan() & b.isnan()))[~finite].all() & a[finite].isfinite().all()):
        return Compared("NaN and infinities are in other places than PyTorch's", float("inf"))
    if not bool(finite.any()):
        return Compared()
    right = exact.double()[finite]
    scale = float(right.abs().max())
    error, eager = (float((each[finite] - right).abs().max()) for each in (a, b))
    allowed = FACTOR * eager + (torch.finfo(theirs.dtype).eps + more) * scale
    ratio = error / allowed if allowed else (float("inf") if error else 0.0)
    failure = ""
    if ratio > 1:
        failure = (
            f"the largest error against f64 is {error:.2e} of {scale:.2e}, eager PyTorch's "
            f"{eager:.2e}"
        )
    return Compared(failure, ratio, *(each / scale if scale else each for each in (error, eager)))
