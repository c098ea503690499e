"""Runs the loops of one warp by compiled code, on the warp's registers and the machine's
records.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.divergence import READY, Divergence, Group
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.loops import execution as on
from tcir.interp.ptx.loops.code import LoopCode
from tcir.interp.ptx.loops.straight import banks_of
from tcir.interp.ptx.registers import S32, S64, Rows
from tcir.interp.ptx.syntax import Site
from tcir.interp.ptx.warp import Warp
from tcir.machine.memory.memories import Buffer
from tcir.machine.order.accesses import Loads
from tcir.machine.order.lane_shadow import LaneShadow

COMPILED = True
"""Whether loops are executed by compiled code."""
WORTH, TRIES = 32, 8
"""Instructions that a call should execute, and how many may execute fewer before there is none."""
ROOM = 1024
"""Most loads of one call."""
MOVES = 4
"""Most changes of the buffer that loads access, in one call."""


@dataclass(frozen=True)
class _Memory:
    """A buffer: its words, which bytes are defined (none: all), and who wrote and read them.

    lines: of each access; ctas: of each line; near, far: see `LastShadow.beside`.
    """

    data: NDArray[np.uint32]
    defined: NDArray[np.bool_]
    writer: NDArray[np.int32]
    readers: NDArray[np.int32]
    by_lane: NDArray[np.uint32]
    warp: NDArray[np.int32]
    lines: NDArray[np.int32]
    ctas: NDArray[np.int32]
    near: NDArray[np.int32]
    far: NDArray[np.int32]


_NONE = np.empty(0, np.int32)
_NOTHING = _Memory(np.empty(0, np.uint32), np.empty(0, bool), _NONE, _NONE,
                   np.empty(0, np.uint32), _NONE, _NONE, _NONE, _NONE, _NONE)  # fmt: skip


class LoopWatcher(Protocol):
    """Observes the loads of compiled loops, and prevents that compiled code executes loops that
    touch certain registers.
    """

    def avoided(self) -> Set[int]:
        """Slots of the registers that a loop must not touch."""

    def loaded(self, buffer: Buffer, site: Site) -> None:
        """Called after loads from a buffer. site: location of the last of these loads"""


class Loops:
    """Executes loops of one warp by compiled code. heads: first instructions of the loops; empty
    once compiled calls have turned out to be too slow
    """

    def __init__(self, program: LoopCode, warp: Warp, watched: LoopWatcher | None) -> None:
        self.program, self.warp, self.watched = program, warp, watched
        self.heads = program.heads
        self._state = np.zeros(on.ADDRESS + 1, np.int64)
        self._groups, self._last = np.zeros((32, 2), np.int64), np.zeros(32, np.int64)
        self._journal = np.zeros((ROOM, 2), np.int64)
        self._undef = np.array(warp.undef, np.int64)
        self._known = list(warp.undef)
        self._banks = banks_of(warp)
        self._buffer: Buffer | None = None
        self._tries = TRIES

    def run(self, divergence: Divergence, room: int) -> tuple[int, bool, bool]:
        """Executes as many instructions as compiled code can.

        room: number of instructions until other warps take their turn

        Returns the number of executed instructions, whether a loop branched back, and whether other
        warps have to take their turn now.
        """
        warp, state = self.warp, self._state
        if warp.agent.polls or warp.pending or not self._ordered(divergence):
            return 0, False, False
        state[:] = 0
        state[on.PC], state[on.MASK], state[on.SPINS] = (
            divergence.pc,
            divergence.mask,
            divergence.spins,
        )
        state[on.LIMIT] = room
        state[on.OTHERS] = len(divergence.others)
        for n, group in enumerate(divergence.others):
            self._groups[n] = group.pc, group.mask
        self._remember()
        if warp.undef != self._known:
            self._undef[:] = self._known = list(warp.undef)
        why = self._call()
        for _ in range(MOVES):
            if why == on.ELSEWHERE and self._move(int(state[on.ADDRESS])):
                why = self._call()
        self._leave(divergence)
        count = int(state[on.COUNT])
        if count < WORTH:
            self._tries -= 1
            if not self._tries:
                self.heads = frozenset()
        return count, bool(state[on.BACK]), why == on.PAUSE

    def _ordered(self, divergence: Divergence) -> bool:
        """Whether lanes are apart by where they stand only: all others are ready, and while hazards
        are looked for, none has observed anything."""
        others, lanes = divergence.others, self.warp.agent.lanes
        if len(others) > 31 or any(group.state != READY for group in others):
            return False
        if not self.warp.launch.machine.checking:
            return True
        return lanes.separate and len(lanes.groups) == 1 and lanes.knows.clock == {lanes.me: 0}

    def _remember(self) -> None:
        """The last load: one that repeats it polls."""
        site, at = self.warp.agent.memory.last_load
        known = self.program.places.get(site, -1) if isinstance(site, Site) else -1
        self._state[on.LAST], self._state[on.LANES] = known, at.size
        self._last[: at.size] = at

    # --- memory ----------------------------------------------------------------------------------

    def _move(self, address: int) -> bool:
        """Switches loads to the buffer at `address`; False if there is none, or it is the
        current one."""
        memory = self.warp.launch.machine.memory
        if not memory.holds(address, address + 1):
            return False
        buffer = memory.find(address, address + 1, None)
        if buffer is self._buffer:
            return False
        self._buffer = buffer
        return True

    def _memory(self) -> _Memory:
        """The buffer as compiled code finds it; nothing where its accesses would be recorded, and
        none is yet."""
        buffer, agent, state = self._buffer, self.warp.agent, self._state
        state[on.BASE] = state[on.SIZE] = 0
        state[on.SHIFT] = -1
        if buffer is None or buffer.shadow is None and agent.machine.checking:
            return _NOTHING
        if buffer.base % 4 or 4 % buffer.granule:  # words of another place: for the machine
            return _NOTHING
        state[on.BASE], state[on.SIZE] = buffer.base, buffer.data.size
        words = buffer.data[: buffer.data.size & ~3].view(np.uint32)
        defined = _NOTHING.defined if buffer.defined is None else buffer.defined
        seen, shadow = replace(_NOTHING, data=words, defined=defined), buffer.shadow
        if shadow is None:
            return seen
        if shadow.lanes is None:
            shadow.lanes = LaneShadow(shadow.writer.shape)
        state[on.SHIFT] = buffer.granule.bit_length() - 1
        state[on.FIRST] = shadow.make_room(ROOM)
        state[on.LINE] = shadow.line(agent.me)
        near, far = shadow.kept_beside()
        return replace(
            seen, writer=shadow.writer, readers=shadow.readers, by_lane=shadow.lanes.readers,
            warp=shadow.lanes.warp, lines=shadow.lines(), ctas=shadow.ctas(), near=near, far=far,
        )  # fmt: skip

    def _registers(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Registers of 4 and of 8 bytes, one per row; banks: see
        `on._operand`."""
        words, longs = (cast(Rows, self.warp.v[view]) for view in (S32, S64))
        return words.block, longs.block, self._banks

    def _call(self) -> int:
        """Runs the code, and records its loads."""
        warp, state, watched = self.warp, self._state, self.watched
        code = self.program.code if watched is None else self.program.without(watched.avoided())
        names = self.program.predicates
        preds = np.array([warp.p[slot] for slot in names] or [0], np.int64)
        seen = self._memory()
        before, state[on.LOADS] = int(state[on.BYTES]), 0
        why = on.execute(
            code, state, self._groups, *self._registers(), preds, self._undef,
            seen.data, seen.defined, seen.writer, seen.readers, seen.by_lane, seen.warp, seen.lines,
            seen.ctas, seen.near, seen.far, self._journal, self._last,
        )  # fmt: skip
        for slot, mask in zip(names, preds.tolist(), strict=False):
            warp.p[slot] = mask
        if self._buffer is not None and state[on.LOADS]:
            self._loaded(self._buffer, int(state[on.LOADS]))
            warp.agent.machine.counters.global_load += int(state[on.BYTES]) - before
        return int(why)

    def _loaded(self, buffer: Buffer, count: int) -> None:
        """Records these loads in the machine."""
        agent, state = self.warp.agent, self._state
        which, masks = self._journal[:count, 0].copy(), self._journal[:count, 1].copy()
        site, at = self.program.sites[int(which[-1])], self._last[: int(state[on.LANES])].copy()
        nbytes = int(self.program.code[int(which[-1]), on.NBYTES])
        found = buffer.data[at[:, None] - buffer.base + np.arange(nbytes)]
        agent.memory.loaded(site, at, found, count)
        agent.lanes.active = int(masks[-1])
        if self.watched is not None:
            self.watched.loaded(buffer, site)
        if buffer.shadow is not None:
            number, first = agent.lanes.number, int(state[on.FIRST]) - 1
            buffer.shadow.follow(Loads(agent.me, number, self.program.sites, which, masks, first))
            agent.lanes.touch(LANE_INDICES[int(state[on.LOADED])])

    # --- registers and lanes ---------------------------------------------------------------------

    def _leave(self, divergence: Divergence) -> None:
        warp, state = self.warp, self._state
        undef = self._undef.tolist()
        if undef != self._known:
            warp.undef[:] = self._known = undef
        warp.agent.machine.counters.simt_products += int(state[on.MULTIPLIED])
        divergence.pc, divergence.mask = int(state[on.PC]), int(state[on.MASK])
        divergence.spins = int(state[on.SPINS])
        if divergence.others or state[on.OTHERS]:
            groups = self._groups[: state[on.OTHERS]].tolist()
            divergence.others = [Group(pc, mask) for pc, mask in groups]
            divergence.update()
