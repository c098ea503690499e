"""Places boundary values in the addends of sums, for programs whose sums cannot be chosen.

Sums cannot be chosen if their factors are constants, or sums of earlier layers. A bias can be
chosen: the sums are made 0, and the bias is the wanted value. If another product follows, its other
factor has a single 1 in each column, so that its sums are exact as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp.types import Array
from tcir.program.access import product_of
from tcir.program.boundary.targets import boundaries_of, drawn_of
from tcir.program.signature import Signature

if TYPE_CHECKING:
    from tcir._mlir import ir

FOLLOWED = 2.0**14
"""Largest magnitude of sums that are multiplied again, so that none becomes infinite."""


def added_at_boundaries(
    block: ir.Block, signature: Signature
) -> Iterator[tuple[list[float], int, dict[int, float], dict[int, Array]]]:
    """Yields a tuple for each product to which an f32 input is added: the values for this input,
    the input's number, the constant that fills each other input, and the inputs that are matrices
    with a single 1 in each column.
    """
    arguments = drawn_of(block, signature)
    products = [each.operation for each in block if product_of(each.operation) is not None]
    found = [boundaries_of(block, arguments, product.results[0]) for product in products]
    for n, product in enumerate(products):
        later = products[n + 1 :]
        matrices = _matrices(product, later, arguments)
        added = [k for k, value in found[n].neutral.items() if not value and _fits(signature, k)]
        if matrices is None or not added:
            continue
        if any(len(signature.inputs[k].shape) != 2 for k in matrices):
            continue
        numbers = {k: float(each.unsigned) for k, each in enumerate(signature.inputs)}
        for each in found[n:]:
            numbers |= each.neutral
        sums = [x for x in found[n].sums if not later or abs(x) <= FOLLOWED]
        given = {k: _ones(signature.inputs[k].shape) for k in matrices}
        if sums:
            yield sums, added[0], {k: v for k, v in numbers.items() if k not in given}, given


def _fits(signature: Signature, number: int) -> bool:
    spec = signature.inputs[number]
    return bool(spec.shape) and spec.dtype == np.float32


def _matrices(
    product: ir.Operation, later: Sequence[ir.Operation], arguments: Sequence[ir.Value]
) -> list[int] | None:
    """Returns the numbers of the inputs by which the sums of a product are multiplied later; None
    if a later product has other than one such input."""
    numbers = []
    for each in later:
        others = [
            cone for cone in map(_cone, list(each.operands)[:2]) if product.results[0] not in cone
        ]
        if len(others) != 1:
            return None
        used = [n for n, argument in enumerate(arguments) if argument in others[0]]
        if len(used) != 1:
            return None
        numbers += used
    return numbers


def _cone(value: ir.Value) -> list[ir.Value]:
    """Returns a value and all values that it is computed from."""
    from tcir._mlir import ir

    found: list[ir.Value] = []
    left = [value]
    while left:
        value = left.pop()
        if value in found:
            continue
        found.append(value)
        if not isinstance(value.owner, ir.Block):
            left += list(value.owner.operation.operands)
    return found


def _ones(shape: tuple[int, ...]) -> Array:
    rows, columns = shape
    return np.eye(rows, columns)
