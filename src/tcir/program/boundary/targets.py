"""Boundaries of a program: sums, or inputs, that give its ops exactly the values at which they
change.

The values that follow the sums are walked from the first op to the last. Of each the steps are
kept that make it of a sum: products with constants, sums with constants, roundings. What inputs
beside the sums do is taken out: those that are multiplied are 1, by whole numbers a half, those
that are added 0 (`Boundaries.neutral`). An op with a boundary (`_limits`) requests it, and the
steps are undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp.types import Array, DType, ends_of_integers, is_float, is_integer
from tcir.program.boundary.ties import HALVES, around, both_signs, limits_of
from tcir.program.factors import inputs_of
from tcir.program.signature import Signature, numpy_type

if TYPE_CHECKING:
    from tcir._mlir import ir

_MOVES = {
    "arith.bitcast", "arith.extf", "arith.extsi", "linalg.transpose", "tc.element",
    "tensor.collapse_shape", "tensor.expand_shape", "tensor.extract_slice", "tensor.pad",
}  # fmt: skip
"""Ops whose result has the values of their first operand."""
_SUMS = {"arith.addf", "arith.addi", "arith.subf", "arith.subi"}
_PRODUCTS = {"arith.divf", "arith.mulf", "arith.muli"}
_COMPARISONS = {
    "arith.cmpf", "arith.cmpi", "arith.maximumf", "arith.maxnumf", "arith.maxsi", "arith.maxui",
    "arith.minimumf", "arith.minnumf", "arith.minsi", "arith.minui",
}  # fmt: skip
_ROUNDINGS = {"math.ceil", "math.floor", "math.round", "math.roundeven", "math.trunc"}
_TO_WHOLE = {"arith.fptosi", "arith.fptoui"}


@dataclass(frozen=True)
class Step:
    """``x * factor + term``, rounded to a type."""

    factor: float
    term: float
    dtype: DType

    def __call__(self, x: Array) -> Array:
        wide = x * self.factor + self.term
        return _stored(wide, self.dtype)


@dataclass(frozen=True)
class Made:
    """A value made of sums (or of an input) in steps; `dtype`: of its elements."""

    dtype: DType
    steps: tuple[Step, ...] = ()

    def then(self, factor: float, term: float, dtype: DType) -> Made:
        """One step more."""
        return Made(dtype, (*self.steps, Step(factor, term, dtype)))

    def sums_for(self, wanted: Sequence[float], first: DType) -> list[float]:
        """Sums of the type `first` that make it what is wanted, as far as there are any."""
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
    """Values at which the ops of a program change.

    sums:    values of a sum, or of the input, the most telling of each op first
    neutral: numbers of inputs, and their values, for which sums reach the ops
    """

    sums: list[float] = field(default_factory=list)
    neutral: dict[int, float] = field(default_factory=dict)


def drawn_of(block: ir.Block, signature: Signature) -> list[ir.Value]:
    """The arguments of a program that are drawn; its constants follow them."""
    return inputs_of(block)[: len(signature.inputs)]


def boundaries_of(block: ir.Block, arguments: Sequence[ir.Value], root: ir.Value) -> Boundaries:
    """Boundaries of the body of a program on tensors.

    arguments: its inputs, in order
    root:      the sums, or an input
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
    """The first of each group, then the second of each."""
    most = max(map(len, groups), default=0)
    return [[group[n] for group in groups if n < len(group)] for n in range(most)]


@dataclass
class _Walk:
    """Follows values through ops and their bodies.

    first:  type of the sums
    made:   of values that are made of sums
    second: of those that a select takes from two, the other
    origin: what stands for an argument of a body, or for the result of an op with one
    wanted: for each boundary the sums
    """

    arguments: Sequence[ir.Value]
    first: DType
    made: dict[ir.Value, Made] = field(default_factory=dict)
    second: dict[ir.Value, Made] = field(default_factory=dict)
    origin: dict[ir.Value, ir.Value] = field(default_factory=dict)
    wanted: list[list[float]] = field(default_factory=list)
    neutral: dict[int, float] = field(default_factory=dict)

    def follow(self, ops: Sequence[ir.Operation]) -> None:
        """Ops in order."""
        for op in ops:
            if len(op.regions) == 1 and op.name not in _MOVES and len(op.regions[0].blocks) == 1:
                self._body(op)
            elif op.name == "tc.quantise_blocks":
                for norm in list(op.operands)[1:]:
                    self._settle(norm, 1.0)
            elif op.operands and len(op.results) == 1:
                self._op(op)

    def limits(self, made: Made | None, wanted: Sequence[float]) -> None:
        """Notes what a value is to be."""
        if made and wanted:
            self.wanted.append(made.sums_for(wanted, self.first))

    def _body(self, op: ir.Operation) -> None:
        """A structured op, if it gives each element once, or an epilogue."""
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
        """One op on elements, or one that moves tensors."""
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
        elif op.name in _TO_WHOLE or op.name == "arith.trunci":
            low, high = ends_of_integers(dtype)
            self.limits(made, [float(high), float(low)])
        elif len(op.operands) == 2 and len(sources) == 1:
            self._with_another(op, made, sources[0])

    def _with_another(self, op: ir.Operation, made: Made, source: int) -> None:
        """An op on what is made of sums and on something else."""
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
        """What a value stands for, through moves and bodies."""
        while True:
            if value in self.origin:
                value = self.origin[value]
            elif _name(value) in _MOVES | {"arith.truncf", "linalg.broadcast"}:
                value = value.owner.operation.operands[0]
            else:
                return value

    def _number(self, value: ir.Value) -> float | None:
        """The number that a value is everywhere."""
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
        """Gives the inputs of which a value is made numbers with which it is 0, or 1."""
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
    """Ties of the type that an op of tc rounds its own sums to."""
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
    """Numbers as a type has them; whole numbers beyond its range stay as they are."""
    if not is_float(dtype):
        return np.rint(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32 if dtype.itemsize > 4 else dtype).astype(np.float64)


def _beside(values: Array, dtype: DType, end: float) -> Array:
    """The next numbers of a type of floats in a direction."""
    if dtype != np.float32:
        return values
    with np.errstate(over="ignore"):
        return np.nextafter(values.astype(np.float32), np.float32(end)).astype(np.float64)
