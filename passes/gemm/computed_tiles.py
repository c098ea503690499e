"""Tiles of an operand that is computed from narrower numbers: TMA loads the stored numbers, and
warps convert them in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from tcir._mlir import arith, ir, memref
from tcir.dialect import tc
from tcir.dialect.attributes import integer_type, string
from tcir.dialect.limits import QUARTER_LANES, QUARTERS
from tcir.passes.analysis.computed import (
    UNIT,
    Computed,
    ComputedResult,
    Fixed,
    Node,
    NotComputedError,
    Read,
)
from tcir.passes.analysis.digits import ROW, Digit, Number
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.cluster import MulticastShare
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import BY_WARP
from tcir.passes.emit.limits import round_up
from tcir.passes.emit.narrow import WRAPPING
from tcir.passes.emit.operand_tiles import TiledOperand, k_major
from tcir.passes.emit.tile_kernel import argument, loop

WORD, BYTE = 32, 8


@dataclass(frozen=True)
class ComputedOperand:
    """An operand whose K-major tiles are computed by warps from tiles that TMA loads.

    type: the tiles that the tensor core reads
    stored: the tiles of stored numbers
    how: the computation that turns stored numbers into elements
    beside:  the kernel's memrefs of scales and zero points, with one dimension for each digit of
             their index
    """

    type: tc.SmemType
    stored: TiledOperand
    how: Computed
    beside: Sequence[tuple[Read, ir.Value]]

    @staticmethod
    def create(how: Computed, arguments: Sequence[ir.Value], rows: int) -> ComputedOperand:
        """Describes the operand in tiles of `rows` rows, in a kernel with these `arguments`."""
        numbers = argument(arguments, how.stored.argument)
        extents = {"mn": how.rows, "k": how.k // how.count}
        stored = TiledOperand.create(numbers, ("k", "mn"), extents, rows, how.step // how.count)
        beside = [
            (each, _in_digits(argument(arguments, each.argument), each.at)) for each in how.beside
        ]
        return ComputedOperand(k_major(rows, how.step, how.element), stored, how, beside)

    @property
    def map(self) -> ir.Value:
        """The tensor map by which the stored numbers are loaded."""
        return self.stored.map

    def load(
        self, tile: ir.Value, origin: dict[str, Index], share: MulticastShare | None = None
    ) -> Callable[[], None]:
        """Emits the load of the stored numbers of `tile`; returns the function that computes the
        tile from them."""
        assert share is None, "of one CTA: fuse-operands sees to it"
        numbers = tc.SmemTileOp(self.stored.type).tile
        column = index.div(origin["k"], self.how.count)
        self.stored.load(numbers, {"mn": origin["mn"], "k": column})
        return lambda: self._convert(numbers, tile, origin["mn"], column)

    def _convert(self, numbers: ir.Value, tile: ir.Value, row: Index, column: Index) -> None:
        """Each warp converts 32 rows of 16 bytes at a time, in turn with the others."""
        units = self.type.shape[0] // QUARTER_LANES * self.how.blocks
        with loop(QUARTERS) as warp:
            ir.InsertionPoint.current.block.owner.attributes[BY_WARP] = ir.UnitAttr.get()
            with loop(units // QUARTERS) as turn:
                unit = index.add(index.mul(turn, QUARTERS), warp)
                block = index.rem(unit, self.how.blocks)
                first = index.mul(index.div(unit, self.how.blocks), QUARTER_LANES)
                inside = index.mul(block, self.how.columns)
                made = _Unit(self, numbers, row, column, first, inside).elements()
                place = index.values([first, index.mul(inside, self.how.count)])
                tc.StoreSharedOp(made, tile, *place)


def is_computed(op: tc.MatmulOp) -> bool:
    """Whether an operand of a product is computed by the product's kernel."""
    return not all(isinstance(each, ir.BlockArgument) for each in (op.a, op.b))


def check_computed(op: tc.MatmulOp) -> None:
    """Raises a match failure for a product with an operand that its kernel cannot compute."""
    for operand, layout in ((op.a, "a_layout"), (op.b, "b_layout")):
        if not isinstance(operand, ir.BlockArgument):
            try:
                Computed.of(operand, string(op, layout))
            except NotComputedError as problem:
                raise match_failure(
                    op, f"{problem}; make the operand an argument, or take the pipeline layers"
                ) from problem


def rows_step(op: tc.MatmulOp) -> int:
    """The number that must divide the columns of a computed tile of B, so that warps get equal
    shares."""
    blocks = Computed.of(op.b, string(op, "b_layout")).blocks
    return QUARTER_LANES * max(1, QUARTERS // blocks)


def check_computed_rows(op: tc.MatmulOp, n_tile: int) -> None:
    """Raises a match failure if four warps cannot each compute an equal number of the columns of a
    tile of B."""
    if isinstance(op.b, ir.BlockArgument):
        return
    step = rows_step(op)
    if n_tile % step:
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {step} where four warps compute a tile of B, got "
            f"{n_tile}: each converts {QUARTER_LANES} rows of {UNIT} bytes at a time; take n-tile="
            f"{round_up(n_tile, step)}",
        )


def _in_digits(tensor: ir.Value, at: Number) -> ir.Value:
    """The memref with a dimension for each digit."""
    shape, kind = [each.extent for each in at], tensor.type
    if list(kind.shape) == shape:
        return tensor
    rank, element = len(kind.shape), kind.element_type
    every = [list(range(rank))] if shape else []
    flat = ir.MemRefType.get([prod(kind.shape)] if shape else [], element)
    if rank != 1 or not shape:
        tensor = memref.CollapseShapeOp(flat, tensor, every).result
    if len(shape) > 1:
        made = ir.MemRefType.get(shape, element)
        groups = [list(range(len(shape)))]
        tensor = memref.ExpandShapeOp(made, tensor, groups, [], shape).result
    return tensor


@dataclass
class _Unit:
    """Register tiles of 32 rows and a run of columns: bytes are words, sign-extended."""

    operand: ComputedOperand
    numbers: ir.Value
    row: Index
    column: Index
    first: Index
    inside: Index
    made: dict[object, ir.Value] = field(default_factory=dict)

    def elements(self) -> ir.Value:
        """Computes elements of the operand in the order of k, followed by zeros for k past the end,
        whatever the scales are."""
        how = self.operand.how
        made = _side_by_side([self._tile(lane) for lane in how.lanes])
        if how.k % how.step == 0:
            return made
        at, end = index.add(self.column, self.inside), index.value(how.k // how.count)
        inside = arith.cmpi(arith.CmpIPredicate.ult, index.value(at), end)
        nothing = ir.DenseElementsAttr.get_splat(made.type, ir.FloatAttr.get(how.element, 0.0))
        zeros = arith.ConstantOp(made.type, nothing).result
        return arith.SelectOp(inside, made, zeros).result

    def _tile(self, node: Node) -> ir.Value:
        key = (node.argument, node.at) if isinstance(node, Read) else node
        if key not in self.made:
            match node:
                case Read():
                    self.made[key] = self._read(node)
                case Fixed():
                    self.made[key] = self._constant(node.element, node.value)
                case ComputedResult():
                    with node.op.location:
                        self.made[key] = self._result(node)
        return self.made[key]

    def _kind(self, element: ir.Type) -> ir.VectorType:
        return ir.VectorType.get([QUARTER_LANES, self.operand.how.columns], element)

    def _held(self, element: ir.Type) -> ir.VectorType:
        """The type in registers."""
        return self._kind(integer_type(WORD) if str(element) == "i8" else element)

    def _read(self, read: Read) -> ir.Value:
        kind = self._kind(read.element)
        if read.by_column:
            place = index.values([self.first, self.inside])
            loaded = tc.LoadSharedOp(self.numbers, *place, kind).value
        else:
            loaded = self._beside(read, kind)
        return arith.ExtSIOp(self._held(read.element), loaded).result if _is_byte(read) else loaded

    def _beside(self, read: Read, kind: ir.VectorType) -> ir.Value:
        (tensor,) = (
            memory
            for each, memory in self.operand.beside
            if (each.argument, each.at) == (read.argument, read.at)
        )
        op = tc.LoadRowsOp(tensor, index.values([self._place(each) for each in read.at]), kind)
        rows = [n for n, each in enumerate(read.at) if each.dim == ROW and each.step == 1]
        if rows:
            op.attributes["row_dim"] = i64(rows[0])
        return op.value

    def _place(self, digit: Digit) -> Index:
        """A digit of the unit's first element."""
        if digit.dim is None:
            return digit.step
        if digit.dim == ROW:  # beyond the last: nothing is read
            return index.div(index.add(self.row, self.first), digit.step)
        at = index.div(index.add(self.column, self.inside), digit.step)
        last = digit.step * digit.extent * self.operand.how.count == self.operand.how.k
        return at if last else index.rem(at, digit.extent)

    def _constant(self, element: ir.Type, value: ir.Attribute) -> ir.Value:
        kind = self._held(element)
        if kind.element_type != element:
            value = ir.IntegerAttr.get(kind.element_type, ir.IntegerAttr(value).value)
        return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, value)).result

    def _result(self, node: ComputedResult) -> ir.Value:
        op, operands = node.op, [self._tile(each) for each in node.operands]
        source = node.operands[-1].element
        kind = self._held(node.element)
        byte = str(source) == "i8"
        match op.name:
            case "arith.extsi" if byte:
                return self._resized(operands[0], kind)
            case "arith.extui" if byte:
                return self._resized(self._low(operands[0]), kind)
            case "arith.uitofp" if byte:
                operands = [self._low(operands[0])]
            case "arith.shrui" if byte:
                return self._wrapped(self._again(op, kind, [self._low(operands[0]), operands[1]]))
            case "arith.trunci" if str(node.element) == "i8":
                return self._wrapped(self._resized(operands[0], kind))
        made = self._again(op, kind, operands)
        return self._wrapped(made) if byte and op.name in WRAPPING else made

    def _again(self, op: ir.Operation, kind: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
        attributes = {name: op.attributes[name] for name in op.attributes}
        return ir.Operation.create(op.name, [kind], operands, attributes).result

    def _low(self, words: ir.Value) -> ir.Value:
        """The byte without its sign."""
        mask = self._constant(integer_type(WORD), ir.IntegerAttr.get(integer_type(WORD), 0xFF))
        return arith.AndIOp(words, mask).result

    def _wrapped(self, words: ir.Value) -> ir.Value:
        """The low byte of each, sign-extended."""
        bits = ir.IntegerAttr.get(integer_type(WORD), WORD - BYTE)
        shift = self._constant(integer_type(WORD), bits)
        return arith.ShRSIOp(arith.ShLIOp(words, shift).result, shift).result

    def _resized(self, numbers: ir.Value, kind: ir.VectorType) -> ir.Value:
        """Integers of another width."""
        before, after = numbers.type.element_type.width, kind.element_type.width
        if before == after:
            return numbers
        return (arith.ExtSIOp if before < after else arith.TruncIOp)(kind, numbers).result


def _is_byte(read: Read) -> bool:
    return str(read.element) == "i8"


def _side_by_side(tiles: Sequence[ir.Value]) -> ir.Value:
    """Interleaves the columns of several tiles."""
    if len(tiles) == 1:
        return tiles[0]
    even, odd = _side_by_side(tiles[::2]), _side_by_side(tiles[1::2])
    rows, columns = even.type.shape
    kind = ir.VectorType.get([rows, 2 * columns], even.type.element_type)
    return ir.Operation.create("vector.interleave", [kind], [even, odd]).result
