"""Checks an import: compares a model in its framework with the imported `linalg` program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tcir.errors import Error
from tcir.interp import OutputSpec
from tcir.interp.tensor import run
from tcir.interp.types import Array
from tcir.passes.emit.calls import inlined
from tcir.program.programs import find_program
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.validation.against_f64 import (
    FACTOR,
    ROUNDINGS,
    compare,
    is_floating,
    more_roundings,
)
from tcir.validation.report import Line

DRAWS = ("N(0, 1)", "[0, 1)")
"""Distributions of the inputs: one whose sums cancel, and one whose sums grow."""


@dataclass(frozen=True)
class ProgramOrigin:
    """The model from which a program was imported.

    name:       name of the report's line, such as "ONNX → linalg"
    reference:  library that computes the reference
    exact, own: functions from arrays of the program's types to results; `exact` computes in f64,
        `own` in the types of the model with sums in f32
    roundings:  allowed error beyond that of the reference, by type, in roundings of the largest
                result; 1 for types that are not listed
    """

    name: str
    reference: str
    exact: Callable[[Sequence[Array]], list[Array]]
    own: Callable[[Sequence[Array]], list[Array]]
    roundings: Mapping[str, int] = field(default_factory=lambda: ROUNDINGS)


@dataclass(frozen=True)
class Executed:
    """Results of a program for some arguments. kind: description of the arguments, for messages."""

    kind: str
    given: Sequence[Array]
    results: Sequence[Array]


Results = tuple[str, Sequence[Array], Sequence[Array], Sequence[Array]]
"""Words for the arguments; the program's results, the reference's own, and those in f64."""


def executed(mlir: str, given: Sequence[Array]) -> list[Array]:
    """Executes a program in numpy; returns its results. Raises `Error` if there is no rule for an
    op.
    """
    with mlir_context() as context:
        module = inlined(load_module(mlir, context))
        signature = signature_of(module)
        inputs = [signless(a, spec.dtype) for a, spec in zip(given, signature.inputs, strict=True)]
        outcome = run(module, find_program(module).name, inputs, signature.outputs)
    if outcome.incomplete:
        raise Error("; ".join(outcome.incomplete))
    return list(outcome.outputs)


def signless(array: Array, dtype: np.dtype) -> Array:
    """Returns the array in C order; integers are viewed as signed or unsigned, as `dtype` is."""
    array = np.asarray(array, order="C")
    alike = array.dtype != dtype and array.dtype.kind in "iu" and dtype.kind in "iu"
    return array.view(dtype) if alike and array.itemsize == dtype.itemsize else array


def checked(
    source: ProgramOrigin, mlir: str, seed: int = 0, known: Sequence[Executed] = ()
) -> Line:
    """Returns the line of a report that compares the results of `mlir` with those of `source` in
    f64.

    The line is `different` if the error exceeds 1.5 times the error of the reference in the model's
    own types plus `ROUNDINGS` of the largest result, or if NaN and infinities are in other elements
    than in the reference. It is `incomplete` if the reference cannot run the model, or if a result
    of the reference has no finite element for any of the arguments.

    known: results of `mlir` for arguments other than the ones that are drawn
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
    """Sets the verdict of a line from the results for some arguments."""
    words: list[str] = []
    finite: dict[int, bool] = {}
    ratio = 0.0
    for kind, got, own, exact in compared:
        for number, (mine, theirs, right) in enumerate(zip(got, own, exact, strict=True)):
            more = more_roundings(theirs.dtype, roundings)
            found = compare(mine, theirs, right, reference, more)
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
