"""Rows of fragments: maxima and sums by shuffles, exponentials, and C as A of the next product.

A thread has elements of two rows of each atom, 8 apart, and the numbers of both in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from tcir._mlir import arith, ir, llvm, scf
from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.fragments import elements, share, warp_origin
from tcir.dialect.limits import WARP
from tcir.dialect.ops.attention import FAR, LN_2
from tcir.passes.emit import simt
from tcir.passes.emit.functions.f32 import each

from .converter import Converter, Fragment, GlobalTensor, i32, lower, require_role
from .linear import Linear
from .structure import only_if
from .warp_store import PAIR, QUAD, places_of

MINUS_INFINITY = float("-inf")
ROW_STEP = 8
"""Rows from one of a thread's rows of an atom to the other (PTX ISA 9.7.14.5)."""


def _number(op: ir.OpView, name: str) -> ir.Value:
    return simt.number(ir.FloatAttr(op.attributes[name]).value)


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


def _of_quad(value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """`combine` of the numbers of the four threads with a row."""
    for distance in (1, 2):
        other = simt.shuffle_xor(llvm.bitcast(i32(), value), distance)
        value = combine(value, simt.as_f32(other))
    return value


@lower(tc.FillRowsOp)
def convert_fill_rows(converter: Converter, op: tc.FillRowsOp) -> None:
    """A constant."""
    part = share(op.rows.type.atom, "row", op.rows.type.shape, converter.warps)
    count = len(part.atoms()) * part.registers
    converter.values[op.rows] = Fragment(op.rows.type, (_number(op, "value"),) * count)


@lower(tc.OnlineMaxOp)
def convert_online_max(converter: Converter, op: tc.OnlineMaxOp) -> None:
    """The maximum of a thread's columns, of the four threads with the row; then a few
    instructions for a row."""
    scores, before = (converter.record(v, Fragment) for v in (op.scores, op.before))
    scale, tau = _number(op, "scale"), ir.FloatAttr(op.attributes["tau"]).value
    now, references, alphas = [], [], []
    rows = _by_row(converter, scores).values()
    for old, held in zip(before.registers, rows, strict=True):
        largest = _of_quad(_tree(arith.maxnumf, [value for _, value in held]), arith.maxnumf)
        after = arith.maxnumf(old, largest)
        empty = arith.cmpf(arith.CmpFPredicate.OEQ, after, simt.number(MINUS_INFINITY))
        reference = arith.select(empty, simt.number(0.0), after)
        was, at = (arith.mulf(each, scale) for each in (old, reference))
        far = simt.either_bits(_is_far(was), _is_far(at))
        difference = arith.mulf(arith.subf(old, reference), scale)
        exponent = arith.select(far, difference, arith.subf(was, at))
        alpha = each("ex2.approx.ftz.f32", exponent)
        if tau > 0:
            keeps = arith.cmpf(arith.CmpFPredicate.OGE, exponent, simt.number(-tau))
            after, reference = (arith.select(keeps, old, new) for new in (after, reference))
            alpha = arith.select(keeps, simt.number(1.0), alpha)
        now.append(after)
        references.append(reference)
        alphas.append(alpha)
    for result, made in ((op.now, now), (op.reference, references), (op.alpha, alphas)):
        converter.values[result] = Fragment(result.type, tuple(made))


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
    """An fma and ex2 for an element; in warps with a row beyond `FAR` a difference before."""
    scores, reference = (converter.record(v, Fragment) for v in (op.scores, op.reference))
    scale, zero = _number(op, "scale"), simt.number(0.0)
    products = [arith.mulf(row, scale) for row in reference.registers]
    far = [_is_far(product) for product in products]
    kinds = [value.type for value in scores.registers]
    branch = scf.IfOp(simt.any_lane(reduce(simt.either_bits, far)), kinds, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        taken = [
            arith.select(is_far, row, zero)
            for is_far, row in zip(far, reference.registers, strict=True)
        ]
        scf.YieldOp(
            list(_each_element(converter, scores, lambda row, s: arith.subf(s, taken[row])))
        )
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(list(scores.registers))
    less = [
        arith.select(is_far, zero, arith.negf(product))
        for is_far, product in zip(far, products, strict=True)
    ]
    from_there = Fragment(op.scores.type, tuple(branch.results))
    powers = _each_element(
        converter,
        from_there,
        lambda row, score: each("ex2.approx.ftz.f32", simt.fma(score, scale, less[row])),
    )
    converter.values[op.powers] = Fragment(op.powers.type, powers)


def _is_far(exponent: ir.Value) -> ir.Value:
    """Whether the magnitude of an exponent of two is above `FAR`."""
    size = each("abs.f32", exponent)
    return arith.cmpf(arith.CmpFPredicate.OGT, size, simt.number(FAR))


@lower(tc.AddRowSumsOp)
def convert_add_row_sums(converter: Converter, op: tc.AddRowSumsOp) -> None:
    """The even and the odd columns of a thread in order, then the four threads."""
    before, alpha, powers = (
        converter.record(v, Fragment) for v in (op.before, op.alpha, op.elements)
    )
    totals = []
    rows = _by_row(converter, powers).values()
    for old, factor, held in zip(before.registers, alpha.registers, rows, strict=True):
        values = [value for _, value in held]
        even, odd = (reduce(arith.addf, values[first::PAIR]) for first in range(PAIR))
        total = _of_quad(arith.addf(even, odd), arith.addf)
        totals.append(simt.fma(old, factor, total))
    converter.values[op.now] = Fragment(op.now.type, tuple(totals))


@lower(tc.ScaleFragmentOp)
def convert_scale_fragment(converter: Converter, op: tc.ScaleFragmentOp) -> None:
    """``mul.rn.f32``, in warps with a factor that is not 1."""
    given, factors = (converter.record(v, Fragment) for v in (op.elements, op.factors))
    one = simt.number(1.0)
    other = (arith.cmpf(arith.CmpFPredicate.UNE, row, one) for row in factors.registers)
    some = simt.any_lane(reduce(simt.either_bits, other))
    branch = scf.IfOp(some, [value.type for value in given.registers], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scaled = _each_element(
            converter, given, lambda row, value: arith.mulf(value, factors.registers[row])
        )
        scf.YieldOp(list(scaled))
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(list(given.registers))
    converter.values[op.scaled] = Fragment(op.scaled.type, tuple(branch.results))


@lower(tc.InvertRowsOp)
def convert_invert_rows(converter: Converter, op: tc.InvertRowsOp) -> None:
    """``rcp.approx.ftz.f32`` of what is not 0 or NaN."""
    one = simt.number(1.0)
    inverse = []
    for row in converter.record(op.rows, Fragment).registers:
        usable = arith.cmpf(arith.CmpFPredicate.ONE, row, simt.number(0.0))
        inverse.append(each("rcp.approx.ftz.f32", arith.select(usable, row, one)))
    converter.values[op.inverse] = Fragment(op.inverse.type, tuple(inverse))


@lower(tc.LogSumRowsOp)
def convert_log_sum_rows(converter: Converter, op: tc.LogSumRowsOp) -> None:
    """``lg2.approx.ftz.f32``, a product, a sum, a product."""
    maximum, total = (converter.record(v, Fragment) for v in (op.maximum, op.total))
    scale, made = _number(op, "scale"), []
    for most, row in zip(maximum.registers, total.registers, strict=True):
        bits = arith.addf(arith.mulf(most, scale), each("lg2.approx.ftz.f32", row))
        empty = arith.cmpf(arith.CmpFPredicate.OEQ, row, simt.number(0.0))
        logarithm = arith.mulf(bits, simt.number(LN_2))
        made.append(arith.select(empty, simt.number(MINUS_INFINITY), logarithm))
    converter.values[op.logarithm] = Fragment(op.logarithm.type, tuple(made))


@lower(tc.FragmentAsAOp)
def convert_fragment_as_a(converter: Converter, op: tc.FragmentAsAOp) -> None:
    """Two neighbours of C in a register; of two atoms next to each other the four registers of one
    of A."""
    c = converter.record(op.c, Fragment)
    element = "f16x2" if str(op.a.type.element) == "f16" else "bf16x2"
    words = []
    for first in range(0, len(c.registers), PAIR):
        low, high = c.registers[first : first + PAIR]
        words.append(simt.asm(i32(), f"cvt.rn.{element}.f32 $0, $2, $1;", "=r,f,f", [low, high]))
    converter.values[op.a] = Fragment(op.a.type, tuple(words))


@lower(tc.MaskFragmentOp)
def convert_mask_fragment(converter: Converter, op: tc.MaskFragmentOp) -> None:
    """A comparison with a row's number of keys and a select for each element, in warps that have
    an element without its key."""
    scores = converter.record(op.scores, Fragment)
    kind = op.scores.type
    row, column = (converter.ssa(index) for index in (op.row, op.column))
    part, held = share(kind.atom, "C", kind.shape, converter.warps), elements(kind.atom, "C")
    places = places_of(kind, converter.warps)
    downs = sorted({down for down, _ in places})

    def of_thread(axis: int) -> ir.Value:
        def number(thread: int) -> int:
            warp, lane = divmod(thread, WARP)
            return warp_origin("C", part, converter.warps, warp)[axis] + held[0][lane][0][axis]

        return Linear.of(number, converter.threads).emit(converter)

    def first_of_warp(thread: int) -> int:
        return warp_origin("C", part, converter.warps, thread // WARP)[0]

    keys = simt.sub(converter.constant(integer(op, "keys")), column)
    own = simt.sub(keys, of_thread(1))
    limits, least = [own] * len(downs), keys
    if op.causal is not None:
        behind = simt.add(simt.sub(row, column), op.causal + 1)
        mine = simt.sub(simt.add(behind, of_thread(0)), of_thread(1))
        limits = [arith.minsi(own, simt.add(mine, down) if down else mine) for down in downs]
        first = Linear.of(first_of_warp, converter.threads).emit(converter)
        least = arith.minsi(keys, simt.add(behind, first))
    some = arith.cmpi(arith.CmpIPredicate.slt, least, converter.constant(part.columns))
    branch = scf.IfOp(some, [kind.element] * len(scores.registers), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        order = {down: number for number, down in enumerate(downs)}
        none, masked = simt.number(MINUS_INFINITY), []
        for (down, right), score in zip(places, scores.registers, strict=True):
            limit, at = limits[order[down]], converter.constant(right)
            kept = arith.cmpi(arith.CmpIPredicate.slt, at, limit)
            masked.append(arith.select(kept, score, none))
        scf.YieldOp(masked)
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(list(scores.registers))
    converter.values[op.masked] = Fragment(op.masked.type, tuple(branch.results))


@lower(tc.StoreFragmentRowsOp)
def convert_store_fragment_rows(converter: Converter, op: tc.StoreFragmentRowsOp) -> None:
    """The first of four threads with a row stores its number."""
    require_role(converter, op)
    rows = converter.record(op.rows, Fragment)
    tensor = converter.record(op.tensor, GlobalTensor)
    kind = op.rows.type
    part, held = share(kind.atom, "row", kind.shape, converter.warps), elements(kind.atom, "C")

    def number(thread: int) -> int:
        warp, lane = divmod(thread, WARP)
        return warp_origin("row", part, converter.warps, warp)[0] + held[0][lane][0][0]

    *outer, first = (converter.ssa(index) for index in op.indices)
    row = simt.add(first, Linear.of(number, converter.threads).emit(converter))
    line = simt.constant(0, 64)
    for index, extent in zip(outer, tensor.shape, strict=False):
        line = simt.add(simt.mul(line, extent), simt.wide(index))
    line = simt.mul(line, tensor.shape[-1])
    quarter = simt.both_bits(converter.lane, QUAD - 1)
    leads = arith.cmpi(arith.CmpIPredicate.eq, quarter, converter.constant(0))
    downs = [top + step for top, _ in part.atoms() for step in (0, ROW_STEP)]
    for down, register in zip(downs, rows.registers, strict=True):
        at = simt.add(row, down) if down else row
        inside = arith.cmpi(arith.CmpIPredicate.slt, at, converter.constant(tensor.shape[-1]))
        with only_if(simt.both_bits(leads, inside)):
            place = simt.mul(simt.add(line, simt.wide(at)), 4)
            pointer = llvm.getelementptr(converter.pointers[tensor.argument], place)
            llvm.store(register, pointer, alignment=4)
