"""Replaces calls of device functions by copies of the callee's body (PTX ISA 9.7.12 "call").

Each copy has its own registers, labels and variables, and the caller's variables stand for its
parameters. An indirect call becomes a chain of comparisons of the called address with the addresses
of all functions that the call may reach. A recursive call saves the state of its function's copy
and starts the same copy again (`isa/frames.py`). A call that cannot be replaced stays `call`, with
the reason as its operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcir.errors import LaunchError
from tcir.interp.ptx.syntax import (
    TYPES,
    Activation,
    Address,
    Because,
    BlockScope,
    Function,
    Imm,
    Instruction,
    Negated,
    Not,
    Operand,
    Pair,
    PtxModule,
    Reg,
    Resume,
    Selected,
    Symbol,
    SystemCall,
    Type,
    Variable,
    Vector,
)

#: Instructions of a kernel with all its copies, and calls inside each other: far above what
#: compilers write, and soon reached by functions that call each other twice.
MAX_INSTRUCTIONS = 1 << 16
MAX_DEPTH = 100


SYSTEM = {
    "vprintf": "call-vprintf",
    "__assertfail": "call-assertfail",
    "malloc": "call-malloc",
    "free": "call-free",
    "cudaGraphSetConditional": "st",
}
"""Functions without a body that the driver provides (isa/system_calls.py). st: the function stores
its second argument at the address that the first one is."""


class _Stays(Exception):
    """A call that cannot be replaced, and why."""


def inline_calls(module: PtxModule, function: Function) -> Function:
    """Returns `function`, or a copy of it in which every replaceable call is replaced."""
    if not any(_mnemonic(i) == "call" for i in function.body or ()):
        return function
    out = replace(function, body=[], registers=[], variables=[], targets=dict(function.targets))
    _Copy(module, out, function, None, None).run()
    return out


def _mnemonic(instruction: Instruction) -> str:
    return instruction.mnemonic.split(".")[0]


def _pointed_at(module: PtxModule) -> set[str]:
    """Functions whose address the program uses, in an instruction or an initial value."""
    found = {
        value.name
        for variable in module.variables.values()
        for value in variable.initial or ()
        if isinstance(value, Symbol)
    }
    for function in module.functions.values():
        for instruction in function.body or ():
            if _mnemonic(instruction) != "call":
                found.update(o.name for o in instruction.operands if isinstance(o, Symbol))
    return found


class _Copy:
    """One copy of a function's body at the end of `out`. caller: the copy it is called from."""

    def __init__(
        self,
        module: PtxModule,
        out: Function,
        source: Function,
        bound: dict[str, Variable | Reg] | None,
        caller: _Copy | None,
    ) -> None:
        self.module, self.out, self.source, self.caller = module, out, source, caller
        self.depth: int = caller.depth + 1 if caller else 0
        self.scopes: dict[int, BlockScope] = {}
        self.registers: dict[int, Reg] = {}
        self.number = len(out.registers)
        self.root: BlockScope | None = None
        self.bound = bound or {}
        if bound is not None:
            self.root = BlockScope(None)
            for name, actual in bound.items():
                if isinstance(actual, Variable):
                    self.root.variables[name] = actual
        self.at: dict[int, int] = {}  # of an instruction in the source: in `out`
        self.copied: list[tuple[BlockScope, BlockScope]] = []
        self.frame: Activation | None = None

    def run(self) -> None:
        assert self.out.body is not None and self.source.body is not None
        prefix = f"{self.number}:" if self.root else ""
        for name, labels in self.source.targets.items():
            self.out.targets[prefix + name] = labels
        end = f"{prefix}end of {self.source.name}"
        start, variables = len(self.out.body), len(self.out.variables)
        stack = self.save_stack()
        for n, instruction in enumerate(self.source.body):
            self.at[n] = len(self.out.body)
            scope = self.scope(instruction.scope)
            guard = instruction.guard and self.operand(instruction.guard)
            assert guard is None or isinstance(guard, Reg | Not)
            name = _mnemonic(instruction)
            if name == "ret" and self.root:
                self.add(instruction, "bra", (Symbol(end),), guard, scope)
            elif name == "call":
                self.guarded_call(instruction, guard, scope)
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
        if self.root is None:
            return
        self.root.labels[end] = len(self.out.body)
        if stack is not None:
            self.emit("stackrestore.u64", (stack,))
        if self.frame is not None:
            formals = [v for v in self.bound.values() if isinstance(v, Variable)]
            self.frame.start, self.frame.end = start, len(self.out.body)
            self.frame.registers = range(self.number, len(self.out.registers))
            own = {v.key: v for v in (*formals, *self.out.variables[variables:])}
            self.frame.variables = [v for v in own.values() if v.space in ("local", "param")]
            self.emit("call-return", (self.frame,))

    def save_stack(self) -> Reg | None:
        """Saves the stack pointer of a function that contains alloca, so that the memory it
        allocates is free again when it returns.
        """
        if self.root is None or not any(_mnemonic(i) == "alloca" for i in self.source.body or ()):
            return None
        stack = self.temporary("stack", TYPES["u64"])
        self.emit("stacksave.u64", (stack,))
        return stack

    # --- adding instructions ----------------------------------------------------------------------
    def add(
        self,
        old: Instruction,
        mnemonic: str,
        operands: tuple[Operand, ...],
        guard: Reg | Not | None,
        scope: BlockScope,
    ) -> None:
        assert self.out.body is not None
        self.out.body.append(Instruction(mnemonic, operands, guard, old.site, scope, old.column))

    def emit(self, mnemonic: str, operands: tuple[Operand, ...]) -> None:
        """Adds an instruction that is not in the text; it gets the location of the last instruction
        of the body.
        """
        assert self.source.body
        self.add(self.source.body[-1], mnemonic, operands, None, self.root or BlockScope(None))

    def jump(self, old: Instruction, guard: Reg | Not | None) -> BlockScope:
        """Adds a branch; its target is set by `land`."""
        scope = BlockScope(None)
        self.add(old, "bra", (Symbol("there"),), guard, scope)
        return scope

    def land(self, *jumps: BlockScope) -> None:
        """Makes the next instruction that is added the target of these branches."""
        assert self.out.body is not None
        for scope in jumps:
            scope.labels["there"] = len(self.out.body)

    def temporary(self, name: str, kind: Type) -> Reg:
        self.out.registers.append(Reg(name, kind, len(self.out.registers)))
        return self.out.registers[-1]

    # --- calls ------------------------------------------------------------------------------------
    def guarded_call(self, old: Instruction, guard: Reg | Not | None, scope: BlockScope) -> None:
        jumps = []
        if guard is not None:
            jumps.append(self.jump(old, guard.reg if isinstance(guard, Not) else Not(guard)))
        try:
            self.call(old, scope)
        except _Stays as why:
            self.add(old, old.mnemonic, (Because(str(why)),), None, scope)
        self.land(*jumps)

    def call(self, old: Instruction, scope: BlockScope) -> None:
        """Inlines the callee at this call. For a call through a register, inlines every function
        whose address the register may hold.
        """
        operands = [self.operand(o) for o in old.operands]
        results = _listed(operands)
        if not operands:
            raise _Stays("expected a function to call, got none")
        callee = operands.pop(0)
        arguments = _listed(operands)
        given = [self.actual(o, scope) for o in (*results, *arguments)]
        if isinstance(callee, Symbol):
            function = self.module.functions.get(callee.name)
            if function is not None and function.body is None and callee.name in SYSTEM:
                self.system(old, function, given, scope)
                return
            if function is None or function.body is None or function.entry:
                raise _Stays(f"no body of {callee.name} here: link the module that defines it")
            self.enter(old, function, given, len(results))
            return
        if not isinstance(callee, Reg) or callee.type.size != 8:
            raise _Stays("expected a function or a 64-bit register with the address of one")
        listed = getattr(operands[0], "name", "") if operands else ""
        self.indirect(old, callee, self.candidates(listed, given), given, len(results))

    def system(
        self,
        old: Instruction,
        function: Function,
        given: Sequence[Variable | Reg | Imm],
        scope: BlockScope,
    ) -> None:
        variables = [v for v in given if isinstance(v, Variable)]
        if not _fits(function, given) or len(variables) < len(given):
            raise _Stays(f"expected .param variables as {function.name} declares them")
        if SYSTEM[function.name] == "st":
            address, value = (self.temporary("set", v.type) for v in variables)
            for into, v in zip((address, value), variables, strict=True):
                self.add(
                    old, f"ld.param.{v.type.name}", (into, Address(Symbol(v.name))), None, scope
                )
            self.add(old, f"st.{value.type.name}", (Address(address), value), None, scope)
            return
        results = len(function.results)
        operand = SystemCall(tuple(variables[results:]), tuple(variables[:results]))
        self.add(old, SYSTEM[function.name], (operand,), None, scope)

    def candidates(self, listed: str, given: Sequence[Variable | Reg | Imm]) -> list[Function]:
        """Functions that a call through a register may reach: those in its .calltargets or, without
        it, every function whose address the module takes and whose parameters fit.
        """
        if listed not in self.source.callees:
            raise _Stays("expected the label of .calltargets or .callprototype after the address")
        names = self.source.callees[listed]
        if names is None:
            pointed = _pointed_at(self.module)
            functions = [self.module.functions.get(n) for n in sorted(pointed)]
            return [f for f in functions if f is not None and f.body and _fits(f, given)]
        found = [self.module.functions.get(n) for n in names]
        if any(f is None or not f.body or not _fits(f, given) for f in found):
            raise _Stays(f"expected bodies of {', '.join(names)} here that take these arguments")
        return [f for f in found if f is not None]

    def indirect(
        self,
        old: Instruction,
        address: Reg,
        functions: list[Function],
        given: Sequence[Variable | Reg | Imm],
        results: int,
    ) -> None:
        differs = self.temporary("differs", TYPES["pred"])
        ends = []
        for function in functions:
            number = Imm(self.module.address(function.name) or 0)
            self.add(old, "setp.ne.u64", (differs, address, number), None, BlockScope(None))
            past = self.jump(old, differs)
            try:
                self.enter(old, function, given, results)
            except _Stays as why:
                self.add(old, old.mnemonic, (Because(str(why)),), None, BlockScope(None))
            ends.append(self.jump(old, None))
            self.land(past)
        names = ", ".join(f.name for f in functions) or "no function"
        self.add(old, "call-nowhere", (address, Because(names)), None, BlockScope(None))
        self.land(*ends)

    def actual(self, operand: Operand, scope: BlockScope) -> Variable | Reg | Imm:
        """Returns the operand that replaces a parameter of the callee in the copied body."""
        if isinstance(operand, Reg | Imm):
            return operand
        found = scope.variable(operand.name) if isinstance(operand, Symbol) else None
        if found is None:
            raise _Stays("expected .param variables, registers or constants as arguments")
        return found

    def enter(
        self,
        old: Instruction,
        callee: Function,
        given: Sequence[Variable | Reg | Imm],
        results: int,
    ) -> None:
        """Inlines the body of `callee` with these arguments. If the call is inside a copy of that
        body, saves the copy's state and branches to its start instead.
        """
        if not _fits(callee, given):
            raise _Stays(f"expected arguments as {callee.name} declares them, got others")
        names = [v.name for v in (*callee.results, *callee.params)]
        active: _Copy | None = self
        while active is not None and active.source is not callee:
            active = active.caller
        if active is not None:
            self.again(old, active, dict(zip(names, given, strict=True)), results)
            return
        if self.depth >= MAX_DEPTH:
            raise LaunchError(f"calls: at most {MAX_DEPTH} may be nested; the program nests more")
        bound: dict[str, Variable | Reg] = {
            name: actual
            for name, actual in zip(names, given, strict=True)
            if isinstance(actual, Variable)
        }
        copy = _Copy(self.module, self.out, callee, bound, self)
        in_registers = [v for v in (*callee.results, *callee.params) if v.space == "reg"]
        formals = {
            v.name: copy.register(callee.parameters[v.name])
            for v in in_registers
            if v.name in callee.parameters
        }
        for name, actual in zip(names[results:], given[results:], strict=True):
            if name in formals and not isinstance(actual, Variable):
                self.move(old, formals[name], actual)
        copy.run()
        for name, actual in zip(names[:results], given[:results], strict=True):
            if name in formals and isinstance(actual, Reg):
                self.move(old, actual, formals[name])

    def move(self, old: Instruction, target: Reg, source: Reg | Imm) -> None:
        self.add(old, f"mov.{target.type.name}", (target, source), None, BlockScope(None))

    def again(
        self,
        old: Instruction,
        active: _Copy,
        given: dict[str, Variable | Reg | Imm],
        results: int,
    ) -> None:
        assert self.out.body is not None
        if active.root is None:
            raise _Stays("expected a function, got the kernel itself")
        pairs: list[tuple[Variable, Variable]] = []
        for name, actual in given.items():
            formal = active.bound.get(name)
            if not isinstance(actual, Variable) or not isinstance(formal, Variable):
                raise _Stays("no rule for recursive calls that pass registers")
            pairs.append((formal, actual))
        if active.frame is None:
            active.frame = Activation(active.source.name)
        resume = Resume(
            active.frame, tuple(pairs[results:]), tuple(pairs[:results]), len(self.out.body) + 1
        )
        active.frame.resumes.append(resume)
        self.add(old, "call-again", (resume,), None, BlockScope(None))

    # --- what stands in instructions --------------------------------------------------------------
    def scope(self, old: BlockScope) -> BlockScope:
        if id(old) not in self.scopes:
            parent = self.scope(old.parent) if old.parent is not None else self.root
            new = self.scopes[id(old)] = BlockScope(parent)
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
            case Selected():
                return Selected(self.register(old.reg), old.selector)
            case Negated():
                negated = self.operand(old.operand)
                assert isinstance(negated, Reg | Selected)
                return Negated(negated)
            case Pair():
                return Pair(self.operand(old.first), self.operand(old.second))
            case Vector():
                return Vector(tuple(self.operand(o) for o in old.items))
            case Address():
                coordinates = old.coordinates
                if coordinates is not None:
                    coordinates = tuple(self.operand(o) for o in coordinates)
                return replace(old, base=self.operand(old.base), coordinates=coordinates)
        return old


def _listed(operands: list[Operand]) -> tuple[Operand, ...]:
    """Takes the list in parentheses off the front, if there is one."""
    if operands and isinstance(operands[0], Vector):
        first = operands.pop(0)
        assert isinstance(first, Vector)
        return first.items
    return ()


def _fits(function: Function, given: Sequence[Variable | Reg | Imm]) -> bool:
    """Whether the arguments match a function's parameters in number, kind and size."""
    formals = (*function.results, *function.params)
    return len(formals) == len(given) and all(map(_agrees, formals, given))


def _agrees(formal: Variable, actual: Variable | Reg | Imm) -> bool:
    if formal.space != "reg":
        return isinstance(actual, Variable) and actual.size == formal.size
    if isinstance(actual, Reg):
        return actual.type.size == formal.type.size
    return isinstance(actual, Imm)
