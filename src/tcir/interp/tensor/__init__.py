"""Executes whole-tensor programs with numpy: the reference every lower level is compared with.

One file per dialect; `evaluate` is the table and takes rules from user code::

    from tcir.interp.tensor import evaluate

    @evaluate("mydialect.relu")
    def relu(interpreter, op, x):
        return [np.maximum(x, 0)]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcir._mlir import ir
from tcir.dialect.attributes import is_fill_only
from tcir.errors import IncompleteError, InputError
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
) -> Outcome:
    """Runs `func.func @name`; see `tcir.interp.Executor`. The options change nothing."""
    function = function_named(module.operation, name)
    missing = evaluate.missing(function)
    if missing:
        return Outcome([], "tensor", incomplete=missing)
    block = function.regions[0].blocks[0]
    given = iter(inputs)
    arguments: list[Array] = []
    for argument in block.arguments:
        shape, dtype = shape_of(argument.type), dtype_of(argument.type)
        if is_fill_only(argument):
            arguments.append(poison(shape, dtype))
            continue
        array = next(given, None)
        if array is None or array.shape != shape or array.dtype != dtype:
            got = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
            raise InputError(
                f"@{name} argument {argument.arg_number}: expected {dtype}{list(shape)}, got {got}"
            )
        arguments.append(array)
    if next(given, None) is not None:
        raise InputError(f"@{name}: expected {len(arguments)} inputs, got {len(inputs)}")
    interpreter = Interpreter()
    try:
        # NaN, infinities and overflow are results like others.
        with module.context, np.errstate(all="ignore"):
            results = interpreter.block(block, arguments, {})
    except IncompleteError as error:
        where = site_of(interpreter.current) + ": " if interpreter.current is not None else ""
        return Outcome([], "tensor", incomplete=[f"{where}{error}"])
    for result, spec in zip(results, outputs, strict=True):
        if result.shape != tuple(spec.shape) or result.dtype != spec.dtype:
            raise InputError(
                f"@{name}: expected a result {spec.dtype}{list(spec.shape)}, "
                f"got {result.dtype}{list(result.shape)}"
            )
    return Outcome([np.asarray(r, order="C") for r in results], "tensor")


load_folder(__name__)
