"""A CTA that repeats the leader's operations on its own data."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.lockstep.ledger import ENGINE, LedgerStore, perform, performed
from tcir.interp.tile.lockstep.counts import Counts
from tcir.interp.tile.lockstep.trace import Operands, Operation, Trace, UnitCall, alike, key_of
from tcir.machine import Machine, TensorOperand
from tcir.machine.counters import Counters
from tcir.machine.memory.effects import elements
from tcir.machine.memory.memories import Buffer
from tcir.machine.memory.protocols import Triple
from tcir.machine.memory.tensor_memory import COLUMNS, LANES
from tcir.machine.tma.box import Box, load_box, store_box
from tcir.machine.tmem.places import access_base, access_map

Index = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class FollowerLeft(Exception):
    """Raised when a follower differs from the leader, or must run on the machine to be checked."""


class FollowerMemories:
    """Shared and tensor memory of a follower, [1, bytes] and [1, lanes, columns].

    Successive followers may use the same memories, because a leader without a finding reads only
    memory that it wrote before, and so do its followers.
    """

    def __init__(self, smem: int) -> None:
        self.smem = np.zeros((1, -(-smem // 16) * 16), np.uint8)
        self.tmem = np.zeros((1, LANES, COLUMNS), np.uint32)


class Forgetful:
    """Stands in for a memory that tracks its defined bytes; this one tracks none."""

    def poison(self, start: int, size: int) -> None:
        """Does nothing."""


class FollowerCta:
    """State of a follower, which is a CTA that repeats the operations of another CTA, in the form
    that the rules of the tile interpreter use.

    counters: only the counters that may differ between CTAs
    reads:    positions of the global buffers that it has read
    accesses: its writes to global buffers
    """

    def __init__(self, index: Triple, machine: Machine, memories: FollowerMemories) -> None:
        self.index, self.memories = index, memories
        self.smem = self.tmem = Forgetful()
        self.window = self.rank_in_cluster = 0
        self.shared = machine.shared_start
        self.memory, self.assumptions = machine.memory, machine.assumptions
        self.counters = Counters()
        self.reads: set[int] = set()
        self.accesses: list[LedgerStore] = []
        self.turns = 0
        """Number of iterations of all loops."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the follower's buffered stores occupy."""
        return sum(one.size for one in self.accesses)

    def performed(self, machine: Machine) -> bool:
        """Whether global memory contains the values that the follower CTA stored."""
        buffers = machine.memory.buffers
        return all(
            performed(buffers[one.buffer], one, np.ones(len(one.at), bool)) for one in self.accesses
        )

    def perform(self, machine: Machine, counts: Counts) -> None:
        """Commits the follower's stores to global memory, and adds the `counts` of its class of
        CTAs to the machine's counters.
        """
        for one in self.accesses:
            perform(machine.memory.buffers[one.buffer], one, np.ones(1, bool), [self.index])
        counts.with_own(self.counters).add_to(machine)

    def report(self, *_: object) -> NoReturn:
        """Raises FollowerLeft, because only the machine reports findings."""
        raise FollowerLeft

    def find(self, addresses: Index, nbytes: int, site: object) -> tuple[int, Buffer, Index]:
        """Finds the buffer that contains these words of global memory. Returns its position, the
        buffer, and the byte offsets of the words in it.
        """
        low, high = int(addresses.min()), int(addresses.max()) + nbytes
        buffer = self.memory.find(low, high, site)
        return self.memory.buffers.index(buffer), buffer, addresses - buffer.base

    def store(
        self, call: UnitCall, agent: int, addresses: Index, data: Bytes, site: object
    ) -> None:
        """Buffers a store to global memory."""
        number, _, at = self.find(addresses, data.shape[1], site)
        count = len(at)
        row, thread = np.zeros(count, np.int64), np.full(count, agent)
        assert call.access is not None
        self.accesses.append(LedgerStore(number, at, data.copy(), row, thread, call.access))


class FollowerAgent:
    """An agent of a follower. It accepts the operations of the rules as long as they are those of
    the leader's agent, in the same order.
    """

    def __init__(self, cta: FollowerCta, number: int, warp: int, calls: Sequence[UnitCall]) -> None:
        self.cta, self.number, self.warp = cta, number, warp
        self.machine = cta  # whose counters and assumptions the rules may want
        self._calls, self._next = calls, 0

    @property
    def ended(self) -> bool:
        """Whether the agent has executed all operations of the leader's agent."""
        return self._next == len(self._calls)

    def __getattr__(self, name: str) -> object:
        if name in ("drain", "fence"):
            return lambda *operands, **named: self.call("", name, operands, named)
        unit = FollowerUnit(self, name)
        self.__dict__[name] = unit
        return unit

    def call(self, unit: str, name: str, operands: Operands, named: dict[str, object]) -> object:
        """Executes one operation; FollowerLeft unless it is the next operation of the leader's
        agent.
        """
        if self.ended:
            raise FollowerLeft
        call = self._calls[self._next]
        self._next += 1
        same = (call.unit, call.name) == (unit, name)
        if not same or not alike(key_of(unit, name, operands, named), call.key):
            raise FollowerLeft
        if call.turns is not None:
            return self._blocking(call, operands)
        if unit == "tensor_core":
            self._of_tensor_core(call)
        effect = EFFECTS.get((unit, name))
        return call.result if effect is None else effect(self, call, *operands, **named)

    def _blocking(self, call: UnitCall, operands: Operands) -> Generator[object, object, None]:
        for _ in range(call.turns or 0):
            yield None
        if call.name == "alloc":  # which writes the address to shared memory
            place = operands[0]
            assert isinstance(call.result, np.ndarray)
            self.cta.memories.smem[0, place : place + 4] = call.result

    def _of_tensor_core(self, call: UnitCall) -> None:
        if call.effect is not None:
            memories = self.cta.memories
            well = call.effect.apply(memories.smem, memories.tmem)
            if well is not None and not well.all():
                raise FollowerLeft

    # --- ld, st ----------------------------------------------------------------------------------

    def load(
        self, _: UnitCall, space: str, addresses: Index, nbytes: int, *, site: object
    ) -> Bytes:
        """Replays `load` of `tcir.machine.memory.generic.Memory`."""
        span = np.arange(nbytes)
        if space != "global":
            found: Bytes = self.cta.memories.smem[0, addresses[:, None] + span]
            return found
        number, buffer, at = self.cta.find(addresses, nbytes, site)
        where = at[:, None] + span
        if buffer.defined is not None and not buffer.defined[where].all():
            raise FollowerLeft
        self.cta.reads.add(number)
        self.cta.counters.global_load += where.size
        read: Bytes = buffer.data[where]
        return read

    def store(
        self, call: UnitCall, space: str, addresses: Index, data: Bytes, *, site: object
    ) -> None:
        """Replays `store` of `tcir.machine.memory.generic.Memory`."""
        if space == "global":
            self.cta.counters.global_store += data.size
            self.cta.store(call, self.number, addresses, data, site)
        else:
            self.cta.memories.smem[0, addresses[:, None] + np.arange(data.shape[1])] = data

    # --- TMA -------------------------------------------------------------------------------------

    def tma_load(
        self,
        _: UnitCall,
        target: int,
        tensor: TensorOperand,
        mbar: int,
        *,
        site: object,
        **more: object,
    ) -> None:
        """Replays a load of `tcir.machine.tma.unit.Tma`."""
        box = load_box(tensor, target, self.cta.assumptions, site)
        eb = box.fields.piece_bytes
        words = np.empty(0, f"u{eb}")
        if box.addresses.size:
            number, buffer, at = self.cta.find(box.addresses, eb, site)
            known = buffer.defined
            if known is not None and not known[at[:, None] + np.arange(eb)].all():
                raise FollowerLeft
            self.cta.reads.add(number)
            usable = buffer.data.size // eb * eb
            words = buffer.data[:usable].view(words.dtype)[at // eb]
        self.cta.counters.global_to_shared_read += box.addresses.size * eb
        elements(self.cta.memories.smem, eb)[0, box.shared // eb] = box.filled(words)

    def tma_store(
        self,
        call: UnitCall,
        source: int,
        tensor: TensorOperand,
        reduction: str | None = None,
        *,
        site: object,
    ) -> None:
        """Replays a store of `tcir.machine.tma.unit.Tma`."""
        box: Box = store_box(tensor, source, self.cta.assumptions, site)
        if reduction is not None or box.gaps is not None:
            raise FollowerLeft
        eb = box.fields.piece_bytes
        self.cta.counters.shared_to_global += box.addresses.size * eb
        if box.addresses.size:
            words = elements(self.cta.memories.smem, eb)[0, box.shared[box.inside] // eb]
            data = np.ascontiguousarray(words).view(np.uint8).reshape(-1, eb)
            self.cta.store(call, ENGINE, box.addresses, data, site)

    # --- tensor memory ---------------------------------------------------------------------------

    def _reach(
        self, address: int, shape: str, num: int, pack: bool, split: int | None
    ) -> tuple[Index, Index, int]:
        lane, column = access_base(address, shape, self.warp, self.cta.assumptions.ld_st_lane)
        table = access_map(shape, num, pack, split)
        return lane + table.lanes, column + table.columns, table.halves

    def tmem_ld(
        self,
        _: UnitCall,
        address: int,
        shape: str = "32x32b",
        num: int = 16,
        pack: bool = False,
        split: int | None = None,
        *,
        site: object,
    ) -> NDArray[np.uint32]:
        """Replays a load of `tcir.machine.tmem.unit.Tmem`."""
        lanes, columns, halves = self._reach(address, shape, num, pack, split)
        words = self.cta.memories.tmem[0]
        found: NDArray[np.uint32] = words[lanes, columns]
        if halves == 2:
            found = (found & np.uint32(0xFFFF)) | words[lanes, columns + 1] << np.uint32(16)
        return found

    def tmem_st(
        self,
        _: UnitCall,
        address: int,
        shape: str,
        num: int,
        data: NDArray[np.uint32],
        unpack: bool = False,
        split: int | None = None,
        *,
        site: object,
    ) -> None:
        """Replays a store of `tcir.machine.tmem.unit.Tmem`."""
        lanes, columns, halves = self._reach(address, shape, num, unpack, split)
        if halves == 2:
            raise FollowerLeft
        self.cta.memories.tmem[0, lanes, columns] = data


EFFECTS: dict[tuple[str, str], Operation] = {
    ("memory", "load"): FollowerAgent.load,
    ("memory", "store"): FollowerAgent.store,
    ("tma", "load"): FollowerAgent.tma_load,
    ("tma", "store"): FollowerAgent.tma_store,
    ("tmem", "ld"): FollowerAgent.tmem_ld,
    ("tmem", "st"): FollowerAgent.tmem_st,
}
"""(unit, operation) -> function that moves the data; the tensor core's effects come from the
leader's trace."""


class FollowerUnit:
    """A unit of a follower's agent."""

    def __init__(self, agent: FollowerAgent, unit: str) -> None:
        self._agent, self._unit = agent, unit

    def __getattr__(self, name: str) -> object:
        agent, unit = self._agent, self._unit

        def operation(*operands: object, **named: object) -> object:
            return agent.call(unit, name, operands, named)

        self.__dict__[name] = operation
        return operation


def take_turns(
    trace: Trace, agents: Sequence[FollowerAgent], bodies: Sequence[Generator[object, object, None]]
) -> None:
    """Runs a follower's agents in the order in which the leader's agents took turns; FollowerLeft
    if an agent yields or ends at another point.
    """
    for number, ends in trace.turns:
        try:
            next(bodies[number])
        except StopIteration:
            if not ends:
                raise FollowerLeft from None
        else:
            if ends:
                raise FollowerLeft
    if not all(agent.ended for agent in agents):
        raise FollowerLeft
