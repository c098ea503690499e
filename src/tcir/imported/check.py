"""The import as a checked step: compares a model in its framework with the imported `linalg`."""

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
"""Allowed error against f64 as a multiple of the reference's own error; `ROUNDINGS` are added."""
ROUNDINGS = {"float32": 128, "float64": 128}
"""Additional allowed error, by type, in roundings of the largest result; 1 for other types.
`linalg` leaves the order of sums open, and sequential sums of some thousand f32 numbers lose
several bits."""
DRAWS = ("N(0, 1)", "[0, 1)")
"""Distributions of the inputs: one whose sums cancel, and one whose sums grow."""


@dataclass(frozen=True)
class ProgramOrigin:
    """Origin of a program.

    name:       name of the report's line, such as "ONNX → linalg"
    reference:  library that computes the reference
    exact, own: functions from arrays of the program's types to results; `exact` computes in f64,
                `own` in the types of the model with sums in f32
    roundings:  additional allowed error, by type, in roundings of the largest result; 1 for others
    """

    name: str
    reference: str
    exact: Callable[[Sequence[Array]], list[Array]]
    own: Callable[[Sequence[Array]], list[Array]]
    roundings: Mapping[str, int] = field(default_factory=lambda: ROUNDINGS)


def checked(source: ProgramOrigin, mlir: str, seed: int = 0) -> Line:
    """The line of a report that compares the results of `mlir` with those of `source` in f64.

    The line is `different` if the error exceeds 1.5 times the reference's own plus `ROUNDINGS` of
    the largest result, or if NaN and infinities are in other elements. It is `incomplete` if the
    reference cannot run the model.
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
    """Random arrays for a program's inputs: floats from the distribution `kind` (`DRAWS`),
    integers 0 and 1."""
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
    """Whether the type is floating-point, including ml_dtypes' types."""
    try:
        _rounding(dtype)
    except ValueError:
        return False
    return True


def _rounding(dtype: np.dtype) -> float:
    """Relative distance of neighbouring numbers (epsilon). ValueError for integer types."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _all(
    source: ProgramOrigin, results: tuple[Sequence[Array], ...], inputs: str, words: list[str]
) -> float:
    """The largest ratio of error to allowed error; appends a line to `words` for each wrong
    result."""
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
    """A result compared with the reference's.

    failure: what is wrong; "" if nothing is
    ratio:   the error over the allowed error
    error:   the largest error against f64, over the largest result
    own: the reference's largest error against f64, over the largest result
    """

    failure: str = ""
    ratio: float = 0.0
    error: float = 0.0
    own: float = 0.0


def compare(
    mine: Array, theirs: Array, exact: Array, reference: str, more: float = 0.0
) -> Compared:
    """Compares a result with that of the reference in its own types (`theirs`) and in f64
    (`exact`).

    more: allowed error of `mine`, as a fraction of the largest result, in addition to `FACTOR`
          times the reference's own error and one rounding
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
        return Compared(f"NaN and infinities are not where {reference} has them", float("inf"))
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
