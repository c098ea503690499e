"""A kernel made ready for a launch: decoded instructions, slot banks, shared-memory layout."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.interp.ptx import isa  # noqa: F401  (registers the rules)
from tcir.interp.ptx.decode import (
    BRANCH,
    EXIT,
    FULL,
    INDEXED,
    RULES,
    Decode,
    Incomplete,
    Op,
    Slots,
    find,
)
from tcir.interp.ptx.idle import idle_waits
from tcir.interp.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Module,
    Operand,
    Pair,
    Resume,
    Site,
    Symbol,
    Variable,
    Vector,
)
from tcir.machine import Finding, MachineError
from tcir.target import DEFAULT_TARGET

if TYPE_CHECKING:
    from tcir.interp.ptx.warp import Warp

#: What alloca can hand out to one thread, far above what kernels declare.
STACK, STACK_ALIGNMENT = 16 << 10, 256
_POISON_BYTE = 0xCB


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


@dataclass
class Program:
    """The entry function decoded. `incomplete` names what has no rule and can be reached."""

    function: Function
    code: list[Op]
    slots: Slots
    banks: list[tuple[int, dict[int, int], np.ndarray]]  # size, row of a slot, poisoned contents
    incomplete: list[Incomplete]
    local_bytes: int


@dataclass
class Layout:
    """Addresses of variables: kernel parameters, shared and local memory."""

    params: dict[str, int]
    param_bytes: int
    shared: dict[str, int]
    static_shared: int
    dynamic_base: int
    local: dict[str, int]
    local_bytes: int


def _symbols(operands: Iterable[Operand | None]) -> Iterable[str]:
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Vector):
            yield from _symbols(operand.items)
        elif isinstance(operand, Pair):
            yield from _symbols((operand.first, operand.second))
        elif isinstance(operand, Address):
            yield from _symbols((operand.base, *(operand.coordinates or ())))


def _saved(operands: Iterable[Operand | None]) -> Iterable[Variable]:
    """Variables that a recursive call saves, or copies."""
    for operand in operands:
        if isinstance(operand, Resume):
            yield from operand.frame.variables
            yield from (v for pair in (*operand.arguments, *operand.results) for v in pair)


def lay_out(module: Module, function: Function) -> Layout:
    """Places parameters in order, static shared variables that are used, then the dynamic ones."""
    params, at = {}, 0
    for variable in function.params:
        at = align_up(at, variable.align)
        params[variable.name] = at
        at += variable.size
    used: dict[str, Variable] = {}
    for instruction in function.body or ():
        for name in _symbols(instruction.operands):
            variable_ = instruction.scope.variable(name) or module.variables.get(name)
            if variable_ is not None:
                used[variable_.key] = variable_
        used.update((v.key, v) for v in _saved(instruction.operands))
    shared: dict[str, int] = {}
    local: dict[str, int] = {}
    static = local_bytes = 0
    dynamic = []
    for key, variable in used.items():
        if variable.space == "shared" and variable.extern and variable.size == 0:
            dynamic.append((key, variable))
        elif variable.space == "shared":
            static = align_up(static, variable.align)
            shared[key] = static
            static += variable.size
        elif variable.space in ("local", "param"):
            local_bytes = align_up(local_bytes, variable.align)
            local[key] = local_bytes
            local_bytes += variable.size
    base = align_up(static, max([16, *(v.align for _, v in dynamic)])) if dynamic else static
    for key, _ in dynamic:
        shared[key] = base
    return Layout(params, at, shared, static, base, local, local_bytes)


def decode(module: Module, function: Function, layout: Layout, globals_: dict[str, int]) -> Program:
    """Decodes every instruction once. Raises PtxSyntaxError for operands that do not fit."""
    slots = Slots(local=layout.local)
    slots.stack = align_up(layout.local_bytes, STACK_ALIGNMENT)
    for reg in function.registers:
        slots.new(reg.type.size, reg.name)

    def symbol(instruction: Instruction, name: str) -> tuple[str, int] | None:
        variable = instruction.scope.variable(name)
        if variable is None and name in layout.params:
            return "param", layout.params[name]
        variable = variable or module.variables.get(name)
        if variable is None:
            address = module.address(name)
            return None if address is None else ("function", address)
        if variable.extern and variable.space in ("global", "const"):
            why = f"{name} is .extern and no module here defines it"
            raise Incomplete(instruction.mnemonic, instruction.site, why)
        if variable.key in layout.shared:
            return "shared", layout.shared[variable.key]
        if variable.key in layout.local:
            return "local", layout.local[variable.key]
        if name in globals_:
            return "global", globals_[name]
        return None

    code: list[Op] = []
    missing: dict[int, Incomplete] = {}
    for at, instruction in enumerate(function.body or ()):
        name = find(instruction.mnemonic)
        try:
            if name is None:
                raise Incomplete(instruction.mnemonic, instruction.site, "no rule for it")
            code.append(
                RULES[name](Decode(instruction, name, slots, function, symbol, module.target))
            )
        except Incomplete as incomplete:
            missing[at] = incomplete
            code.append(Op(-1, None, instruction.site))
    for at in idle_waits(code, function.body or ()):
        code[at].idle = True
    last = code[-1].site if code else Site(function.line, function.name)
    code.append(Op(EXIT, None, last))
    reached = _reachable(code)
    banks = []
    for size in (1, 2, 4, 8, 16):
        members = [n for n, s in enumerate(slots.sizes) if s == size]
        if members:
            block = np.full((len(members), 32 * size), _POISON_BYTE, np.uint8)
            block = block.view(np.dtype(f"u{size}" if size < 16 else "V16"))
            for row, slot in enumerate(members):
                if slot in slots.constants:
                    block[row] = slots.constants[slot]
            banks.append((size, {slot: row for row, slot in enumerate(members)}, block))
    incomplete_ = [missing[at] for at in sorted(missing) if at in reached]
    local_bytes = slots.stack + STACK if slots.has_stack else layout.local_bytes
    return Program(function, code, slots, banks, incomplete_, local_bytes)


def _reachable(code: list[Op]) -> set[int]:
    seen: set[int] = set()
    work = [0]
    while work:
        at = work.pop()
        if at in seen or at >= len(code):
            continue
        seen.add(at)
        op = code[at]
        if op.kind == BRANCH:
            work.append(op.target)
        if op.kind == INDEXED:
            work.extend(op.targets)
        if op.kind not in (BRANCH, EXIT, INDEXED) or op.guard >= 0:
            work.append(at + 1)
    return seen


class Run:
    """What the warps of one launch share: sizes, parameters, the budget, the findings."""

    def __init__(
        self,
        machine: Any,
        program: Program,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        cluster: tuple[int, int, int],
        dynamic_smem: int,
        total_smem: int,
        params: bytes,
        max_instructions: int,
    ) -> None:
        self.machine, self.program = machine, program
        self.grid, self.block, self.cluster = grid, block, cluster
        self.dynamic_smem, self.total_smem = dynamic_smem, total_smem
        self.threads = block[0] * block[1] * block[2]
        self.params = np.frombuffer(params, np.uint8)
        self.max_instructions = max_instructions
        self.instructions = 0
        self._clock = 0
        self.maps: dict[bytes, Any] = {}
        self.strong: dict[tuple[Any, int], dict[Any, Any]] = {}  # see isa/memory.py
        self.reductions: dict[Any, list[tuple[int, int]]] = {}  # of bar.red, see isa/sync.py
        self._reported: set[tuple[int, str]] = set()

    # --- budget -------------------------------------------------------------------------------
    def retire(self, agent: Any, count: int) -> None:
        """Counts warp instructions; ends the run when the budget is spent."""
        self.instructions += count
        if self.instructions > self.max_instructions:
            raise MachineError(
                "instruction-budget",
                f"expected at most {self.max_instructions} warp instructions, got more; an endless "
                "loop? raise max_instructions if not",
                site=agent.name,
            )

    # --- findings -----------------------------------------------------------------------------
    def _find(self, warp: Warp, site: Site, code: str, second: str, missing: str) -> None:
        if (site.line, code + second) not in self._reported:
            self._reported.add((site.line, code + second))
            index = warp.agent.cta.index
            self.machine.findings.append(Finding("error", code, str(site), second, missing, index))

    def undefined_register(self, warp: Warp, site: Site, name: str, lanes: int) -> None:
        if (site.line, name) not in self._reported:
            self._reported.add((site.line, name))
            text = f"{name} (warp {warp.index}, lanes {lanes:#010x})"
            self._find(warp, site, "undefined-register", text, "nothing wrote the register before")

    def used_before_wait(self, warp: Warp, load: Site, site: Site) -> None:
        """A warning: the value is the right one (PTX ISA 9.7.16.6.4.5), and some kernels rely on
        it."""
        machine = warp.agent.machine
        machine.findings.append(
            Finding(
                "warning", "registers-before-wait", str(load), str(site),
                "tcgen05.wait::ld between the load and the first use of its registers",
                warp.agent.cta.index,
            )
        )  # fmt: skip

    def undefined_local(self, warp: Warp, site: Site) -> None:
        self._find(warp, site, "undefined-read", "local memory", "nothing wrote the bytes before")

    def double_issue(self, warp: Warp, site: Site, lanes: int) -> None:
        self._find(
            warp, site, "double-issue", f"{lanes} threads of warp {warp.index}",
            "each thread issues the instruction; guard it with elect.sync",
        )  # fmt: skip

    # --- special registers --------------------------------------------------------------------
    def special(self, name: str, cta: Any, warp: int, tid: Any) -> Any:
        """The value, or one per lane, of a special register (PTX ISA 10)."""
        base, _, axis = name.partition(".")
        if axis == "w":
            return 0
        if axis:
            n = "xyz".index(axis)
            x, y = self.block[0], self.block[1]
            match base:
                case "%tid":
                    return (tid % x, tid // x % y, tid // (x * y))[n]
                case "%ntid":
                    return self.block[n]
                case "%ctaid":
                    return cta.index[n]
                case "%nctaid":
                    return self.grid[n]
                case "%cluster_ctaid":
                    return cta.index[n] % self.cluster[n]
                case "%cluster_nctaid":
                    return self.cluster[n]
                case "%clusterid":
                    return cta.index[n] // self.cluster[n]
                case "%nclusterid":
                    return self.grid[n] // self.cluster[n]
        lane = np.arange(32, dtype=np.int64)
        one = np.int64(1)
        cx, cy, cz = self.cluster
        values: dict[str, Any] = {
            "%laneid": lane,
            "%warpid": warp,
            "%nwarpid": -(-self.threads // 32),
            "%smid": 0,
            "%nsmid": DEFAULT_TARGET.sms,
            "%gridid": 0,
            "%cluster_ctarank": cta.rank_in_cluster,
            "%is_explicit_cluster": self.cluster != (1, 1, 1),
            "%cluster_nctarank": cx * cy * cz,
            "%lanemask_eq": one << lane,
            "%lanemask_lt": (one << lane) - 1,
            "%lanemask_le": (one << lane + 1) - 1,
            "%lanemask_gt": FULL & ~((one << lane + 1) - 1),
            "%lanemask_ge": FULL & ~((one << lane) - 1),
            "%dynamic_smem_size": self.dynamic_smem,
            "%total_smem_size": self.total_smem,
            "%aggr_smem_size": self.total_smem + DEFAULT_TARGET.smem_reserved,
            "%current_graph_exec": 0,  # not launched by a graph
        }
        if name not in values:
            raise MachineError("special-register", f"no value for {name} here", site=name)
        return values[name]

    def moving(self, name: str, warp: Warp) -> int:
        """%clock and friends: time is not modelled, so they count their own reads."""
        self._clock += 1
        return self._clock & (FULL if name in ("%clock", "%globaltimer_lo") else (1 << 63) - 1)
