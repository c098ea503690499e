"""Builds the PTX that replaces an instruction; it consists of temporaries and of calls of helper
functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir.emulation.errors import EmulationError
from tcir.interp.ptx.syntax import (
    Address,
    Imm,
    Instruction,
    Not,
    Operand,
    Reg,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)

PREFIX = "tcir_emulation_"
#: Bytes of shared memory between a CTA's program and its helpers; `tensor_core.cu` lays them out.
BOX = 240
#: And of the commands, which are behind the box or behind tensor memory.
COMMANDS = 320
RESERVED = "%reserved_smem_offset_1"
"""Shared memory of a CTA that no program can allocate: 288 bytes, which the headers of
cooperative groups use for groups of several warps (cooperative_groups/details/memory.h, CUDA
13.0)."""


def refused(instruction: Instruction, what: str, way_out: str) -> EmulationError:
    """Error that names an instruction, its line, the expected form, and a way out."""
    return EmulationError(
        f"line {instruction.site.line}: {instruction.mnemonic}: expected {what}; {way_out}"
    )


@dataclass(frozen=True)
class BoxPlace:
    """Address of the box, the shared memory through which a CTA's program and its helper warps
    communicate. The address is an offset in bytes from a symbol, or from `RESERVED`; it may depend
    on whether the kernel has clusters.
    """

    base: str
    offset: int
    clustered: bool


class Sequence:
    """Instructions in a block of their own, all on one line of the text, so that line numbers do
    not change.
    """

    def __init__(self, instruction: Instruction, box: BoxPlace) -> None:
        self.instruction = instruction
        self._box = box
        self._lines: list[str] = []
        self._registers = self._calls = 0

    def new(self, bits: int) -> str:
        """Declares a register of `bits` bits; returns its name."""
        self._registers += 1
        name = f"%{PREFIX}r{self._registers}"
        self._lines.append(f".reg .b{bits} {name};")
        return name

    def do(self, text: str) -> None:
        """Adds an instruction, given without its semicolon."""
        self._lines.append(f"{text};")

    def mark(self, label: str) -> None:
        """Adds a label."""
        self._lines.append(f"{label}:")

    def box(self) -> str:
        """Computes the address of the box; returns its register."""
        at = self.new(32)
        self.do(f"mov.u32 {at}, {self._box.base}")
        if self._box.base == RESERVED and self._box.clustered:  # the same in each CTA of a cluster
            rank = self.new(32)
            self.do(f"mov.u32 {rank}, %cluster_ctarank")
            self.do(f"mapa.shared::cluster.u32 {at}, {at}, {rank}")
        self.do(f"add.u32 {at}, {at}, {self._box.offset}")
        return at

    def call(self, name: str, *given: tuple[int, str | int], result: str | None = None) -> None:
        """Calls the function `name` with the address of the box and the given (bits, value) pairs.

        result: 64-bit register that receives the result
        """
        self.call_plain(name, (32, self.box()), *given, result=result)

    def call_plain(
        self, name: str, *arguments: tuple[int, str | int], result: str | None = None
    ) -> None:
        """Calls a function as `call` does, without the address of the box."""
        self._calls += 1
        n = self._calls
        names: list[str] = []
        for bits, value in arguments:
            names.append(f"{PREFIX}p{n}_{len(names)}")
            self._lines.append(
                f".param .b{bits} {names[-1]}; st.param.b{bits} [{names[-1]}], {value};"
            )
        given = ", ".join(names)
        if result is None:
            self.do(f"call {PREFIX}{name}, ({given})")
            return
        out = f"{PREFIX}o{n}"
        self._lines.append(f".param .b64 {out};")
        self.do(f"call ({out}), {PREFIX}{name}, ({given})")
        self.do(f"ld.param.b64 {result}, [{out}]")

    def value(self, operand: Operand) -> str:
        """PTX text of an operand. Raises EmulationError for an operand of a kind that is not
        supported.
        """
        match operand:
            case Reg(name) | SpecialRegister(name):
                return name
            case Imm(value, "int"):
                return str(value)
            case Imm(value, "f32"):
                return f"0f{int(value):08X}"
            case Imm(value, "f64"):
                return f"0d{int(value):016X}"
            case Symbol(name, offset, None):
                return f"{name}+{offset}" if offset else name
            case Vector(items):
                parts = ("_" if isinstance(x, Sink) else self.value(x) for x in items)
                return f"{{{', '.join(parts)}}}"
        raise refused(self.instruction, f"a register or a number, got {operand}", "use a register")

    def tensor_address(self, operand: Operand) -> str:
        """Computes `[taddr + columns]`; returns its 32-bit register."""
        if not isinstance(operand, Address) or operand.coordinates is not None:
            raise refused(self.instruction, f"an address, got {operand}", "write [register]")
        at = self.new(32)
        if isinstance(operand.base, Imm):
            self.do(f"mov.u32 {at}, {int(operand.base.value) + operand.offset}")
            return at
        if not isinstance(operand.base, Reg) or operand.base.type.size != 4:
            raise refused(self.instruction, "a 32-bit tensor-memory address", "use a .b32 register")
        self.do(f"add.u32 {at}, {operand.base.name}, {operand.offset}")
        return at

    def shared_address(self, operand: Operand, spaced: bool) -> str:
        """Computes a 32-bit address in the window of shared memory; returns the register that
        contains it.

        spaced: whether the operand is already an address in this window
        """
        if not isinstance(operand, Address) or operand.coordinates is not None:
            raise refused(self.instruction, f"an address, got {operand}", "write [register]")
        at, base = self.new(32), operand.base
        if isinstance(base, Symbol):
            self.do(f"mov.u32 {at}, {base.name}")
            self.do(f"add.u32 {at}, {at}, {operand.offset + base.offset}")
            return at
        if not isinstance(base, Reg):
            raise refused(self.instruction, f"an address in a register, got {base}", "use one")
        if base.type.size == 4:
            self.do(f"add.u32 {at}, {base.name}, {operand.offset}")
            return at
        wide = base.name
        if not spaced:
            wide = self.new(64)
            self.do(f"cvta.to.shared.u64 {wide}, {base.name}")
        self.do(f"cvt.u32.u64 {at}, {wide}")
        self.do(f"add.u32 {at}, {at}, {operand.offset}")
        return at

    def chosen(self, operand: Operand, yes: int) -> str:
        """Selects `yes` if the predicate is true, otherwise 0; returns the register that contains
        the result.
        """
        found = self.new(32)
        match operand:
            case Reg(name):
                self.do(f"selp.b32 {found}, {yes}, 0, {name}")
            case Not(Reg(name)):
                self.do(f"selp.b32 {found}, 0, {yes}, {name}")
            case Imm(value):
                self.do(f"mov.b32 {found}, {yes if value else 0}")
            case _:
                raise refused(self.instruction, f"a predicate, got {operand}", "use a register")
        return found

    def block(self) -> str:
        """Text of the whole sequence, without a guard."""
        return f"{{ {' '.join(self._lines)} }}" if self._lines else ""

    def text(self, number: int) -> str:
        """Text of the whole sequence, with the guard of the instruction that it replaces.

        number: number of the instruction, for labels
        """
        block = self.block()
        guard = self.instruction.guard
        if guard is None or not block:
            return block
        name = guard.reg.name if isinstance(guard, Not) else guard.name
        skip = f"@{name}" if isinstance(guard, Not) else f"@!{name}"
        label = f"${PREFIX}skip{number}"
        return f"{skip} bra {label}; {block} {label}:"
