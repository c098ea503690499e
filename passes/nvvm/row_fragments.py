"""Lowering of ops on rows of fragments: maxima and sums by shuffles, exponentials, and the
conversion of C to operand A of the next product.

A thread has elements of two rows of each atom, which are 8 rows apart, and it holds the numbers of
both rows in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from tcir._mlir import arith, ir, llvm, scf
from tcir.dialect import tc
from tcir.dialect.fragments import ROW, share, warp_origin
from tcir.dialect.limits import WARP
from tcir.passes.emit import simt
from tcir.passes.emit.fp8 import saturated_word
from tcir.passes.emit.online_softmax import Shift, inverse_sum, log_sum, online_max, power

from .converter import Converter, Fragment, GlobalTensor, i32, lower, require_role
from .linear import LinearMap
from .scalar import is_fp8
from .structure import is_equal
from .warp_store import PAIR, QUAD, ROW_STEP, first_of_thread, less, of_quad, places_of

SLT = arith.CmpIPredicate.slt


LOW_HALVES, HIGH_HALVES = 0x5410, 0x7632
"""Selectors of ``prmt``: the low halves of two words, and the high ones (PTX ISA 9.7.9.7)."""
LOW_SWAPPED, HIGH_SWAPPED = 0x1054, 0x3276
"""The same with the second word's half first."""


def _number(op: ir.OpView, name: str) -> float:
    return float(ir.FloatAttr(op.attributes[name]).value)


def _by_row(converter: Converter, fragment: Fragment) -> dict[int, list[tuple[int, ir.Value]]]:
    """The columns and registers of each of a thread's rows, in order."""
    rows: dict[int, list[tuple[int, ir.Value]]] = {}
    places = places_of(fragment.type, converter.warps)
    for (down, right), register in zip(places, fragment.registers, strict=True):
        rows.setdefault(down, []).append((right, register))
    return {down: sorted(held, key=lambda pair: pair[0]) for down, held in sorted(rows.items())}


def _each_element(
    converter: Converter,
    fragment: Fragment,
    compute: Callable[[int, ir.Value], ir.Value],
) -> tuple[ir.Value, ...]:
    """`compute` of the number of its row among a thread's, and each register."""
    places = places_of(fragment.type, converter.warps)
    order = {down: number for number, down in enumerate(sorted({down for down, _ in places}))}
    return tuple(
        compute(order[down], register)
        for (down, _), register in zip(places, fragment.registers, strict=True)
    )


@lower(tc.FillRowsOp)
def convert_fill_rows(converter: Converter, op: tc.FillRowsOp) -> None:
    """Lowers to a constant."""
    part = share(op.rows.type.atom, ROW, op.rows.type.shape, converter.warps)
    count = len(part.atoms()) * part.registers
    converter.values[op.rows] = Fragment(op.rows.type, (simt.number(_number(op, "value")),) * count)


@lower(tc.OnlineMaxOp)
def convert_online_max(converter: Converter, op: tc.OnlineMaxOp) -> None:
    """Emits the maximum over a thread's columns, then over the four threads that share the row, and
    a few further instructions per row."""
    scores, before = (converter.record(v, Fragment) for v in (op.scores, op.before))
    made = []
    rows = _by_row(converter, scores).values()
    for old, held in zip(before.registers, rows, strict=True):
        largest = of_quad(_tree(arith.maxnumf, [value for _, value in held]), arith.maxnumf)
        made.append(online_max(old, largest, _number(op, "scale"), _number(op, "tau"), op.below))
    for result, registers in zip((op.now, op.reference, op.alpha), zip(*made), strict=True):
        converter.values[result] = Fragment(result.type, tuple(registers))


def _tree(
    combine: Callable[[ir.Value, ir.Value], ir.Value], values: Sequence[ir.Value]
) -> ir.Value:
    """`combine` of all, neighbours first: an order that leaves instructions independent."""
    values = list(values)
    while len(values) > 1:
        pairs = [combine(*values[n : n + 2]) for n in range(0, len(values) - 1, 2)]
        values = pairs + values[len(values) & ~1 :]
    return values[0]


@lower(tc.ExpFragmentOp)
def convert_exp_fragment(converter: Converter, op: tc.ExpFragmentOp) -> None:
    """Emits an fma and an ex2 per element. In warps that have a row beyond `FAR`, a subtraction
    precedes them."""
    scores, reference = (converter.record(v, Fragment) for v in (op.scores, op.reference))
    scale = simt.number(_number(op, "scale"))
    shifts = [Shift.of(row, _number(op, "scale")) for row in reference.registers]
    near = _if_any(
        [shift.far for shift in shifts],
        scores,
        lambda: _each_element(
            converter, scores, lambda row, score: arith.subf(score, shifts[row].taken)
        ),
    )
    powers = _each_element(
        converter, near, lambda row, score: power(score, scale, shifts[row].added)
    )
    converter.values[op.powers] = Fragment(op.powers.type, powers)


def _if_any(
    conditions: Sequence[ir.Value], given: Fragment, compute: Callable[[], Sequence[ir.Value]]
) -> Fragment:
    """Computes a fragment in warps where a thread's condition holds; `given` in the others."""
    some = simt.any_lane(reduce(simt.either_bits, conditions))
    return _branch(some, given, compute)


def _branch(
    condition: ir.Value, given: Fragment, compute: Callable[[], Sequence[ir.Value]]
) -> Fragment:
    """The fragment that `compute` makes where a condition holds, `given` elsewhere."""
    kinds = [value.type for value in given.registers]
    branch = scf.IfOp(condition, kinds, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(list(compute()))
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(list(given.registers))
    return Fragment(given.type, tuple(branch.results))


@lower(tc.AddRowSumsOp)
def convert_add_row_sums(converter: Converter, op: tc.AddRowSumsOp) -> None:
    """Emits the sum of a thread's even columns and of its odd columns, each in order, then the sum
    over the four threads."""
    before, alpha, powers = (
        converter.record(v, Fragment) for v in (op.before, op.alpha, op.elements)
    )
    totals = []
    rows = _by_row(converter, powers).values()
    for old, factor, held in zip(before.registers, alpha.registers, rows, strict=True):
        values = [value for _, value in held]
        even, odd = (reduce(arith.addf, values[first::PAIR]) for first in range(PAIR))
        total = of_quad(arith.addf(even, odd), arith.addf)
        totals.append(simt.fma(old, factor, total))
    converter.values[op.now] = Fragment(op.now.type, tuple(totals))


@lower(tc.ScaleFragmentOp)
def convert_scale_fragment(converter: Converter, op: tc.ScaleFragmentOp) -> None:
    """Emits ``mul.rn.f32``, which only warps that have a factor other than 1 execute."""
    given, factors = (converter.record(v, Fragment) for v in (op.elements, op.factors))
    one = simt.number(1.0)
    converter.values[op.scaled] = _if_any(
        [arith.cmpf(arith.CmpFPredicate.UNE, row, one) for row in factors.registers],
        given,
        lambda: _each_element(
            converter, given, lambda row, value: arith.mulf(value, factors.registers[row])
        ),
    )


@lower(tc.InvertRowsOp)
def convert_invert_rows(converter: Converter, op: tc.InvertRowsOp) -> None:
    """Emits ``rcp.approx.ftz.f32``; the result for 0 and NaN is 1."""
    rows = converter.record(op.rows, Fragment).registers
    made = tuple(inverse_sum(row, op.times) for row in rows)
    converter.values[op.inverse] = Fragment(op.inverse.type, made)


@lower(tc.LogSumRowsOp)
def convert_log_sum_rows(converter: Converter, op: tc.LogSumRowsOp) -> None:
    """Emits ``lg2.approx.ftz.f32``, a product, a sum, and another product."""
    maximum, total = (converter.record(v, Fragment) for v in (op.maximum, op.total))
    pairs = zip(maximum.registers, total.registers, strict=True)
    made = tuple(log_sum(most, row, _number(op, "scale")) for most, row in pairs)
    converter.values[op.logarithm] = Fragment(op.logarithm.type, made)


@lower(tc.FragmentAsAOp)
def convert_fragment_as_a(converter: Converter, op: tc.FragmentAsAOp) -> None:
    """Packs two neighbouring elements of C into a register; two adjacent atoms of C give the four
    registers of one atom of A. With elements of 8 bits it takes four atoms of C, and an exchange
    between threads."""
    c = converter.record(op.c, Fragment)
    if is_fp8(op.a.type.element):
        converter.values[op.a] = Fragment(op.a.type, tuple(_bytes_as_a(converter, op, c)))
        return
    element = "f16x2" if str(op.a.type.element) == "f16" else "bf16x2"
    words = []
    for first in range(0, len(c.registers), PAIR):
        low, high = c.registers[first : first + PAIR]
        words.append(simt.asm(i32(), f"cvt.rn.{element}.f32 $0, $2, $1;", "=r,f,f", [low, high]))
    converter.values[op.a] = Fragment(op.a.type, tuple(words))


def _bytes_as_a(converter: Converter, op: tc.FragmentAsAOp, c: Fragment) -> list[ir.Value]:
    """Registers of A of 8 bits: thread t of a row has its columns 4 t to 4 t + 3, of every 16.

    In C it has 2 t and 2 t + 1 of every 8: of two atoms, its own four. Threads 0 and 1 take theirs
    from the first atom of threads 0 and 1, then 2 and 3; threads 2 and 3 from the second. In each
    of two exchanges an even thread offers one atom, an odd one the other, both for two rows at
    once, so that each thread finds what it needs.
    """
    element = str(op.a.type.element)
    t = simt.both_bits(converter.lane, QUAD - 1)
    odd, second = (simt.both_bits(each, 1) for each in (t, simt.right(t, 1)))
    first, other = simt.constant(LOW_HALVES), simt.constant(HIGH_HALVES)
    is_odd, is_second = (is_equal(converter, each, 1) for each in (odd, second))
    offered = [arith.select(is_odd, *pair) for pair in ((other, first), (first, other))]
    even = simt.mul(odd, 2)  # threads 0 and 2 read from 0 and 1, threads 1 and 3 from 2 and 3
    sources = [simt.add(even, second), simt.add(even, simt.differing_bits(second, 1))]
    sources = [simt.add(simt.sub(converter.lane, t), each) for each in sources]
    taken = [
        arith.select(is_second, simt.constant(swapped), simt.constant(straight))
        for straight, swapped in ((LOW_HALVES, LOW_SWAPPED), (HIGH_HALVES, HIGH_SWAPPED))
    ]
    words: list[ir.Value] = []
    rows = 2  # registers of an atom of C: two columns of a row, then of the row 8 further
    for at in range(0, len(c.registers), 2 * rows * PAIR):
        pair = [c.registers[at + n : at + n + PAIR] for n in range(0, 2 * rows * PAIR, PAIR)]
        both = [saturated_word([*pair[n], *pair[n + rows]], element) for n in range(rows)]
        got = [
            simt.shuffle_from(simt.permute(both[0], both[1], offer), source)
            for offer, source in zip(offered, sources, strict=True)
        ]
        words += [simt.permute(got[0], got[1], each) for each in taken]
    return words


@lower(tc.MaskFragmentOp)
def convert_mask_fragment(converter: Converter, op: tc.MaskFragmentOp) -> None:
    """Emits for each element a comparison with the row's number of keys and a selection, which only
    warps that have a masked element execute."""
    scores = converter.record(op.scores, Fragment)
    kind = op.scores.type
    row, column = (converter.ssa(index) for index in (op.row, op.column))
    part = share(kind.atom, kind.operand, kind.shape, converter.warps)
    places = places_of(kind, converter.warps)
    downs = sorted({down for down, _ in places})

    def first_of_warp(thread: int) -> int:
        return warp_origin(kind.operand, part, converter.warps, thread // WARP)[0]

    right = first_of_thread(converter, kind, 1)
    first = LinearMap.of(first_of_warp, converter.threads).emit(converter)
    mine = first_of_thread(converter, kind, 0)
    keys = simt.sub(converter.ssa(op.keys), column)
    diagonal = simt.sub(row, column)
    end, least = [simt.sub(keys, right)] * len(downs), keys
    if (last := op.band.last) is not None:
        after = simt.add(diagonal, last + 1)
        own = simt.sub(simt.add(after, mine), right)
        end = [arith.minsi(each, _further(own, down)) for each, down in zip(end, downs)]
        least = arith.minsi(keys, simt.add(after, first))
    some = arith.cmpi(SLT, least, converter.constant(part.columns))
    start: list[ir.Value] | None = None
    if op.band.first is not None:
        before = simt.add(diagonal, op.band.first)
        own = simt.sub(simt.add(before, mine), right)
        start = [_further(own, down) for down in downs]
        most = simt.add(simt.add(before, first), downs[-1] + ROW_STEP - 1)
        some = simt.either_bits(some, arith.cmpi(SLT, converter.constant(0), most))

    def masked() -> list[ir.Value]:
        order = {down: number for number, down in enumerate(downs)}
        none, kept = simt.number(-math.inf), []
        for (down, right), score in zip(places, scores.registers, strict=True):
            place = converter.constant(right)
            has = arith.cmpi(SLT, place, end[order[down]])
            if start is not None:
                no_less = arith.cmpi(arith.CmpIPredicate.sge, place, start[order[down]])
                has = simt.both_bits(has, no_less)
            kept.append(arith.select(has, score, none))
        return kept

    converter.values[op.masked] = _branch(some, scores, masked)


def _further(value: ir.Value, rows: int) -> ir.Value:
    return simt.add(value, rows) if rows else value


@lower(tc.StoreFragmentRowsOp)
def convert_store_fragment_rows(converter: Converter, op: tc.StoreFragmentRowsOp) -> None:
    """Emits a store in which the first of the four threads that share a row stores the row's
    number."""
    require_role(converter, op)
    rows = converter.record(op.rows, Fragment)
    tensor = converter.record(op.tensor, GlobalTensor)
    part = share(op.rows.type.atom, ROW, op.rows.type.shape, converter.warps)
    *outer, first = (converter.ssa(index) for index in op.indices)
    row = simt.add(first, first_of_thread(converter, op.rows.type, 0))
    line = simt.mul(simt.linear(outer, tensor.shape), tensor.shape[-1])
    quarter = simt.both_bits(converter.lane, QUAD - 1)
    leads = is_equal(converter, quarter, 0)
    end = None if op.end is None else converter.ssa(op.end)
    downs = [top + step for top, _ in part.atoms() for step in (0, ROW_STEP)]
    for down, register in zip(downs, rows.registers, strict=True):
        at = simt.add(row, down) if down else row
        inside = less(converter, at, tensor.shape[-1])
        if end is not None:
            inside = simt.both_bits(inside, arith.cmpi(SLT, at, end))
        with simt.only_if(simt.both_bits(leads, inside)):
            place = simt.mul(simt.add(line, simt.wide(at)), 4)
            pointer = llvm.getelementptr(converter.pointers[tensor.argument], place)
            llvm.store(register, pointer, alignment=4)
