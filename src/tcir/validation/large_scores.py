"""Inputs for which a softmax must subtract the row's maximum, because exponentials are infinite
otherwise.

On moderate inputs scores are near 1, and a softmax that does not subtract the maximum has the same
results. Larger matrices give larger scores. They also saturate the softmax: roundings then decide
between keys, so the sizes of errors show little. These inputs are therefore only used to compare
where NaN and infinities are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from tcir.dialect.upstream import MAXIMA, RESHAPES, names
from tcir.dialect.walk import nested, walk
from tcir.interp.types import Array, is_float
from tcir.validation.against_f64 import has_numbers
from tcir.validation.draws import Bound, Draw
from tcir.validation.raised import copied

if TYPE_CHECKING:
    from tcir._mlir import ir

GAINS = tuple(2 ** (n / 2) for n in range(1, 11))
"""Factors of the matrices, until all softmaxes have such scores."""
WORDS = "matrices times {:.3g}: without a softmax's maximum, results are NaN"
_SAME = names(*RESHAPES, "linalg.broadcast")
"""Ops that only change the shape of maxima."""
LARGEST = float(np.finfo(np.float64).max)


def with_maxima(module: ir.Module) -> tuple[ir.Module, int]:
    """Returns a copy of a program on tensors that also returns the maxima that its softmaxes
    subtract, and the number of these results.
    """
    from tcir._mlir import ir

    copy = copied(module)
    ops = [each.operation for each in walk(copy.operation)]
    maxima = [value for op in ops for value in _subtracted(op)]
    if not maxima:
        return copy, 0
    (function,) = (op for op in ops if op.name == "func.func")
    ending = list(function.regions[0].blocks[0])[-1].operation
    results = [*ending.operands, *maxima]
    with copy.context, ending.location, ir.InsertionPoint(ending):
        ir.Operation.create("func.return", operands=results)
        inputs = function.attributes["function_type"].value.inputs
        kind = ir.FunctionType.get(inputs, [value.type for value in results])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
    ending.erase()
    return copy, len(maxima)


def _subtracted(op: ir.Operation) -> Iterator[ir.Value]:
    """The maxima of rows among an op's results that other ops subtract."""
    if op.name == "linalg.softmax":
        yield op.operands[0]  # scores, whose maximum is the same
    elif op.name in ("linalg.generic", "linalg.reduce") and _reduces(op):
        ending = list(op.regions[0].blocks[0])[-1].operation
        for value, result in zip(ending.operands, op.results, strict=True):
            made = value.owner
            if getattr(made, "name", "") in MAXIMA and _is_subtracted(result):
                yield result


def _reduces(op: ir.Operation) -> bool:
    return any(value.type.rank < op.operands[0].type.rank for value in op.results)


def _is_subtracted(value: ir.Value) -> bool:
    """Whether an op on tensors subtracts the value, or its copy in another shape."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in _SAME:
            if any(map(_is_subtracted, user.results)):
                return True
        elif user.name == "linalg.sub":
            return bool(use.operand_number == 1)
        elif user.name == "linalg.generic":
            own = user.regions[0].blocks[0].arguments[use.operand_number]
            minus = (each for each in nested(user) if each.operation.name == "arith.subf")
            if any(each.operation.operands[1] == own for each in minus):
                return True
    return False


def large_scores(
    module: ir.Module,
    run: Callable[[ir.Module, Sequence[Array]], list[Array]],
    inputs: Callable[[float], list[Array]],
) -> Draw | str | None:
    """Returns inputs that give large scores in every softmax of a program, or the reason why there
    are none; None for a program without a softmax.

    run: executes a program on tensors; inputs: returns inputs whose matrices are multiplied by a
    given factor
    """
    copy, count = with_maxima(module)
    if not count:
        return None
    most, reached = 0, 0
    for gain in GAINS:
        given = inputs(gain)
        found = run(copy, given)
        results, maxima = found[:-count], found[-count:]
        if not has_numbers(results):
            break
        reached = sum(map(_overflows, maxima))
        most = max(most, reached)
        if reached == count:
            free = [_anywhere(each) for each in results]
            return Draw(
                given, WORDS.format(gain), results, Bound(free, free, []), exponentials=True
            )
    return f"the exponentials of {count - most} of {count} softmaxes are finite on all inputs tried"


def _overflows(maxima: Array) -> bool:
    """Whether the exponential of a maximum is infinite in its type."""
    largest = float(ml_dtypes.finfo(maxima.dtype).max)  # type: ignore[no-untyped-call]
    return bool(maxima.size and np.nanmax(maxima.astype(np.float64)) > np.log(largest))


def _anywhere(result: Array) -> Array:
    """A bound that allows any finite number where the result is one; integers are free."""
    return np.full(result.shape, LARGEST if is_float(result.dtype) else np.inf)
