"""The loop that runs decoded instructions on one warp."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.divergence import BLOCKED, READY, YIELDED, Divergence, Group
from tcir.interp.ptx.lanes import FULL, LANE_INDICES
from tcir.interp.ptx.loops import running, straight
from tcir.interp.ptx.loops.running import Loops, LoopWatcher
from tcir.interp.ptx.op import Blocking, Op, synchronise_lanes
from tcir.interp.ptx.program import DecodedEntry
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.warp import Warp
from tcir.machine import MachineError
from tcir.machine.order.involved import lane_words
from tcir.machine.order.mbarrier import PhaseWait

_SPINS = 64
"""Backward branches of a divergent group before other lanes get a turn."""
_QUANTUM = 512
"""Instructions between offers to other warps, counted at backward branches."""
_POLLING_LOOP = 16
"""Instructions of a loop that does nothing but wait."""

_POLLS = 100_000
"""Polls of a loop that may give up while no other thread can run; after these it is a deadlock."""


class WarpInterpreter:
    """Runs a program on one warp.

    divergence: the groups of lanes. It is up to date whenever `run` is suspended, has ended or has
    raised.
    """

    __slots__ = (
        "_banks",
        "_fetched",
        "_heads",
        "_interleaves",
        "_later",
        "_lines",
        "_loops",
        "_paused",
        "_polled",
        "_retired",
        "_straight",
        "_waits",
        "_watcher",
        "count",
        "divergence",
        "program",
        "warp",
    )

    def __init__(self, program: DecodedEntry, warp: Warp) -> None:
        self.program, self.warp = program, warp
        self.divergence = Divergence(warp.live)
        self.count = 0
        """Warp instructions executed."""
        self._retired = 0
        self._polled = (-1, 0, 0)  # where and when a wait failed last, how often in a row before
        self._paused = False  # since a wait failed
        self._waits: dict[tuple[int, int], PhaseWait] = {}  # what it waited for
        self._interleaves = warp.launch.machine.options.order_seed is not None
        self._fetched: Callable[[], None] | None = None
        self._heads: frozenset[int] = frozenset()
        if running.COMPILED and warp.launch.machine.recorder is None and program.loops is not None:
            self._heads = program.loops.heads
        self._straight = self._ends()
        self._lines: Collection[int] = program.lines.at if straight.COMPILED else ()
        self._banks: NDArray[np.int64] | None = None
        self._later = False
        self._loops: Loops | None = None
        self._watcher: LoopWatcher | None = None

    def _ends(self) -> Sequence[int]:
        """The end of the plain instructions from each one on, or the head of a loop before it."""
        program, parted = self.program, self._interleaves
        if self._heads:
            return program.until_loops[parted]
        return program.parted if parted else program.straight

    def trace(
        self,
        fetched: Callable[[], None],
        watcher: LoopWatcher | None = None,
        *,
        later: bool = False,
    ) -> None:
        """Calls `fetched` before every instruction from now on, except in loops that `watcher`
        allows compiled code to execute.

        later: whether a sequence of computing instructions that is `settled` (see `StraightLine`)
        may run before the calls of `fetched` for its instructions
        """
        self._watcher, self._later = watcher, later
        if watcher is None:
            self._heads = frozenset()
        self._fetched = fetched
        self._straight = range(len(self.program.code))  # no instruction is passed over

    def untrace(self) -> None:
        """Ends the calls that `trace` began."""
        self._fetched = None
        self._straight = self._ends()
        if self._loops is not None:
            self._loops.watched = None

    def next_op(self) -> Op:
        """Next op of the running group."""
        return self.program.code[self.divergence.pc]

    def active(self, op: Op) -> int:
        """Lanes of the running group whose guard lets them execute the instruction."""
        mask = self.divergence.mask
        if op.guard < 0:
            return mask
        guard = self.warp.p[op.guard]
        return mask & ~guard if op.negate else mask & guard

    def run(self) -> Blocking:
        """Runs the kernel as a generator for the machine's scheduler."""
        code = self.program.code
        warp, state = self.warp, self.divergence
        lines = self._lines
        while state.mask:
            if state.pc in self._heads:
                yield from self._loop()
            ends, fetched = self._straight, self._fetched
            if state.others:
                state.reconverge()
                end = min(ends[state.pc], state.next_stop())
            else:
                end = ends[state.pc]
            start = pc = state.pc
            mask = state.mask
            # Plain instructions change neither program counter nor mask.
            while pc < end:
                if pc in lines and (after := self._line(pc, end)):
                    pc = after
                    continue
                state.pc = pc
                op = code[pc]
                pc += 1
                if op.guard < 0:
                    op.run(warp, mask)
                else:
                    self._predicated(op, mask)
            if start < end:
                state.pc = end
                self.count += end - start
                if state.others or end in self._heads:
                    continue
            if fetched is not None:
                if self._traced_line(fetched):
                    continue
                fetched()
            op = code[state.pc]
            active = mask if op.guard < 0 else self._guarded(op)
            if op.aligned and active and not self._converged(op, active):
                state.leave(BLOCKED)
            else:
                self.count += 1
                waiting = _KINDS[op.kind](self, op, active)
                if waiting is not None:
                    yield from waiting
            if not state.mask:
                yield from self._next_group()
        self._retire()

    def _predicated(self, op: Op, mask: int) -> None:
        """Executes a plain instruction that has a guard."""
        warp, guard = self.warp, op.guard
        unsure = warp.undef[guard] & mask
        if unsure:
            unsure = warp.guarded(guard, op.results, mask, op.site)
        if active := self.active(op):
            op.run(warp, active)
        if unsure:
            warp.depend(guard, op.results, unsure, op.site)

    def _line(self, start: int, limit: int, *, settled: bool = False) -> int:
        """The end of the straight line from `start` on if compiled code has executed it, else 0."""
        line = self.program.lines.ready(start)
        if line is None or line.end > limit or settled > line.settled:
            return 0
        if self._banks is None:
            self._banks = straight.banks_of(self.warp)
        return line.end if line.execute(self.warp, self.divergence.mask, self._banks) else 0

    def _traced_line(self, fetched: Callable[[], None]) -> bool:
        """Executes a straight line and then traces it, if that shows what its instructions read."""
        state = self.divergence
        start = state.pc
        if not self._later or start not in self._lines:
            return False
        limit = state.next_stop() if state.others else len(self.program.code)
        end = self._line(start, limit, settled=True)
        if not end:
            return False
        for state.pc in range(start, end):
            fetched()
        state.pc = end
        self.count += end - start
        return True

    def _guarded(self, op: Op) -> int:
        """`active`, of a guard that has to be defined unless the instruction only computes."""
        mask = self.divergence.mask
        if op.results is None and self.warp.undef[op.guard] & mask:
            self.warp.read_undefined(op.site, (op.guard,), mask)
        return self.active(op)

    # --- one method per kind ------------------------------------------------------------------
    def _plain(self, op: Op, active: int) -> Blocking | None:
        if op.meets and self._interleaves:
            return self._meet(op, active)
        self._execute(op, active)
        return None

    def _meet(self, op: Op, active: int) -> Blocking:
        """Lets other threads run before an instruction whose effect may depend on them."""
        yield from self._pause()
        self._execute(op, active)

    def _execute(self, op: Op, active: int) -> None:
        warp, unsure = self.warp, 0
        if op.guard >= 0:
            unsure = warp.undef[op.guard] & self.divergence.mask
        if active:
            op.run(warp, active)
        warp.depend(op.guard, op.results, unsure, op.site)
        self.divergence.pc += 1

    def _blocking(self, op: Op, active: int) -> Blocking:
        if active:
            yield from op.run(self.warp, active)
        self.divergence.pc += 1

    def _loop(self) -> Blocking:
        """Compiled code goes on from here as far as it can."""
        state, loops = self.divergence, self._loops
        if loops is None:
            assert self.program.loops is not None
            loops = self._loops = Loops(self.program.loops, self.warp, self._watcher)
        while state.pc in self._heads:
            count, back, pause = loops.run(state, self._retired + _QUANTUM - self.count)
            self.count += count
            self._paused &= not back
            self._heads = loops.heads
            if not pause:
                return
            yield from self._pause()

    def _branch(self, op: Op, active: int) -> Blocking | None:
        state = self.divergence
        if not active:
            state.pc += 1
            return None
        if active != state.mask:
            self._diverge(op, active)
            return None
        backward = op.target <= state.pc
        state.pc = op.target
        if not backward:
            return None
        state.spins += 1
        polls = bool(self.warp.agent.polls) and not self._paused  # for those it waits for
        self._paused = False
        if state.others and (polls or state.spins >= _SPINS):
            state.leave(YIELDED)
            polls = False
        return self._pause() if polls or self.count - self._retired > _QUANTUM else None

    def _diverge(self, op: Op, taken: int) -> None:
        """The lanes that take a branch become another group."""
        state = self.divergence
        target = Group(op.target, taken)
        if op.target <= state.pc:
            state.spins += 1
            if state.spins >= _SPINS:
                target.state, state.spins = YIELDED, 0
        state.add(target)
        state.pc += 1
        state.mask &= ~taken

    def _indexed(self, op: Op, active: int) -> None:
        """A jump to several targets: the running group dissolves."""
        state = self.divergence
        late = self.count - self._retired > _QUANTUM
        for target, lanes in op.run(self.warp, active):
            yields = late and target <= state.pc  # so that other lanes get a turn
            state.add(Group(target, lanes, YIELDED if yields else READY))
        if state.mask & ~active:
            state.add(Group(state.pc + 1, state.mask & ~active))
        state.mask = 0

    def _exit(self, op: Op, active: int) -> None:
        state, code = self.divergence, self.program.code
        self.warp.live &= ~active
        self.warp.agent.lanes.exit(active)
        self.warp.complete_arrival()
        state.mask &= ~active
        state.pc += 1
        for group in state.others:
            # A member mask asks for live lanes only, so fewer now; `.aligned` for all.
            if group.state == BLOCKED and not code[group.pc].aligned:
                group.state = READY
        state.update()

    def _wait(self, op: Op, active: int) -> Blocking | None:
        if not active or op.run(self.warp, active):
            self.divergence.pc += 1
            return None
        return self._let_others_run()

    def _try_wait(self, op: Op, active: int) -> Blocking | None:
        polled, mbarrier = self._waits if self._looping() else {}, self.warp.agent.mbarrier
        mbarrier.remembered = polled
        phases = op.run(self.warp, active) if active else ()
        mbarrier.remembered = {}
        may_block = phases and self._may_block(op)
        self.divergence.pc += 1
        if not phases:
            self._waits = {}
            self.warp.agent.alone = False
            return self._after_wait() if active else None
        if op.gives_up and self.warp.agent.alone:
            self.warp.agent.progress += self._polled[2] < _POLLS  # towards the loop's end
            may_block = False
        self._waits = {
            phase: polled.get(phase) or mbarrier.watch(phase[0], site=op.site) for phase in phases
        }
        # A polling loop may block until the phase completes, at once if it does nothing else; a
        # single poll may not: the program may have other work first.
        if self.divergence.others_run() or not may_block or len(self._waits) != 1:
            return self._let_others_run()
        self._retire()
        return self._block_on(op, active, phases[0])

    # --- waiting ------------------------------------------------------------------------------
    def _after_wait(self) -> Blocking | None:
        """A turn for the other warps where operations complete as they are issued.

        There a warp that issues would go through phase after phase while those that wait for the
        same ones have not come to their first wait (CUTLASS's Blackwell tutorial 02).
        """
        if self.warp.agent.cta.cluster.order is not None or self.divergence.others:
            return None
        self._retire()
        return self.warp.agent.pause()

    def _let_others_run(self) -> Blocking | None:
        """Other lanes of this warp if there are any, else other warps."""
        if self.divergence.others_run():
            self.divergence.leave(YIELDED)
            return None
        self._retire()
        self._paused = True
        return self.warp.agent.pause()

    def _looping(self) -> bool:
        """Whether the wait here has just failed before."""
        at, when, _ = self._polled
        return at == self.divergence.pc and self.count - when <= _POLLING_LOOP

    def _may_block(self, op: Op) -> bool:
        """Whether the wait that failed is polled in a loop."""
        times = self._polled[2] + 1 if self._looping() else 0
        self._polled = (self.divergence.pc, self.count, times)
        order = self.warp.agent.cta.cluster.order
        return op.idle or times >= (1 if order is None else order.polls_before_waiting)

    def _block_on(self, op: Op, active: int, phase: tuple[int, int]) -> Blocking:
        mbarrier = self.warp.agent.mbarrier
        yield from mbarrier.sleep(phase[0], self._waits[phase], gives_up=op.gives_up, site=op.site)
        mbarrier.remembered = self._waits
        if not op.run(self.warp, active):
            self._waits = {}
        mbarrier.remembered = {}

    def _next_group(self) -> Blocking:
        """Runs another group, if there is one. If none is ready, groups that yielded run again
        after other warps."""
        if self.divergence.resume() or not self.divergence.others:
            return
        if not any(g.state == YIELDED for g in self.divergence.others):
            blocked = min(self.divergence.others, key=lambda g: g.pc)
            raise self._not_converged(self.program.code[blocked.pc], blocked.mask)
        yield from self._pause()
        self.divergence.wake()
        self.divergence.resume()

    def _pause(self) -> Blocking:
        """Offers other warps a turn after instructions that count as progress."""
        self.warp.agent.tick(self.count - self._retired)
        self._retire()
        return self.warp.agent.pause()

    def _retire(self) -> None:
        code, pc = self.program.code, self.divergence.pc
        loop = code[pc].site if self.divergence.mask and pc < len(code) else None
        self.warp.launch.retire(self.warp.agent, self.count - self._retired, loop)
        self._retired = self.count

    # --- collective instructions --------------------------------------------------------------
    def _converged(self, op: Op, present: int) -> bool:
        """Whether all lanes of the warp are here to execute an `.aligned` instruction."""
        wanted = self.warp.live
        if wanted == present:
            return True
        if wanted & self.divergence.mask & ~present or not self.divergence.others:
            raise self._not_converged(op, present)
        return False

    def _members(self, op: Op, active: int) -> None:
        """Resumes the lanes of each complete member mask together; lanes of an incomplete mask
        wait."""
        state, missing = self.divergence, 0
        masks = self._masks(op, active)
        for mask, lanes in masks.items():
            if lanes & ~mask:
                raise self._not_a_member(op, masks, lanes & ~mask)
            together = lanes | self._elsewhere(op, mask, lanes)
            if together == mask & self.warp.live:
                op.run(self.warp, together)
            else:
                missing |= lanes
        if missing:
            state.stay(missing)
        if state.mask:
            state.pc += 1
        else:
            self.count -= 1  # none has executed it

    def _masks(self, op: Op, lanes: int) -> dict[int, int]:
        """Maps each member mask to the lanes that name it."""
        warp, slot = self.warp, op.members
        if warp.undef[slot] & lanes:
            warp.read_undefined(op.site, (slot,), lanes)
        values = warp.v[U32][slot].tolist()
        first = values[(lanes & -lanes).bit_length() - 1] if lanes else 0
        if values.count(first) == len(values):
            return {first: lanes} if lanes else {}
        found: dict[int, int] = {}
        for lane in LANE_INDICES[lanes].tolist():
            found[values[lane]] = found.get(values[lane], 0) | 1 << lane
        return found

    def _elsewhere(self, op: Op, mask: int, lanes: int) -> int:
        """Lanes of a member mask that wait for `lanes` at another bar.warp.sync; if they complete
        the mask, they go on. The other instructions exchange values, so each meets itself only."""
        state, code = self.divergence, self.program.code
        if not state.others or lanes == mask & self.warp.live or op.run is not synchronise_lanes:
            return 0
        waiting: list[tuple[Group, int]] = []
        for group in state.others:
            at = code[group.pc]
            if group.state == BLOCKED and at.run is op.run:
                waiting.append((group, self._masks(at, group.mask).get(mask, 0)))
        found = sum(there for _, there in waiting)
        if found | lanes != mask & self.warp.live:
            return 0
        for group, there in waiting:
            state.release(group, there)
        return found

    def _not_converged(self, op: Op, present: int) -> MachineError:
        named = FULL if op.aligned else next(iter(self._masks(op, present)))
        wanted = named & self.warp.live
        return self.warp.error(
            "not-converged",
            f"expected lanes {wanted:#010x} of the warp together, got {present:#010x}: the "
            "instruction is warp-collective; move it out of divergent code",
            op.site,
        )

    def _not_a_member(self, op: Op, masks: dict[int, int], outside: int) -> MachineError:
        named = "; ".join(f"{mask:#010x} by {lane_words(who)}" for mask, who in masks.items())
        left = lane_words(outside)
        return self.warp.error(
            "not-a-member",
            f"expected a member mask with the lanes that name it, got {named}: {left} "
            "not in the mask, which is undefined behaviour (PTX ISA 9.7.13.2, 9.7.9.6)",
            op.site,
        )


#: By kind of instruction: PLAIN, BRANCH, EXIT, BLOCKING, TRY_WAIT, INDEXED, WAIT, MEMBERS (op.py).
_KINDS: tuple[Callable[[WarpInterpreter, Op, int], Blocking | None], ...] = (
    WarpInterpreter._plain,
    WarpInterpreter._branch,
    WarpInterpreter._exit,
    WarpInterpreter._blocking,
    WarpInterpreter._try_wait,
    WarpInterpreter._indexed,
    WarpInterpreter._wait,
    WarpInterpreter._members,
)
