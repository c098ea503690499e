"""Numbers of keys of each batch, derived from masks that depend only on batch and key.

A mask like ``key < length`` gives the numbers directly. For any other mask the number is one more
than the number of the last key that it keeps; later keys need not be loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tcir._mlir import arith, ir, tensor
from tcir.passes.analysis.digits import size_of
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.emit.generic import generic, loop_index, zeros
from tcir.passes.emit.reshape import reshape
from tcir.passes.raising.attention.elements import LOOP, NUMBER, Expression
from tcir.passes.raising.attention.masks import ScoreMask, is_fixed, loops_of, values_of
from tcir.passes.raising.attention.roles import Roles, ScoreTensor

BATCH, KEY = 0, 3
"""Dimensions of scores."""
BELOW = {"slt": 0, "sle": 1}
"""Signed predicates by which a key is below a number: how many keys more than the number there
are."""
SWAPPED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}
NEGATED = {"slt": "sge", "sle": "sgt", "sgt": "sle", "sge": "slt"}
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


@dataclass(frozen=True)
class Node:
    """A node of the expression of a number: an element of a tensor other than the scores, a
    constant, the index of a dimension, or an op on such nodes.

    dim: dimension of the scores, for an index
    attributes: attributes of the op
    """

    type: ir.Type
    read: ScoreTensor | None = None
    number: float | None = None
    dim: int | None = None
    op: str = ""
    attributes: tuple[tuple[str, ir.Attribute], ...] = ()
    operands: tuple[Node, ...] = ()

    @staticmethod
    def of(element: Expression, roles: Roles, dims: Iterable[int]) -> Node:
        """Returns the node of an element that depends only on the dimensions `dims` of the scores;
        raises `NotRaised` if it also depends on others."""
        found = [roles.beside(*place) for place in element.places]
        legal = [each for each in found if each is not None and set(each.dims) <= set(dims)]
        if element.name == NUMBER:
            return Node(element.type, number=element.number)
        if element.name == LOOP:
            for dim in dims:
                if element.index[0] == roles.scores[dim]:
                    return Node(element.type, dim=dim)
        elif legal:
            return Node(element.type, read=min(legal, key=lambda each: np.prod(each.shape)))
        elif element.op is not None and element.operands:
            attributes = tuple(
                (name, element.op.attributes[name]) for name in element.op.attributes
            )
            operands = tuple(Node.of(each, roles, dims) for each in element.operands)
            return Node(element.type, op=element.name, attributes=attributes, operands=operands)
        raise NotRaised(element.op, "expected a number that depends on batch and key only")

    @property
    def reads(self) -> list[ScoreTensor]:
        """The tensors that the expression reads, without duplicates."""
        found = [self.read] if self.read else [r for each in self.operands for r in each.reads]
        return list(dict.fromkeys(found))

    def emit(self, known: Mapping[ScoreTensor, ir.Value], loops: Mapping[int, int]) -> ir.Value:
        """Emits the ops of the expression.

        known: elements of the tensors that it reads
        loops: numbers of the loops, by dimension of the scores
        """
        if self.read is not None:
            return known[self.read]
        if self.dim is not None:
            return loop_index(loops[self.dim])
        if self.number is not None:
            return _number(self.type, self.number)
        operands = [each.emit(known, loops) for each in self.operands]
        return ir.Operation.create(self.op, [self.type], operands, dict(self.attributes)).result


@dataclass(frozen=True)
class KeyCount:
    """Numbers of keys, one for each batch.

    first, number: `number` is a batch's number of keys plus `first`; or, unless `kept` is None, it
        is a condition on batch and key that has the value `kept` if the batch has the key
    """

    number: Node
    first: int = 0
    kept: bool | None = None

    @property
    def exact(self) -> bool:
        """Whether each batch has all keys below its number of keys, so that the number can replace
        the mask."""
        return self.kept is None

    def emit(self, batches: int, keys: int) -> ir.Value:
        """Emits the number of keys of each batch, as a tensor of i32."""
        return self._last(batches, keys) if self.kept is not None else self._bound(batches, keys)

    def _bound(self, batches: int, keys: int) -> ir.Value:
        def element(known: Mapping[ScoreTensor, ir.Value]) -> ir.Value:
            number = self.number.emit(known, {BATCH: 0})
            if isinstance(number.type, ir.IndexType):
                number = arith.index_cast(ir.IntegerType.get_signless(64), number)
            low, high = (_number(number.type, self.first + n) for n in (0, keys))
            number = arith.subi(arith.minsi(arith.maxsi(number, low), high), low)
            return _of_i32(number)

        i32 = ir.IntegerType.get_signless(32)
        out = tensor.EmptyOp([batches], i32).result
        return _generic(self.number.reads, out, ("parallel",), lambda known, _: element(known))

    def _last(self, batches: int, keys: int) -> ir.Value:
        i32 = ir.IntegerType.get_signless(32)

        def element(known: Mapping[ScoreTensor, ir.Value], most: ir.Value) -> ir.Value:
            masked = self.number.emit(known, {BATCH: 0, KEY: 1})
            after = arith.addi(arith.index_cast(i32, loop_index(1)), _number(i32, 1))
            chosen = [after, _number(i32, 0)]
            number = arith.select(masked, *(chosen if self.kept else reversed(chosen)))
            return arith.maxsi(number, most)

        out = zeros([batches], i32)
        return _generic(self.number.reads, out, ("parallel", "reduction"), element, keys)


Counts: TypeAlias = "tuple[tuple[KeyCount, ...], int, int]"
"""Numbers of keys, of which the least is the batch's, and how many batches and keys there are."""
Counted: TypeAlias = "dict[Counts, ir.Value]"
"""Tensors of numbers of keys that have been emitted."""


def least_of(counts: Sequence[KeyCount], batches: int, keys: int) -> ir.Value:
    """Emits, for each batch, the smallest of several numbers of keys."""
    first, *others = (each.emit(batches, keys) for each in counts)
    line = ir.AffineMapAttr.get(ir.AffineMap.get_identity(1))
    for other in others:
        out = tensor.EmptyOp([batches], first.type.element_type).result
        first = generic(
            [first, other], out, [line] * 3, ["parallel"], lambda a, b, _: arith.minsi(a, b)
        )
    return first


def keys_of(mask: ScoreMask, roles: Roles) -> KeyCount | None:
    """Returns the number of keys that a mask with -inf keeps for each batch. None if the mask
    depends on other dimensions, or does not reduce the number of keys to load."""
    condition = mask.condition
    if condition is None:
        return None
    if condition.name == "arith.cmpi":
        for key, number, predicate in _compared(condition, mask.where):
            first = _first(key, roles)
            if predicate in BELOW and first is not None:
                try:
                    node = Node.of(number, roles, (BATCH,))
                except NotRaised:
                    continue
                return KeyCount(node, first - BELOW[predicate])
    try:
        return KeyCount(Node.of(condition, roles, (BATCH, KEY)), kept=not mask.where)
    except NotRaised:
        return None


def _compared(condition: Expression, where: bool) -> list[tuple[Expression, Expression, str]]:
    """What has to be in which relation for a key to be kept, both ways round."""
    assert condition.op is not None
    a, b = condition.operands
    predicate = PREDICATES[ir.IntegerAttr(condition.op.attributes["predicate"]).value]
    if predicate not in SWAPPED:
        return []
    if where:
        predicate = NEGATED[predicate]
    return [(a, b, predicate), (b, a, SWAPPED[predicate])]


def _first(key: Expression, roles: Roles) -> int | None:
    """The number of the first key, if keys are numbered one after another; else None."""
    keys = roles.scores[KEY]
    if not keys or not is_fixed(key) or loops_of(key) != {keys[0].dim}:
        return None
    numbers = values_of(key, {keys[0].dim: np.arange(size_of(keys), dtype=np.int64)[None, :]})
    numbers = np.asarray(numbers, np.int64).reshape(-1)
    return int(numbers[0]) if (np.diff(numbers) == 1).all() else None


def _generic(
    reads: Sequence[ScoreTensor],
    out: ir.Value,
    loops: Sequence[str],
    element: Callable[[Mapping[ScoreTensor, ir.Value], ir.Value], ir.Value],
    keys: int = 1,
) -> ir.Value:
    """A `linalg.generic` of batches, and keys where it reduces these."""
    dims = {BATCH: 0, KEY: 1}
    maps = [
        ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(dims[d]) for d in each.dims])
        for each in reads
    ]
    inputs = [
        reshape(each.tensor, [n for d, n in enumerate(each.shape) if d in each.dims])
        for each in reads
    ]
    if len(loops) > 1 and not any(KEY in each.dims for each in reads):
        inputs.append(tensor.EmptyOp([keys], ir.IntegerType.get_signless(1)).result)
        maps.append(ir.AffineMap.get(2, 0, [ir.AffineExpr.get_dim(1)]))
    maps.append(ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(0)]))

    def body(*elements: ir.Value) -> ir.Value:
        return element(dict(zip(reads, elements)), elements[-1])

    return generic(inputs, out, [ir.AffineMapAttr.get(m) for m in maps], loops, body)


def _number(kind: ir.Type, number: float) -> ir.Value:
    attribute = ir.FloatAttr if isinstance(kind, ir.FloatType) else ir.IntegerAttr
    return arith.ConstantOp(kind, attribute.get(kind, number)).result


def _of_i32(number: ir.Value) -> ir.Value:
    """An integer from 0 to a number of keys, as i32."""
    i32, width = ir.IntegerType.get_signless(32), ir.IntegerType(number.type).width
    if width == 32:
        return number
    return (arith.trunci if width > 32 else arith.extsi)(i32, number)
