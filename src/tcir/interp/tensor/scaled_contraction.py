"""Structured ops whose body is ``out + a * b * c * …``: sums of products of three or more factors.

Contractions of block-scaled operands have this form: each factor is one element of one input,
converted to a wider type. An input may be indexed by ``k floordiv 16``, or by any expression of the
loops; its elements are then gathered first. As in `tcir.interp.tensor.contraction`, products and
sums are computed in float64 and rounded once to the accumulator's type: with factors of 4, 6 and 8
bits every product is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.tensor.affine import affine_value
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.contraction import batched_product
from tcir.interp.tensor.views import aligned
from tcir.interp.types import Array, dtype_of

AT_ONCE = 1 << 22
"""Elements of the largest factor widened to float64 at a time."""
_WIDE = ("f32", "f64")

Axis = tuple[int, int]
"""Index of an axis: (loop, divisor), the loop divided by a number and rounded down."""


def recognise_product(block: ir.Block) -> list[int] | None:
    """Returns the inputs that are multiplied, if the body is a sum of products of three or more
    factors; otherwise None.
    """
    inputs = len(block.arguments) - 1
    (result,) = list(block.operations)[-1].operation.operands
    add = _made_by(result, "arith.addf")
    if inputs < 3 or add is None:
        return None
    terms = [v for v in add.operands if v != block.arguments[inputs]]
    if len(terms) != 1 or str(result.type) not in _WIDE:
        return None
    factors = _factors(terms[0], block)
    return factors if factors is not None and sorted(factors) == list(range(inputs)) else None


def _made_by(value: ir.Value, name: str) -> ir.Operation | None:
    owner = value.owner
    return owner if not isinstance(owner, ir.Block) and owner.name == name else None


def _factors(value: ir.Value, block: ir.Block) -> list[int] | None:
    """Returns the numbers of the block arguments whose product `value` is; None if it is no such
    product."""
    if isinstance(value.owner, ir.Block):
        argument = ir.BlockArgument(value)
        return [argument.arg_number] if argument.owner == block else None
    name, operands = value.owner.name, list(value.owner.operands)
    exact = str(value.type) in _WIDE
    if name == "arith.scaling_extf":  # by a power of two: the scale is an f8E8M0FNU to it
        exact = exact and str(operands[1].type) == "f8E8M0FNU"
    if name not in ("arith.extf", "arith.mulf", "arith.scaling_extf") or not exact:
        return None
    parts = [_factors(operand, block) for operand in operands]
    return None if None in parts else [n for part in parts for n in part]  # type: ignore[union-attr]


def contract_product(
    factors: Sequence[int], block: ir.Block, operands: Sequence[Array], maps: Sequence[ir.AffineMap]
) -> Array:
    """Returns the new value of the output operand. maps: affine maps of the operands, with that of
    the output last
    """
    rows = {e.position for e in maps[-1].results if isinstance(e, ir.AffineDimExpr)}
    gathered = [n for n in factors if not all(_is_read_once(e, rows) for e in maps[n].results)]
    axes = [[] if n in gathered else [_axis(e) for e in m.results] for n, m in enumerate(maps)]
    operands = list(operands)
    sizes = _sizes(
        [a for n, a in enumerate(axes) if n not in gathered],
        [o for n, o in enumerate(operands) if n not in gathered],
    )
    for n in gathered:
        operands[n], axes[n] = _gather(operands[n], maps[n], sizes)
    out = [loop for loop, divisor in axes[-1] if divisor == 1]
    if len(out) != len(axes[-1]) or len(set(out)) != len(out):
        raise IncompleteError(f"indexing map {maps[-1]} of the output: expected distinct loops")
    total = np.zeros([sizes[loop] for loop in out])
    largest = max((operands[n] for n in factors), key=lambda a: a.size)
    cut = max(out, key=lambda loop: sizes[loop]) if out else -1
    step = max(1, sizes.get(cut, 1) * AT_ONCE // max(1, largest.size))
    for first in range(0, sizes.get(cut, 1), step):
        part = {cut: slice(first, min(first + step, sizes.get(cut, 1)))}
        pieces = [_widen(operands[n], axes[n], sizes, part) for n in factors]
        (a, dims_a), (b, dims_b) = _two(pieces, set(out))
        where = tuple(part.get(loop, slice(None)) for loop in out)
        total[where] = batched_product(a, dims_a, b, dims_b, out)
    total += operands[-1].astype(np.float64)
    return convert(total, dtype_of(block.arguments[len(operands) - 1].type))


def _is_axis(expression: Any) -> bool:
    return isinstance(expression, ir.AffineDimExpr) or (
        isinstance(expression, ir.AffineFloorDivExpr)
        and isinstance(expression.lhs, ir.AffineDimExpr)
        and isinstance(expression.rhs, ir.AffineConstantExpr)
    )


def _is_read_once(expression: ir.AffineExpr, rows: set[int]) -> bool:
    """Whether an expression is a loop, or a loop of the sum floordiv a constant; `rows`: loops of
    the output."""
    return _is_axis(expression) and (_axis(expression)[1] == 1 or _axis(expression)[0] not in rows)


def _axis(expression: Any) -> Axis:
    if not _is_axis(expression):
        raise IncompleteError(
            f"indexing map: {expression} is neither a loop nor a loop floordiv a constant"
        )
    if isinstance(expression, ir.AffineDimExpr):
        return expression.position, 1
    return expression.lhs.position, expression.rhs.value


def _gather(array: Array, map_: Any, sizes: dict[int, int]) -> tuple[Array, list[Axis]]:
    """Gathers the elements that a map names, with one axis for every loop that it uses."""
    loops = sorted({d for e in map_.results for d in _dims(e)})
    missing = [d for d in loops if d not in sizes]
    if missing:
        raise IncompleteError(
            f"indexing map {map_}: no operand determines the size of loop d{missing[0]}"
        )
    shape = [sizes[d] for d in loops]
    found = np.empty(shape, array.dtype)
    step = max(1, AT_ONCE // max(1, int(np.prod(shape[1:]))))
    for first in range(0, shape[0] if shape else 1, step):
        part = slice(first, first + step)
        ranges = [np.arange(size)[slice(None) if n else part] for n, size in enumerate(shape)]
        grid = dict(zip(loops, np.ix_(*ranges), strict=True))
        places = tuple(affine_value(e, grid) for e in map_.results)
        for place, extent in zip(places, array.shape, strict=True):
            if np.min(place) < 0 or np.max(place) >= extent:
                raise IncompleteError(f"indexing map {map_}: out of bounds of {array.shape}")
        found[(part,) * bool(shape)] = array[places]
    return found, [(d, 1) for d in loops]


def _dims(expression: Any) -> set[int]:
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position}
    if isinstance(expression, ir.AffineBinaryExpr):
        return _dims(expression.lhs) | _dims(expression.rhs)
    return set()


def _sizes(axes: Sequence[Sequence[Axis]], operands: Sequence[Array]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    pairs = [p for a, array in zip(axes, operands, strict=True) for p in zip(a, array.shape)]
    for (loop, divisor), size in sorted(pairs, key=lambda pair: pair[0][1]):
        if divisor == 1 and sizes.setdefault(loop, size) != size:
            raise IncompleteError(f"loop d{loop}: sizes {sizes[loop]} and {size} disagree")
        if divisor > 1 and (loop not in sizes or -(-sizes[loop] // divisor) != size):
            raise IncompleteError(
                f"loop d{loop} of {sizes.get(loop, 'unknown')} floordiv {divisor} does not index a "
                f"dimension of {size}"
            )
    return sizes


def _widen(
    array: Array, axes: Sequence[Axis], sizes: dict[int, int], part: dict[int, slice]
) -> tuple[Array, list[int]]:
    """Returns a factor in float64, with one axis per loop (ascending), for `part` of the loops."""
    loops = [loop for loop, _ in axes]
    if len(set(loops)) != len(loops):
        raise IncompleteError("indexing map: a loop indexes two dimensions of one factor")
    for loop, divisor in axes:
        if divisor > 1 and loop in part:
            raise IncompleteError(f"indexing map: d{loop} floordiv {divisor} is no loop of sums")
    array = array[tuple(part.get(loop, slice(None)) for loop in loops)].astype(np.float64)
    for axis, (loop, divisor) in enumerate(axes):
        if divisor > 1:
            array = np.repeat(array, divisor, axis)
            array = array[(slice(None),) * axis + (slice(sizes[loop]),)]
    order = sorted(loops)
    return array.transpose([loops.index(loop) for loop in order]), order


def _two(
    pieces: list[tuple[Array, list[int]]], out: set[int]
) -> tuple[tuple[Array, list[int]], tuple[Array, list[int]]]:
    """Multiplies factors until two are left: those over the same loops of the output first."""
    groups: dict[frozenset[int], tuple[Array, list[int]]] = {}
    for array, dims in sorted(pieces, key=lambda piece: -piece[0].size):
        key = frozenset(dims) & out
        groups[key] = _times(groups[key], (array, dims)) if key in groups else (array, dims)
    rest = sorted(groups.values(), key=lambda group: group[0].size)
    while len(rest) > 2:
        first, second, *rest = rest
        rest = sorted([_times(second, first), *rest], key=lambda group: group[0].size)
    one: tuple[Array, list[int]] = (np.ones(()), [])
    return rest[-1], rest[0] if len(rest) == 2 else one


def _times(a: tuple[Array, list[int]], b: tuple[Array, list[int]]) -> tuple[Array, list[int]]:
    loops = sorted({*a[1], *b[1]})
    product = aligned(*a, loops) * aligned(*b, loops)
    return product, loops
