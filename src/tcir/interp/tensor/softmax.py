"""The rule of ``linalg.softmax``, which executes the ops into which it decomposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from tcir._mlir import ir
from tcir.interp.tensor.arith import FLOAT
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.math import function
from tcir.interp.types import Array

T = TypeVar("T")


def softmax(x: T, count: int, take: Callable[[T, int], T], compute: Callable[..., T]) -> T:
    """Computes a softmax: the maximum, the exponentials of the differences from the maximum, the
    sum of these in order, and the quotients.

    take:    returns element `n` of the `count` elements along the dimension
    compute: applies an op, given by its name, to operands
    """
    if not count:
        return x
    most = take(x, 0)
    for number in range(1, count):
        most = compute("arith.maxnumf", take(x, number), most)
    powers = compute("math.exp", compute("arith.subf", x, most))
    total = take(powers, 0)
    for number in range(1, count):
        total = compute("arith.addf", take(powers, number), total)
    return compute("arith.divf", powers, total)


def computed(name: str, *operands: Array) -> Array:
    """Applies an op of ``arith`` or ``math``, given by its name, to numbers."""
    with np.errstate(all="ignore"):
        return FLOAT[name](*operands) if name in FLOAT else function(name, *operands)


@evaluate("linalg.softmax")
def linalg_softmax(_: Interpreter, op: ir.OpView, x: Array, __: Array) -> Sequence[Array]:
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    return [softmax(x, x.shape[dim], lambda a, n: np.take(a, [n], dim), computed)]
