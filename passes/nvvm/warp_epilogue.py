"""Lowering of epilogues on accumulators in registers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from math import prod

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.fragments import share
from tcir.dialect.warp_types import ATOM_COLUMNS
from tcir.errors import PassError
from tcir.layout.atoms import mma_atom

from .converter import Converter, Fragment, GlobalTensor, lower
from .float_casts import rounded_codes
from .loads import check_beside, numbers_at
from .scalar import is_fp8
from .warp_copy import byte_pointer
from .warp_store import PAIR, Held, less, places_of


@lower(tc.FragmentEpilogueOp)
def convert_fragment_epilogue(converter: Converter, op: tc.FragmentEpilogueOp) -> None:
    """Emits the body once for every register.

    The operands that a row of atoms needs are loaded before its bodies are computed, so that the
    loads overlap, and the results use the registers of the sums. Rounding to fp8 comes last, two
    registers at a time.
    """
    sums = converter.record(op.sums, Fragment)
    held = Held.create(converter, op.out.type, op)
    block, tails = op.body.blocks[0], string(op, "tails").split()
    *ops, end = block.operations
    (yielded,) = end.operation.operands
    rounding = _last_rounding(yielded)
    if rounding is not None:
        ops.remove(rounding)
        yielded = rounding.operation.operands[0]
    beside: list[_Beside | _Fetched] = []
    computed: list[ir.OpView] = []
    for each in ops:
        if isinstance(each, tc.ElementOp):
            with each.location:
                beside.append(_source(converter, each, held, tails))
        elif each.operation.name == "arith.constant":
            converter.convert_op(each)
        else:
            computed.append(each)
    results: list[ir.Value] = []
    height = mma_atom(sums.type.atom).shape[0]
    given = _given(converter, op, sums)
    for _, row in groupby(held.places, lambda place: place[0] // height):
        places = list(row)
        for source in beside:
            source.load(places)
        for place in places:
            for argument, registers in zip(block.arguments, given, strict=True):
                converter.values[argument] = registers[place]
            for source in beside:
                converter.values[source.op.value] = source.number(place)
            for each in computed:
                converter.convert_op(each)
            results.append(converter.ssa(yielded))
    if rounding is not None:
        with rounding.location:
            results = rounded_codes(results, yielded, str(op.out.type.element))
    converter.values[op.out] = Fragment(op.out.type, tuple(results))


def _given(
    converter: Converter, op: tc.FragmentEpilogueOp, sums: Fragment
) -> list[dict[tuple[int, int], ir.Value]]:
    """For each argument of the body, the registers by rows and columns of the result."""
    found = dict(zip(places_of(sums.type, converter.warps), sums.registers, strict=True))
    if not op.gated:
        return [found]
    halves: list[dict[tuple[int, int], ir.Value]] = [{}, {}]
    for (down, right), register in found.items():
        block, column = divmod(right, ATOM_COLUMNS)
        halves[block % 2][down, block // 2 * ATOM_COLUMNS + column] = register
    return halves


@lower(tc.FetchFragmentOp)
def convert_fetch_fragment(converter: Converter, op: tc.FetchFragmentOp) -> None:
    """Emits a load for each pair of columns of a matrix; two 16-bit numbers form a word."""
    held = Held.create(converter, op.fragment.type, op)
    source = _Beside.create(converter, op, held, string(op, "tails").split())
    source.load(held.places)
    numbers = tuple(source.number(place) for place in held.places)
    words = Fragment(op.fragment.type, numbers).carried
    converter.values[op.fragment] = Fragment(op.fragment.type, words, len(words) < len(numbers))


@lower(tc.FragmentPartOp)
def convert_fragment_part(converter: Converter, op: tc.FragmentPartOp) -> None:
    """Returns the registers of the selected atoms."""
    whole, first = converter.record(op.whole, Fragment), integer(op, "first")
    columns = range(first, first + op.columns.type.shape[1])
    part = share(whole.type.atom, "C", whole.type.shape, converter.warps)
    if part.columns != whole.type.shape[1] or whole.packed:
        raise PassError(
            f"expected sums in warps of whole rows (tc.warps = [w, 1]), got {converter.warps} of "
            f"{whole.type}: other columns are in other threads"
        )
    taken = [
        whole.registers[at * part.registers + n]
        for at, (_, column) in enumerate(part.atoms())
        if column in columns
        for n in range(part.registers)
    ]
    converter.values[op.columns] = Fragment(op.columns.type, tuple(taken))


def _last_rounding(yielded: ir.Value) -> ir.OpView | None:
    """The op that rounds a body's result to fp8, if it has no other use."""
    if isinstance(yielded.owner, ir.Block) or len(list(yielded.uses)) > 1:
        return None
    op: ir.OpView = yielded.owner.opview
    return op if op.operation.name == "arith.truncf" and is_fp8(yielded.type) else None


def _source(
    converter: Converter, op: tc.ElementOp, held: Held, tails: list[str]
) -> _Beside | _Fetched:
    if isinstance(op.tensor.type, tc.FragmentType):
        numbers = converter.record(op.tensor, Fragment).numbers
        return _Fetched(op, dict(zip(held.places, numbers, strict=True)))
    return _Beside.create(converter, op, held, tails)


@dataclass(frozen=True)
class _Fetched:
    """Elements of a tensor that a thread has already loaded beside its sums, by rows and
    columns."""

    op: tc.ElementOp
    numbers: dict[tuple[int, int], ir.Value]

    def load(self, places: list[tuple[int, int]]) -> None:
        """Emits nothing, because the elements have been fetched before."""

    def number(self, place: tuple[int, int]) -> ir.Value:
        """The element of the operand that belongs to the accumulator register at `place`."""
        return self.numbers[place]


@dataclass(frozen=True)
class _Beside:
    """What a thread reads of a tensor beside its sums.

    address: of what belongs to register 0; down, right: bytes from there to the next row and
             column of the result, 0 where all are alike
    bounds:  how far the tensor goes along rows and columns; None: further than the tile
    pixel:   of rows on a walk, by dimension of the result: extent and pitch of the tensor
    numbers: what is loaded so far, by rows and columns from register 0
    """

    converter: Converter
    op: tc.ElementOp | tc.FetchFragmentOp
    held: Held
    element: ir.Type
    address: ir.Value
    down: int
    right: int
    bounds: tuple[int | None, int | None]
    pixel: dict[int, tuple[int, int]]
    numbers: dict[tuple[int, int], ir.Value] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        converter: Converter,
        op: tc.ElementOp | tc.FetchFragmentOp,
        held: Held,
        tails: list[str],
    ) -> _Beside:
        """Computes the address of the operand's elements for the executing thread."""
        check_beside(op.tensor.type)
        tensor = converter.record(op.tensor, GlobalTensor)
        size = tc.element_bytes(tensor.element)
        linear = converter.constant(0, 64)
        i64 = ir.IntegerType.get_signless(64)
        rank = op.out_rank
        walked = list(range(rank - 1)) if held.walk else []
        first = dict(zip(range(rank - len(held.first), rank), held.first, strict=True))
        for dim, extent in zip(op.dims, tensor.shape, strict=True):
            linear = arith.muli(linear, converter.constant(extent, 64))
            if dim is not None and dim not in walked:
                linear = arith.addi(linear, arith.extui(i64, first[dim]))
        offset = arith.muli(linear, converter.constant(size, 64))
        address = llvm.getelementptr(converter.pointers[tensor.argument], offset)

        def along(dim: int) -> tuple[int, int]:
            """Extent and pitch of the operand along a dimension of the result."""
            if dim not in op.dims:
                return 0, 0
            place = op.dims.index(dim)
            return tensor.shape[place], prod(tensor.shape[place + 1 :]) * size

        (height, down), (width, right) = (along(rank - 2), along(rank - 1))
        bounds = (
            height if down and "outer" in tails else None,
            width if right and "inner" in tails else None,
        )
        pixel = {dim: along(dim) for dim in walked if dim in op.dims}
        if held.walk:
            down, bounds = 0, (None, bounds[1])
        return cls(converter, op, held, tensor.element, address, down, right, bounds, pixel)

    def load(self, places: list[tuple[int, int]]) -> None:
        """Emits loads of the elements that these registers need, two neighbouring columns at a time
        if they are aligned."""
        size = tc.element_bytes(self.element)
        wide = self.right == size and self.op.tensor.type.shape[-1] % PAIR == 0
        for place in places:
            key = down, right = self._key(place)
            if key in self.numbers:
                continue
            count = PAIR if wide and right % PAIR == 0 else 1
            with self.op.location:
                start = self._of_pixel(down) if self.pixel else self.address
                at = byte_pointer(start, down * self.down + right * self.right)
                found = numbers_at(self.converter, self._fits(key), at, [0], count, self.element)
            self.numbers.update({(down, right + n): number for n, number in enumerate(found)})

    def number(self, place: tuple[int, int]) -> ir.Value:
        """The element of the operand that belongs to the accumulator register at `place`."""
        return self.numbers[self._key(place)]

    def _key(self, place: tuple[int, int]) -> tuple[int, int]:
        return place[0] if self.down or self.pixel else 0, place[1] if self.right else 0

    def _of_pixel(self, down: int) -> ir.Value:
        """Address of the element for the first column of a row on a walk."""
        assert self.held.walk is not None
        i64 = ir.IntegerType.get_signless(64)
        address, at = self.address, self.held.walk.pixel(down)
        for dim, (_, pitch) in self.pixel.items():
            offset = arith.muli(arith.extui(i64, at[dim]), self.converter.constant(pitch, 64))
            address = llvm.getelementptr(address, offset)
        return address

    def _fits(self, key: tuple[int, int]) -> ir.Value | None:
        """Whether the element is inside; None: it is."""
        tests = [
            less(self.converter, first, bound - offset)
            for first, bound, offset in zip(self.held.first[-2:], self.bounds, key, strict=True)
            if bound is not None
        ]
        if self.pixel and self.held.walk:
            extents = [extent for extent, _ in self.pixel.values()]
            tests.append(self.held.walk.inside(key[0], list(self.pixel), extents))
        return arith.andi(*tests) if len(tests) == 2 else tests[0] if tests else None
