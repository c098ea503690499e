"""Follows a kernel's program for one CTA: executes its loops with numbers as indices, and passes
its ops to a callback.

Only the values that determine the schedule are computed (index arithmetic, loops, branches, roles
one after another). Every other op is passed to the callback.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tcir.errors import InputError

LIMIT = 200_000
"""Largest number of ops to follow: a picture of more is unreadable."""

_MASK = (1 << 64) - 1
_PREDICATES: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b,
    lambda a, b: a > b, lambda a, b: a >= b, lambda a, b: a & _MASK < b & _MASK,
    lambda a, b: a & _MASK <= b & _MASK, lambda a, b: a & _MASK > b & _MASK,
    lambda a, b: a & _MASK >= b & _MASK,
)  # fmt: skip
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: (a & _MASK) // (b & _MASK),
    "arith.remui": lambda a, b: (a & _MASK) % (b & _MASK),
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.ceildivui": lambda a, b: -(-(a & _MASK) // b),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.minui": lambda a, b: min(a & _MASK, b & _MASK),
    "arith.maxui": lambda a, b: max(a & _MASK, b & _MASK),
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrui": lambda a, b: (a & _MASK) >> b,
}
_CASTS = {"arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi", "arith.trunci"}
_COMPUTED = {*_ARITHMETIC, *_CASTS, "arith.cmpi", "arith.select"}


_LANES = re.compile(r"vector<(\d+)x(?:index|i\d+)>")


def _scalar(operation: Any, name: str, operands: tuple[int, ...]) -> int:
    """Computes the result of an op of `_COMPUTED` on numbers."""
    if name in _ARITHMETIC:
        return _ARITHMETIC[name](*operands)
    if name == "arith.cmpi":
        return int(_PREDICATES[int(operation.attributes["predicate"].value)](*operands))
    if name == "arith.select":
        return operands[1] if operands[0] else operands[2]
    return operands[0]  # a cast


@dataclass(frozen=True)
class Object:
    """A value that is not a number: the `kind` of the op that created it, and the slot of a ring
    buffer.
    """

    kind: str
    key: int
    type: str
    slot: int | None = None


@dataclass
class VisitedOp:
    """An op in the form in which the callback receives it: its operands are numbers, tuples of
    numbers, or `Object`s.
    """

    name: str
    operands: list[Any]
    operation: Any
    role: str
    iteration: tuple[int, ...]
    result: Any = None

    def integer(self, attribute: str, default: int = 0) -> int:
        """Returns an integer attribute, or `default`."""
        attributes = self.operation.attributes
        return int(attributes[attribute].value) if attribute in attributes else default

    def flag(self, attribute: str) -> bool:
        """Returns a boolean attribute; an absent one is false."""
        attributes = self.operation.attributes
        return attribute in attributes and bool(attributes[attribute].value)

    def integers(self, attribute: str) -> list[int]:
        """Returns an attribute ``array<i64: …>``."""
        return [int(value) for value in self.operation.attributes[attribute]]


@dataclass
class KernelWalk:
    """Executes the ops of a kernel function, and calls `visit` for each op that is not arithmetic.

    `visit` returns the value of the op's first result. If it returns None, the first result is a
    new `Object`. Further results are always new `Object`s.
    """

    visit: Callable[[VisitedOp], Any]
    block: Mapping[str, int] = field(default_factory=dict)
    role: str = ""
    iteration: tuple[int, ...] = ()
    count: int = 0
    values: dict[Any, Any] = field(default_factory=dict)

    def function(self, function: Any) -> None:
        """Runs the whole body; arguments are `Object`s named by their number."""
        entry = function.regions[0].blocks[0]
        for number, argument in enumerate(entry.arguments):
            self.values[argument] = Object("argument", number, str(argument.type))
        self._block(entry)

    def _block(self, block: Any) -> list[Any]:
        for op in block.operations:
            operation = op.operation
            name = operation.name
            if name == "scf.yield":
                return self._operands(operation)
            if name != "func.return":
                self._operation(operation, name)
        return []

    def _operands(self, operation: Any) -> list[Any]:
        return [self.values[operand] for operand in operation.operands]

    def _set(self, operation: Any, results: list[Any]) -> None:
        for result, value in zip(operation.results, results):
            self.values[result] = value

    def _operation(self, operation: Any, name: str) -> None:
        self.count += 1
        if self.count > LIMIT:
            raise InputError(f"expected a kernel of at most {LIMIT} steps per CTA to draw")
        operands = self._operands(operation)
        if name == "arith.constant":
            self._set(operation, [self._constant(operation)])
        elif name in _COMPUTED:
            self._set(operation, [self._computed(operation, name, operands)])
        elif name == "vector.broadcast" and isinstance(operands[0], int):
            lanes = _LANES.fullmatch(str(operation.results[0].type))
            if lanes is None:
                self._visit(operation, name, operands)
            else:
                self._set(operation, [(operands[0],) * int(lanes[1])])
        elif name == "gpu.block_id":
            match = re.search(r"dim (\w)", str(operation.attributes["dimension"]))
            axis = match[1] if match else str(operation.attributes["dimension"])[-2]
            self._set(operation, [self.block.get(axis, 0)])
        elif name == "scf.for":
            self._for(operation, operands)
        elif name == "scf.if":
            region = operation.regions[0 if operands[0] else 1]
            results = self._block(region.blocks[0]) if len(region.blocks) else []
            self._set(operation, results)
        elif name == "tc.role":
            self._role(operation)
        else:
            self._visit(operation, name, operands)

    def _computed(self, operation: Any, name: str, operands: list[Any]) -> Any:
        """Returns a number, or a tuple of numbers for a vector; an `Object` if the result depends
        on data."""
        if name == "arith.select" and isinstance(operands[0], int):
            return operands[1] if operands[0] else operands[2]
        if any(isinstance(operand, Object) for operand in operands):
            return Object(name, self.count, str(operation.results[0].type))
        lanes = max((len(x) for x in operands if isinstance(x, tuple)), default=0)
        if lanes:
            columns = [x if isinstance(x, tuple) else (x,) * lanes for x in operands]
            return tuple(_scalar(operation, name, point) for point in zip(*columns, strict=True))
        return _scalar(operation, name, tuple(operands))

    def _constant(self, operation: Any) -> Any:
        value = operation.attributes["value"]
        try:
            return int(value.value)
        except (AttributeError, TypeError, ValueError):
            return Object("constant", self.count, str(value))

    def _for(self, operation: Any, operands: list[Any]) -> None:
        lower, upper, step, *carried = operands
        body = operation.regions[0].blocks[0]
        outer = self.iteration
        for induction in range(lower, upper, step):
            self.iteration = (*outer, induction)
            for argument, value in zip(body.arguments, [induction, *carried]):
                self.values[argument] = value
            carried = self._block(body)
        self.iteration = outer
        self._set(operation, carried)

    def _role(self, operation: Any) -> None:
        body = operation.regions[0].blocks[0]
        warps = len(list(operation.attributes["warps"]))
        self.role = str(operation.attributes["kind"].value)
        for position in range(warps):
            self.values[body.arguments[0]] = position
            self._block(body)
        self.role = ""

    def _visit(self, operation: Any, name: str, operands: list[Any]) -> None:
        step = VisitedOp(name, operands, operation, self.role, self.iteration)
        result = self.visit(step)
        if not len(operation.results):
            return
        if result is None:
            if name == "tc.slot":
                ring, slot = operands
                result = Object(ring.kind, ring.key, ring.type, slot)
            else:
                result = Object(name, self.count, str(operation.results[0].type))
        more = [Object(name, self.count, str(x.type)) for x in list(operation.results)[1:]]
        self._set(operation, [result, *more])


def nested(operation: Any) -> Iterator[Any]:
    """Yields every op inside the regions of an op, in program order."""
    for region in operation.regions:
        for block in region:
            for op in block:
                yield op.operation
                yield from nested(op.operation)


def kernel_of(module: Any) -> Any:
    """Returns the first function with the attribute ``tc.kernel``; raises InputError if there is
    none.
    """
    for op in module.body.operations:
        if op.operation.name == "func.func" and "tc.kernel" in op.operation.attributes:
            return op.operation
    raise InputError(
        "expected a kernel (a func.func with tc.kernel), got none; lower the program first, e.g. "
        "tc-opt FILE --pass-pipeline='builtin.module(raise-to-tc,tile-conv-shift-reuse)'"
    )


_TILE = re.compile(r"!tc\.(?:tmem|smem)<array<i64: (\d+), (\d+)>, (\w+)")
_RING = re.compile(r"!tc\.ring<(\d+)")


def tile_shape(type_text: str) -> tuple[int, int, str]:
    """Returns rows, columns and element type of a tile type (of the tile, for a ring)."""
    match = _TILE.search(type_text)
    if match is None:
        raise InputError(f"expected a tile type, got {type_text}")
    return int(match[1]), int(match[2]), match[3]


def ring_slots(type_text: str) -> int:
    """Number of slots of a ring type; 1 for a tile type."""
    match = _RING.search(type_text)
    return int(match[1]) if match else 1


BITS = {
    "f32": 32, "tf32": 32, "i32": 32, "f16": 16, "bf16": 16, "i8": 8, "f8E4M3FN": 8, "f8E5M2": 8,
}  # fmt: skip


def tmem_columns(type_text: str) -> int:
    """Number of columns of a tile in tensor memory: an accumulator has one element per column,
    operands are packed.
    """
    _, columns, element = tile_shape(type_text)
    if element not in BITS:
        raise InputError(f"expected an element of {', '.join(BITS)}, got {element}")
    return columns * BITS[element] // 32
