"""Lowering of stores of accumulators to global memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import reduce

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integers, string
from tcir.dialect.fragments import elements, share, warp_origin
from tcir.dialect.limits import WARP
from tcir.dialect.warp_types import WALK
from tcir.passes.emit import simt

from .converter import Converter, Fragment, GlobalTensor, i32, lower
from .linear import LinearMap
from .structure import is_equal
from .warp_copy import byte_pointer, global_pointer

PAIR = 2
"""Adjacent columns of each row of an atom held by a thread (PTX ISA 9.7.14.5)."""
QUAD = 4
"""Threads that hold a row of an atom."""
ATOM = PAIR * QUAD
"""Its columns."""
ROW_STEP = 8
"""Rows from one of a thread's rows of an atom to the other (PTX ISA 9.7.14.5)."""
UNIT, WORD, HALF = 16, 4, 16
"""Bytes of the largest store, and of a register; bits of half a register."""


@lower(tc.StoreFragmentOp)
def convert_store(converter: Converter, op: tc.StoreFragmentOp) -> None:
    """Emits stores in which each thread stores pairs of adjacent columns, or single columns if a
    pair may cross the edge of the tensor.

    If rows and tiles consist of whole units of 16 bytes, the four threads that share a row exchange
    pairs (two pairs for results of 32 bits). Each thread then stores 16 bytes, and together the
    threads fill 32-byte sectors.
    """
    _store_rows(converter, op, None)


@lower(tc.StoreFragmentGroupOp)
def convert_store_group(converter: Converter, op: tc.StoreFragmentGroupOp) -> None:
    """Like `convert_store`, but only rows before the group's end are stored."""
    _store_rows(converter, op, converter.ssa(op.end))


def _store_rows(
    converter: Converter, op: tc.StoreFragmentOp | tc.StoreFragmentGroupOp, end: ir.Value | None
) -> None:
    """Stores the rows before `end`; None: those in the tensor, if `tails` names them."""
    fragment = converter.record(op.fragment, Fragment)
    tensor = converter.record(op.tensor, GlobalTensor)
    tails = string(op, "tails").split()
    bytes_ = tc.element_bytes(tensor.element)
    height, width = tensor.shape[-2:]
    held = Held.create(converter, fragment.type, op)
    *batch, row, column = held.first
    size = PAIR if width % PAIR == 0 else 1
    by_row: dict[int, list[tuple[int, ir.Value]]] = {}
    for (down, right), register in zip(held.places, fragment.numbers, strict=True):
        by_row.setdefault(down, []).append((right, register))
    if _fits_units(fragment.type.shape[1], bytes_, width, len(next(iter(by_row.values())))):
        exchanged = _exchanged if bytes_ < WORD else _exchanged_words
        by_row, column, size = exchanged(converter, by_row, tensor.element, column)
    byte = arith.MulIOp(column, converter.constant(bytes_)).result

    def pointer(rows: list[ir.Value]) -> ir.Value:
        return global_pointer(converter, tensor, rows, width * bytes_, byte)

    start = None if held.walk else pointer([*batch, row])
    for down, values in by_row.items():
        if held.walk:
            images = tensor.shape[-4:]
            inside, further = held.walk.inside(down, range(3), images), 0
            start = pointer([held.walk.matrix_row(down, images, batch)])
        else:
            inside = less(converter, row, height - down) if "outer" in tails else None
            if end is not None:
                inside = simt.less(converter.add(row, down), end)
            further = down * width * bytes_
        with simt.only_if(inside) if inside is not None else nullcontext():
            for group in _groups(values, size):
                right = group[0][0]
                fits = less(converter, column, width - right) if "inner" in tails else None
                with simt.only_if(fits) if fits is not None else nullcontext():
                    place = byte_pointer(start, further + right * bytes_)
                    _store([value for _, value in group], place, tensor.element, bytes_)


def _fits_units(columns: int, bytes_: int, width: int, held: int) -> bool:
    """Whether the threads of a row can exchange units of 16 bytes of so many columns of a result
    `width` wide; held: numbers that a thread has of a row."""
    unit = UNIT // bytes_
    return width % unit == columns % (_sharing(bytes_) * unit) == held % unit == 0


def _sharing(bytes_: int) -> int:
    """Threads of a row that exchange: two with numbers of 32 bits, all with shorter ones."""
    return PAIR if bytes_ == WORD else QUAD


def _exchanged(
    converter: Converter,
    by_row: dict[int, list[tuple[int, ir.Value]]],
    element: ir.Type,
    column: ir.Value,
) -> tuple[dict[int, list[tuple[int, ir.Value]]], ir.Value, int]:
    """Rows rounded to `element` and transposed among the four threads of a row, as words: thread c
    of them has unit c of four, 16 bytes, so that its first column is c (unit - 2) further; returns
    the rows, its first column, and the words that it stores at a time."""
    bytes_ = tc.element_bytes(element)
    unit, held = UNIT // bytes_, WORD // bytes_
    own = arith.AndIOp(converter.lane, converter.constant(QUAD - 1)).result
    further = arith.MulIOp(own, converter.constant(unit - PAIR)).result
    column = arith.AddIOp(column, further).result
    rows = {}
    for down, values in by_row.items():
        ordered = _groups(values, held)
        words = [packed([value for _, value in group], element) for group in ordered]
        rows[down] = [
            (ordered[first][0][0] + held * place, value)
            for first in range(0, len(words), QUAD)
            for place, value in enumerate(
                _in_order(_transposed(converter, words[first : first + QUAD], own), bytes_)
            )
        ]
    return rows, column, QUAD


def _exchanged_words(
    converter: Converter,
    by_row: dict[int, list[tuple[int, ir.Value]]],
    element: ir.Type,
    column: ir.Value,
) -> tuple[dict[int, list[tuple[int, ir.Value]]], ir.Value, int]:
    """The same of numbers of 32 bits: of two neighbouring threads with a pair of each of two atoms
    the first takes the first atom's, the second the other's, 8 columns to the right and 2 back."""
    own = arith.AndIOp(converter.lane, converter.constant(1)).result
    is_second = is_equal(converter, own, 1)
    every, clamp = converter.constant(-1), converter.constant(WARP - 1)
    further = arith.MulIOp(own, converter.constant(ATOM - PAIR)).result
    rows: dict[int, list[tuple[int, ir.Value]]] = {}
    for down, values in by_row.items():
        rows[down] = []
        for group in _groups(values, 2 * PAIR):
            words = [llvm.bitcast(i32(), value) for _, value in group]
            first, second = words[:PAIR], words[PAIR:]
            sent = [arith.SelectOp(is_second, *pair).result for pair in zip(first, second)]
            got = [nvvm.shfl_sync_bfly(every, word, converter.constant(1), clamp) for word in sent]
            first = [arith.SelectOp(is_second, *pair).result for pair in zip(got, first)]
            second = [arith.SelectOp(is_second, *pair).result for pair in zip(second, got)]
            rows[down] += [(group[0][0] + i, word) for i, word in enumerate([*first, *second])]
    return rows, arith.AddIOp(column, further).result, 2 * PAIR


def packed(values: list[ir.Value], element: ir.Type) -> ir.Value:
    """Packs two numbers, rounded to 16 bits, or four numbers, rounded to 8 bits, into a word."""
    if tc.element_bytes(element) == 1:
        low, high = (two_bytes(*values[first : first + PAIR]) for first in (0, PAIR))
        return _halves(low, high)
    if values[0].type != element:
        values = [arith.TruncFOp(element, value).result for value in values]
    return llvm.bitcast(i32(), simt.vector_of(values))


def _in_order(words: list[ir.Value], bytes_: int) -> list[ir.Value]:
    """Words as they follow each other in memory: of bytes one from each thread has two columns of
    the first atom of a unit, and two of the second."""
    if bytes_ == PAIR:
        return words
    first, second, third, fourth = words
    atoms = [_halves(first, second), _halves(third, fourth)]
    return atoms + [
        simt.either_bits(simt.right(low, HALF), simt.both_bits(high, 0xFFFF0000))
        for low, high in ((first, second), (third, fourth))
    ]


def _halves(low: ir.Value, high: ir.Value) -> ir.Value:
    """The low halves of two words."""
    return simt.either_bits(simt.both_bits(low, 0xFFFF), simt.left(high, HALF))


def two_bytes(low: ir.Value, high: ir.Value) -> ir.Value:
    """Packs the low bytes of two words."""
    return simt.either_bits(simt.both_bits(low, 0xFF), simt.left(simt.both_bits(high, 0xFF), 8))


def _transposed(converter: Converter, words: list[ir.Value], own: ir.Value) -> list[ir.Value]:
    """Word i of the result is word `own` of thread i of the four."""
    every, clamp = converter.constant(-1), converter.constant(WARP - 1)
    for bit in (1, 2):
        is_set = is_equal(converter, arith.AndIOp(own, converter.constant(bit)).result, bit)
        for low in (n for n in range(QUAD) if not n & bit):
            kept, sent = (
                arith.SelectOp(is_set, *pair).result
                for pair in ((words[low | bit], words[low]), (words[low], words[low | bit]))
            )
            got = nvvm.shfl_sync_bfly(every, sent, converter.constant(bit), clamp)
            words[low] = arith.SelectOp(is_set, got, kept).result
            words[low | bit] = arith.SelectOp(is_set, kept, got).result
    return words


@dataclass(frozen=True)
class PixelWalk:
    """The rows of a thread as positions on a walk through images of `height` by `width` positions.

    first: position of register 0
    found: n, p and q of a row, by the row's distance from the first row
    """

    converter: Converter
    first: ir.Value
    height: int
    width: int
    found: dict[int, list[ir.Value]] = field(default_factory=dict)

    def pixel(self, down: int) -> list[ir.Value]:
        """The indices n, p and q of the pixel at the thread's row `down`, as i32 values."""
        if down not in self.found:
            constant = self.converter.constant
            position = arith.AddIOp(self.first, constant(down)).result
            line = arith.DivUIOp(position, constant(self.width)).result
            q = arith.RemUIOp(position, constant(self.width)).result
            n = arith.DivUIOp(line, constant(self.height)).result
            p = arith.RemUIOp(line, constant(self.height)).result
            self.found[down] = [n, p, q]
        return self.found[down]

    def inside(self, down: int, dims: Iterable[int], extents: Sequence[int]) -> ir.Value:
        """Whether the given dimensions (at least one) of a row's pixel are below `extents`."""
        at = self.pixel(down)
        tests = [less(self.converter, at[dim], extent) for dim, extent in zip(dims, extents)]
        return reduce(lambda both, each: arith.AndIOp(both, each).result, tests)

    def matrix_row(
        self, down: int, shape: Sequence[int], part: Sequence[ir.Value] = ()
    ) -> ir.Value:
        """The number of the pixel's row in an NHWC tensor that is viewed as a matrix, or in the
        matrix of part `part`."""
        n, p, q = self.pixel(down)
        for number in part:
            before = arith.MulIOp(number, self.converter.constant(shape[0])).result
            n = arith.AddIOp(before, n).result
        for digit, extent in ((p, shape[1]), (q, shape[2])):
            n = arith.AddIOp(arith.MulIOp(n, self.converter.constant(extent)).result, digit).result
        return n


@dataclass(frozen=True)
class Held:
    """Positions of a thread's accumulator registers in the result.

    first:  the indices of register 0, as i32 values in the executing thread
    places: offsets in rows and columns from register 0 to each register, which are the same for
        every thread; the registers of a row of atoms are followed by those of the next row
    walk:   the walk over an image, if rows of the accumulator are positions on it
    """

    first: list[ir.Value]
    places: list[tuple[int, int]]
    walk: PixelWalk | None

    @staticmethod
    def create(
        converter: Converter,
        kind: tc.FragmentType,
        op: tc.StoreFragmentOp
        | tc.StoreFragmentGroupOp
        | tc.FragmentEpilogueOp
        | tc.FetchFragmentOp
        | tc.StoreFragmentScalesOp,
    ) -> Held:
        """Returns the positions for a fragment of C whose first element has the indices of `op`."""
        *batch, m0, n0 = (converter.ssa(index) for index in op.indices)
        row, column = (
            arith.AddIOp(first, first_of_thread(converter, kind, axis)).result
            for axis, first in enumerate((m0, n0))
        )
        places = places_of(kind, converter.warps)
        walk = None
        if WALK in op.attributes:
            height, width = integers(op, WALK)
            walk = PixelWalk(converter, row, height, width)
        return Held([*batch, row, column], places, walk)


def first_of_thread(converter: Converter, kind: tc.FragmentType, axis: int) -> ir.Value:
    """Row (axis 0) or column (axis 1) of the first accumulator register of the executing thread."""
    part = share(kind.atom, kind.operand, kind.shape, converter.warps)
    held = elements(kind.atom, "C")

    def number(thread: int) -> int:
        warp, lane = divmod(thread, WARP)
        origin = warp_origin(kind.operand, part, converter.warps, warp)
        return origin[axis] + held[0][lane][0][axis]

    return LinearMap.of(number, converter.threads).emit(converter)


def of_quad(value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Combines the f32 values of the four threads that share a row by `combine`."""
    for distance in (1, 2):
        other = simt.shuffle_xor(llvm.bitcast(i32(), value), distance)
        value = combine(value, simt.as_f32(other))
    return value


def places_of(kind: tc.FragmentType, warps: tuple[int, int]) -> list[tuple[int, int]]:
    """Row and column of each accumulator register of a thread, relative to its first register. They
    are the same for every thread."""
    part, held = share(kind.atom, "C", kind.shape, warps), elements(kind.atom, "C")
    down, right = held[0][0][0]
    return [
        (atom_row + lanes[0][0][0] - down, atom_column + lanes[0][0][1] - right)
        for atom_row, atom_column in part.atoms()
        for lanes in held
    ]


def _groups(values: list[tuple[int, ir.Value]], size: int) -> list[list[tuple[int, ir.Value]]]:
    ordered = sorted(values, key=lambda pair: pair[0])
    return [ordered[i : i + size] for i in range(0, len(ordered), size)]


def less(converter: Converter, value: ir.Value, limit: int) -> ir.Value:
    """Whether an index is below `limit`."""
    bound = converter.constant(limit)
    return arith.CmpIOp(arith.CmpIPredicate.slt, value, bound).result


def _store(values: list[ir.Value], place: ir.Value, element: ir.Type, bytes_: int) -> None:
    if bytes_ == 1 and len(values) <= PAIR:
        _store_bytes(values, place)
        return
    narrow = values[0].type not in (element, i32())
    if narrow:
        values = [arith.TruncFOp(element, value).result for value in values]
    if len(values) == 1:
        llvm.store(values[0], place, alignment=bytes_)
        return
    llvm.store(
        simt.vector_of(values), place, alignment=tc.element_bytes(values[0].type) * len(values)
    )


def _store_bytes(words: list[ir.Value], place: ir.Value) -> None:
    """The low byte of an i32, or of two neighbours."""
    if len(words) == 1:
        simt.store_byte(place, words[0])
        return
    pair = arith.trunci(ir.IntegerType.get_signless(16), two_bytes(*words))
    llvm.store(pair, place, alignment=2)
