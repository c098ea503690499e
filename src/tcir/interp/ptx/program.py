"""A kernel prepared for a launch: its decoded instructions, and the storage that each warp
needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir.interp.ptx import (  # (isa registers the instructions)
    communication,
    isa,  # noqa: F401
    requirements,
)
from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.idle import idle_waits, polled_loads, waits_that_give_up
from tcir.interp.ptx.layout import AddressLayout, align_up
from tcir.interp.ptx.loops.code import LoopCode, loop_code
from tcir.interp.ptx.loops.straight import StraightLines
from tcir.interp.ptx.op import BRANCH, EXIT, PLAIN, TRY_WAIT, Incomplete, Op, no_effect
from tcir.interp.ptx.registers import Slots, WarpStorage
from tcir.interp.ptx.registry import DECODERS, REFUSED, find, nearest
from tcir.interp.ptx.syntax import Function, Instruction, PtxModule, Site
from tcir.interp.ptx.threads import FAMILIES, in_threads
from tcir.interp.ptx.watch.idle_lanes import watch_idle_lanes
from tcir.interp.ptx.watch.loads import watch_loads
from tcir.interp.ptx.watch.tmem import watch_tmem_loads
from tcir.interp.ptx.watch.wgmma import watch_wgmma
from tcir.threads import LOCK, cached_property

#: What alloca can hand out to one thread, far above what kernels declare.
STACK, STACK_ALIGNMENT = 16 << 10, 256


@dataclass
class DecodedEntry:
    """The decoded entry function.

    straight[pc]: position of the first instruction, from pc on, that may change the program counter
    or the mask of active lanes. incomplete: reachable instructions that have no rule.
    """

    function: Function
    code: list[Op]
    straight: list[int]
    storage: WarpStorage
    incomplete: list[Incomplete]

    @cached_property
    def parted(self) -> list[int]:
        """Like `straight`, but each range also ends before the next instruction that depends on the
        timing of other threads.
        """
        return communication.parted(self.straight, self.code)

    @cached_property
    def until_loops(self) -> tuple[list[int], list[int]]:
        """`straight` and `parted`, with each range also ending before the next loop that compiled
        code executes.
        """
        heads = self.loops.heads if self.loops else frozenset()
        found = list(self.straight), list(self.parted)
        for ends in found:
            head = len(ends)
            for at in reversed(range(len(ends))):
                ends[at] = min(ends[at], head)
                head = at if at in heads else head
        return found

    @cached_property
    def meets(self) -> bool:
        """Whether the program has an instruction by which threads of different clusters may affect
        each other.
        """
        return any(communication.among_ctas(each.mnemonic) for each in self.function.body or ())

    @cached_property
    def loops(self) -> LoopCode | None:
        """Loops that compiled code executes."""
        return loop_code(self.code, self.storage)

    @cached_property
    def lines(self) -> StraightLines:
        """Sequences of computing instructions that compiled code executes (`StraightLine`)."""
        return StraightLines(self.code, self.straight, self.storage)


@dataclass(frozen=True)
class _Symbols:
    """Meanings of the names in operands."""

    module: PtxModule
    layout: AddressLayout
    globals: dict[str, int]

    def find(self, instruction: Instruction, name: str) -> tuple[str, int] | None:
        """State space and address of a variable. Raises Incomplete for a variable that another
        module would have to define."""
        layout = self.layout
        variable = instruction.scope.variable(name)
        if variable is None and name in layout.params:
            return "param", layout.params[name]
        variable = variable or self.module.variables.get(name)
        if variable is None:
            address = self.module.address(name)
            return None if address is None else ("function", address)
        if variable.extern and variable.space in ("global", "const"):
            why = f"{name} is .extern and no module here defines it"
            raise Incomplete(instruction.mnemonic, instruction.site, why)
        for space, addresses in (("shared", layout.shared), ("local", layout.local)):
            if variable.key in addresses:
                return space, addresses[variable.key]
        return ("global", self.globals[name]) if name in self.globals else None


_KEPT: dict[tuple[object, ...], DecodedEntry] = {}
"""Programs that were decoded last, by all that they depend on."""
_MOST_KEPT = 1 << 15
"""Instructions of these."""


def decoded(
    text: str,
    module: PtxModule,
    function: Function,
    layout: AddressLayout,
    globals_: dict[str, int],
) -> DecodedEntry:
    """Result of `decode`, cached for later launches of the function. text: PTX text of `module`"""
    key = (text, function.name, repr(layout), tuple(globals_.items()))
    with LOCK:
        if key in _KEPT:
            _KEPT[key] = _KEPT.pop(key)  # the last one to be dropped
            return _KEPT[key]
    program = decode(module, function, layout, globals_)
    with LOCK:
        _KEPT[key] = program
        while sum(len(each.code) for each in _KEPT.values()) > _MOST_KEPT and len(_KEPT) > 1:
            del _KEPT[next(iter(_KEPT))]
    return program


def decode(
    module: PtxModule, function: Function, layout: AddressLayout, globals_: dict[str, int]
) -> DecodedEntry:
    """Decodes every instruction of the entry function once. Raises PtxSyntaxError for operands that
    do not fit the instruction.
    """
    slots = Slots(local=layout.local)
    slots.stack = align_up(layout.local_bytes, STACK_ALIGNMENT)
    for reg in function.registers:
        slots.new(reg.type.size, reg.name)
    symbols = _Symbols(module, layout, globals_)
    code: list[Op] = []
    missing: dict[int, Incomplete] = {}
    for at, instruction in enumerate(function.body or ()):
        try:
            code.append(_decode_one(instruction, slots, function, symbols))
        except Incomplete as incomplete:
            missing[at] = incomplete
            code.append(Op(PLAIN, no_effect, instruction.site))
    for at in idle_waits(code, function.body or ()):
        code[at].idle = True
    for at, polling in polled_loads(code, function.body or ()):
        code[at].idle = True
        code[at].awaited = None if polling is None else polling.awaited
    for at in waits_that_give_up(code, function.body or ()):
        code[at].gives_up = True
    _mark_unheeded(code)
    communication.mark_updates(code)
    communication.mark_reductions(code, function.body or ())
    last = code[-1].site if code else Site(function.line, function.name)
    code.append(Op(EXIT, no_effect, last))
    watch_wgmma(code)
    watch_loads(code)
    watch_tmem_loads(code)
    watch_idle_lanes(code)
    reached = _reachable(code)
    return DecodedEntry(
        function,
        code,
        _straight(code),
        WarpStorage.of(slots, slots.stack + STACK if slots.has_stack else layout.local_bytes),
        [missing[at] for at in sorted(missing) if at in reached],
    )


def _decode_one(
    instruction: Instruction, slots: Slots, function: Function, symbols: _Symbols
) -> Op:
    name = find(instruction.mnemonic)
    if name not in DECODERS:
        why = "no rule for it" if name is None else REFUSED[name]
        if name is None and (meant := nearest(instruction.mnemonic)):
            why += f"; did you mean '{meant}'?"
        raise Incomplete(instruction.mnemonic, instruction.site, why)
    requirements.check(instruction, symbols.module)
    target = symbols.module.target
    op = DECODERS[name](Decode(instruction, name, slots, function, symbols.find, target))
    op.meets = communication.meets(instruction.mnemonic)
    op = in_threads(op) if name.split(".")[0] in FAMILIES else op
    op.own = op.run
    return op


def _mark_unheeded(code: list[Op]) -> None:
    """Marks waits whose result no instruction reads, or only a branch to the next instruction."""
    waits = [op for op in code if op.kind == TRY_WAIT]
    if not waits:
        return
    read: set[int] = set()
    for at, op in enumerate(code):
        read.update(op.reads)
        if op.kind != BRANCH or op.target != at + 1:
            read.add(op.guard)
    for op in waits:
        op.heeded = not read.isdisjoint(op.writes)


def _straight(code: list[Op]) -> list[int]:
    ends = list(range(len(code)))
    for at in reversed(range(len(code) - 1)):
        if code[at].kind == PLAIN and not code[at].aligned:
            ends[at] = ends[at + 1]
    return ends


def _reachable(code: list[Op]) -> set[int]:
    seen: set[int] = set()
    work = [0]
    while work:
        at = work.pop()
        if at in seen or at >= len(code):
            continue
        seen.add(at)
        work.extend(code[at].following(at))
    return seen
