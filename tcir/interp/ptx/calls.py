"""Calls of device functions, by copying the callee's body to each call (PTX ISA 9.7.12 "call").

A copy has registers, labels and variables of its own; its parameters are the caller's variables.
Recursive and indirect calls and functions without a body stay `call`, which no rule executes.
"""

from __future__ import annotations

from dataclasses import replace

from tcir.interp.ptx.arguments import LaunchError
from tcir.interp.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Module,
    Not,
    Operand,
    Pair,
    Reg,
    Scope,
    Symbol,
    Variable,
    Vector,
)

#: Instructions of a kernel with all its copies, and calls inside each other: far above what
#: compilers write, and soon reached by functions that call each other twice.
MAX_INSTRUCTIONS = 1 << 16
MAX_DEPTH = 100


def inline_calls(module: Module, function: Function) -> Function:
    """`function`, or a copy of it in which the calls that can be are replaced."""
    if not any(_mnemonic(i) == "call" for i in function.body or ()):
        return function
    out = replace(
        function, body=[], registers=[], variables=[], targets=dict(function.targets)
    )  # fmt: skip
    _Copy(module, out, function, None, ()).run()
    return out


def _mnemonic(instruction: Instruction) -> str:
    return instruction.mnemonic.split(".")[0]


class _Copy:
    """One copy of a function's body at the end of `out`."""

    def __init__(
        self,
        module: Module,
        out: Function,
        source: Function,
        bound: dict[str, Variable] | None,
        stack: tuple[str, ...],
    ) -> None:
        self.module, self.out, self.source = module, out, source
        self.stack = (*stack, source.name)
        self.scopes: dict[int, Scope] = {}
        self.registers: dict[int, Reg] = {}
        self.number = len(out.registers)
        self.root = Scope(None, variables=bound) if bound is not None else None
        self.at: dict[int, int] = {}  # of an instruction in the source: in `out`
        self.copied: list[tuple[Scope, Scope]] = []

    def run(self) -> None:
        assert self.out.body is not None and self.source.body is not None
        prefix = f"{self.number}:" if self.root else ""
        for name, labels in self.source.targets.items():
            self.out.targets[prefix + name] = labels
        end = f"{prefix}end of {self.source.name}"
        for n, instruction in enumerate(self.source.body):
            self.at[n] = len(self.out.body)
            scope = self.scope(instruction.scope)
            guard = instruction.guard and self.operand(instruction.guard)
            assert guard is None or isinstance(guard, Reg | Not)
            name = _mnemonic(instruction)
            if name == "ret" and self.root:
                self.add(instruction, "bra", (Symbol(end),), guard, scope)
            elif name == "call" and self.call(instruction, guard, scope):
                continue
            else:
                operands = [self.operand(o) for o in instruction.operands]
                if name == "brx" and isinstance(operands[1], Symbol):
                    operands[1] = Symbol(prefix + operands[1].name)
                self.add(instruction, instruction.mnemonic, tuple(operands), guard, scope)
            if len(self.out.body) > MAX_INSTRUCTIONS:
                raise LaunchError(
                    f"calls: expected at most {MAX_INSTRUCTIONS} instructions with the bodies of "
                    "all calls, got more"
                )
        self.at[len(self.source.body)] = len(self.out.body)
        for old, new in self.copied:
            new.labels = {label: self.at[place] for label, place in old.labels.items()}
        if self.root is not None:
            self.root.labels[end] = len(self.out.body)

    def add(
        self,
        old: Instruction,
        mnemonic: str,
        operands: tuple[Operand, ...],
        guard: Reg | Not | None,
        scope: Scope,
    ) -> None:
        assert self.out.body is not None
        self.out.body.append(
            Instruction(mnemonic, operands, guard, old.site, scope, old.column)
        )  # fmt: skip

    def call(self, instruction: Instruction, guard: Reg | Not | None, scope: Scope) -> bool:
        """Copies the callee here; False if it has to stay a call."""
        operands = list(instruction.operands)
        results: tuple[Operand, ...] = ()
        if isinstance(operands[0], Vector):
            results = operands[0].items
            del operands[0]
        callee = self.module.functions.get(getattr(operands[0], "name", ""))
        arguments = operands[1] if len(operands) > 1 else Vector(())
        if callee is None or callee.body is None or callee.name in self.stack or guard is not None:
            return False
        if not isinstance(arguments, Vector) or len(operands) > 2:
            return False
        given = (*results, *arguments.items)
        names = (*callee.results, *callee.params)
        if len(given) != len(names):
            return False
        bound = {}
        for variable, operand in zip(names, given, strict=True):
            found = scope.variable(operand.name) if isinstance(operand, Symbol) else None
            if found is None:
                return False
            bound[variable.name] = found
        if len(self.stack) > MAX_DEPTH:
            raise LaunchError(f"calls: expected at most {MAX_DEPTH} inside each other, got more")
        _Copy(self.module, self.out, callee, bound, self.stack).run()
        return True

    # --- what stands in instructions --------------------------------------------------------------
    def scope(self, old: Scope) -> Scope:
        if id(old) not in self.scopes:
            parent = self.scope(old.parent) if old.parent is not None else self.root
            new = self.scopes[id(old)] = Scope(parent)
            for name, variable in old.variables.items():
                own = replace(variable, key=f"{variable.key}.{self.number}")
                new.variables[name] = own
                self.out.variables.append(own)
            self.copied.append((old, new))
        return self.scopes[id(old)]

    def register(self, old: Reg) -> Reg:
        if old.index not in self.registers:
            new = self.registers[old.index] = replace(old, index=len(self.out.registers))
            self.out.registers.append(new)
        return self.registers[old.index]

    def operand(self, old: Operand) -> Operand:
        match old:
            case Reg():
                return self.register(old)
            case Not():
                return Not(self.register(old.reg))
            case Pair():
                return Pair(self.operand(old.first), self.operand(old.second))
            case Vector():
                return Vector(tuple(self.operand(o) for o in old.items))
            case Address():
                coordinates = old.coordinates
                if coordinates is not None:
                    coordinates = tuple(self.operand(o) for o in coordinates)
                return Address(self.operand(old.base), old.offset, coordinates)
        return old
