"""Executes programs on whole tensors with numpy; the results are the reference for every lower
level.

There is one file per dialect. `evaluate` is the table of rules and takes rules from user code::

    from tcir.interp.tensor import evaluate

    @evaluate("mydialect.relu")
    def relu(interpreter, op, x):
        return [np.maximum(x, 0)]
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tcir._mlir import ir
from tcir.dialect.attributes import is_buffer, is_fill_only
from tcir.errors import IncompleteError, InputError, format_location
from tcir.interp import Outcome, OutputSpec
from tcir.interp.rules import site_of
from tcir.interp.tensor.func import function_named
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of, poison, shape_of
from tcir.rule_files import load_folder
from tcir.run_options import DEFAULT_OPTIONS, RunOptions

__all__ = ["Interpreter", "evaluate", "run"]


def run(
    module: ir.Module,
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    options: RunOptions = DEFAULT_OPTIONS,
    unread: Collection[int] = (),
) -> Outcome:
    """Runs `func.func @name`; see `tcir.interp.Executor`. The execution options have no effect at
    this level.

    unread: positions of arguments that were not inputs before the passes ran, because bufferisation
    turned them into buffers of results. In a function without results, the memrefs after its inputs
    are its results.
    """
    function = function_named(module.operation, name)
    missing = evaluate.missing(function)
    if missing:
        return Outcome([], "tensor", incomplete=missing)
    block = function.regions[0].blocks[0]
    arguments = _arguments(block, inputs, outputs, unread, name)
    interpreter = Interpreter()
    try:
        # NaN, infinities and overflow are results like others.
        with module.context, np.errstate(all="ignore"):
            results = interpreter.block(block, arguments, {}) or arguments[-len(outputs) :]
    except IncompleteError as error:
        where = site_of(interpreter.current) + ": " if interpreter.current is not None else ""
        return Outcome([], "tensor", incomplete=[f"{where}{error}"])
    except InputError as error:
        where = format_location(interpreter.current.location) if interpreter.current else ""
        raise InputError(f"{where}{error}") from error
    for result, spec in zip(results, outputs, strict=True):
        if result.shape != tuple(spec.shape) or result.dtype != spec.dtype:
            raise InputError(
                f"@{name}: expected a result {spec.dtype}{list(spec.shape)}, "
                f"got {result.dtype}{list(result.shape)}"
            )
    return Outcome([np.asarray(r, order="C") for r in results], "tensor")


def _arguments(
    block: ir.Block,
    inputs: Sequence[Array],
    outputs: Sequence[OutputSpec],
    unread: Collection[int],
    name: str,
) -> list[Array]:
    """Returns the arrays of a function's arguments: inputs (copied for memrefs), and undefined
    ones."""
    undefined = {a.arg_number for a in block.arguments if is_fill_only(a)}
    if len(block.arguments) - len(undefined) > len(inputs):
        undefined |= set(unread)
    if not list(block)[-1].operands and is_buffer(block.arguments[-1]):
        undefined |= {len(block.arguments) - 1 - n for n in range(len(outputs))}
    given = iter(inputs)
    arguments: list[Array] = []
    for argument in block.arguments:
        shape, dtype = shape_of(argument.type), dtype_of(argument.type)
        if argument.arg_number in undefined:
            arguments.append(poison(shape, dtype))
            continue
        array = next(given, None)
        if array is None or array.shape != shape or array.dtype != dtype:
            got = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
            raise InputError(
                f"@{name} argument {argument.arg_number}: expected {dtype}{list(shape)}, got {got}"
            )
        arguments.append(array.copy() if is_buffer(argument) else array)
    if next(given, None) is not None:
        raise InputError(f"@{name}: expected {len(arguments)} inputs, got {len(inputs)}")
    return arguments


load_folder(__name__)
