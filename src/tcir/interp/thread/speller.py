"""Translates ("spells") a thread-level kernel to PTX, one op at a time.

The translation optimises nothing and does not use LLVM: every SSA value has its own registers,
block arguments are moved, and structured control flow becomes labels. As long as it stays this
naive, it is an independent check of the upstream passes and of the NVPTX back end.

A value is a tuple of registers, one per scalar: vectors and structs are divided into their scalars.
Ops that only rename scalars (bitcasts of one width, extracting, inserting, shuffling) give other
names to the same registers and emit nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tcir._mlir import ir, llvm
from tcir.errors import IncompleteError
from tcir.interp.rules import Rules

CONSTANTS = ("arith.constant", "llvm.mlir.constant")
Registers = tuple[str, ...]
SpellRule = Callable[["Speller", Any], None]

spelling: Rules[SpellRule] = Rules("thread")
"""One function ``(speller, op)`` per op name; takes rules from user code."""

_PREFIX = {"pred": "%p", "b16": "%h", "b32": "%r", "b64": "%d"}

SHARED_POINTER = "b32"
"""Register class of shared and tensor-memory addresses, which are 32 bits wide."""
_POINTER_CLASS = {0: "b64", 1: "b64", 3: SHARED_POINTER, 6: "b32", 7: SHARED_POINTER}


def scalars(kind: ir.Type) -> list[ir.Type]:
    """The scalar types that a value of type `kind` consists of, in order."""
    if isinstance(kind, ir.VectorType):
        count = 1
        for extent in kind.shape:
            count *= extent
        return [kind.element_type] * count
    if isinstance(kind, llvm.StructType):
        return [scalar for part in kind.body for scalar in scalars(part)]
    return [kind]


def pointer_space(kind: ir.Type) -> int | None:
    """The address space of a pointer type, None for any other."""
    return int(kind.address_space) if isinstance(kind, llvm.PointerType) else None


def register_class(kind: ir.Type) -> str:
    """Returns the class of register for a scalar: ``pred``, ``b16``, ``b32`` or ``b64``."""
    space = pointer_space(kind)
    if space is not None and space in _POINTER_CLASS:
        return _POINTER_CLASS[space]
    if isinstance(kind, ir.IndexType):
        return "b64"
    if isinstance(kind, ir.IntegerType):
        if kind.width == 1:
            return "pred"
        if kind.width in (16, 32, 64):
            return f"b{kind.width}"
    if isinstance(kind, ir.F16Type | ir.BF16Type):
        return "b16"
    if isinstance(kind, ir.F32Type):
        return "b32"
    if isinstance(kind, ir.F64Type):
        return "b64"
    raise IncompleteError(f"no register for a value of type {kind}")


def bits(kind: ir.Type) -> int:
    """Width of a scalar in its register; 1 for predicates."""
    name = register_class(kind)
    return 1 if name == "pred" else int(name[1:])


class Speller:
    """The PTX of one kernel while it is built."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._values: dict[ir.Value, Registers] = {}
        self._count: Counter[str] = Counter()
        self._labels = 0
        self._blocks: dict[ir.Block, str] = {}
        self.files: dict[str, int] = {}
        self._line = ""

    def emit(self, text: str) -> None:
        """Appends one instruction, given without its semicolon."""
        self.lines.append(f"\t{text};")

    def place(self, label: str) -> None:
        """Places a label."""
        self.lines.append(f"{label}:")

    def fresh_label(self) -> str:
        """A new label."""
        self._labels += 1
        return f"$L{self._labels}"

    def block_label(self, block: ir.Block) -> str:
        """Returns the label of a block of the function."""
        for known, label in self._blocks.items():
            if known == block:
                return label
        label = self.fresh_label()
        self._blocks[block] = label
        return label

    def fresh(self, name: str) -> str:
        """Returns a new register of a class."""
        self._count[name] += 1
        return f"{_PREFIX[name]}{self._count[name]}"

    def define(self, value: ir.Value) -> Registers:
        """Creates registers for `value`."""
        made = tuple(self.fresh(register_class(scalar)) for scalar in scalars(value.type))
        self._values[value] = made
        return made

    def define_one(self, value: ir.Value) -> str:
        """Creates the register of a scalar."""
        (register,) = self.define(value)
        return register

    def rename(self, value: ir.Value, registers: Sequence[str]) -> None:
        """Maps `value` to existing registers."""
        self._values[value] = tuple(registers)

    def read(self, value: ir.Value) -> Registers:
        """Returns the registers of `value`; the registers of block arguments are created on first
        use.
        """
        if value not in self._values:
            if not isinstance(value.owner, ir.Block):
                raise IncompleteError(f"a use of {value} before its definition")
            return self.define(value)
        return self._values[value]

    def read_one(self, value: ir.Value) -> str:
        """The register of a scalar."""
        (register,) = self.read(value)
        return register

    def constant(self, number: int | str, name: str = "b32") -> str:
        """Returns a new register that holds a number."""
        register = self.fresh(name)
        self.emit(f"mov.{name} {register}, {number}")
        return register

    def move(self, targets: Iterable[ir.Value], sources: Iterable[ir.Value]) -> None:
        """Emits ``targets := sources`` as a parallel copy."""
        pairs = [
            (target, source, register_class(scalar))
            for new, old in zip(targets, sources, strict=True)
            for target, source, scalar in zip(
                self.read_or_define(new), self.read(old), scalars(new.type), strict=True
            )
        ]
        held = []
        for _, source, name in pairs:
            held.append(self.fresh(name))
            self.emit(f"mov.{name} {held[-1]}, {source}")
        for (target, _, name), source in zip(pairs, held, strict=True):
            self.emit(f"mov.{name} {target}, {source}")

    def read_or_define(self, value: ir.Value) -> Registers:
        """Returns the registers of a value to which control flow assigns; they are created on first
        use.
        """
        return self._values.get(value) or self.define(value)

    def op(self, op: ir.Operation) -> None:
        """Spells one op by its rule."""
        self._mark(op)
        if op.name not in spelling:
            raise IncompleteError("no rule at thread level")
        try:
            spelling[op.name](self, op)
        except IncompleteError as error:
            if not hasattr(error, "op"):
                error.op = op  # type: ignore[attr-defined]
            raise

    def _mark(self, op: ir.Operation) -> None:
        """Records the source line of the following instructions, for reports."""
        found = re.search(r'"([^"]*)":(\d+):(\d+)', str(op.location))
        if found is None:
            return
        number = self.files.setdefault(found[1], len(self.files) + 1)
        line = f"\t.loc\t{number} {found[2]} {found[3]}"
        if line != self._line:
            self.lines.append(line)
            self._line = line

    def body(self, block: ir.Block) -> ir.Operation:
        """Translates all ops of `block` except the last op, which is returned."""
        *ops, last = block.operations
        for op in ops:
            self.op(op.operation)
        self._mark(last.operation)
        return last.operation

    def declarations(self) -> list[str]:
        """``.reg`` lines of all registers."""
        return [
            f"\t.reg .{name} {_PREFIX[name]}<{count + 1}>;"
            for name, count in sorted(self._count.items())
        ]


def only(op: ir.Operation, *allowed: str) -> None:
    """Raises IncompleteError for an op with an attribute that its rule would ignore."""
    for name in sorted(set(op.attributes) - set(allowed) - _WITHOUT_MEANING):
        if not name.startswith("tc."):
            raise IncompleteError(f"no rule for the attribute {name} = {op.attributes[name]}")


_WITHOUT_MEANING = frozenset({
    # Promises that only make some results undefined; a defined result is a correct one.
    "overflowFlags", "isExact", "isDisjoint", "nonNeg", "fastmath", "fastmathFlags", "noWrapFlags",
    "operandSegmentSizes", "branch_weights",
})  # fmt: skip


def expect(op: ir.Operation, name: str, *values: str) -> str:
    """Returns the attribute `name` as text, "" if it is absent; IncompleteError unless the text is
    one of `values`.
    """
    text = str(op.attributes[name]) if name in op.attributes else ""
    if text not in values:
        raise IncompleteError(f"no rule for {name} = {text}")
    return text
