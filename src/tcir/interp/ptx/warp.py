"""One warp: a register file of 32-lane arrays and the loop that runs decoded instructions.

Lanes that disagree on a branch become groups with a program counter each; the group with the lowest
one runs, and groups that meet at the same instruction merge (min-PC reconvergence, a legal schedule
under independent thread scheduling). A group that waits in vain or keeps spinning is deferred, so
that the lanes it waits for get their turn.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.interp.ptx.decode import (
    BLOCKING,
    BRANCH,
    EXIT,
    FULL,
    INDEXED,
    PLAIN,
    TRY_WAIT,
    VIEW_DTYPES,
    WAIT,
    Op,
)
from tcir.interp.ptx.syntax import Site
from tcir.machine import MachineError

if TYPE_CHECKING:
    from tcir.interp.ptx.program import Program, Run

_READY, _PARKED, _DEFERRED = range(3)
_SPINS = 64  # backward branches of a divergent group before other lanes get a turn
_QUANTUM = 512  # instructions between offers to other warps, counted at backward branches
_SPIN_LENGTH = 16  # instructions of a loop that does nothing but wait
_POISON = 0xCB


class _Masks(dict[int, np.ndarray]):
    """Lane masks as arrays, made on demand; emptied when it has grown large."""

    def __init__(self, indices: bool) -> None:
        self.indices = indices

    def __missing__(self, mask: int) -> np.ndarray:
        if len(self) > 1 << 16:
            self.clear()
        lanes = np.array([bool(mask >> n & 1) for n in range(32)])
        self[mask] = value = np.flatnonzero(lanes) if self.indices else lanes
        return value


class _Rows(dict[int, np.ndarray]):
    """The slots of one size as values of one type; a row is made when it is first asked for."""

    def __init__(self, block: np.ndarray, rows: dict[int, int]) -> None:
        self.block, self.rows = block, rows

    def __missing__(self, slot: int) -> np.ndarray:
        self[slot] = row = self.block[self.rows[slot]]
        return row


_NO_SLOTS: tuple[np.ndarray, dict[int, int]] = np.empty((0, 0), np.uint8), {}


#: bool[32] of a mask, and the numbers of its lanes.
BOOLS = _Masks(False)
LANES = _Masks(True)


def bits(lanes: np.ndarray) -> int:
    """bool[32] as a mask."""
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")


class _Group:
    __slots__ = ("mask", "pc", "state")

    def __init__(self, pc: int, mask: int, state: int) -> None:
        self.pc, self.mask, self.state = pc, mask, state


class Warp:
    """Registers of 32 lanes and their control state.

    v[view][slot]: the 32 values of a slot, as the type `view` (see decode.VIEWS). p[slot]: a
    predicate as lane mask. undef[slot]: the lanes that never got a value, or that a tcgen05.ld
    fills which nothing has waited for: `pending` has those slots, with the place of the load.
    Rules write these directly.
    """

    __slots__ = (
        "agent",
        "arrival",
        "arrived",
        "code",
        "executed",
        "frames",
        "index",
        "live",
        "local",
        "local_defined",
        "p",
        "pending",
        "program",
        "run_state",
        "undef",
        "v",
        "waiting",
    )  # fmt: skip

    def __init__(self, program: Program, run: Run, agent: Any, index: int) -> None:
        self.program, self.run_state, self.agent, self.index = program, run, agent, index
        self.code = program.code
        self.pending: dict[int, Site] = {}
        self.frames: dict[Any, list[list[Any]]] = {}  # of recursive calls, see isa/frames.py
        cta = agent.cta
        threads = run.threads
        first = 32 * index
        self.live = FULL if first + 32 <= threads else (1 << (threads - first)) - 1
        self.executed = 0
        # Of the cluster's barrier: lanes that have arrived while others of the warp have not, how
        # the last of them did and where; and lanes that may wait, since all have.
        self.arrived = self.waiting = 0
        self.arrival: tuple[bool, Any] = (False, None)
        self.local = np.full((32, program.local_bytes), _POISON, np.uint8)
        self.local_defined = np.zeros((32, program.local_bytes), bool)
        slots = program.slots
        count = len(slots.sizes)
        self.p: list[int] = [0] * count
        self.undef: list[int] = [FULL] * count
        banks = {size: (template.copy(), rows) for size, rows, template in program.banks}
        blocks = [banks.get(dtype.itemsize, _NO_SLOTS) for dtype in VIEW_DTYPES]
        self.v = [_Rows(b.view(t), rows) for t, (b, rows) in zip(VIEW_DTYPES, blocks, strict=True)]
        for slot, value in slots.constants.items():
            self.undef[slot] = 0
            if slots.sizes[slot] == 0:
                self.p[slot] = FULL if value else 0
        if cta.window:
            for slot in slots.shared:
                self.v[{4: 5, 8: 8}[slots.sizes[slot]]][slot][:] += cta.window
        tid = first + np.arange(32, dtype=np.int64)
        for slot, name in slots.specials.items():
            self.undef[slot] = 0
            if slots.sizes[slot] == 0:
                self.p[slot] = FULL if run.special(name, cta, index, tid) else 0
                continue
            unsigned = {1: 0, 2: 2, 4: 5, 8: 8}[slots.sizes[slot]]
            self.v[unsigned][slot][:] = run.special(name, cta, index, tid)

    # --- errors -------------------------------------------------------------------------------
    def read_undefined(self, site: Site, slots: tuple[int, ...], mask: int) -> None:
        """Reports reads of registers that nothing wrote; the value stays the poison pattern."""
        for slot in slots:
            if self.undef[slot] & mask:
                if slot in self.pending:
                    self.run_state.used_before_wait(self, self.pending[slot], site)
                    self.awaited(self.pending[slot])
                    continue
                name = self.program.slots.names[slot]
                self.run_state.undefined_register(self, site, name, self.undef[slot] & mask)
                self.undef[slot] &= ~mask

    def copied(self, source: int, target: int) -> None:
        """Notes that lanes without a value were copied: they may wait for a load, too."""
        load = self.pending.get(source)
        if load is not None:
            self.pending[target] = load
        else:
            self.pending.pop(target, None)

    def awaited(self, load: Site | None = None) -> None:
        """The registers of one tcgen05.ld, or of all, have their values: of all lanes that run."""
        for slot in [s for s, at in self.pending.items() if load is None or at is load]:
            self.undef[slot] = 0
            del self.pending[slot]

    def complete_arrival(self) -> None:
        """Arrives at the cluster's barrier once all lanes that still run have."""
        if self.arrived and not self.live & ~self.arrived:
            relaxed, site = self.arrival
            self.agent.cluster_barrier.arrive(relaxed=relaxed, site=site)
            self.arrived, self.waiting = 0, self.arrived

    def error(self, code: str, message: str, site: Site) -> MachineError:
        return MachineError(code, message, site=site)

    # --- execution ----------------------------------------------------------------------------
    def _not_converged(self, op: Op, present: int) -> MachineError:
        wanted = self._required(op, present)
        return self.error(
            "not-converged",
            f"expected lanes {wanted:#010x} of the warp together, got {present:#010x}: the "
            "instruction is warp-collective; move it out of divergent code",
            op.site,
        )

    def _required(self, op: Op, present: int) -> int:
        """The lanes that have to execute a collective instruction together."""
        if op.converge == "aligned":
            return self.live
        slot = op.converge
        assert isinstance(slot, int)
        first = (present & -present).bit_length() - 1
        return int(self.v[5][slot][first]) & self.live

    def main(self) -> Generator[Any, Any, None]:
        """Runs the kernel on this warp; what it yields goes to the machine's scheduler."""
        code, p, undef = self.code, self.p, self.undef
        agent, run = self.agent, self.run_state
        pc, mask = 0, self.live
        others: list[_Group] = []
        lowest, stops = len(code), frozenset[int]()
        spins = count = reported = 0
        polled = (-1, 0, 0)  # where and when a wait failed last, how often in a row before
        order = agent.cta.cluster.order
        naps = 1 if order is None else order.naps
        while True:
            if pc >= lowest or pc in stops:
                # Meet the groups that stand here; then the lowest ready group goes on.
                for group in [g for g in others if g.pc == pc]:
                    mask |= group.mask
                    others.remove(group)
                ready = min((g for g in others if g.state == _READY), key=_pc, default=None)
                if ready is not None and ready.pc < pc:
                    others.remove(ready)
                    others.append(_Group(pc, mask, _READY))
                    pc, mask, spins = ready.pc, ready.mask, 0
                lowest = min((g.pc for g in others if g.state == _READY), default=len(code))
                stops = frozenset(g.pc for g in others)
                continue
            op = code[pc]
            count += 1
            m = mask
            if op.guard >= 0:
                if undef[op.guard] & mask:
                    self.read_undefined(op.site, (op.guard,), mask)
                m = mask & ~p[op.guard] if op.negate else mask & p[op.guard]
            kind = op.kind
            state = _READY
            if op.converge is not None and m:
                wanted = self._required(op, m)
                if wanted != m:
                    if wanted & mask & ~m or m & ~wanted or not others:
                        raise self._not_converged(op, m)
                    state = _PARKED
            if state == _PARKED:
                count -= 1
            elif kind == PLAIN:
                if m:
                    op.run(self, m)
                pc += 1
                continue
            elif kind == BRANCH:
                if m == mask:
                    if op.target > pc:
                        pc = op.target
                        continue
                    pc = op.target
                    spins += 1
                    if count - reported > _QUANTUM:
                        agent.tick(count - reported)
                        run.retire(agent, count - reported)
                        reported = count
                        yield from agent.pause()
                    if not others or spins < _SPINS:
                        continue
                    state = _DEFERRED
                elif m == 0:
                    pc += 1
                    continue
                else:
                    others.append(_Group(op.target, m, _READY))
                    pc, mask = pc + 1, mask & ~m
                    if op.target < pc:
                        spins += 1
                        if spins >= _SPINS:
                            others[-1].state, spins = _DEFERRED, 0
                    lowest = min((g.pc for g in others if g.state == _READY), default=len(code))
                    stops = frozenset(g.pc for g in others)
                    continue
            elif kind == BLOCKING:
                if m:
                    yield from op.run(self, m)
                pc += 1
                continue
            elif kind == TRY_WAIT:
                pc += 1
                if not m:
                    continue
                waiting = op.run(self, m)
                if not waiting:
                    continue
                if any(g.state != _PARKED for g in others):
                    state = _DEFERRED  # the arrival may come from other lanes of this warp
                else:
                    run.retire(agent, count - reported)
                    reported = count
                    # A loop around the wait may sleep until it comes true, at once if it does
                    # nothing else; a single poll may not: the program may have other work first.
                    looping = polled[0] == pc and count - polled[1] <= _SPIN_LENGTH
                    times = polled[2] + 1 if looping else 0
                    polled = (pc, count, times)
                    if (op.idle or times >= naps) and len(waiting) == 1:
                        yield from agent.mbarrier.wait(*waiting[0], site=op.site)
                        op.run(self, m)
                    else:
                        yield from agent.pause()
                    continue
            elif kind == WAIT:
                if not m or op.run(self, m):
                    pc += 1
                    continue
                if any(g.state != _PARKED for g in others):
                    state = _DEFERRED  # what it waits for may be other lanes of this warp
                else:
                    run.retire(agent, count - reported)
                    reported = count
                    yield from agent.pause()
                    continue
            elif kind == INDEXED:
                late = count - reported > _QUANTUM
                for target, lanes in op.run(self, m):
                    back = late and target <= pc  # so that other lanes get a turn
                    others.append(_Group(target, lanes, _DEFERRED if back else _READY))
                if mask & ~m:
                    others.append(_Group(pc + 1, mask & ~m, _READY))
                mask = 0
            else:
                assert kind == EXIT
                self.live &= ~m
                self.complete_arrival()
                mask &= ~m
                pc += 1
                for group in others:
                    # A member mask asks for live lanes only, so fewer now; `.aligned` for all.
                    if group.state == _PARKED and code[group.pc].converge != "aligned":
                        group.state = _READY
                if mask:
                    lowest = min((g.pc for g in others if g.state == _READY), default=len(code))
                    continue
            # This group has left, parked or stepped aside: choose another.
            if mask:
                others.append(_Group(pc, mask, state))
            if not others:
                break
            chosen = min((g for g in others if g.state == _READY), key=_pc, default=None)
            if chosen is None:
                deferred = [g for g in others if g.state == _DEFERRED]
                if not deferred:
                    parked = min(others, key=_pc)
                    raise self._not_converged(code[parked.pc], parked.mask)
                agent.tick(count - reported)
                run.retire(agent, count - reported)
                reported = count
                yield from agent.pause()
                for group in deferred:
                    group.state = _READY
                chosen = min(deferred, key=_pc)
            others.remove(chosen)
            pc, mask, spins = chosen.pc, chosen.mask, 0
            lowest = min((g.pc for g in others if g.state == _READY), default=len(code))
            stops = frozenset(g.pc for g in others)
        run.retire(agent, count - reported)


def _pc(group: _Group) -> int:
    return group.pc
