"""Operands of products that are computed from narrower elements, such as quantised weights.

An element of the operand is traced back to the elements in memory from which it is computed, as in
`tcir.passes.simt.elements`. Here this is done for all rows and columns at once: each index is kept
as mixed-radix digits of the row and of k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TypeAlias

from tcir._mlir import arith, ir, linalg
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.ops.epilogue import SCALAR_OPS
from tcir.dialect.upstream import RESHAPES, names
from tcir.passes.analysis.digits import (
    COLUMN,
    ROW,
    Digit,
    NoDigitsError,
    Number,
    constant,
    joined,
    known,
    number,
    split,
    whole,
)
from tcir.passes.emit.fp8 import FP8
from tcir.passes.emit.narrow import CLOSED, WRAPPING
from tcir.passes.emit.operand_tiles import k_step
from tcir.passes.emit.small import EXPONENT, SMALL

LANES = (1, 2, 4, 8)
"""Elements along k that one stored number may hold."""
STORED = ("i8", "i32", *FP8)
"""Types of numbers that hold elements."""
BESIDE = ("f32", "f16", "bf16", "i32", "i8", *FP8)
"""Types of scales and zero points."""
COMPUTED = ("f16", "bf16", "f32")
"""Types of computed operands: tensor cores multiply them, and threads compute with them."""
UNIT = 16
"""Bytes of a row that a thread loads from shared memory at a time."""
ROW_BYTES = (32, 64, 128)
"""Bytes of stored numbers in a row of a step's tile: a swizzle span."""
OF_BYTES = WRAPPING | CLOSED | names(
    arith.ExtSIOp, arith.ExtUIOp, arith.SIToFPOp, arith.ShRUIOp, arith.TruncIOp, arith.UIToFPOp,
)  # fmt: skip
"""Ops allowed on bytes, which registers hold as words."""


class NotComputedError(Exception):
    """Raised with the reason why a kernel cannot compute an operand from narrower numbers."""


@dataclass(frozen=True, eq=False)
class Read:
    """One element of an argument. Its index consists of digits and has an entry for each of the
    argument's dimensions."""

    argument: ir.Value
    at: Number

    @property
    def element(self) -> ir.Type:
        """Type of the element."""
        return self.argument.type.element_type

    @property
    def by_column(self) -> bool:
        """Whether neighbouring columns read different elements."""
        return any(each.dim == COLUMN and each.step == 1 for each in self.at)


@dataclass(frozen=True, eq=False)
class Fixed:
    """A constant that is the same for all elements of an operand."""

    value: ir.Attribute
    element: ir.Type


@dataclass(frozen=True, eq=False)
class ComputedResult:
    """The result of an op of ``arith`` on other values."""

    op: ir.Operation
    operands: tuple[Node, ...]

    @property
    def element(self) -> ir.Type:
        """Type of the element."""
        return _element(self.op.results[0])


Node: TypeAlias = "Read | Fixed | ComputedResult"


@dataclass(frozen=True, eq=False)
class Computed:
    """An operand ``[rows, k]`` that is computed from numbers in memory. Each stored number holds
    ``len(lanes)`` elements along k.

    rows, k: its extents; element: its type
    lanes: the value that computes each of the elements in a stored number
    stored:  the read of the stored numbers
    """

    rows: int
    k: int
    element: ir.Type
    lanes: tuple[Node, ...]
    stored: Read

    @staticmethod
    def of(operand: ir.Value, layout: str) -> Computed:
        """Describes an operand that a function computes from its arguments; raises NotComputedError
        if no kernel can compute it. layout: a letter for each of its dimensions: ``nk`` or ``kn``,
        or ``nkk`` if k consists of two dimensions. Tiles have k innermost in every case.
        """
        kind = operand.type
        if kind.rank != len(layout):
            raise NotComputedError(f"expected an operand with dimensions rows and k, got {kind}")
        if str(kind.element_type) not in COMPUTED:
            raise NotComputedError(
                f"expected an operand of {' or '.join(COMPUTED)}, got {kind.element_type} (CUDA "
                "cores compute with these types, and tensor cores multiply them)"
            )
        first: NotComputedError | None = None
        k = prod(size for size, name in zip(kind.shape, layout) if name == "k")
        for count in LANES:
            if k % count == 0:
                try:
                    found = _computed(operand, layout, count)
                except NotComputedError as problem:
                    first = first or problem
                    continue
                _check(found)
                return found
        assert first is not None
        raise first

    @property
    def count(self) -> int:
        """Number of elements in a stored number."""
        return len(self.lanes)

    @property
    def step(self) -> int:
        """Elements along k that one step of the main loop covers."""
        return k_step(self.k, tc.element_bytes(self.element))

    @property
    def columns(self) -> int:
        """Number of stored numbers of a row that a thread converts at a time."""
        return UNIT // tc.element_bytes(self.stored.element)

    @property
    def blocks(self) -> int:
        """Number of blocks that a thread computes for a row in a step."""
        return self.step // self.count // self.columns

    @cached_property
    def reads(self) -> list[Read]:
        """All reads, without duplicates."""
        return _reads(self.lanes)

    @property
    def beside(self) -> list[Read]:
        """The reads other than the read of the stored numbers: reads of scales and zero points."""
        return [each for each in self.reads if not each.by_column]


def _computed(operand: ir.Value, layout: str, count: int) -> Computed:
    """The operand with `count` elements in a number."""
    places = [
        [n for n, name in enumerate(layout) if (name == "k") == of_k] for of_k in (False, True)
    ]
    shapes = [[operand.type.shape[n] for n in each] for each in places]
    rows, k = map(prod, shapes)
    lanes = []
    for lane in range(count):
        column = number([Digit(COLUMN, 1, k // count), Digit(None, lane, count)])
        at: dict[int, Number] = {}
        for each, index, shape in zip(places, (whole(ROW, rows), column), shapes):
            at |= dict(zip(each, split(index, shape)))
        lanes.append(_Elements().element(operand, tuple(at[n] for n in range(len(layout)))))
    stored = _stored(lanes, rows, k)
    return Computed(rows, k, operand.type.element_type, tuple(lanes), stored)


def _stored(lanes: list[Node], rows: int, k: int) -> Read:
    """The only read with a number for each column."""
    reads = [each for each in _reads(lanes) if each.by_column]
    if len(reads) != 1:
        raise NotComputedError(
            "expected exactly one input with an element for every row and every k, and others "
            f"indexed by rows and groups of k, got {len(reads)} with an element for every row and "
            "k: each of them would need its own tiles in shared memory"
        )
    (read,) = reads
    if read.at != number([Digit(ROW, 1, rows), Digit(COLUMN, 1, k // len(lanes))]):
        raise NotComputedError(
            f"expected {read.argument.type} to be stored row by row with K innermost, got another "
            "order: a thread converts adjacent elements of one row"
        )
    return read


def _check(found: Computed) -> None:
    """Rejects operands that a tile cannot compute."""
    bits = 8 * tc.element_bytes(found.element)
    stored = 8 * tc.element_bytes(found.stored.element)
    if str(found.stored.element) not in STORED or stored >= bits * found.count:
        raise NotComputedError(
            f"expected stored numbers of {', '.join(STORED)} that are narrower than the "
            f"{found.count} elements of {bits} bits computed from each, got "
            f"{found.stored.element}: otherwise storing them saves no memory traffic"
        )
    if (held := found.step * stored // found.count // 8) not in ROW_BYTES:
        raise NotComputedError(
            f"expected a row of a tile to have {', '.join(map(str, ROW_BYTES))} bytes of stored "
            f"numbers (the spans of swizzles), got {held}"
        )
    taken = found.columns * found.count
    if found.k % taken:
        raise NotComputedError(
            f"expected K to be a multiple of {taken}, got {found.k}: a thread loads {UNIT} bytes "
            f"of a row at a time, and TMA needs rows whose size is a multiple of {UNIT} bytes"
        )
    for each in found.beside:
        _check_beside(each, found)


def _check_beside(read: Read, found: Computed) -> None:
    if str(read.element) not in BESIDE:
        raise NotComputedError(
            f"expected scales and zero points to be of type {', '.join(BESIDE)}, got "
            f"{read.argument.type}"
        )
    for digit in read.at:
        if digit.dim == COLUMN and digit.step % found.columns:
            raise NotComputedError(
                "expected the number of elements of k that share a scale to be a multiple of "
                f"{found.columns * found.count}, got {digit.step * found.count}: a thread "
                f"converts {found.columns * found.count} elements at a time with one scale"
            )
        rows = digit.step == 1 and digit.extent == found.rows
        if digit.dim == ROW and not rows and digit.step % QUARTER_LANES:
            raise NotComputedError(
                f"expected each row, or each multiple of {QUARTER_LANES} rows, to have its own "
                f"scale or zero point, got a row index that changes every {digit.step} rows and "
                f"has {digit.extent} values: the threads of a warp compute {QUARTER_LANES} rows, "
                "one each"
            )


def _reads(lanes: Sequence[Node]) -> list[Read]:
    """The reads of the lanes, each argument at each place once."""
    found: dict[tuple[ir.Value, Number], Read] = {}
    seen, waiting = set[Node](), [*reversed(lanes)]
    while waiting:
        node = waiting.pop()
        if node in seen:  # two ops read it
            continue
        seen.add(node)
        if isinstance(node, Read):
            found.setdefault((node.argument, node.at), node)
        elif isinstance(node, ComputedResult):
            waiting += reversed(node.operands)
    return list(found.values())


def _element(value: ir.Value) -> ir.Type:
    return getattr(value.type, "element_type", value.type)


@dataclass
class _Elements:
    """Elements of tensors at digits."""

    known: dict[tuple[ir.Value, tuple[Number, ...]], Node] = field(default_factory=dict)

    def element(self, tensor: ir.Value, at: tuple[Number, ...]) -> Node:
        """The element of `tensor` at these indices."""
        if (tensor, at) not in self.known:
            try:
                self.known[tensor, at] = self._new(tensor, at)
            except NoDigitsError:
                raise NotComputedError(
                    "expected tensor dimensions that divide evenly into the rows and the groups "
                    f"of k of one step of the main loop, got {tensor.type}; reshape it so that "
                    "they do"
                ) from None
        return self.known[tensor, at]

    def _new(self, tensor: ir.Value, at: tuple[Number, ...]) -> Node:
        if isinstance(tensor, ir.BlockArgument):
            return Read(tensor, joined(at))
        op = tensor.owner
        if op.name == "arith.constant":
            return _constant(op)
        if op.name == "linalg.fill":
            return self.element(op.operands[0], ())
        if isinstance(op.opview, RESHAPES):
            return self.element(op.operands[0], _through_view(op, at))
        if op.name == "tensor.concat":
            return self._joined(op, at)
        if op.name.startswith("linalg.") and linalg.get_indexing_maps(op) is not None:
            return self._structured(op, at)
        if op.name not in SCALAR_OPS:
            raise NotComputedError(
                f"expected arith ops to compute the operand of the product, got {op.name}"
            )
        return _result(op, [self.element(each, at) for each in op.operands])

    def _joined(self, op: ir.Operation, at: tuple[Number, ...]) -> Node:
        """The element of the part that has it, which is known: numbers hold one of each."""
        dim = ir.IntegerAttr(op.attributes["dim"]).value
        place = known(at[dim])
        if place is None:
            raise NotComputedError(
                "expected tensor.concat to join, along k, the elements that are stored in one "
                f"number, got a tensor.concat along dimension {dim} of {op.results[0].type}"
            )
        for part in op.operands:
            extent = part.type.shape[dim]
            if place < extent:
                index = constant(place, extent)
                return self.element(part, (*at[:dim], index, *at[dim + 1 :]))
            place -= extent
        raise AssertionError("an index inside")

    def _structured(self, op: ir.Operation, at: tuple[Number, ...]) -> Node:
        """The body of an elementwise op."""
        maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op)]
        if len(op.results) != 1 or not maps[-1].is_permutation:
            raise NotComputedError(
                "expected elementwise ops, which index their result by its dimensions, got "
                f"{op.name} with the result map {maps[-1]}"
            )
        loops = {e.position: index for e, index in zip(maps[-1].results, at, strict=True)}
        block = op.regions[0].blocks[0]
        inner: dict[ir.Value, Node] = {}
        for argument, operand, read in zip(block.arguments, op.operands, maps, strict=True):
            if list(argument.uses):
                shape = getattr(operand.type, "shape", ())
                inner[argument] = self.element(operand, tuple(_indices(read, shape, loops)))
        *ops, last = block.operations
        for each in ops:
            operands = [inner[o] if o in inner else self.element(o, ()) for o in each.operands]
            made = each.operation
            inner[made.results[0]] = (
                _constant(made) if made.name == "arith.constant" else _result(made, operands)
            )
        (yielded,) = last.operation.operands
        return inner[yielded] if yielded in inner else self.element(yielded, ())


def _indices(read: ir.AffineMap, shape: Sequence[int], loops: Mapping[int, Number]) -> list[Number]:
    """The indices of an operand at a point of the loops."""
    found = []
    for each, extent in zip(read.results, shape, strict=True):
        if isinstance(each, ir.AffineDimExpr):
            found.append(loops[each.position])
        elif isinstance(each, ir.AffineConstantExpr):
            found.append(constant(each.value, extent))
        else:
            raise NotComputedError(f"expected each index to be a single loop dimension, got {read}")
    return found


def _through_view(op: ir.Operation, at: Sequence[Number]) -> tuple[Number, ...]:
    """The indices before a reshape."""
    source = op.operands[0].type.shape
    groups = [[ir.IntegerAttr(d).value for d in group] for group in op.attributes["reassociation"]]
    if op.name == "tensor.expand_shape":
        return tuple(joined([at[d] for d in group]) for group in groups)
    parts = [split(index, [source[d] for d in group]) for index, group in zip(at, groups)]
    return tuple(index for part in parts for index in part)


def _constant(op: ir.Operation) -> Fixed:
    value, kind = op.attributes["value"], op.results[0].type
    if isinstance(kind, ir.ShapedType):
        if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
            raise NotComputedError(
                f"expected a constant whose elements are all equal, got one of {kind}"
            )
        value = value.get_splat_value()
    return Fixed(value, _element(op.results[0]))


def _result(op: ir.Operation, operands: Sequence[Node]) -> ComputedResult:
    """An op on elements, if threads compute it on their tiles."""
    kinds = [str(_element(each)) for each in (*op.operands, *op.results)]
    if op.name not in SCALAR_OPS:
        raise NotComputedError(
            f"expected arith ops to compute the operand of the product, got {op.name}"
        )
    if "f64" in kinds:
        raise NotComputedError(f"expected f32 or narrower floats, got {op.name} of f64")
    if "i8" in kinds and op.name not in OF_BYTES:
        raise NotComputedError(
            f"expected one of {', '.join(sorted(OF_BYTES))} on bytes, got {op.name}: several "
            "bytes share a register, and only these ops have a form for that"
        )
    small = [kind for kind in kinds if kind in (*SMALL, EXPONENT, "i4", "i2")]
    if small:
        raise NotComputedError(f"expected numbers of at least 8 bits, got {op.name} of {small[0]}")
    codes = [kind for kind in kinds if kind in FP8]
    if codes and (op.name != "arith.extf" or kinds[-1] in FP8):
        raise NotComputedError(f"expected arith.extf as the only op on {codes[0]}, got {op.name}")
    return ComputedResult(op, tuple(operands))
