"""The import as a checked step: a part in PyTorch beside the `linalg` that was made of it."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence

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
    for number, kind in enumerate(DRAWS):
        given = _draw(part, number, seed)
        own = [each.detach() for each in tree_leaves(part(*copy.deepcopy(given)))]
        wide = _wide(part)(*(_f64(each) for each in given))
        got = _linalg(mlir, given, line)
        if line.incomplete:
            line.verdict = "incomplete"
            break
        for result, (mine, theirs, exact) in enumerate(
            zip(got, own, map(torch.Tensor.detach, tree_leaves(wide)), strict=True)
        ):
            failure, ratio = _compare(mine, theirs, exact)
            if failure:
                line.verdict = "different"
                words.append(f"result {result} of inputs {kind}: {failure}")
            line.max_error_over_bound = max(line.max_error_over_bound or 0.0, ratio)
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


def _compare(mine: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor) -> tuple[str, float]:
    """What is wrong, if anything, and the error over that allowed."""
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        words = [f"{list(each.shape)} of {str(each.dtype)[6:]}" for each in (theirs, mine)]
        return f"expected {words[0]}, got {words[1]}", float("inf")
    if not theirs.is_floating_point():
        sure = theirs == exact.to(theirs.dtype)
        wrong = int(((mine != theirs) & sure).sum())
        return (f"{wrong} of {mine.numel()} elements differ from PyTorch's" if wrong else ""), 0.0
    a, b = mine.double(), theirs.double()
    finite = b.isfinite()
    if not bool(((a == b) | (a.isnan() & b.isnan()))[~finite].all() & a[finite].isfinite().all()):
        return "NaN and infinities are in other places than PyTorch's", float("inf")
    if not bool(finite.any()):
        return "", 0.0
    right = exact.double()[finite]
    scale = float(right.abs().max())
    error, eager = (float((each[finite] - right).abs().max()) for each in (a, b))
    allowed = FACTOR * eager + torch.finfo(theirs.dtype).eps * scale
    ratio = error / allowed if allowed else (float("inf") if error else 0.0)
    if ratio > 1:
        return (
            f"the largest error against f64 is {error:.2e} of {scale:.2e}, eager PyTorch's "
            f"{eager:.2e}"
        ), ratio
    return "", ratio
