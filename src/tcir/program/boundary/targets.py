"""Finds the boundaries of a program: values of sums, or of inputs, for which the operand of an op
is exactly a value at which the op's result changes.

The values that are computed from the sums are visited from the first op to the last. For each
value, the steps from the sum to it are recorded: products with constants, sums with constants,
roundings. Inputs other than the sums are made neutral (`Boundaries.neutral`): 1 if they are
multiplied (one half for whole numbers), 0 if they are added. For an op with a boundary
(`_Walk.limits`), the steps are inverted to find the sums for which its operand is at the boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tcir._mlir import arith, tensor
from tcir.dialect import tc
from tcir.dialect.upstream import FLOAT_TO_INTEGER, names
from tcir.interp.types import Array, DType, ends_of_integers, is_float, is_integer
from tcir.program.boundary.ties import HALVES, around, both_signs, limits_of
from tcir.program.factors import inputs_of
from tcir.program.signature import Signature, numpy_type

if TYPE_CHECKING:
    from tcir._mlir import ir

_MOVES = names(
    arith.BitcastOp, arith.ExtFOp, arith.ExtSIOp, "linalg.transpose", tc.ElementOp,
    tensor.CollapseShapeOp, tensor.ExpandShapeOp, tensor.ExtractSliceOp, tensor.PadOp,
)  # fmt: skip
"""Ops whose result has the values of their first operand."""
_SUMS = names(arith.AddFOp, arith.AddIOp, arith.SubFOp, arith.SubIOp)
_PRODUCTS = names(arith.DivFOp, arith.MulFOp, arith.MulIOp)
_COMPARISONS = names(
    arith.CmpFOp, arith.CmpIOp, arith.MaximumFOp, arith.MaxNumFOp, arith.MaxSIOp, arith.MaxUIOp,
    arith.MinimumFOp, arith.MinNumFOp, arith.MinSIOp, arith.MinUIOp,
)  # fmt: skip
_ROUNDINGS = {"math.ceil", "math.floor", "math.round", "math.roundeven", "math.trunc"}


@dataclass(frozen=True)
class AffineStep:
    """``x * factor + term``, rounded to a type."""

    factor: float
    term: float
    dtype: DType

    def __call__(self, x: Array) -> Array:
        wide = x * self.factor + self.term
        return _stored(wide, self.dtype)


@dataclass(frozen=True)
class Made:
    """A value that is computed in steps from a sum, or from an input. dtype: type of its
    elements
    """

    dtype: DType
    steps: tuple[AffineStep, ...] = ()

    def then(self, factor: float, term: float, dtype: DType) -> Made:
        """Returns the value after one more step."""
        return Made(dtype, (*self.steps, AffineStep(factor, term, dtype)))

    def sums_for(self, wanted: Sequence[float], first: DType) -> list[float]:
        """Returns numbers of type `first` from which the steps compute one of the `wanted` values,
        as far as there are any.
        """
        goal = np.array(wanted, np.float64)
        found = goal
        for step in reversed(self.steps):
            found = (found - step.term) / step.factor
        found = _stored(found, first)
        tried = [found]
        if not is_integer(first):
            tried += [_beside(found, first, end) for end in (-np.inf, np.inf)]
        sums: list[float] = []
        for n, target in enumerate(goal):
            sums += [float(each[n]) for each in tried if self._of(each[n]) == target][:1]
        return sums

    def _of(self, x: float) -> float:
        value = np.asarray(x, np.float64)
        for step in self.steps:
            value = step(value)
        return float(value)


@dataclass
class Boundaries:
    """Values at which the results of a program's ops change.

    sums:    such values of a sum, or of the input; the most important value of each op comes first
    neutral: by number of the input: the value with which sums reach the ops unchanged
    """

    sums: list[float] = field(default_factory=list)
    neutral: dict[int, float] = field(default_factory=dict)


def drawn_of(block: ir.Block, signature: Signature) -> list[ir.Value]:
    """Returns the arguments of a program whose values are drawn; constants of the program come
    after them.
    """
    return inputs_of(block)[: len(signature.inputs)]


def boundaries_of(block: ir.Block, arguments: Sequence[ir.Value], root: ir.Value) -> Boundaries:
    """Returns the boundaries in the body of a program on tensors.

    arguments: the program's inputs, in order
    root:      the value whose boundaries are wanted: sums, or an input
    """
    walk = _Walk(arguments, numpy_type(root.type.element_type))
    walk.made[root] = Made(walk.first)
    ops = [each.operation for each in block]
    if isinstance(root.owner, type(block)):
        walk.follow(ops)
    else:
        walk.limits(walk.made[root], _of_results(root))
        walk.follow(ops[ops.index(root.owner.operation) + 1 :])
    sums = [each for group in _in_turns(walk.wanted) for each in group]
    return Boundaries(list(dict.fromkeys(sums)), walk.neutral)


def _in_turns(groups: Sequence[Sequence[float]]) -> list[list[float]]:
    """Returns the first of each group, then the second of each, and so on."""
    most = max(map(len, groups), default=0)
    return [[group[n] for group in groups if n < len(group)] for n in range(most)]


@dataclass
class _Walk:
    """Follows values through ops and their bodies.

    first:  type of the sums
    made:   value -> its steps, for values computed from sums
    second: result of a select between two such values -> the steps of the second
    origin: argument of a body -> its operand; result of an op with a body -> the yielded value
    wanted: for each boundary, the sums that reach it
    """

    arguments: Sequence[ir.Value]
    first: DType
    made: dict[ir.Value, Made] = field(default_factory=dict)
    second: dict[ir.Value, Made] = field(default_factory=dict)
    origin: dict[ir.Value, ir.Value] = field(default_factory=dict)
    wanted: list[list[float]] = field(default_factory=list)
    neutral: dict[int, float] = field(default_factory=dict)

    def follow(self, ops: Sequence[ir.Operation]) -> None:
        """Visits ops in order, and records the steps and boundaries of each."""
        for op in ops:
            if len(op.regions) == 1 and op.name not in _MOVES and len(op.regions[0].blocks) == 1:
                self._body(op)
            elif isinstance(op.opview, tc.QuantiseBlocksOp):
                for norm in list(op.operands)[1:]:
                    self._settle(norm, 1.0)
            elif op.operands and len(op.results) == 1:
                self._op(op)

    def limits(self, made: Made | None, wanted: Sequence[float]) -> None:
        """Records the sums for which the value `made`, which is computed from them, is one of
        `wanted`.
        """
        if made and wanted:
            self.wanted.append(made.sums_for(wanted, self.first))

    def _body(self, op: ir.Operation) -> None:
        """Follows the body of an epilogue, or of a structured op that computes each element
        once."""
        from tcir.program.factors import is_parallel

        inner = op.regions[0].blocks[0]
        operands = list(op.operands)
        if not is_parallel(op) or len(inner.arguments) > len(operands) or len(op.results) != 1:
            return
        for argument, operand in zip(inner.arguments, operands):
            self.origin[argument] = operand
            if operand in self.made:
                self.made[argument] = self.made[operand]
        ops = [each.operation for each in inner]
        self.follow(ops[:-1])
        given = ops[-1].operands[0]
        self.origin[op.results[0]] = given
        if given in self.made:
            self.made[op.results[0]] = self.made[given]

    def _op(self, op: ir.Operation) -> None:
        """Follows one op on elements, or one that moves tensors."""
        sources = [n for n, operand in enumerate(op.operands) if operand in self.made]
        if op.name == "arith.select":
            sources = [n for n in sources if n]
        if not sources:
            return
        result = op.results[0]
        made = self.made[op.operands[sources[0]]]
        dtype = _type_of(result)
        if op.name in _MOVES or op.name == "arith.select":
            self.made[result] = replace(made, dtype=dtype)
            if op.name == "arith.select" and len(sources) > 1:
                self.second[result] = self.made[op.operands[sources[1]]]
        elif op.name in ("arith.truncf", "arith.sitofp", "arith.uitofp"):
            if op.name == "arith.truncf":
                for each in (made, self.second.get(op.operands[0])):
                    self.limits(each, limits_of(dtype))
            self.made[result] = made.then(1, 0, dtype)
        elif op.name == "arith.negf":
            self.made[result] = made.then(-1, 0, dtype)
        elif op.name in _ROUNDINGS:
            self.limits(made, both_signs([*HALVES, *(x + 0.5 for x in HALVES)]))
            self.made[result] = made
        elif op.name in FLOAT_TO_INTEGER or op.name == "arith.trunci":
            low, high = ends_of_integers(dtype)
            self.limits(made, [float(high), float(low)])
        elif len(op.operands) == 2 and len(sources) == 1:
            self._with_another(op, made, sources[0])

    def _with_another(self, op: ir.Operation, made: Made, source: int) -> None:
        """Follows an op with one operand computed from sums and one other."""
        other, result = op.operands[1 - source], op.results[0]
        number = self._number(other)
        dtype = _type_of(result)
        if op.name in _COMPARISONS:
            if number is not None and np.isfinite(number):
                self.limits(made, around(number, made.dtype))
            if not op.name.startswith("arith.cmp"):
                self.made[result] = made
            return
        if op.name == "arith.shrsi" and number is not None and not source:
            self.made[result] = made.then(2.0**-number, 0, dtype)
            return
        if op.name not in _SUMS | _PRODUCTS or (op.name == "arith.divf" and source):
            return
        if number is None:
            halved = is_integer(self.first) and not is_integer(dtype)  # for ties of whole numbers
            number = 0.0 if op.name in _SUMS else 0.5 if halved else 1.0
            self._settle(other, number)
        if op.name in _PRODUCTS and number:
            factor = 1 / number if op.name == "arith.divf" else number
            self.made[result] = made.then(factor, 0, dtype)
        elif op.name in _SUMS:
            less = op.name in ("arith.subf", "arith.subi")
            sign = -1 if less and source else 1
            self.made[result] = made.then(sign, -number if less and not source else number, dtype)

    def _source(self, value: ir.Value) -> ir.Value:
        """Returns the value that a value is a copy of, through moves and bodies."""
        while True:
            if value in self.origin:
                value = self.origin[value]
            elif _name(value) in _MOVES | {"arith.truncf", "linalg.broadcast"}:
                value = value.owner.operation.operands[0]
            else:
                return value

    def _number(self, value: ir.Value) -> float | None:
        """Returns the number that all elements of a value are; None if it is not known."""
        from tcir._mlir import ir

        value = self._source(value)
        if _name(value) == "linalg.fill":
            return self._number(value.owner.operation.operands[0])
        if _name(value) != "arith.constant":
            return None
        attribute = value.owner.operation.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr):
            attribute = attribute.get_splat_value() if attribute.is_splat else None
        known = isinstance(attribute, ir.FloatAttr | ir.IntegerAttr)
        return float(attribute.value) if known else None

    def _settle(self, value: ir.Value, wanted: float) -> None:
        """Sets the inputs that a value is computed from so that it is `wanted`: 0, 1 or one
        half."""
        value = self._source(value)
        if value in self.arguments:
            self.neutral.setdefault(list(self.arguments).index(value), wanted)
            return
        name = _name(value)
        if name not in _SUMS | _PRODUCTS | {"arith.negf", "arith.sitofp"}:
            return
        first, *others = value.owner.operation.operands
        self._settle(first, wanted)
        for other in others:
            self._settle(other, 1.0 if name in _PRODUCTS else 0.0)


def _of_results(root: ir.Value) -> list[float]:
    """Returns the ties of the type to which an op of tc rounds its sums."""
    dtype = numpy_type(root.type.element_type)
    narrow = not is_integer(dtype) and dtype.itemsize < np.dtype(np.float32).itemsize
    return limits_of(dtype) if narrow else []


def _type_of(value: ir.Value) -> DType:
    element = value.type.element_type if hasattr(value.type, "element_type") else value.type
    return np.dtype(bool) if str(element) == "i1" else numpy_type(element)


def _name(value: ir.Value) -> str:
    from tcir._mlir import ir

    return "" if isinstance(value.owner, ir.Block) else str(value.owner.operation.name)


def _stored(values: Array, dtype: DType) -> Array:
    """Rounds numbers to a type; whole numbers are not limited to its range."""
    if not is_float(dtype):
        return np.rint(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32 if dtype.itemsize > 4 else dtype).astype(np.float64)


def _beside(values: Array, dtype: DType, end: float) -> Array:
    """Returns the adjacent f32 numbers toward `end`; numbers of other types unchanged."""
    if dtype != np.float32:
        return values
    with np.errstate(over="ignore"):
        return np.nextafter(values.astype(np.float32), np.float32(end)).astype(np.float64)
