"""The parsed form of a PTX module (PTX ISA 4 "Syntax", 5 "State Spaces, Types")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Type:
    """A fundamental type: size in bytes and class ("u", "s", "f", "b", "pred")."""

    name: str
    size: int
    kind: str


TYPES: dict[str, Type] = {
    **{f"{k}{8 * n}": Type(f"{k}{8 * n}", n, k) for k in "usb" for n in (1, 2, 4, 8)},
    "b128": Type("b128", 16, "b"),
    **{name: Type(name, 4, name[0]) for name in ("u16x2", "s16x2")},
    "f16": Type("f16", 2, "f"),
    "f16x2": Type("f16x2", 4, "f"),
    "bf16": Type("bf16", 2, "f"),
    "bf16x2": Type("bf16x2", 4, "f"),
    "tf32": Type("tf32", 4, "f"),
    "f32": Type("f32", 4, "f"),
    "f32x2": Type("f32x2", 8, "f"),
    "f64": Type("f64", 8, "f"),
    "pred": Type("pred", 0, "pred"),
}


@dataclass(frozen=True)
class Reg:
    """A register of one function. index: its number among all registers that the text mentions"""

    name: str
    type: Type
    index: int


@dataclass(frozen=True)
class SpecialRegister:
    """A special register such as `%tid.x` (PTX ISA 10)."""

    name: str


@dataclass(frozen=True)
class Sink:
    """The operand `_`: the result is discarded."""


@dataclass(frozen=True)
class Imm:
    """An integer constant, or a float given by its bits (`0f3F800000`: bits32; `0d…`: bits64)."""

    value: int | float
    kind: str = "int"  # "int", "f32", "f64"


@dataclass(frozen=True)
class IntegerTable:
    """The decimal integers `1, 2, 3` of an initial value. They are one token, even if there are a
    hundred thousand of them.
    """

    text: str

    def __len__(self) -> int:
        return self.text.count(",") + 1

    @property
    def values(self) -> NDArray[np.int64]:
        """Values of the integers."""
        return np.fromstring(self.text, np.int64, sep=",")


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, parameter, label or function, plus an offset in bytes.

    mask: in an initial value such as `0xff00(name)`: the bits of the address that are kept, moved
    to bit 0. element: the symbol was written `name[index]`, which is also an address in brackets.
    """

    name: str
    offset: int = 0
    mask: int | None = None
    element: bool = False


@dataclass(frozen=True)
class Not:
    """A negated predicate, `!%p`."""

    reg: Reg


@dataclass(frozen=True)
class Selected:
    """`%r1.b0`: bytes or halves of a register, an operand of video instructions."""

    reg: Reg
    selector: str


@dataclass(frozen=True)
class Negated:
    """`-%r1`, or `-%r1.b0`: an operand of vmad."""

    operand: Reg | Selected


@dataclass(frozen=True)
class Pair:
    """The destination `a|b`: two registers of one instruction."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Vector:
    """`{a, b, …}`, and also the list of operands in parentheses of a call."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Address:
    """`[base + offset]`, or `[base, {coordinates}]` for tensor copies, textures and surfaces.

    sampler: whether a sampler is written between base and coordinates
    """

    base: Operand
    offset: int = 0
    coordinates: tuple[Operand, ...] | None = None
    sampler: bool = False


@dataclass(frozen=True)
class Because:
    """Replaces the operands of a call: gives the reason why the call cannot be executed, or the
    functions that it may reach.
    """

    text: str


@dataclass(eq=False)
class Activation:
    """State of one activation of a recursive function: instructions, registers, variables."""

    name: str
    start: int = 0
    end: int = 0
    registers: range = range(0)
    variables: list[Variable] = field(default_factory=list)
    resumes: list[Resume] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Resume:
    """A recursive call: (formal, actual) parameters, and the instruction to return to."""

    frame: Activation
    arguments: tuple[tuple[Variable, Variable], ...]
    results: tuple[tuple[Variable, Variable], ...]
    at: int


@dataclass(frozen=True, eq=False)
class SystemCall:
    """A call of a function that the driver provides: its actual parameters."""

    arguments: tuple[Variable, ...]
    results: tuple[Variable, ...]


Operand = (
    Because
    | SystemCall
    | Activation
    | Resume
    | Reg
    | Selected
    | Negated
    | SpecialRegister
    | Sink
    | Imm
    | Symbol
    | Not
    | Pair
    | Vector
    | Address
)


@dataclass(frozen=True)
class Site:
    """Location of an instruction; reports show its `str`."""

    line: int
    text: str
    source: str = ""

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"line {self.line}: {self.text}{where}"


@dataclass
class Instruction:
    """One instruction. mnemonic: the dotted word. scope: the block in which its labels are looked
    up
    """

    mnemonic: str
    operands: tuple[Operand, ...]
    guard: Reg | Not | None
    site: Site
    scope: BlockScope
    column: int


@dataclass
class BlockScope:
    """A `{ … }` block: registers, labels and variables declared in it shadow the outer ones."""

    parent: BlockScope | None
    registers: dict[str, Reg] = field(default_factory=dict)
    ranges: dict[str, tuple[Type, int]] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)

    def label(self, name: str) -> int | None:
        return next((s.labels[name] for s in self.outwards() if name in s.labels), None)

    def variable(self, name: str) -> Variable | None:
        return next((s.variables[name] for s in self.outwards() if name in s.variables), None)

    def vector(self, name: str) -> Vector | None:
        return next((s.vectors[name] for s in self.outwards() if name in s.vectors), None)

    def outwards(self) -> Iterator[BlockScope]:
        """Yields this block and the blocks that enclose it, innermost first."""
        scope: BlockScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass
class Variable:
    """A variable in the state space param, shared, global, const or local, or a parameter in reg.

    size:    in bytes; 0 for `extern name[]`
    pointee: alignment that `.ptr .align` promises for the target of a pointer parameter; 4 for
             `.ptr` alone (PTX ISA 7.1.5), 1 without `.ptr`
    """

    name: str
    space: str
    type: Type
    size: int
    align: int
    array: bool
    line: int
    extern: bool = False
    initial: tuple[Imm | Symbol | IntegerTable, ...] | None = None
    key: str = ""  # unique within the module
    pointee: int = 1

    def __post_init__(self) -> None:
        self.key = self.key or self.name


def count_of(initial: Sequence[Imm | Symbol | IntegerTable]) -> int:
    """Number of values that an initial value consists of."""
    return sum(len(value) if isinstance(value, IntegerTable) else 1 for value in initial)


@dataclass
class Function:
    """`.entry` or `.func`; `body` is None for a declaration."""

    name: str
    entry: bool
    params: list[Variable]
    line: int
    results: list[Variable] = field(default_factory=list)
    body: list[Instruction] | None = None
    registers: list[Reg] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    targets: dict[str, list[str]] = field(default_factory=dict)  # .branchtargets lists
    callees: dict[str, list[str] | None] = field(default_factory=dict)
    """.calltargets lists; None for a .callprototype."""
    parameters: dict[str, Reg] = field(default_factory=dict)
    """Parameters that are registers."""
    reqntid: tuple[int, int, int] | None = None
    maxntid: int | None = None
    reqcluster: tuple[int, int, int] | None = None
    maxnreg: int | None = None
    minnctapersm: int | None = None


#: Where addresses of functions begin: no memory is there.
FUNCTIONS = 0x7E00_0000_0000


@dataclass
class PtxModule:
    """A PTX module."""

    version: str
    target: str
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)

    def address(self, name: str) -> int | None:
        """Address of a function. The numbers are those of the simulated machine, not of a GPU."""
        names = [n for n, f in self.functions.items() if not f.entry]
        return FUNCTIONS + 16 * names.index(name) if name in names else None
