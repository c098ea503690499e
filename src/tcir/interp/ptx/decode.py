"""`Decode`: the input of the functions that decode an instruction. It gives access to the modifiers
and the operands, and creates the resulting op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

import numpy as np

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.lanes import FULL
from tcir.interp.ptx.op import (
    BLOCKING,
    MEMBERS,
    PLAIN,
    Compute,
    Incomplete,
    Op,
    Run,
    no_effect,
)
from tcir.interp.ptx.registers import Slots
from tcir.interp.ptx.special_registers import GRID_WORKSPACE, MOVING, NO_VALUE, VECTORS
from tcir.interp.ptx.syntax import (
    TYPES,
    Address,
    Function,
    Imm,
    Instruction,
    Not,
    Operand,
    Reg,
    Selected,
    Sink,
    SpecialRegister,
    Symbol,
    Type,
    Vector,
)


class Decode:
    """One instruction during decoding: its modifiers, and the register slots of its operands."""

    def __init__(
        self,
        instruction: Instruction,
        name: str,
        slots: Slots,
        function: Function,
        symbol: Callable[[Instruction, str], tuple[str, int] | None],
        target: str,
    ) -> None:
        self.target = target
        self.instruction = instruction
        self.name = name
        self.site = instruction.site
        self.operands = instruction.operands
        rest = instruction.mnemonic[len(name) :].strip(".")
        self.modifiers = rest.split(".") if rest else []
        self.slots = slots
        self.function = function
        self._asked: set[str] = set()
        """Modifiers that were looked for."""
        self._symbol = symbol
        self._written: list[int] = []
        self._read: list[int] = []

    # --- errors -------------------------------------------------------------------------------
    def incomplete(self, why: str) -> Incomplete:
        return Incomplete(self.instruction.mnemonic, self.site, why)

    def malformed(self, message: str) -> PtxSyntaxError:
        text = f"{self.instruction.mnemonic}: {message}"
        return PtxSyntaxError(text, self.site.line, self.instruction.column)

    # --- modifiers ----------------------------------------------------------------------------
    def take(self, *names: str) -> str | None:
        """Removes the first of `names` that is among the modifiers, and returns it; None if there
        is none.
        """
        self._asked.update(names)
        for n, modifier in enumerate(self.modifiers):
            if modifier in names:
                del self.modifiers[n]
                return modifier
        return None

    def skip(self, *names: str) -> None:
        """Removes modifiers that have no influence on results here (cache hints, scopes,
        `.uni`).
        """
        self._asked.update(names)
        self.modifiers = [m for m in self.modifiers if m not in names]

    def require(self, *names: str) -> str:
        found = self.take(*names)
        if found is None:
            raise self.malformed(f"expected one of .{', .'.join(names)}")
        return found

    def types(self, *allowed: str) -> list[Type]:
        """Removes and returns the type modifiers, in order. If `allowed` is given, any other type
        makes the instruction incomplete.
        """
        found = [TYPES[m] for m in self.modifiers if m in TYPES]
        self.modifiers = [m for m in self.modifiers if m not in TYPES]
        for kind in found:
            if allowed and kind.name not in allowed:
                raise self.incomplete(f"no rule for type .{kind.name}")
        return found

    def type(self, *allowed: str) -> Type:
        found = self.types(*allowed)
        if len(found) != 1:
            raise self.malformed(f"expected one type, got {len(found)}")
        return found[0]

    def done(self, operands: int | Sequence[int] | None = None) -> None:
        """Ends the decoding. A modifier that is left makes the instruction incomplete; raises
        PtxSyntaxError if the number of operands is not in `operands`.
        """
        if self.modifiers:
            left = self.modifiers[0]
            near = get_close_matches(left, sorted(self._asked | TYPES.keys()), n=1, cutoff=0.7)
            meant = f"; did you mean '.{near[0]}'?" if near else ""
            raise self.incomplete(f"no rule for modifier .{left}{meant}")
        if operands is None:
            return
        counts = (operands,) if isinstance(operands, int) else tuple(operands)
        if len(self.operands) not in counts:
            wanted = " or ".join(map(str, counts))
            raise self.malformed(f"expected {wanted} operands, got {len(self.operands)}")

    # --- operands -----------------------------------------------------------------------------
    def _bits(self, imm: Imm, kind: Type) -> int:
        if imm.kind == "int":
            value = int(imm.value)
            if kind.kind == "f" and kind.name not in ("f16", "bf16", "f16x2", "bf16x2"):
                raise self.malformed(f"expected a float constant for .{kind.name}, got {value}")
            if kind.size == 0:
                return int(value != 0)
            return value & ((1 << (8 * kind.size)) - 1)
        bits = int(imm.value)
        if kind.size == 4 and imm.kind == "f32" or kind.size == 8 and imm.kind == "f64":
            return bits
        if imm.kind == "f64":
            value64 = np.array(bits, np.uint64).view(np.float64)
        else:
            value64 = np.array(bits, np.uint32).view(np.float32).astype(np.float64)
        if kind.size == 4:
            return int(value64.astype(np.float32).view(np.uint32))
        if kind.size == 8:
            return int(value64.view(np.uint64))
        raise self.malformed(f"expected a constant of {kind.size} bytes, got a float constant")

    def constant(self, size: int, bits: int) -> int:
        return self.slots.constant(size, bits & ((1 << (8 * size)) - 1))

    def src(self, operand: Operand, kind: Type, wider: bool = False) -> int:
        """Slot of a source operand of type `kind`. With `wider`, registers that are wider than the
        type are accepted, as ld, st and cvt do.
        """
        self._read.append(slot := self._src(operand, kind, wider))
        return slot

    def _src(self, operand: Operand, kind: Type, wider: bool) -> int:
        if isinstance(operand, Reg):
            size = operand.type.size
            if size != kind.size and not (wider and size > kind.size):
                got = f"{operand.name} (.{operand.type.name})"
                raise self.malformed(f"expected a {8 * kind.size}-bit operand, got {got}")
            return operand.index
        if isinstance(operand, Imm):
            return self.slots.constant(kind.size, self._bits(operand, kind))
        if isinstance(operand, SpecialRegister):
            if operand.name in MOVING:
                raise self.incomplete(f"{operand.name} is read by mov only")
            if operand.name in VECTORS:
                raise self.malformed(f"expected an element such as {operand.name}.x")
            if operand.name.startswith(NO_VALUE) and operand.name not in GRID_WORKSPACE:
                raise self.incomplete(
                    f"no value for {operand.name}: the driver, or a profiler, decides it"
                )
            return self.slots.special(operand.name, kind.size)
        if isinstance(operand, Selected):
            raise self.incomplete(f"no rule for the selector .{operand.selector} of a register")
        if isinstance(operand, Symbol):
            return self.slots.symbol(kind.size, *self.address_of(operand))
        raise self.malformed(f"expected a register or constant, got {type(operand).__name__}")

    def dst(self, operand: Operand, kind: Type, wider: bool = False) -> int:
        self._written.append(slot := self._dst(operand, kind, wider))
        return slot

    def _dst(self, operand: Operand, kind: Type, wider: bool) -> int:
        if isinstance(operand, Sink):
            return self.slots.sink(kind.size)
        if isinstance(operand, Reg):
            size = operand.type.size
            if size != kind.size and not (wider and size > kind.size):
                raise self.malformed(
                    f"expected a {8 * kind.size}-bit destination, got {operand.name} "
                    f"(.{operand.type.name})"
                )
            return operand.index
        raise self.malformed(f"expected a register, got {type(operand).__name__}")

    def pred(self, operand: Operand) -> tuple[int, int]:
        """Slot of a predicate source, and the mask that is combined with its value by xor (FULL for
        `!%p`).
        """
        slot, flip = self._pred(operand)
        self._read.append(slot)
        return slot, flip

    def _pred(self, operand: Operand) -> tuple[int, int]:
        if isinstance(operand, Not):
            return operand.reg.index, FULL
        if isinstance(operand, Reg) and operand.type.kind == "pred":
            return operand.index, 0
        if isinstance(operand, SpecialRegister) and operand.name == "%is_explicit_cluster":
            return self.slots.special(operand.name, 0), 0
        if isinstance(operand, Imm) and operand.kind == "int":
            return self.slots.constant(0, int(operand.value != 0)), 0
        raise self.malformed("expected a predicate")

    def pred_dst(self, operand: Operand) -> int:
        if isinstance(operand, Sink):
            slot = self.slots.sink(0)
        elif isinstance(operand, Reg) and operand.type.kind == "pred":
            slot = operand.index
        else:
            raise self.malformed("expected a predicate destination")
        self._written.append(slot)
        return slot

    def vector(self, operand: Operand, count: int | None = None) -> tuple[Operand, ...]:
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if count is not None and len(items) != count:
            raise self.malformed(f"expected {count} elements, got {len(items)}")
        return items

    def immediate(self, operand: Operand) -> int:
        if isinstance(operand, Imm) and operand.kind == "int":
            return int(operand.value)
        raise self.malformed("expected an integer constant")

    def address(self, operand: Operand) -> tuple[int, int, int, str | None]:
        """Slot of an address operand, size of the slot in bytes, offset, and the state space if the
        base is a symbol.
        """
        if isinstance(operand, Symbol) and operand.element:
            operand = Address(operand)
        if not isinstance(operand, Address) or operand.coordinates is not None:
            raise self.malformed("expected an address in brackets")
        return self.base(operand)

    def base(self, operand: Address) -> tuple[int, int, int, str | None]:
        """Like `address`, but also accepts the base of a tensor address (`[map,
        {coordinates}]`).
        """
        slot, size, offset, space = self._base(operand)
        self._read.append(slot)
        return slot, size, offset, space

    def _base(self, operand: Address) -> tuple[int, int, int, str | None]:
        base = operand.base
        if isinstance(base, Reg):
            if base.type.size not in (4, 8):
                raise self.malformed("expected a 32- or 64-bit address register")
            return base.index, base.type.size, operand.offset, None
        if isinstance(base, Symbol):
            space, address = self.address_of(base)
            return self.slots.symbol(8, space, address), 8, operand.offset, space
        if isinstance(base, Imm):
            return self.slots.constant(8, self._bits(base, TYPES["u64"])), 8, operand.offset, None
        raise self.malformed("expected an address register or a variable")

    def address_of(self, symbol: Symbol) -> tuple[str, int]:
        """State space of the variable that an operand names, and the variable's address in that
        space plus the constant offset that is written in the operand."""
        found = self._symbol(self.instruction, symbol.name)
        if found is None:
            raise self.malformed(f"{symbol.name} is not declared")
        return found[0], found[1] + symbol.offset

    def label(self, operand: Operand) -> int:
        if isinstance(operand, Symbol):
            target = self.instruction.scope.label(operand.name)
            if target is not None:
                return target
        raise self.malformed(f"expected a label, got {getattr(operand, 'name', operand)}")

    # --- results ------------------------------------------------------------------------------
    def op(self, kind: int, run: Run, *, aligned: bool = False, members: int = -1) -> Op:
        """Creates an op with the guard of the instruction. aligned, members: see `Op`"""
        guard, negate = -1, False
        if isinstance(self.instruction.guard, Not):
            guard, negate = self.instruction.guard.reg.index, True
        elif self.instruction.guard is not None:
            guard = self.instruction.guard.index
        return Op(
            kind, run, self.site, guard, negate, aligned=aligned, members=members, name=self.name,
            spelling=self.instruction.mnemonic,
            reads=tuple(self._read), writes=tuple(self._written),
        )  # fmt: skip

    def jump(self, kind: int, targets: tuple[int, ...], run: Run = no_effect) -> Op:
        """Creates a branch op. targets: positions of the instructions that it may branch to"""
        op = self.op(kind, run)
        op.target, op.targets = targets[0], targets
        return op

    def plain(self, run: Run, *, aligned: bool = False) -> Op:
        return self.op(PLAIN, run, aligned=aligned)

    def computing(self, run: Run, compute: Compute | None = None) -> Op:
        """Creates a plain op whose only effect is that it writes the registers requested by `dst`.

        compute: the numpy function of the op
        """
        op = self.plain(run)
        op.results = tuple(self._written)
        op.compute = compute
        return op

    def blocking(self, run: Run, *, aligned: bool = False) -> Op:
        return self.op(BLOCKING, run, aligned=aligned)

    def among(self, members: int, run: Run) -> Op:
        """Creates an op that all lanes of a member mask execute together. members: slot of the
        mask
        """
        return self.op(MEMBERS, run, members=members)
