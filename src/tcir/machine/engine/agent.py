"""An agent: one warp, or one role of a tile program.

It keeps the state that every instruction needs: the clock of its observations, its current wait,
and the check that each access is ordered after those before it. Its units carry out its operations;
``site`` identifies an operation in a report.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.circumstances import circumstances
from tcir.machine.engine.fences import check_fences
from tcir.machine.engine.grid_control import GridControl
from tcir.machine.engine.half_orders import half_ordered
from tcir.machine.engine.launch_control import LaunchControl
from tcir.machine.engine.operand_races import Race
from tcir.machine.engine.touch import Touch
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.findings import Unpromised
from tcir.machine.memory.cp_async import CpAsync
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.memories import RANK_SHIFT, address_words
from tcir.machine.memory.protocols import AgentProtocol, CtaProtocol
from tcir.machine.memory.st_async import StAsync
from tcir.machine.memory.strong import StrongAccesses
from tcir.machine.memory.updates import Updates
from tcir.machine.order.clocks import (
    BEFORE,
    BEYOND,
    EARLIER,
    INIT,
    LATE,
    PIPE,
    PROXY,
    Access,
    Clock,
    Component,
    Scope,
    join,
    marked,
    morally_strong,
    observed,
    observed_beyond,
    of_tensor_memory,
)
from tcir.machine.order.involved import Involved, between
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.lanes import (
    EACH,
    LANE,
    TOGETHER,
    WARP,
    LaneNumbers,
    Lanes,
    known_to,
    observed_of,
)
from tcir.machine.order.mbarrier import Mbarrier
from tcir.machine.order.operation import Blocking, Pending, Waiting
from tcir.machine.order.ordering import (
    MISSING_WARP_SYNC,
    SHIPPED,
    Class,
    class_of,
    listed,
    missing_edge,
    piped,
)
from tcir.machine.order.shadow import ByLane, Shadow
from tcir.machine.order.strong import Strong, merged
from tcir.machine.order.tensor_thread import TensorThread
from tcir.machine.recorder import WarpEvents
from tcir.machine.sync.barriers import Barriers
from tcir.machine.sync.cluster_barrier import ClusterBarrier
from tcir.machine.sync.mbarriers import Mbarriers
from tcir.machine.sync.registers import Registers
from tcir.machine.tensor_core.unit import TensorCore
from tcir.machine.tma.bulk import Bulk
from tcir.machine.tma.tensormap import TensorMaps
from tcir.machine.tma.unit import Tma
from tcir.machine.tmem.unit import Tmem
from tcir.machine.wgmma.unit import Wgmma

Body = Callable[[Any], Generator[Any, Any, None]]
"""What an agent runs: a generator that is given the agent."""

MOST_CONCURRENT = 64
"""Unordered strong writes to one place that are remembered: a later access that is not ordered with
one of those before them goes unnoticed."""


SCOPE_OF_CLUSTER = (
    ".release.cluster of the arrival and .acquire.cluster of the wait: without it their scope is "
    ".cta, which leaves out the threads of another CTA"
)


class Agent:
    """The units: `memory` (ld, st), `strong` (what those with a scope release and acquire),
    `updates` (a load and a store that ought to be one atomic),
    `cp_async`, `st_async`, `barrier`, `cluster_barrier`, `registers` (setmaxnreg), `mbarrier`,
    `bulk` (cp.async.bulk and its groups), `tma` (cp.async.bulk.tensor), `tensormap`, `tmem`
    (tcgen05.alloc, ld, st, wait), `tensor_core` (tcgen05.mma, cp, shift, commit), `wgmma`,
    `launch_control` and `grid_control`."""

    def __init__(self, cta: CtaProtocol, name: str, warp: int, threads: int, body: Body) -> None:
        self.cta, self.name, self.warp, self.threads = cta, name, warp, threads
        self.machine = cta.machine
        self.me: Component = (cta.index, len(cta.agents))
        self.lanes = Lanes(self.me)
        """What its lanes know, and which of them execute."""
        self.met: Clock = {}
        """What cluster barriers put before it in time, relaxed arrivals included, which order no
        memory (PTX ISA 9.7.13.3)."""
        self._met_ctas = {cta.index}
        """CTAs that it has synchronised with, or tried to."""
        self.inits: list[int] = []
        """Numbers of its mbarrier.init."""
        self.tensor_threads = [TensorThread(self.me, 0, self.machine.assumptions)]
        """Threads that issued tensor-core operations; at least one, so that there is a `tensor`."""
        self.tensor = self.tensor_threads[0]
        """The one that issues now."""
        self.pipe_reach: dict[Class, int] = {}
        """What the operation that is being issued comes after, in the pipe."""
        self.listed_reach: dict[Class, int] = {}
        """What of it the PTX ISA promises."""
        self.waiting: Waiting | None = None
        self.polls = ""
        """The condition it tests again and again without doing anything else."""
        self._polled: dict[tuple[object, str], Pending] = {}
        """What its lanes have found not to hold since it last did something else."""
        self.alone = False
        """Set if no other agent could run while it was blocked in a loop that may give up."""
        self.ended = False
        self.events: WarpEvents | None = None
        """Records its events, if requested."""
        self.progress = 0
        """Grows with everything it does except polling."""
        self.turns = 0
        self.site: object = None
        self._hold_units()
        self._generator = body(self)

    def _hold_units(self) -> None:
        self.memory = Memory(self)
        self.strong = StrongAccesses(self)
        self.updates = Updates(self)
        self.cp_async = CpAsync(self, self.memory)
        self.st_async = StAsync(self, self.memory)
        self.barrier = Barriers(self)
        self.cluster_barrier = ClusterBarrier(self)
        self.registers = Registers(self)
        self.mbarrier = Mbarriers(self)
        self.bulk = Bulk(self, self.memory)
        self.tensormap = TensorMaps(self, self.memory)
        self.tma = Tma(self, self.memory, self.bulk, self.tensormap)
        self.tmem = Tmem(self, self.memory)
        self.tensor_core = TensorCore(self)
        self.wgmma = Wgmma(self, self.memory)
        self.launch_control = LaunchControl(self, self.memory)
        self.grid_control = GridControl(self)

    def forget(self) -> None:
        """Lets go of its units, which refer to it: for an agent that has ended."""
        self.tensor_threads.clear()
        del self.memory, self.strong, self.updates, self.cp_async, self.st_async, self.barrier
        del (
            self.cluster_barrier,
            self.registers,
            self.mbarrier,
            self.bulk,
            self.tensormap,
            self.tma,
            self.tmem,
        )
        del self.tensor_core, self.wgmma, self.launch_control, self.grid_control

    # --- scheduling ------------------------------------------------------------------------------

    @property
    def runnable(self) -> bool:
        """Whether `advance` would do something."""
        return not self.ended and (self.waiting is None or self.waiting.ready())

    @property
    def waiting_for(self) -> str:
        """A description of what it waits for."""
        if self.waiting:
            return self.waiting.describe()
        return f"{self.polls or 'nothing in particular'}, in a loop"

    def advance(self) -> None:
        """Runs until the agent ends, blocks or gives way."""
        self.waiting = None
        self.turns += 1
        self.machine.running = self
        try:
            self.waiting = next(self._generator)
        except StopIteration:
            self.ended = True
            self.progress += 1
        except (MachineError, NotModelled) as error:
            error.who = error.who or self.who
            raise
        finally:
            self.machine.running = None

    @property
    def who(self) -> str:
        """What a report calls it."""
        return f"{self.name} of CTA {self.cta.index}"

    def pause(self) -> Blocking:
        """Gives way to the other agents (a polling loop)."""
        yield None

    def poll_again(self) -> bool:
        """Wakes it from a wait in a loop that may give up; whether it is in one."""
        wakes = not self.ended and self.waiting is not None and self.waiting.gives_up
        self.alone |= wakes
        return wakes

    def tick(self, count: int) -> None:
        """Notes ``count`` instructions done; those of a polling loop are no progress."""
        if not self.polls:
            self.progress += count

    def wait(
        self,
        ready: Callable[[], bool],
        describe: Callable[[], str],
        barrier: Mbarrier | None = None,
        gives_up: bool = False,
    ) -> Blocking:
        """Blocks until ``ready()``."""
        while not ready():
            yield Waiting(ready, describe, barrier, gives_up)

    def proceed(self, site: object) -> None:
        """Notes that the agent executes ``site``, and so is not polling."""
        self.site = site
        self.polls = ""
        self._polled.clear()
        self.progress += 1

    def proceed_unless_polling(self, site: object) -> None:
        """As `proceed`, of what a polling loop may do besides: a fence."""
        if not self.polls:
            self.proceed(site)

    def poll(self, site: object, condition: str, barrier: Mbarrier | None = None) -> None:
        """Notes that ``condition`` does not hold yet: no progress."""
        self.site, self.polls = site, condition
        key = site, "" if barrier is None else f"{barrier.address:#x}"
        self._polled[key] = Pending(self.lanes.active, condition, barrier)

    def pending(self) -> list[Pending]:
        """What it waits for, by groups of its lanes."""
        found = dict(self._polled)
        if self.waiting is not None:
            now = Pending(self.lanes.active, self.waiting.describe(), self.waiting.barrier)
            found[self.site, "" if now.barrier is None else f"{now.barrier.address:#x}"] = now
        return list(found.values()) or [Pending(0, self.waiting_for)]

    def drain(self) -> None:
        """Finishes everything in flight in this cluster and makes it visible to this agent.

        For programs that run in program order, without barriers.
        """
        self.cta.cluster.finish()
        for thread in self.tensor_threads:
            self.clock[thread.component] = thread.issued
        self.bulk.observe()
        for barrier in self.cta.mbarriers.values():
            for known in (barrier.released, barrier.collected):
                join(self.clock, known.near)
                join(self.clock, known.far)
            self.clock[barrier.tma] = barrier.loads
        self.tmem.wait("ld", site=self.site)
        self.tmem.wait("st", site=self.site)
        self.lanes.knows.after = dict(self.clock)

    # --- the cluster -----------------------------------------------------------------------------

    def cta_of(self, address: int, site: object, *, own: bool = False) -> CtaProtocol:
        """Whose window of shared memory an address is in; ``own``: it has to be this CTA's."""
        rank = address >> RANK_SHIFT
        if rank == self.cta.rank_in_cluster:
            return self.cta
        if own:
            raise MachineError(
                "foreign-shared-memory",
                f"expected an address in this CTA's shared memory ({self.cta.window:#x}, rank "
                f"{self.cta.rank_in_cluster} of its cluster), got {address_words(address)}, rank "
                f"{rank}: other CTAs are reached with .shared::cluster and by what the ISA lists "
                "for it",
                site=site,
            )
        return self._started(self.cta.cluster.at(rank, site), site)

    def multicast(self, address: int, cta_mask: int | None, site: object) -> list[int]:
        """The address, or the ones at its offset in each CTA of a mask."""
        if cta_mask is None:
            return [address]
        if cta_mask <= 0:
            raise MachineError("cta-mask", "expected a CTA in the mask, got none", site=site)
        offset = address & (1 << RANK_SHIFT) - 1
        ranks = [r for r in range(cta_mask.bit_length()) if cta_mask >> r & 1]
        peers = (self._started(self.cta.cluster.at(rank, site), site) for rank in ranks)
        return [peer.window | offset for peer in peers]

    def group(self, cta_group: int, site: object) -> tuple[CtaProtocol, ...]:
        """The CTAs on which a tcgen05 instruction of this group acts, even rank first."""
        known = self.machine.cta_group
        if known is None:
            self.machine.cta_group = (cta_group, site)
        elif known[0] != cta_group:
            raise MachineError(
                "cta-group-mixed",
                f"expected .cta_group::{known[0]} as at {known[1]}, got .cta_group::{cta_group}: "
                "all tcgen05 instructions of a kernel use the same (PTX ISA 9.7.16.5)",
                site=site,
            )
        if cta_group == 1:
            return (self.cta,)
        pair = self.cta.cluster.pair(self.cta.rank_in_cluster, site)
        for cta in pair:
            self._started(cta, site, tensor_core=True)
        return pair

    def _started(
        self, peer: CtaProtocol, site: object, *, tensor_core: bool = False
    ) -> CtaProtocol:
        """A CTA of the cluster that this one is about to reach: it has to be there already, which
        only something that it did, and this agent waited for, can tell."""
        if peer.index not in self._met_ctas:
            self._met_ctas.add(peer.index)
            clocks = (self.clock, self.met, *self.seen)
            if not any(_is_of(line, peer.index) for clock in clocks for line in clock):
                self.cta.report(
                    Unpromised(
                        "9.7.16.5", "CUTLASS's Blackwell tutorials 04 and 05",
                        "that the peer is there",
                    ) if tensor_core else "error",
                    "peer-not-started", site, "the start of the CTA that it reaches",
                    "a cluster barrier, or a wait for a signal of that CTA, before the first "
                    "access to it: CTAs of a cluster run together, but do not start at once",
                )  # fmt: skip
        return peer

    def issue_from(self, lane: int) -> None:
        """The tensor-core operations that follow are issued by this lane.

        A commit tracks those of its own thread only, and the pipe keeps only those in order. A role
        of a tile program is one thread and never calls this.
        """
        if self.tensor.lane != lane:
            known = (t for t in self.tensor_threads if t.lane == lane)
            thread = next(known, None)
            if thread is None:
                thread = TensorThread(self.me, lane, self.machine.assumptions)
                self.tensor_threads.append(thread)
            self.tensor = thread

    # --- clocks: of the lanes that execute -------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """What has been observed."""
        return self.lanes.knows.clock

    @property
    def after_clock(self) -> Clock:
        """What was at the last tcgen05.fence::after_thread_sync."""
        return self.lanes.knows.after

    @property
    def seen(self) -> list[Clock]:
        """What relaxed reads and waits saw: a fence that reaches so far makes it observed."""
        return self.lanes.knows.seen

    def release(self) -> Clock:
        """A copy of what is known, own accesses included; later accesses are not covered."""
        return self.lanes.publish()

    def comes_after(self, component: Component, number: int) -> bool:
        """Whether it runs after another agent was so far, be it in an order that is none of memory:
        by relaxed arrivals, or by an arrival or a wait of too narrow a scope."""
        clocks = (self.clock, self.met, *self.seen)
        lines = component, (BEYOND, component)
        return any(clock.get(line, 0) >= number for clock in clocks for line in lines)

    def own_access(
        self, kind: str, site: object, strong: Strong | None = None, *, by_lane: bool = False
    ) -> Access:
        """An access that takes effect here and now; by_lane: each lane has its own part of it."""
        scope, size = (self.scope(strong.scope), strong.size) if strong else (None, 0)
        lanes = self.lanes.active or (WARP if by_lane else 0)
        if not self.lanes.separate:
            lanes = 0
        return Access(self.me, self.lanes.number, kind, site, strong=scope, lanes=lanes, size=size)

    def scope(self, word: str) -> Scope:
        """The scope of a strong operation of this agent: "cta", "cluster", "gpu" or "sys"."""
        return Scope(word, self.cta.index, self.cta.cluster.ctas[0].index)

    # --- access checks -------------------------------------------------------------------

    def fence(self, kind: str, *, site: object) -> None:
        """A fence: "tcgen05.after", "tcgen05.before", "proxy.async", "mbarrier_init", "cta", …"""
        self.proceed_unless_polling(site)
        self.lanes.learn()
        match kind:
            case "tcgen05.after":
                for seen in self.seen:
                    join(self.clock, of_tensor_memory(seen))
                self.lanes.knows.after = dict(self.clock)
            case "tcgen05.before":
                self.mark_before(self.tensor_threads)
                # Relaxed arrivals carry it (PTX ISA 9.7.16.6.4.3, 9.7.16.6.4.4).
                ordered = of_tensor_memory(self.clock)
                carried = self.lanes.knows.fenced
                carried[:] = [merged(clock, ordered) for clock in carried]
            case "proxy.async" | "proxy.async.shared":
                self._proxy_marks()
                self.mark(INIT)
            case "mbarrier_init":
                self.mark(INIT)
                inits: Clock = {(self.me, number): 1 for number in self.inits}
                inits[(INIT, self.me)] = self.clock[(INIT, self.me)]
                carried = self.lanes.knows.fenced
                for reach in range(self.scope("cluster").reach + 1):
                    carried[reach] = merged(carried[reach], inits)
            case "cta" | "cluster" | "gpu" | "sys":
                self.strong.fence(kind)
            case "proxy.tensormap" | "proxy.alias":
                pass  # memory here is coherent
            case _:
                raise NotModelled(f"fence {kind}", site=site)

    def mark(self, which: str) -> None:
        """Marks its accesses so far as having passed a fence of that kind."""
        self.clock[(which, self.me)] = self.lanes.number
        self.lanes.step()  # what follows has not passed the fence

    def _proxy_marks(self) -> None:
        """Marks its own accesses, its cp.async included, and late ones of other agents, as
        fenced."""
        known = {**self.clock, **self.lanes.done()}
        for known_as, number in known.items():
            c = cast(Component, known_as[1]) if known_as[0] == BEYOND else known_as
            if not isinstance(c[0], str) or c[0] == LANE:
                own = c == self.me or c[1] == self.me
                mark = PROXY if own else LATE, c
                self.clock[mark] = max(number, self.clock.get(mark, 0))

    def mark_before(self, threads: Iterable[TensorThread]) -> None:
        """tcgen05.fence::before_thread_sync; of which threads' tensor-core operations."""
        for component in (("ld", self.me), ("st", self.me)):
            self.clock[(BEFORE, component)] = self.clock.get(component, 0)
        for thread in threads:
            self.clock[(PIPE, thread.component)] = thread.issued

    def note_read(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        *,
        lanes: NDArray[np.int64] | None = None,
    ) -> None:
        """Checks and records a read of the granules ``where``; lanes: who reads each row of them
        (None: the active ones)."""
        if shadow is not None:
            touch = Touch(shadow, where, access, False, self._who(lanes))
            self._check(touch)
            by = self._by_lane(touch)
            shadow.record_read(where, access, by, self._known_to_all)
            self._visit(shadow, access)

    def _who(self, lanes: NDArray[np.int64] | None) -> LaneNumbers | None:
        """The lane of each row, or of all; None: all lanes of a warp, or no warp."""
        active = self.lanes.active
        if lanes is not None or not active:
            return lanes if self.lanes.separate else None
        return TOGETHER if active & (active - 1) else active.bit_length() - 1

    def _by_lane(self, touch: Touch) -> ByLane | None:
        """Lanes that make the access about to be recorded; None: all together, or another agent."""
        if touch.access.lanes and touch.lanes is not None:
            self.lanes.touch(touch.lanes)
            return ByLane(touch.lanes, self._known_to_all)
        if touch.access.component == self.me:
            self.lanes.touch(TOGETHER)
        return None

    def _known_to_all(self, access: Access) -> bool:
        return known_to(self.clock, access)

    def note_constant(self, shadow: Shadow | None, where: Granules, access: Access) -> None:
        """Checks and records a read of memory that no thread may write during the launch."""
        if shadow is not None:
            for writer in shadow.writers_at(where):
                if writer.component == EARLIER:
                    touch = Touch(shadow, where, access, False, self._who(None))
                    self._pair(touch, writer, wrote=True)
                else:
                    self._not_constant(access, writer, shadow, where, wrote=True)
            shadow.record_constant(where, access)

    def _not_constant(
        self, load: Access, write: Access, shadow: Shadow, where: Granules, *, wrote: bool
    ) -> None:
        other, access = (write, load) if wrote else (load, write)
        touch = Touch(shadow, where, access, not wrote, self._who(None))
        self.cta.report(
            "error", "non-coherent-load", load.site, write.site,
            "a plain load: the launch writes these bytes, and no barrier or fence orders the "
            "non-coherent path (PTX ISA 9.7.9.9)", self.involved(touch, other, wrote=wrote),
        )  # fmt: skip

    def note_write(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        *,
        lanes: NDArray[np.int64] | None = None,
        same: bool | Callable[[], bool] = False,
        visit: bool = True,
    ) -> None:
        """Checks and records a write.

        lanes: who writes each row of the granules (None: the active ones). same: whether it puts
        back the bytes that were there, or will be. visit: the CTA whose memory it is has to be
        there until then.
        """
        if shadow is not None:
            if shadow.constant is not None:
                for reader in shadow.constant_at(where):
                    self._not_constant(reader, access, shadow, where, wrote=False)
            touch = Touch(shadow, where, access, True, self._who(lanes), same)
            concurrent = self._check(touch)
            if by := self._by_lane(touch):
                shadow.lanes_write(where, by.lanes)
            if concurrent:
                for earlier, part in shadow.parts(where):
                    shadow.record_write(
                        part, replace(access, concurrent=self._concurrent(earlier, access))
                    )
            else:
                shadow.record_write(where, access)
            if visit:
                self._visit(shadow, access)

    def check_exchange(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        lanes: NDArray[np.int64] | None,
        *,
        write: bool,
        polled: Sequence[int] = (),
    ) -> None:
        """Checks a relaxed or volatile load or store by which lanes of a warp exchange words: each
        in a place of its own, then together in each other's. It is no data race, but the loaded
        values depend on timing. A word of one lane for the others, or of all, may be polled.

        polled: the lanes that poll the word that each of `lanes` overwrites
        (`tcir.machine.memory.polls`)
        """
        touch = Touch(shadow, where, access, write, self._who(lanes)) if shadow else None
        if touch is None or touch.lanes is None:
            return
        earlier = [(other, True) for other in touch.shadow.writers_at(where)]
        if write:
            earlier += [(other, False) for other in touch.shadow.readers_at(where)]
        for other, wrote in earlier:
            both = other.lanes & access.lanes
            ours = other.component == self.me and other.strong and both & (both - 1)
            if not ours or observed(self.clock, other):
                continue
            mine = touch.shadow.other_lanes(where, other, touch.lanes, wrote) & ~(1 << EACH)
            if mine and polled and not wrote:
                mine = _but(polled, touch, other) & ~(1 << EACH)
            if mine and not observed_of(self.clock, other, mine):
                verb = f"{'write' if wrote else 'read'} {touch.shadow.space}"
                self.cta.report(
                    "error", "race", f"{other.site} (lanes {verb}, each its own place)",
                    f"{access.site} (lanes {'write' if write else 'read'} each other's)",
                    "no data race, as both are relaxed or volatile, but what is read depends on "
                    f"timing: {MISSING_WARP_SYNC}", self.involved(touch, other, wrote=wrote),
                )  # fmt: skip

    def check_write(self, shadow: Shadow | None, where: Granules, access: Access) -> None:
        """Checks a write that another one stands for in the record."""
        if shadow is not None:
            self._check(Touch(shadow, where, access, True, self._who(None)))

    def _concurrent(self, earlier: list[Access], access: Access) -> tuple[Access, ...]:
        """Strong accesses that neither race with `access` nor are ordered before it, the last of
        each component: later accesses must be ordered after them as well."""
        last: dict[Component, Access] = {}
        for other in earlier:
            if morally_strong(other, access) and not observed(self.clock, other):
                known = last.get(other.component)
                if known is None or known.number < other.number:
                    last[other.component] = replace(other, concurrent=())
        return tuple(last.values())[-MOST_CONCURRENT:]

    def _visit(self, shadow: Shadow, access: Access) -> None:
        """The owner of the memory must not end before."""
        if shadow.owner is not None and shadow.owner is not self.cta:
            shadow.owner.remote_accesses[access.component] = access

    def _check(self, touch: Touch) -> bool:
        """True if it is concurrent with an earlier strong write of another agent."""
        concurrent, access = False, touch.access
        for last in touch.shadow.writers_at(touch.where):
            for other in (last, *last.concurrent):
                if not morally_strong(other, access) or observed(self.clock, other):
                    self._pair(touch, other, wrote=True)
                elif other.component != self.me:
                    concurrent = True
        if touch.write:
            for other in touch.shadow.readers_at(touch.where):
                if not morally_strong(other, access):
                    self._pair(touch, other, wrote=False)
            for other in touch.shadow.beside_at(touch.where):
                # Which of its lanes is not kept: what is known of one will do.
                own = other.component == self.me
                known = own or observed(self.clock, other) or observed_of(self.clock, other, 0)
                if not known and not morally_strong(other, access):
                    self._pair(touch, other, wrote=False)
        return concurrent

    def has_observed(self, shadow: Shadow, where: Granules, other: Access) -> bool:
        """Whether the active lanes come after ``other``, the last write of the granules."""
        if observed(self.clock, other):
            return True
        own = Access(self.me, self.lanes.number, "", None)
        touch = Touch(shadow, where, own, False, self._who(None))
        return self._lanes_observed(touch, other, wrote=True)

    def _lanes_observed(self, touch: Touch, other: Access, *, wrote: bool) -> bool:
        """Whether it comes after what single lanes of a warp, this one or another, did."""
        own = other.component == self.me
        if not other.lanes:
            return own or observed_of(self.clock, other, 0)
        if own and touch.lanes is None:
            return True  # all lanes of the warp together
        mine = touch.lanes if own and touch.lanes is not None else TOGETHER
        lanes = touch.shadow.other_lanes(touch.where, other, mine, wrote)
        if own:
            lanes &= ~(1 << EACH)  # its own lane did the same
        else:
            lanes = lanes or other.lanes  # a later reader's lanes may have replaced them
        return not lanes or observed_of(self.clock, other, lanes)

    def passed(self, touch: Touch, other: Access, mark: str, *, wrote: bool) -> bool:
        """Whether ``other`` has passed a fence."""
        if marked(self.clock, mark, other):
            return True
        lanes = 0
        if other.lanes:
            lanes = touch.shadow.other_lanes(touch.where, other, TOGETHER, wrote)
        return observed_of(self.clock, other, lanes, mark)

    def pipe_before(
        self, access: Access, agents: Iterable[AgentProtocol], *, listed: bool = False
    ) -> dict[Class, int]:
        """Tensor-core operations that the pipe completes before this new one of this thread.

        listed: as far as the PTX ISA promises it.

        They are its own; and, of the other threads of `agents` (its CTA or pair), those that passed
        tcgen05.fence::before_thread_sync before the synchronisation that this agent followed by
        ::after_thread_sync.
        """
        reach = (self.tensor.listed if listed else self.tensor.kept).before(access)
        after = self.after_clock
        for thread in (t for agent in agents for t in agent.tensor_threads if t.issued):
            fenced = after.get((PIPE, thread.component), 0)
            if thread is not self.tensor and fenced:
                foreign = (thread.listed if listed else thread.kept).before(access)
                join(reach, {group: min(number, fenced) for group, number in foreign.items()})
        return reach

    def _pair(self, touch: Touch, other: Access, *, wrote: bool) -> None:
        shadow, access = touch.shadow, touch.access
        if other.kind == access.kind == "dealloc":
            return  # the two calls of a pair
        known = observed(self.clock, other) or piped(self.clock, other)
        if known or self._lanes_observed(touch, other, wrote=wrote):
            check_fences(self, touch, other, wrote)
            return
        both_piped = other.component[0] == "tc" and access.component == self.tensor.component
        if both_piped and self.listed_reach.get(class_of(other), 0) >= other.number:
            return
        if other.strong and any(
            writes.precedes(other, self.lanes.sees) for writes in self.machine.strong.values()
        ):
            return
        one_cluster = shadow.owner is not None
        mine = other.component == self.tensor.component
        missing = missing_edge(other, access, mine, one_cluster)
        missing += self._ended_early(other)
        if other.component == self.me or any(observed(g.clock, other) for g in self.lanes.groups):
            missing = MISSING_WARP_SYNC
        if both_piped and listed(self.machine.assumptions, other, access):
            missing += "; or tcgen05.fence::before_thread_sync, a barrier and ::after_thread_sync"
        involved = self.involved(touch, other, wrote=wrote)
        verb = f"{'writes' if wrote else 'reads'} {shadow.space}, then {access.kind} " + (
            "overwrites it" if touch.write else "reads it"
        )
        if both_piped and touch.write and self.pipe_reach.get(class_of(other), 0) >= other.number:
            self.cta.report(
                Unpromised(
                    "9.7.16.6.2", SHIPPED[other.kind, access.kind],
                    f"order of issue of {other.kind} and {access.kind}",
                ),
                "issue-order", f"{other.site} ({other.kind} {verb})", access.site, missing,
                involved,
            )  # fmt: skip
            return
        if self.passed(touch, other, BEYOND, wrote=wrote) or observed_beyond(self.clock, other):
            if _near(shadow, other) and not (wrote and self._on_its_way(touch, other)):
                self._report_scope(f"{other.site} ({other.kind} {verb})", access.site, involved)
                check_fences(self, touch, other, wrote)
                return
            missing += f"; {SCOPE_OF_CLUSTER}"
        peers = shadow.owner is not None and shadow.owner is not self.cta
        if access.kind == "dealloc" and peers and other.issuer != self.cta.index:
            self.cta.report(
                Unpromised("9.7.16.5", "CUTLASS's Blackwell tutorials 04 and 05"),
                "pair-dealloc", f"{other.site} ({other.kind} {verb})", access.site,
                "a cluster barrier between what the peer does with its tensor memory and dealloc",
                involved,
            )  # fmt: skip
            return
        if other.kind == "alloc" and known_to(self.met, other):
            # Its own kind: no other store may go without a release (DeepGEMM's is this word).
            self.cta.report_relaxed(
                f"{other.site} ({other.kind} {verb})", access.site, "DeepGEMM's pairs", involved
            )
            return
        first = f"{other.site} ({other.kind} {verb})"
        if half_ordered(self, touch, other, wrote, first, involved):
            return
        race = Race(shadow, touch.where, other, access, f"{other.site} ({other.kind} {verb})")
        if race.loses_rows(self, missing, involved):
            return
        # The bytes are the same in either order: compilers let several warps store a constant.
        alike = other.kind == access.kind if access.proxy == "async" else other.kind == "generic"
        harmless = alike and (touch.same() if callable(touch.same) else touch.same)
        severity, code = ("warning", "same-value-race") if harmless else ("error", "race")
        self.cta.report(
            severity, code, f"{other.site} ({other.kind} {verb})", access.site,
            f"not ordered: {missing}", involved,
        )  # fmt: skip

    def _ended_early(self, other: Access) -> str:
        """The agent that ended a phase of an operation's mbarrier before its bytes arrived."""
        if other.component[0] == "tma":
            _, index, number = other.component
            for cta in self.cta.cluster.ctas:
                if cta.index == index:
                    return cta.all_mbarriers[cast("int", number)].early
        return ""

    def _on_its_way(self, touch: Touch, write: Access) -> bool:
        """Whether what a thread stored in its CTA's shared memory, or copied there by cp.async, may
        not be there yet for another CTA: mma of pairs read older bytes on B200s. Behind a
        fence.proxy.async of the thread it is."""
        shared = touch.shadow.space == "shared memory" and write.proxy == "generic"
        return shared and not self.passed(touch, write, PROXY, wrote=True)

    def involved(self, touch: Touch, other: Access, *, wrote: bool) -> Involved:
        """Agents and places, for a report about an access and an earlier one."""
        pair, lanes = (other, touch.access), touch.lanes
        return Involved(
            between(other.component, touch.access.component),
            partial(circumstances, self, touch.shadow, touch.where, pair, lanes, wrote),
        )

    def _report_scope(self, first: str, second: object, involved: Involved) -> None:
        self.cta.report(
            Unpromised(
                "9.7.13.15.13", "CUTLASS's example 70 and DeepGEMM's pairs",
                "order between CTAs by an arrival or a wait of scope .cta",
            ),
            "mbarrier-scope", first, second, SCOPE_OF_CLUSTER, involved,
        )  # fmt: skip


def _but(polled: Sequence[int], touch: Touch, other: Access) -> int:
    """The lanes of an earlier read but those that poll what each of one's own overwrites."""
    found, where = 0, cast("NDArray[np.int64] | tuple[NDArray[np.int64], ...]", touch.where)
    for row, (lane, lanes) in enumerate(zip(cast("list[int]", touch.lanes), polled, strict=True)):
        each = slice(row, row + 1)
        part = tuple(w[each] for w in where) if isinstance(where, tuple) else where[each]
        found |= touch.shadow.other_lanes(part, other, int(lane), False) & ~lanes
    return found


def _is_of(line: Hashable, cta: Hashable) -> bool:
    """Whether a component, or a mark of one, is of a CTA."""
    return isinstance(line, tuple) and any(part == cta or _is_of(part, cta) for part in line)


def _near(shadow: Shadow, first: Access) -> bool:
    """Whether an access stayed on the SM of the thread that signals after it: shipping kernels
    signal another CTA, without .cluster, that such an access is done. For global memory the
    other SM's L1 may hold older bytes; accesses to the shared memory of another CTA may be in
    flight for longer than the arrival (both seen on an H200)."""
    owner = shadow.owner
    return owner is not None and first.cta in (None, owner.index)
