"""The import as a checked step: a model where it came from beside the `linalg` made of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from tcir.errors import Error
from tcir.interp import OutputSpec
from tcir.interp.tensor import run
from tcir.interp.types import Array
from tcir.passes.emit.calls import inlined
from tcir.program.programs import find_program
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Line

FACTOR = 1.5
"""The error against f64 that is allowed, over the reference's own; beside it `ROUNDINGS`."""
ROUNDINGS = {"float32": 128, "float64": 128}
"""Allowed error in roundings of the largest result; 1 for other types. `linalg` leaves the order
of sums open, and sequential sums of some thousand f32 numbers lose several bits."""
DRAWS = ("N(0, 1)", "[0, 1)")
"""Inputs that cancel, and inputs whose sums grow."""


@dataclass(frozen=True)
class Source:
    """Origin of a program.

    name:       name of the report's line, such as "ONNX → linalg"
    reference:  library that computes the reference
    exact, own: functions from arrays of the program's types to results, in f64, and in the types of
                the model with sums in f32
    roundings:  allowed error besides, by type, in roundings of the largest result; 1 for others
    """

    name: str
    reference: str
    exact: Callable[[Sequence[Array]], list[Array]]
    own: Callable[[Sequence[Array]], list[Array]]
    roundings: Mapping[str, int] = field(default_factory=lambda: ROUNDINGS)


def checked(source: Source, mlir: str, seed: int = 0) -> Line:
    """The line of a report: the results of `mlir` against those of `source` in f64.

    An error of more than 1.5 times the reference's own, and `ROUNDINGS` of the largest result, is
    `different`; so are NaN and infinities in other places. A reference that cannot run the model is
    `incomplete`.
    """
    started = time.perf_counter()
    line = Line(0, source.name, level="tensor", verdict="within bound")
    with mlir_context() as context:
        module = inlined(load_module(mlir, context))
        signature, name = signature_of(module), find_program(module).name
        words: list[str] = []
        for kind in DRAWS:
            given = draw(signature.inputs, kind, seed)
            outcome = run(module, name, given, signature.outputs)
            if outcome.incomplete:
                line.incomplete = list(outcome.incomplete)
                break
            try:
                exact, own = source.exact(given), source.own(given)
            except Error as error:
                line.incomplete = [f"{source.reference}: {error}"]
                break
            line.max_error_over_bound = max(
                line.max_error_over_bound or 0.0,
                _all(source, (outcome.outputs, own, exact), f"inputs {kind}", words),
            )
    ratio = line.max_error_over_bound or 0.0
    line.verdict = "incomplete" if line.incomplete else "different" if words else "within bound"
    line.compared = "; ".join(words) or (
        f"with {source.reference} in f64: at most {ratio:.2f} of the error allowed, {FACTOR} times "
        f"its own and roundings; inputs {' and '.join(DRAWS)}"
    )
    line.execute_seconds = time.perf_counter() - started
    return line


def draw(inputs: Sequence[OutputSpec], kind: str, seed: int) -> list[Array]:
    """Arrays for a program's inputs: floating numbers of `kind`, integers of 0 and 1."""
    generator = np.random.default_rng(seed)
    given = []
    for spec in inputs:
        shape, dtype = tuple(spec.shape), np.dtype(spec.dtype)
        made: Array = generator.integers(0, 2, shape)
        if is_floating(dtype):
            made = (generator.standard_normal if kind == DRAWS[0] else generator.random)(shape)
        given.append(np.asarray(made).astype(dtype))
    return given


def is_floating(dtype: np.dtype) -> bool:
    """Whether numbers of the type are, ml_dtypes' included."""
    try:
        _rounding(dtype)
    except ValueError:
        return False
    return True


def _rounding(dtype: np.dtype) -> float:
    """The relative distance of neighbouring numbers; ValueError for a type of integers."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _all(
    source: Source, results: tuple[Sequence[Array], ...], inputs: str, words: list[str]
) -> float:
    """The largest error over that allowed; adds to `words` what is wrong."""
    largest = 0.0
    got, own, exact = results
    for number, (mine, theirs, right) in enumerate(zip(got, own, exact, strict=True)):
        kind = theirs.dtype
        more = (
            (source.roundings.get(kind.name, 1) - 1) * _rounding(kind) if is_floating(kind) else 0
        )
        found = compare(mine, theirs, right, source.reference, more)
        if found.failure:
            words.append(f"result {number} of {inputs}: {found.failure}")
        largest = max(largest, found.ratio)
    return largest


@dataclass(frozen=True)
class Compared:
    """A result beside the reference's.

    failure: what is wrong, if anything; ratio: the error over that allowed
    error, own: the largest error against f64, over the largest result, and the reference's
    """

    failure: str = ""
    ratio: float = 0.0
    error: float = 0.0
    own: float = 0.0


def compare(
    mine: Array, theirs: Array, exact: Array, reference: str, more: float = 0.0
) -> Compared:
    """A result beside that of the reference in its own types (`theirs`) and in f64 (`exact`).

    more: of the largest result, what `mine` may be off besides `FACTOR` times the reference's own
    error and a rounding
    """
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        words = [f"{list(each.shape)} of {each.dtype}" for each in (theirs, mine)]
        return Compared(f"expected {words[0]}, got {words[1]}", float("inf"))
    if not is_floating(theirs.dtype):
        sure = theirs == exact.astype(theirs.dtype)
        wrong = int(((mine != theirs) & sure).sum())
        return Compared(
            f"{wrong} of {mine.size} elements differ from {reference}'s" if wrong else ""
        )
    a, b, right = (each.astype(np.float64) for each in (mine, theirs, exact))
    finite = np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not (same[~finite].all() and np.isfinite(a[finite]).all()):
        return Compared(f"NaN and infinities are in other places than {reference}'s", float("inf"))
    if not finite.any():
        return Compared()
    scale = float(np.abs(right[finite]).max())
    error, own = (float(np.abs(each[finite] - right[finite]).max()) for each in (a, b))
    allowed = FACTOR * own + (_rounding(theirs.dtype) + more) * scale
    ratio = error / allowed if allowed else (float("inf") if error else 0.0)
    failure = ""
    if ratio > 1:
        failure = (
            f"the largest error against f64 is {error:.2e} of {scale:.2e}, {reference}'s {own:.2e}"
        )
    return Compared(failure, ratio, *(each / scale if scale else each for each in (error, own)))
