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


@dataclass(frozen=True)
class Executed:
    """Results of a program for some arguments. kind: words for these"""

    kind: str
    given: Sequence[Array]
    results: Sequence[Array]


Results = tuple[str, Sequence[Array], Sequence[Array], Sequence[Array]]
"""Words for the arguments; the program's results, the reference's own, and those in f64."""


def executed(mlir: str, given: Sequence[Array]) -> list[Array]:
    """Results of a program in numpy. `Error` if an op has no rule."""
    with mlir_context() as context:
        module = inlined(load_module(mlir, context))
        signature = signature_of(module)
        inputs = [signless(a, spec.dtype) for a, spec in zip(given, signature.inputs, strict=True)]
        outcome = run(module, find_program(module).name, inputs, signature.outputs)
    if outcome.incomplete:
        raise Error("; ".join(outcome.incomplete))
    return list(outcome.outputs)


def signless(array: Array, dtype: np.dtype) -> Array:
    """The array in C order; integers are viewed with the signedness that `dtype` has."""
    array = np.asarray(array, order="C")
    alike = array.dtype != dtype and array.dtype.kind in "iu" and dtype.kind in "iu"
    return array.view(dtype) if alike and array.itemsize == dtype.itemsize else array


def checked(
    source: ProgramOrigin, mlir: str, seed: int = 0, known: Sequence[Executed] = ()
) -> Line:
    """The line of a report that compares the results of `mlir` with those of `source` in f64.

    The line is `different` if the error exceeds 1.5 times the reference's own plus `ROUNDINGS` of
    the largest result, or if NaN and infinities are in other elements. It is `incomplete` if the
    reference cannot run the model, or a result has a finite element for no arguments.

    known: results that `mlir` has for other arguments than the drawn ones
    """
    started = time.perf_counter()
    line = Line(0, source.name, level="tensor")
    with mlir_context() as context:
        inputs = signature_of(inlined(load_module(mlir, context))).inputs
    compared: list[Results] = []
    try:
        drawn = ((kind, draw(inputs, kind, seed)) for kind in DRAWS)
        for each in (*(Executed(*pair, executed(mlir, pair[1])) for pair in drawn), *known):
            try:
                own, exact = source.own(each.given), source.exact(each.given)
            except Error as error:
                raise Error(f"{source.reference}: {error}") from error
            compared.append((each.kind, each.results, own, exact))
    except Error as error:
        line.incomplete = [str(error)]
    judge(line, source.roundings, source.reference, compared)
    line.execute_seconds = time.perf_counter() - started
    return line


def judge(
    line: Line, roundings: Mapping[str, int], reference: str, compared: Sequence[Results]
) -> None:
    """Sets the verdict of a line by the results for some arguments."""
    words: list[str] = []
    finite: dict[int, bool] = {}
    ratio = 0.0
    for kind, got, own, exact in compared:
        for number, (mine, theirs, right) in enumerate(zip(got, own, exact, strict=True)):
            more = roundings.get(theirs.dtype.name, 1) - 1
            extra = more * _rounding(theirs.dtype) if is_floating(theirs.dtype) else 0.0
            found = compare(mine, theirs, right, reference, extra)
            if found.failure:
                words.append(f"result {number} of inputs {kind}: {found.failure}")
            finite[number] = finite.get(number, False) or found.finite
            ratio = max(ratio, found.ratio)
    if not line.incomplete:
        line.incomplete = [
            f"result {number}: {reference} has no finite element for any of the inputs"
            for number, some in finite.items()
            if not some
        ]
    line.max_error_over_bound = ratio
    line.verdict = "different" if words else "incomplete" if line.incomplete else "within bound"
    kinds = list(dict.fromkeys(each[0] for each in compared))
    line.compared = "; ".join(words) or (
        f"with {reference} in f64: at most {ratio:.2f} of the error allowed, {FACTOR} times "
        f"its own and roundings; inputs {' and '.join(kinds)}"
    )


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
            if kind == DRAWS[1] and len(shape) == 1:
                # Small variances, beside which the summand of a norm's root counts.
                made = np.where(generator.random(shape) < 1 / 8, made * 2.0**-16, made)
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


@dataclass(frozen=True)
class Compared:
    """A result compared with the reference's.

    failure: what is wrong; "" if nothing is
    ratio:   the error over the allowed error
    error:   the largest error against f64, over the largest result
    own: the reference's largest error against f64, over the largest result
    finite: whether the reference has a finite element, or no element at all
    """

    failure: str = ""
    ratio: float = 0.0
    error: float = 0.0
    own: float = 0.0
    finite: bool = True


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
        return Compared(finite=not finite.size)
    scale = float(np.abs(right[finite]).max())
    error, own = (float(np.abs(each[finite] - right[finite]).max()) for each in (a, b))
    allowed = FACTOR * own + (_rounding(theirs.dtype) + more) * scale
    ratio = error / allowed if allowed else (float("inf") if error else 0.0)
    failure = ""
    if ratio > 1:
        failure = (
            f"the largest error against f64 is {error:.2e} of {scale:.2e}, {reference}'s {own:.2e}"
        )
    return Compared(failure, ratio, error / (scale or 1.0), own / (scale or 1.0))
