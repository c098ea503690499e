"""Rules of `scf` ops on tensors, as tiling creates them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from tcir._mlir import ir
from tcir.dialect.attributes import is_buffer
from tcir.dialect.walk import nested
from tcir.errors import IncompleteError, InputError
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.tensor import inserted, mixed
from tcir.interp.types import Array


@evaluate("scf.yield")
def scf_yield(_: Interpreter, __: ir.OpView, *operands: Array) -> Sequence[Array]:
    return operands


@evaluate("scf.for")
def scf_for(
    interpreter: Interpreter,
    op: ir.OpView,
    lower: Array,
    upper: Array,
    step: Array,
    *carried: Array,
) -> Sequence[Array]:
    if step <= 0 or "unsignedCmp" in op.operation.attributes:
        raise IncompleteError(f"expected signed bounds and a positive step, got step {step}")
    values: Sequence[Array] = carried
    for number in range(int(lower), int(upper), int(step)):
        values = interpreter.region(op, [lower.dtype.type(number), *values])
    return values


@evaluate("scf.if")
def scf_if(interpreter: Interpreter, op: ir.OpView, condition: Array) -> Sequence[Array]:
    number = 0 if condition else 1
    if not len(op.operation.regions[number].blocks):
        return ()
    return interpreter.region(op, (), number)


@evaluate("scf.forall")
def scf_forall(interpreter: Interpreter, op: ir.OpView, *_: Array) -> Sequence[Array]:
    """Runs the iterations in ascending and in descending order. Different results are an error,
    because the iterations of `scf.forall` are unordered.
    """
    if _on_buffers(op):
        raise IncompleteError("scf.forall on buffers: iterations are independent only on tensors")
    values = interpreter.values
    lower, upper, step = (
        mixed(op, f"static{name}", operands, values)
        for name, operands in (
            ("LowerBound", op.dynamicLowerBound),
            ("UpperBound", op.dynamicUpperBound),
            ("Step", op.dynamicStep),
        )
    )
    initial: Sequence[Array] = [values[each] for each in op.outputs]
    iterations = list(product(*map(range, lower, upper, step)))
    forth = back = initial
    for first, last in zip(iterations, reversed(iterations), strict=True):
        forth = interpreter.region(op, [*np.array(first, np.int64), *forth])
        back = interpreter.region(op, [*np.array(last, np.int64), *back])
    if any(one.tobytes() != other.tobytes() for one, other in zip(forth, back, strict=True)):
        raise InputError(
            "scf.forall: the result depends on the order of iterations; each must insert into "
            "elements of its own and read none that another inserts into"
        )
    return forth


def _on_buffers(op: ir.OpView) -> bool:
    return any(is_buffer(v) for each in nested(op.operation) for v in each.operation.operands)


@evaluate("scf.forall.in_parallel")
def in_parallel(interpreter: Interpreter, op: ir.OpView) -> Sequence[Array]:
    """Returns the loop's outputs after the insertions of one iteration."""
    loop = op.operation.parent
    arguments = (
        list(loop.regions[0].blocks[0].arguments)[-len(loop.results) :] if loop.results else []
    )
    outputs = {each: interpreter.values[each] for each in arguments}
    for insert in op.operation.regions[0].blocks[0].operations:
        source, target = insert.operands[0], insert.operands[1]
        outputs[target] = inserted(interpreter, insert, interpreter.values[source], outputs[target])
    return list(outputs.values())


@evaluate("tensor.parallel_insert_slice")
def parallel_insert_slice(_: Interpreter, __: ir.OpView, *___: Array) -> Sequence[Array]:
    raise IncompleteError("expected tensor.parallel_insert_slice inside scf.forall.in_parallel")
