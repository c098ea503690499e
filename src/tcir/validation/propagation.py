"""Bounds on results that are computed from a contraction, element by element.

The bound of the sums (`tcir.validation.bounds`) is carried through every op after them. An op
multiplies the error of an operand by at most the op's slope at that operand. The kernel and the
reference both round the op's result, which adds one unit in the last place in all, unless both
round the same number. A contraction of such results adds to its own error their errors times the
other factor. If the operands of a comparison are closer to each other than their errors, the
comparison may give either result; a select then errs by the difference of its operands.

Functions are lowered to a few instructions of documented accuracy; `tcir.validation.functions` has
their largest errors. If the inputs are exact, the sums are exact as well, and there are no other
errors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tcir._mlir import arith
from tcir.dialect import tc
from tcir.dialect.attributes import is_buffer, is_fill_only
from tcir.dialect.operation import traits_of
from tcir.dialect.upstream import RESHAPES, names
from tcir.interp.tensor.contraction import recognise
from tcir.interp.tensor.epilogue import half, spread
from tcir.interp.tensor.grouped import groups_of, written
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.scaled_contraction import recognise_product
from tcir.interp.tensor.softmax import computed, softmax
from tcir.interp.tensor.views import AffineExpression, aligned, indexing, loop_sizes, view
from tcir.interp.types import Array, DType, dtype_of, is_integer, poison, shape_of
from tcir.program.access import SumOfProducts, product_of
from tcir.program.factors import factor_types
from tcir.validation import bounds
from tcir.validation.attention_backward_bounds import attention_backward
from tcir.validation.attention_bounds import BY_EX2, Powers, Side, attention
from tcir.validation.quantised import hull, rows_of
from tcir.validation.raised import UNROUNDED
from tcir.validation.reordered import AnyOrder, quantum_of
from tcir.validation.rules import RULES, Known, overflow

if TYPE_CHECKING:
    from tcir._mlir import ir

Run: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], Array]
"""A contraction of other factors, added to other numbers."""
Rounding: TypeAlias = Literal["exact", "rounded", "unknown"]
EXACT: Rounding = "exact"
"""Sums of factors that are the same at every level are exact: the inputs are made so."""
ROUNDED: Rounding = "rounded"
"""Sums round."""
UNKNOWN: Rounding = "unknown"
"""Sums are exact where their factors show it (`is_exact`)."""
ZERO = AffineExpression({}, 0)
"""The index 0."""
_CUT = np.uint32(0x1FFF)
"""The bits of an f32 that tf32 drops."""
LEAST = 2.0**-149
"""The smallest number of f32."""
NORMAL = 2.0**-100
"""Products of this size and two factors of 11 bits are exact in f32."""


class NoBoundError(Exception):
    """Raised for an op through which no error can be propagated."""


def carried(
    function: ir.Operation,
    inputs: Sequence[Array],
    how: Callable[[Collection[DType]], bounds.Sums],
    sums: Rounding,
    tf32: bounds.Sums = bounds.WHOLE,
    powers: Powers = BY_EX2,
    *,
    partly: bool = True,
) -> list[Known]:
    """Computes the results, with error bounds, of a function on tensors that has contractions.

    how:    returns how products of factors of given types are summed
    tf32:   how products of two f32 factors that are cut to tf32 are summed
    powers: errors of the exponentials of an attention
    partly: whether some results may have no bound; otherwise the propagation ends at the first sums
            that have none
    """
    with np.errstate(all="ignore"):
        return _Carrier(how, sums, tf32, powers, partly).run(function, inputs)


@dataclass
class _Carrier:
    how: Callable[[Collection[DType]], bounds.Sums]
    sums: Rounding
    tf32: bounds.Sums
    powers: Powers
    partly: bool

    def run(self, function: ir.Operation, inputs: Sequence[Array]) -> list[Known]:
        block = function.regions[0].blocks[0]
        given = iter(inputs)
        values: dict[ir.Value, Known] = {}
        for argument in block.arguments:
            unread = is_fill_only(argument)
            kind = argument.type
            array = poison(shape_of(kind), dtype_of(kind)) if unread else next(given)
            values[argument] = Known.exact(array)
        *ops, last = block.operations
        for each in ops:
            op = each.operation
            if isinstance(op.opview, tc.QuantiseBlocksOp):
                known = [values[operand] for operand in op.operands]
                values.update(zip(op.results, quantised_blocks(op.opview, *known), strict=True))
                continue
            values.update(zip(op.results, self._op(op, values), strict=True))
        return [values[operand] for operand in last.operation.operands]

    def _op(self, op: ir.Operation, values: Mapping[ir.Value, Known]) -> list[Known]:
        operands = [values[operand] for operand in op.operands]
        values_of = (*op.operands, *op.results)
        if op.name.startswith(("scf.", "affine.for")) or any(is_buffer(each) for each in values_of):
            raise NoBoundError(op.name)
        product = product_of(op)
        if product is not None and _sums_at_once(op):
            sums = self._sums(op, product, operands)
            if sums.open.all() and not self.partly:
                raise NoBoundError(op.name)
            finite = all(bool(np.isfinite(each.wide).all()) for each in operands)
            return [_loosened(sums, finite) if UNROUNDED in op.attributes else sums]
        if op.name == "tensor.pad":
            return [_padded(op, operands, values)]
        if op.name == "linalg.softmax":
            return [_softmax(op, operands[0])]
        if op.name == "tensor.concat":
            return [_concatenated(operands, op.attributes["dim"].value)]
        if op.name.startswith("linalg.") and op.name != "linalg.fill":
            return self._structured(op, operands, values)
        if isinstance(op.opview, tc.EpilogueOp):
            return [self._epilogue(op.opview, operands[0], values)]
        if isinstance(op.opview, tc.AttentionOp):
            return self._attention(op.opview, operands, values)
        if isinstance(op.opview, tc.AttentionBackwardOp):
            return attention_backward(op.opview, operands, self._products)
        return [_elementwise(op, operands)]

    def _sums(self, op: ir.Operation, product: SumOfProducts, operands: list[Known]) -> Known:
        """Sums of a contraction and their errors, from the error of each factor times all
        others."""
        count = len(operands) - (product.start is not None)
        sizes = traits_of(op).group_sizes
        at = list(op.operands).index(getattr(op.opview, sizes)) if sizes else count
        factors = operands[:at] + operands[at + 1 : count]
        starts = operands[count:]
        groups = [operands[at].value] if sizes else []

        def run(arrays: Sequence[Array], firsts: Sequence[Array]) -> Array:
            rule = evaluate[op.name]
            given = *arrays[:at], *groups, *arrays[at:], *firsts
            (result,) = rule(Interpreter(), op.opview, *given)
            return result

        value = run([each.value for each in factors], [each.value for each in starts])
        if not _off(operands) and (self.sums == EXACT or is_integer(value.dtype)):
            return Known.exact(value)
        inner = {each.name for region in op.regions for each in region.blocks[0].operations}
        if value.dtype.name not in bounds.ROUNDING or not inner <= _PRODUCTS:
            raise NoBoundError(f"{op.name} to {value.dtype.name}")
        cut = len(factors) == 2 and any(_is_cut(each.value) for each in factors)
        how = self.tf32 if cut else self.how(factor_types(product))
        return self._rounded(value, factors, starts, run, how)

    def _attention(
        self, op: tc.AttentionOp, operands: list[Known], values: Mapping[ir.Value, Known]
    ) -> list[Known]:
        """Attention whose body computes scores from sums, as an epilogue does."""
        if not op.modified:
            return attention(op, operands, self._scaled_products, None, {}, self.powers)
        block = op.body.blocks[0]
        (sum_,) = block.arguments

        def body(own: tuple[int, int]) -> Callable[[Known], Known]:
            return partial(scores, own)

        def scores(own: tuple[int, int], sums: Known) -> Known:
            def mine(array: Array) -> Array:
                return array[tuple(n % size for n, size in zip(own, array.shape))]

            made = _of_body(block, {**values, sum_: sums}, {}, mine)
            return made.like(lambda array: np.broadcast_to(array, np.shape(sums.value)))

        read = {each.tensor: np.asarray(values[each.tensor].value) for each in op.elements}
        return attention(op, operands, self._scaled_products, body, read, self.powers)

    def _products(self, a: Known, b: Known) -> Known:
        """Sums of products of the rows of `a` with the columns of `b`, in f32."""
        return self._scaled_products((a,), (b,))

    def _scaled_products(self, a: Side, b: Side) -> Known:
        """Sums of products of the rows of `a` with the columns of `b`, with scales, in f32."""

        def run(factors: Sequence[Array], _: Sequence[Array]) -> Array:
            wide = [np.asarray(each, np.float64) for each in factors]
            return np.matmul(math.prod(wide[: len(a)]), math.prod(wide[len(a) :]))

        factors = [*a, *b]
        types = [np.asarray(each.value).dtype for each in (a[0], b[0])]
        value = run([each.value for each in factors], []).astype(np.float32)
        return self._rounded(value, factors, [], run, self.how(types))

    def _rounded(
        self,
        value: Array,
        factors: list[Known],
        starts: list[Known],
        run: Run,
        how: bounds.Sums,
    ) -> Known:
        """Rounding errors of sums in f32 or a tensor core, in any order.

        A sum is an infinity or NaN if its infinite products make it one (those are multiplied by
        the signs of finite numbers here), unless finite ones might overflow in some order.
        """
        ones = [np.ones(np.shape(each.value)) for each in factors]
        zeros = [np.zeros(np.shape(each.value)) for each in starts]
        nan, open_ = np.zeros((2, *value.shape), bool)
        if not all(np.isfinite(each.wide).all() for each in (*factors, *starts)):
            signs = [_signs(each, scale=not n) for n, each in enumerate(factors)]
            nan = np.isnan(np.asarray(run(signs, [_signs(each) for each in starts]), np.float64))
        for number, each in enumerate((*factors, *starts)):
            if each.open.any():
                masks = [*ones, *zeros]
                masks[number] = each.open * 1.0
                if number >= len(ones):
                    masks[0] = 0 * ones[0]
                open_ = open_ | (run(masks[: len(ones)], masks[len(ones) :]) != 0)
        if how.factors:
            open_ = open_ | self._lost(factors, lambda parts: run(parts, zeros))
        factors, starts = ([each.finite() for each in group] for group in (factors, starts))
        magnitudes = [each.size if _off([each]) else np.abs(each.value) for each in factors]
        begins = [np.abs(each.value) for each in starts]
        exponents = [
            bounds.encoded(size, np.asarray(each.value).dtype)
            for size, each in zip(magnitudes, factors, strict=True)
        ]
        sizes, largest = (bounds.upper(run(each, begins)) for each in (magnitudes, exponents))
        values = [each.value for each in factors]
        if (
            self.sums == UNKNOWN
            and not _off([*factors, *starts])
            and is_exact(values, starts, largest, how.bits)
        ):
            return Known.exact(value).opened(open_ & ~nan)
        counts = bounds.upper(run(ones, zeros))
        kept = np.where(np.isfinite(np.asarray(value, np.float64)), value, value.dtype.type(0))
        error = bounds.fused_sum_bound(sizes, largest, counts, kept, how) + counts * LEAST
        spread = bounds.spread_of(values)
        square = bounds.expected_squares(sizes, largest, counts, kept, how, spread)
        if how.factors:
            for number in range(len(factors)):
                parts = [*magnitudes[:number], ones[number], *magnitudes[number + 1 :]]
                error = error + bounds.TF32_LEAST * bounds.upper(run(parts, zeros))
        for number, each in enumerate(factors):
            if most := float(each.error.max(initial=0)):  # so that nothing underflows
                parts = [*magnitudes[:number], each.error / most, *magnitudes[number + 1 :]]
                error = error + most * bounds.upper(run(parts, zeros))
                parts = [np.asarray(a, np.float64) ** 2 for a in magnitudes]
                parts[number] = each.square / most**2
                square = square + most**2 * bounds.upper(run(parts, zeros))
        for each in starts:
            error, square = error + each.error, square + each.square
        if (alone := _alone(factors, starts, sizes, run)) is not None:
            error, square = np.where(alone, 0.0, error), np.where(alone, 0.0, square)
        over = ~(sizes + error < overflow(value.dtype))
        open_ = (open_ | over) & ~nan
        return Known(value, np.where(over, 0.0, error), np.where(over, 0.0, square)).opened(open_)

    @staticmethod
    def _lost(factors: Sequence[Known], run: Callable[[Sequence[Array]], Array]) -> Array:
        """Mask of results that are NaN because an infinity meets a factor that tf32
        truncates to 0."""
        found = np.zeros((), bool)
        for number, each in enumerate(factors):
            least = np.abs(each.wide) - np.where(each.open, 0.0, each.error)
            masks = [np.isinf(other.wide) * 1.0 for other in factors]
            masks[number] = ((each.value != 0) & (least < bounds.TF32_LEAST)) * 1.0
            found = found | (run(masks) != 0)
        return np.asarray(found)

    def _epilogue(self, op: tc.EpilogueOp, sums: Known, values: Mapping[ir.Value, Known]) -> Known:
        """A ``tc.epilogue`` of the program's own."""
        block = op.body.blocks[0]
        given = [sums]
        if op.gated:
            given = [sums.like(partial(half, n, op.gate_block)) for n in range(2)]
        inner = {**values, **dict(zip(block.arguments, given, strict=True))}
        product = op.grouped
        sizes = {product.sizes: values[product.sizes].value} if product else {}
        shape = shape_of(op.out.type)
        result = _of_body(block, inner, sizes).like(lambda a: np.broadcast_to(a, shape))
        if product is None:
            return result
        ours = np.zeros(shape, bool)
        for rows in groups_of(product, sizes[product.sizes]):
            ours[rows] = True
        errors = (np.where(ours, each, 0.0) for each in (result.error, result.square))
        return Known(written(product, sizes[product.sizes], np.array(result.value)), *errors)

    def _structured(
        self, op: ir.Operation, operands: list[Known], values: Mapping[ir.Value, Known]
    ) -> list[Known]:
        """An elementwise ``linalg`` op, or a reduction: floats are summed in any order."""
        from tcir._mlir import linalg

        affine = [each.value for each in linalg.get_indexing_maps(op) or ()]
        maps = [indexing(each) for each in affine]
        outs = maps[len(maps) - len(op.results) :]
        loops = [[d for e in out for d in e.coefficients] for out in outs]
        single = all(len(e.coefficients) == 1 or e == ZERO for out in outs for e in out)
        if not maps or not single or any(sorted(each) != sorted(loops[0]) for each in loops):
            raise NoBoundError(op.name)
        sizes = loop_sizes(affine[0].n_dims, maps, [np.shape(k.value) for k in operands])
        order = sorted(loops[0])
        reduced = [d for d in range(len(sizes)) if d not in order]

        def spread(each: Known, indices: list[AffineExpression], at: Mapping[int, int]) -> Known:
            def change(array: Array) -> Array:
                seen, dims = view(np.asarray(array), indices, sizes)
                seen = seen[tuple(at.get(d, slice(None)) for d in dims)]
                return aligned(seen, [d for d in dims if d not in at], order)

            return each.like(change)

        block, inputs = op.regions[0].blocks[0], len(operands) - len(outs)
        grid = dict(zip(order, np.indices([sizes[d] for d in order], sparse=True), strict=True))
        totals = [spread(each, out, {}) for each, out in zip(operands[inputs:], outs, strict=True)]
        starts, orders = totals, [AnyOrder.of(op, n) for n in range(len(outs))]
        for point in itertools.product(*(range(sizes[d]) for d in reduced)):
            at = dict(zip(reduced, point, strict=True))
            spreads = [spread(each, indices, at) for each, indices in zip(operands[:inputs], maps)]
            inner = {**values, **dict(zip(block.arguments, [*spreads, *totals]))}
            *ops, last = block.operations
            for each in ops:
                body = each.operation
                known = [inner[o] for o in body.operands]
                if body.name == "cf.assert":
                    _asserted(body, known)
                    continue
                inner[body.results[0]] = (
                    Known.exact(np.asarray({**grid, **at}[body.attributes["dim"].value], np.int64))
                    if body.name == "linalg.index"
                    else _elementwise(body, known)
                )
            totals = [inner[each] for each in last.operation.operands]
            for summed, total in zip(orders, totals, strict=True):
                if summed is not None:
                    summed.step(inner, total)
        totals = [
            total if summed is None else summed.widened(total, start)
            for summed, total, start in zip(orders, totals, starts, strict=True)
        ]
        return [
            total.like(partial(_placed, out=out, order=order, sizes=sizes))
            for total, out in zip(totals, outs, strict=True)
        ]


def _asserted(op: ir.Operation, known: list[Known]) -> None:
    """Evaluates an assertion; no bound exists if its operand may have either value."""
    if _off(known):
        raise NoBoundError(op.name)
    evaluate[op.name](Interpreter(), op.opview, *(each.value for each in known))


def _placed(array: Array, out: list[AffineExpression], order: list[int], sizes: list[int]) -> Array:
    """An array over the loops `order`, transposed to the indices `out` of a result."""
    loops = [d for e in out for d in e.coefficients]
    places = [order.index(d) for d in loops]
    ordered = np.broadcast_to(array, [sizes[d] for d in order]).transpose(places)
    return ordered.reshape(
        [sizes[d] if (d := next(iter(e.coefficients), None)) is not None else 1 for e in out]
    )


def _sums_at_once(op: ir.Operation) -> bool:
    """Whether the reference adds an op's products at once in float64, not one after the other."""
    if traits_of(op).arithmetic == "products":
        return True
    block = op.regions[0].blocks[0]
    return recognise(block) is not None or recognise_product(block) is not None


def _concatenated(parts: list[Known], dim: int) -> Known:
    def joined(arrays: Iterable[Array]) -> Array:
        shapes = (np.shape(each.value) for each in parts)
        return np.concatenate([*map(np.broadcast_to, arrays, shapes)], dim)

    return Known(*(joined(map(attrgetter(n), parts)) for n in ("value", "error", "square")))


def _softmax(op: ir.Operation, x: Known) -> Known:
    """Softmax, by the rules of its component ops; kernels sum in an order of their own."""
    dim = op.attributes["dimension"].value
    order, totals = AnyOrder(), list[Known]()

    def take(each: Known, number: int) -> Known:
        return each.like(lambda a: np.take(a, [number], dim))

    def compute(name: str, *known: Known) -> Known:
        if name == "arith.divf" and totals:
            known = (known[0], order.widened(known[1], totals[0]))
        with np.errstate(all="ignore"):
            result = RULES[name](computed(name, *(k.value for k in known)), *known)
        if name == "arith.addf":
            totals.append(known[1])  # the total so far, at first the first power
            order.add(known[0], result)
        return result

    return softmax(x, np.shape(x.value)[dim], take, compute)


def _padded(op: ir.Operation, operands: list[Known], values: Mapping[ir.Value, Known]) -> Known:
    """A ``tensor.pad`` by known sizes, with a number that is equal at every level."""
    from tcir._mlir import ir

    (number,) = list(op.regions[0].blocks[0])[-1].operands
    if len(operands) != 1 or (number in values and _off([values[number]])):
        raise NoBoundError(op.name)
    interpreter, known = Interpreter(), operands[0]
    interpreter.values = {value: each.value for value, each in values.items()}
    (padded,) = evaluate[op.name](interpreter, op.opview, known.value)
    low, high = (ir.DenseI64ArrayAttr(op.attributes[f"static_{end}"]) for end in ("low", "high"))
    widths = list(zip(low, high, strict=True))
    return Known(padded, *(np.pad(each, widths) for each in (known.error, known.square)))


def _of_body(
    block: ir.Block,
    values: dict[ir.Value, Known],
    sizes: Mapping[ir.Value, Array],
    part: Callable[[Array], Array] = np.asarray,
) -> Known:
    """Result of an elementwise body; sizes: of groups of rows; part: selects elements of other
    tensors."""
    *ops, last = block.operations
    for each in ops:
        op = each.operation
        known = [values[operand] for operand in op.operands]
        values[op.results[0]] = (
            known[0].like(partial(spread, each, values=sizes)).like(part)
            if isinstance(each, tc.ElementOp)
            else _elementwise(op, known)
        )
    return values[last.operation.operands[0]]


def _elementwise(op: ir.Operation, operands: list[Known]) -> Known:
    known = _computed(op, operands)
    if UNROUNDED not in op.attributes:
        return known
    finite = np.broadcast_arrays(*(np.isfinite(each.wide) for each in operands))
    return _loosened(known, np.logical_and.reduce(finite))


def _loosened(known: Known, finite: Array | bool) -> Known:
    """Results that later states may leave unrounded: their error grows by half a unit, and results
    of finite operands stay finite even where rounding overflows."""
    name = np.asarray(known.value).dtype.name
    if name not in bounds.NARROW:
        return known
    relative, absolute = bounds.ROUNDING[name]
    half = np.maximum(relative * known.size, absolute)
    lost = ~np.isfinite(known.wide) & finite
    return Known(known.value, known.error + half, known.square + half**2).opened(known.open | lost)


def _computed(op: ir.Operation, operands: list[Known]) -> Known:
    rule = RULES.get(op.name)
    if op.name in ("arith.constant", "tensor.empty") or (rule is None and not _off(operands)):
        (value,) = evaluate[op.name](Interpreter(), op.opview, *(k.value for k in operands))
        return Known.exact(value)
    if isinstance(op.opview, RESHAPES):
        shape = shape_of(op.results[0].type)
        return operands[0].like(lambda a: np.reshape(a, shape))
    if op.name == "tensor.extract" and not _off(operands[1:]):
        return operands[0].like(lambda a: np.asarray(a)[tuple(k.value for k in operands[1:])])
    if op.name == "tensor.extract_slice":
        return operands[0].like(
            lambda a: evaluate[op.name](Interpreter(), op.opview, np.asarray(a))[0]
        )
    if rule is None:
        raise NoBoundError(op.name)
    with np.errstate(all="ignore"):
        (value,) = evaluate[op.name](Interpreter(), op.opview, *(k.value for k in operands))
        return rule(value, *operands)


def quantised_blocks(op: ir.OpView, values: Known, *norm: Known) -> list[Known]:
    """Codes and scales of block-quantised numbers that have errors, with bounds derived from the
    results for both ends of the numbers' intervals.
    """
    with np.errstate(all="ignore"):
        y = RULES["arith.mulf"](values.value * norm[0].value, values, *norm) if norm else values
        results = evaluate[op.operation.name](Interpreter(), op, y.value)
    errors = hull(op, y.value, np.where(y.open, 0.0, y.error))
    known = [Known(r, e, e**2) for r, e in zip(results, errors, strict=True)]
    strange = (~np.isfinite(y.wide) | y.open).any(axis=-1) & (y.error > 0).any(axis=-1)
    if not strange.any():
        return known
    return [
        each.opened(mask)
        for each, mask in zip(known, rows_of(op, np.asarray(strange)), strict=True)
    ]


_PRODUCTS = names(arith.AddFOp, arith.ExtFOp, arith.MulFOp, arith.ScalingExtFOp, "linalg.yield")
"""Ops of which a sum of products consists."""


def is_exact(
    factors: Sequence[Array],
    starts: Sequence[Known],
    sizes: Array,
    bits: int = bounds.WHOLE.bits,
) -> bool:
    """Whether sums of products are the same in any order, because all partial sums are multiples of
    the products' quantum (a power of two) and below 2^bits times the quantum.

    sizes: upper bounds of the sums of |products|, in which a subnormal factor counts as the
           smallest normal number (`bounds.encoded`)
    bits:  width of a fused sum in bits
    """
    quantum = float(np.prod([quantum_of(each) for each in factors]))
    if quantum < LEAST:
        return False
    if any(map(_is_cut, factors)):
        return False
    fit = all(quantum_of(each.value) >= quantum for each in starts)
    return fit and bool((sizes <= quantum * 2.0**bits).all())


def _alone(factors: list[Known], starts: list[Known], sizes: Array, run: Run) -> Array | None:
    """Mask of the sums that have at most one product and are therefore exact; None if the factors
    are not mostly zeros.

    sizes: the sums of |products|
    """
    values = [each.value for each in factors]
    if _off([*factors, *starts]) or not any((each == 0).mean() > 1 / 2 for each in values):
        return None
    if any(map(_is_cut, values)):
        return None
    masks = [(each != 0).astype(np.float64) for each in values]
    count = run(masks, [np.zeros(np.shape(each.value)) for each in starts])
    zero = [np.abs(each.value) for each in starts]
    added = run([0 * each for each in masks], zero) if zero else np.zeros(())
    return (count <= 1) & (added == 0) & ((sizes == 0) | (sizes >= NORMAL))


def _is_cut(array: Array) -> bool:
    """Whether some of these f32 numbers are not representable in tf32; numbers widened to
    f32 are."""
    bits = np.ascontiguousarray(array)
    return bits.dtype == np.float32 and bool((bits.view(np.uint32) & _CUT).any())


def _signs(known: Known, *, scale: bool = False) -> Array:
    """-1, 0 or 1 for finite numbers, with infinities and NaNs; zeros for what is open.

    scale: so small that sums of them are finite in any type
    """
    signs = np.where(
        np.isfinite(known.wide), np.sign(known.wide) * (2.0**-24 if scale else 1), known.wide
    )
    return np.where(known.open, 0.0, signs)


def _off(operands: Sequence[Known]) -> bool:
    return any(k.error.any() for k in operands)
