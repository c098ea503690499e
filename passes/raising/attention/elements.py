"""Elements of tensors as expressions, traced back through reshapes, copies and elementwise ops.

Operands are found only on request, because the ops before an element may be those of a whole
network. Arguments, slices and results of all other ops are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tcir._mlir import ir, linalg
from tcir.interp.types import DTYPES
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.digits import NoDigitsError, Number, joined, split, whole
from tcir.passes.analysis.reductions import loop_sizes

LEAF, NUMBER, LOOP, REDUCTION = "leaf", "number", "loop", "reduction"
"""Names of elements that no op of ``arith`` or ``math`` makes."""
SOFTMAX = "linalg.softmax"


@dataclass(frozen=True, eq=False)
class Expression:
    """An element of a tensor, as an expression.

    name:     name of the op that computes it, or one of the kinds of leaf defined in this module
    op: the op; for a leaf, the op that defines the tensor, or None for an argument
    find:     returns the op's operands
    number:   value of a constant
    index:    index of a loop, or indices of a reduction's result
    result:   number of a reduction's result
    places:   tensors that contain this element, with its indices in each, in program order
    """

    name: str
    type: ir.Type
    op: ir.Operation | None = None
    find: Callable[[], tuple[Expression, ...]] = tuple
    number: float | None = None
    index: tuple[Number, ...] = ()
    result: int = 0
    places: list[tuple[ir.Value, tuple[Number, ...]]] = field(default_factory=list)

    @cached_property
    def operands(self) -> tuple[Expression, ...]:
        """The operands of the op that computes the element."""
        return self.find()


@dataclass(frozen=True)
class Reduced:
    """Operands of a reduction, which combines `start` and the values of `element` at each point of
    `over` by the op `combiner`."""

    combiner: str
    element: Expression
    over: Number
    start: ir.Value


@dataclass
class ElementsOf:
    """Finds the elements of a function's tensors as expressions."""

    known: dict[tuple[ir.Value, tuple[Number, ...]], Expression] = field(default_factory=dict)
    fresh: int = 0

    def of(self, tensor: ir.Value, at: Sequence[Number]) -> Expression:
        """Returns the element of `tensor` at these indices."""
        key = tensor, tuple(at)
        if key not in self.known:
            found = self._new(tensor, key[1])
            if isinstance(tensor.type, ir.RankedTensorType):
                found.places.append(key)
            self.known[key] = found
        return self.known[key]

    def reduced(self, element: Expression) -> Reduced:
        """Returns the operands of a reduction."""
        op, result = element.op, element.result
        assert op is not None
        maps = [value(each) for each in linalg.get_indexing_maps(op)]
        out = maps[len(maps) - len(op.results) + result]
        loops = dict(_dims(out, element.index))
        sizes = loop_sizes(op, maps)
        over = []
        for loop in range(out.n_dims):
            if loop not in loops:
                self.fresh += 1
                loops[loop] = whole(("sum", self.fresh), sizes[loop])
                over.append(loops[loop])
        combiner, term = _combined(op, result)
        assert term is not None
        inner = self._arguments(op, maps, loops)
        first = list(op.operands)[len(maps) - len(op.results) + result]
        return Reduced(combiner, self._body(term, inner, loops), joined(over), first)

    def start(self, found: Reduced) -> float | None:
        """Returns the constant from which a reduction starts, or None."""
        return self.of(found.start, [()] * found.start.type.rank).number

    def _new(self, tensor: ir.Value, at: tuple[Number, ...]) -> Expression:
        kind = _type(tensor)
        leaf = Expression(LEAF, kind, None if _is_argument(tensor) else tensor.owner.operation)
        if leaf.op is None:
            return leaf
        op = leaf.op
        if op.name == "arith.constant":
            number = _constant(op.attributes["value"])
            return leaf if number is None else Expression(NUMBER, kind, op, number=number)
        if op.name == "linalg.fill":
            return self.of(op.operands[0], ())
        try:
            if op.name == "tensor.expand_shape":
                return self.of(op.operands[0], [joined(at[d] for d in g) for g in _groups(op)])
            if op.name == "tensor.collapse_shape":
                shape = op.operands[0].type.shape
                parts = zip(at, _groups(op), strict=True)
                found = [each for i, g in parts for each in split(i, [shape[d] for d in g])]
                return self.of(op.operands[0], found or [()] * len(shape))
        except NoDigitsError:
            return leaf
        if op.name == SOFTMAX:
            return Expression(SOFTMAX, kind, op, lambda: (self.of(op.operands[0], at),), index=at)
        if op.name.startswith("linalg.") and len(op.regions) == 1:
            return self._structured(op, list(op.results).index(tensor), at) or leaf
        if op.name.startswith(("arith.", "math.")):
            return _computed(op, kind, lambda: tuple(self.of(each, at) for each in op.operands))
        return leaf

    def _structured(
        self, op: ir.Operation, result: int, at: tuple[Number, ...]
    ) -> Expression | None:
        attributes = linalg.get_indexing_maps(op)
        if attributes is None:
            return None
        maps = [value(each) for each in attributes]
        if not all(_is_plain(each) for m in maps for each in m.results):
            return None
        out = maps[len(maps) - len(op.results) + result]
        loops = dict(_dims(out, at))
        if len(loops) < out.n_dims:
            if _combined(op, result)[0] == "":
                return None
            return Expression(REDUCTION, _type(op.results[result]), op, index=at, result=result)
        yielded = list(list(op.regions[0].blocks[0])[-1].operands)[result]
        return self._body(yielded, self._arguments(op, maps, loops), loops)

    def _arguments(
        self, op: ir.Operation, maps: Sequence[ir.AffineMap], loops: dict[int, Number]
    ) -> dict[ir.Value, tuple[ir.Value, list[Number]]]:
        """Returns the tensor and the indices for each argument of a body."""
        return {
            argument: (
                operand,
                [loops[e.position] if isinstance(e, ir.AffineDimExpr) else () for e in m.results],
            )
            for argument, operand, m in zip(op.regions[0].blocks[0].arguments, op.operands, maps)
        }

    def _body(
        self,
        number: ir.Value,
        inner: dict[ir.Value, tuple[ir.Value, list[Number]]],
        loops: dict[int, Number],
    ) -> Expression:
        if number in inner:
            return self.of(*inner[number])
        if _is_argument(number):
            return Expression(LEAF, _type(number))
        op = number.owner.operation
        if op.name == "linalg.index":
            return Expression(LOOP, "index", op, index=(loops[op.attributes["dim"].value],))
        if op.name.startswith(("arith.", "math.")) and op.name != "arith.constant":
            return _computed(
                op,
                _type(number),
                lambda: tuple(self._body(each, inner, loops) for each in op.operands),
            )
        if op.name != "arith.constant" and op.parent.name.startswith("linalg."):
            return Expression(LEAF, _type(number), op)  # of these loops: another element elsewhere
        return self.of(number, ())


def _computed(
    op: ir.Operation, kind: ir.Type, find: Callable[[], tuple[Expression, ...]]
) -> Expression:
    """An op of its operands; a number of another type is a number, rounded as the op does."""
    found = Expression(op.name, kind, op, find)
    if op.name in ("arith.truncf", "arith.extf") and found.operands[0].name == NUMBER:
        dtype = DTYPES.get(str(kind))
        if dtype is not None:
            number = float(np.asarray(found.operands[0].number, dtype))
            return Expression(NUMBER, kind, op, number=number)
    return found


def same(a: Expression, b: Expression, loops: Mapping[object, object]) -> bool:
    """Whether `a` equals `b` once the loops of `b` are renamed."""
    if any((tensor, _renamed(at, loops)) in b.places for tensor, at in a.places):
        return True
    if (a.name, str(a.type), len(a.operands)) != (b.name, str(b.type), len(b.operands)):
        return False
    if a.name == NUMBER:
        return a.number == b.number
    if a.name in (LEAF, LOOP, REDUCTION):
        known = a.op == b.op and a.result == b.result and a.name != LEAF
        return known and _renamed(a.index, loops) == b.index
    if a.op is None or b.op is None or str(a.op.attributes) != str(b.op.attributes):
        return False
    return all(same(x, y, loops) for x, y in zip(a.operands, b.operands, strict=True))


def _renamed(at: tuple[Number, ...], loops: Mapping[object, object]) -> tuple[Number, ...]:
    return tuple(
        tuple(replace(digit, dim=loops.get(digit.dim, digit.dim)) for digit in index)
        for index in at
    )


def _combined(op: ir.Operation, result: int) -> tuple[str, ir.Value | None]:
    """Returns the name of a reduction's combining op and its other operand; "" without one."""
    block, count = op.regions[0].blocks[0], len(op.results)
    yielded = list(list(block)[-1].operands)[result]
    outs = list(block.arguments)[-count:]
    if _is_argument(yielded) or len(yielded.owner.operands) != 2:
        return "", None
    terms = [each for each in yielded.owner.operands if each != outs[result]]
    if len(terms) != 1 or _reads(terms[0], outs):
        return "", None
    return yielded.owner.operation.name, terms[0]


def _reads(number: ir.Value, arguments: Sequence[ir.Value]) -> bool:
    if _is_argument(number):
        return number in arguments
    return any(_reads(each, arguments) for each in number.owner.operands)


def _is_argument(number: ir.Value) -> bool:
    return isinstance(number, ir.BlockArgument)


def _type(number: ir.Value) -> ir.Type:
    """The type of an element."""
    kind = number.type
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind


def _is_plain(index: ir.AffineExpr) -> bool:
    """Whether an index is a loop, or 0."""
    constant = isinstance(index, ir.AffineConstantExpr) and index.value == 0
    return constant or isinstance(index, ir.AffineDimExpr)


def _dims(m: ir.AffineMap, at: Sequence[Number]) -> list[tuple[int, Number]]:
    """Loops that index a tensor, each with its index."""
    pairs = zip(m.results, at, strict=True)
    return [(e.position, index) for e, index in pairs if isinstance(e, ir.AffineDimExpr)]


def _groups(op: ir.Operation) -> list[list[int]]:
    return [[int(ir.IntegerAttr(d).value) for d in g] for g in op.attributes["reassociation"]]


def _constant(attribute: ir.Attribute) -> float | None:
    """The number of a constant, or of all elements of one."""
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr):
        number = attribute.value
        return float(number) if isinstance(number, float) else int(number)
    return None
