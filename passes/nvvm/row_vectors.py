"""Lowering of ops on rows of registers: the numbers of a softmax over blocks, with a row in each
thread.

A number per row becomes the thread's ``vector<1xf32>``, and so does a number per lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby

from tcir._mlir import arith, ir, llvm, scf
from tcir.dialect import tc
from tcir.dialect.ops.attention import Band, by_polynomial
from tcir.dialect.ops.row_vectors import PARTIAL_SUMS
from tcir.passes.emit import simt
from tcir.passes.emit.fp8 import saturated_word
from tcir.passes.emit.functions.f32 import constant
from tcir.passes.emit.online_softmax import (
    Shift,
    exp2,
    exp2_polynomial,
    inverse_sum,
    log_sum,
    online_max,
)

from .converter import Converter, lower


def _one() -> ir.Type:
    return ir.VectorType.get([1], ir.F32Type.get())


def _number(value: float) -> ir.Value:
    return constant(_one(), value)


@lower(tc.LaneNumbersOp)
def convert_lane_numbers(converter: Converter, op: tc.LaneNumbersOp) -> None:
    """Lowers to the number of this thread's lane."""
    converter.values[op.numbers] = _number(ir.FloatAttr(op.value).value)


@lower(tc.RowNumbersOp)
def convert_row_numbers(converter: Converter, op: tc.RowNumbersOp) -> None:
    """Emits nothing: the thread holds only rows of its own sub-partition."""
    converter.values[op.mine] = converter.ssa(op.numbers)


@lower(tc.SetRowNumbersOp)
def convert_set_row_numbers(converter: Converter, op: tc.SetRowNumbersOp) -> None:
    """Emits nothing: the thread holds only rows of its own sub-partition."""
    converter.values[op.new] = converter.ssa(op.mine)


def _halved(
    parts: Sequence[ir.Value], combine: Callable[[ir.Value, ir.Value], ir.Value]
) -> ir.Value:
    """The second half combined with the first until one is left."""
    while len(parts) > 1:
        half = (len(parts) + 1) // 2
        pairs = [combine(a, b) for a, b in zip(parts, parts[half:], strict=False)]
        parts = [*pairs, *parts[len(pairs) : half]]
    return simt.vector_of(parts)


@lower(tc.RowMaxOp)
def convert_row_max(converter: Converter, op: tc.RowMaxOp) -> None:
    """Emits ``max.f32`` of the thread's registers, in several independent chains."""
    numbers = converter.elements(converter.ssa(op.values))
    parts = numbers[:PARTIAL_SUMS]
    for position, number in enumerate(numbers[PARTIAL_SUMS:]):
        place = position % PARTIAL_SUMS
        parts[place] = arith.maxnumf(parts[place], number)
    converter.values[op.largest] = _halved(parts, arith.maxnumf)


@lower(tc.RowSumOp)
def convert_row_sum(converter: Converter, op: tc.RowSumOp) -> None:
    """Emits ``add.f32`` of the thread's registers, two at a time with ``.f32x2`` if the target has
    that instruction."""
    row = converter.ssa(op.values)
    columns = row.type.shape[0]
    slices = [
        llvm.shufflevector(row, range(first, first + PARTIAL_SUMS))
        for first in range(0, columns, PARTIAL_SUMS)
    ]
    parts = converter.elements(reduce(arith.addf, slices))
    converter.values[op.total] = _halved(parts, arith.addf)


def _scale(op: tc.RowOnlineMaxOp | tc.RowExponentialsOp | tc.RowLogSumOp) -> float:
    return float(ir.FloatAttr(op.scale).value)


@lower(tc.MaskRowsOp)
def convert_mask_rows(converter: Converter, op: tc.MaskRowsOp) -> None:
    """Emits comparisons of each column with the first and the last key of the row."""
    end, band = converter.ssa(op.keys), Band.of(op)
    row, start = arith.addi(converter.ssa(op.row), converter.lane), None
    if band.last is not None:
        end = arith.minsi(converter.add(row, band.last + 1), end)
    end = arith.subi(end, converter.ssa(op.column))
    if band.first is not None:
        start = arith.subi(converter.add(row, band.first), converter.ssa(op.column))
    scores = converter.elements(converter.ssa(op.scores))
    (none,) = converter.elements(_number(-math.inf))
    masked = []
    for column, score in enumerate(scores):
        place = converter.constant(column)
        has = arith.cmpi(arith.CmpIPredicate.slt, place, end)
        if start is not None:
            no_less = arith.cmpi(arith.CmpIPredicate.sge, place, start)
            has = arith.andi(has, no_less)
        masked.append(arith.select(has, score, none))
    converter.values[op.masked] = simt.vector_of(masked)


@lower(tc.RowOnlineMaxOp)
def convert_online_max(converter: Converter, op: tc.RowOnlineMaxOp) -> None:
    """Emits a few instructions per row, which compute the new maximum, the reference and the
    factor."""
    before, largest = converter.ssa(op.before), converter.ssa(op.largest)
    made = online_max(before, largest, _scale(op), ir.FloatAttr(op.tau).value, op.below)
    converter.values.update(zip((op.after, op.reference, op.alpha), made, strict=True))


@lower(tc.RowExponentialsOp)
def convert_exponentials(converter: Converter, op: tc.RowExponentialsOp) -> None:
    """Emits an fma and an ex2 per element. In warps that have a row beyond `FAR`, a subtraction
    precedes them."""
    scores, shift = converter.ssa(op.scores), Shift.of(converter.ssa(op.reference), _scale(op))
    (mine,) = converter.elements(shift.far)
    branch = scf.IfOp(simt.any_lane(mine), [scores.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([arith.subf(scores, _everywhere(converter, shift.taken, scores.type))])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([scores])
    times, plus = (
        _everywhere(converter, value, scores.type) for value in (_number(_scale(op)), shift.added)
    )
    exponents = llvm.intr_fma(branch.results[0], times, plus)
    converter.values[op.powers] = _powers(converter, exponents, op.polynomial)


def _powers(converter: Converter, exponents: ir.Value, polynomial: int) -> ir.Value:
    """2 to the power of a row's exponents, of every 16 the last `polynomial` by a polynomial."""
    if not polynomial:
        return exp2(exponents)
    count = exponents.type.shape[0]
    ways = dict.fromkeys(by_polynomial(count, polynomial), exp2_polynomial)
    powers: list[ir.Value] = []
    for way, columns in groupby(range(count), lambda n: ways.get(n, exp2)):
        powers += converter.elements(way(llvm.shufflevector(exponents, list(columns))))
    return simt.vector_of(powers)


def _everywhere(converter: Converter, number: ir.Value, row: ir.Type) -> ir.Value:
    """A number of a row in all of its columns."""
    return simt.vector_of(converter.elements(number) * row.shape[0])


@lower(tc.NarrowRowsOp)
def convert_narrow_rows(converter: Converter, op: tc.NarrowRowsOp) -> None:
    """Emits two conversions and a move for each word of four numbers."""
    wide = converter.elements(converter.ssa(op.wide))
    element = str(op.narrow.type.element_type)
    words = [saturated_word(wide[n : n + 4], element) for n in range(0, len(wide), 4)]
    converter.values[op.narrow] = simt.vector_of(words)


@lower(tc.RowsDifferOp)
def convert_rows_differ(converter: Converter, op: tc.RowsDifferOp) -> None:
    """Emits a vote of the threads of the warp."""
    value = _number(ir.FloatAttr(op.value).value)
    other = arith.cmpf(arith.CmpFPredicate.UNE, converter.ssa(op.numbers), value)
    (mine,) = converter.elements(other)
    converter.values[op.differ] = simt.any_lane(mine)


@lower(tc.RowInverseSumOp)
def convert_inverse_sum(converter: Converter, op: tc.RowInverseSumOp) -> None:
    """Emits ``rcp.approx.ftz``."""
    converter.values[op.inverse] = inverse_sum(converter.ssa(op.total), op.times)


@lower(tc.RowLogSumOp)
def convert_log_sum(converter: Converter, op: tc.RowLogSumOp) -> None:
    """Emits ``lg2.approx.ftz``, a sum and a product."""
    largest, total = converter.ssa(op.largest), converter.ssa(op.total)
    converter.values[op.lse] = log_sum(largest, total, _scale(op))
