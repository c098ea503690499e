"""An agent: one warp, or one role of a tile program.

An agent keeps the state that every instruction needs: its clock (the accesses that it has
observed), its current wait and its progress. Its units carry out its operations. In a report,
``site`` identifies an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from tcir.machine.engine.access_checks import AccessChecks
from tcir.machine.engine.fencing import execute_fence
from tcir.machine.engine.grid_control import GridControl
from tcir.machine.engine.launch_control import LaunchControl
from tcir.machine.engine.peers import Peers
from tcir.machine.engine.tensor_issue import TensorIssue
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.memory.cp_async import CpAsync
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.protocols import CtaProtocol
from tcir.machine.memory.st_async import StAsync
from tcir.machine.memory.strong import StrongAccesses
from tcir.machine.memory.updates import Updates
from tcir.machine.order.clocks import (
    BEYOND,
    Access,
    Clock,
    Component,
    Scope,
    join,
)
from tcir.machine.order.lanes import (
    WARP,
    Lanes,
)
from tcir.machine.order.mbarrier import Mbarrier
from tcir.machine.order.operation import Blocking, Pending, Waiting
from tcir.machine.order.strong import Strong
from tcir.machine.recorder import WarpEvents
from tcir.machine.sync.barriers import Barriers
from tcir.machine.sync.cluster_barrier import ClusterBarrier
from tcir.machine.sync.mbarriers import Mbarriers
from tcir.machine.sync.registers import RegisterQuota
from tcir.machine.tensor_core.unit import TensorCore
from tcir.machine.tma.bulk import Bulk
from tcir.machine.tma.tensormap import TensorMaps
from tcir.machine.tma.unit import Tma
from tcir.machine.tmem.unit import Tmem
from tcir.machine.wgmma.unit import Wgmma

Body = Callable[[Any], Generator[Any, Any, None]]
"""Program of an agent: a generator function of the agent."""

_UNITS = (
    "peers",
    "issue",
    "checks",
    "memory",
    "strong",
    "updates",
    "cp_async",
    "st_async",
    "barrier",
    "cluster_barrier",
    "registers",
    "mbarrier",
    "bulk",
    "tensormap",
    "tma",
    "tmem",
    "tensor_core",
    "wgmma",
    "launch_control",
    "grid_control",
)
"""Attributes of an agent that refer back to it."""


class Agent:
    """One warp, or one role of a tile program, with the units that carry out its operations.

    The units are `peers` (other CTAs of the cluster), `issue` (threads that use the tensor core),
    `checks` (whether the agent's accesses are ordered), `memory` (ld, st), `strong` (release and
    acquire by ld, st and atom with a scope), `updates` (a load and a store that ought to be one
    atomic), `cp_async`, `st_async`, `barrier`, `cluster_barrier`, `registers` (setmaxnreg),
    `mbarrier`, `bulk` (cp.async.bulk and its groups), `tma` (cp.async.bulk.tensor), `tensormap`,
    `tmem` (tcgen05.alloc, ld, st, wait), `tensor_core` (tcgen05.mma, cp, shift, commit), `wgmma`,
    `launch_control` and `grid_control`.
    """

    def __init__(self, cta: CtaProtocol, name: str, warp: int, threads: int, body: Body) -> None:
        self.cta, self.name, self.warp, self.threads = cta, name, warp, threads
        self.machine = cta.machine
        self.me: Component = (cta.index, len(cta.agents))
        self.lanes = Lanes(self.me)
        """Knowledge of the agent's lanes, and which of them execute."""
        self.met: Clock = {}
        """What cluster barriers put before it in time, relaxed arrivals included, which order no
        memory (PTX ISA 9.7.13.3)."""
        self.inits: list[int] = []
        """Numbers of its mbarrier.init."""
        self.waiting: Waiting | None = None
        self.polls = ""
        """The condition that the agent polls; "": it does not poll."""
        self._polled: dict[tuple[object, str], Pending] = {}
        """Conditions that the lanes have found false since the agent last did something other than
        polling."""
        self.alone = False
        """Set if no other agent could run while this one was blocked in a loop that may give up."""
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
        self.peers = Peers(self)
        self.issue = TensorIssue(self.me, self.lanes, self.machine.assumptions)
        self.checks = AccessChecks(self)
        self.memory = Memory(self)
        self.strong = StrongAccesses(self)
        self.updates = Updates(self)
        self.cp_async = CpAsync(self, self.memory)
        self.st_async = StAsync(self, self.memory)
        self.barrier = Barriers(self)
        self.cluster_barrier = ClusterBarrier(self)
        self.registers = RegisterQuota(self)
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
        """Deletes the units of an agent that has ended, because the units refer back to the
        agent.
        """
        for name in _UNITS:
            delattr(self, name)

    # --- scheduling ------------------------------------------------------------------------------

    @property
    def runnable(self) -> bool:
        """Whether the agent has neither ended nor has to wait, so that `advance` can execute
        something.
        """
        return not self.ended and (self.waiting is None or self.waiting.ready())

    @property
    def waiting_for(self) -> str:
        """Describes the event that the agent waits for."""
        if self.waiting:
            return self.waiting.describe()
        return f"{self.polls or 'nothing in particular'}, in a loop"

    def advance(self) -> None:
        """Runs the agent until it ends, blocks, or lets other agents run."""
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
        """Name of the agent in a report."""
        return f"{self.name} of CTA {self.cta.index}"

    def pause(self) -> Blocking:
        """Lets the other agents run; a polling loop calls this."""
        yield None

    def poll_again(self) -> bool:
        """Wakes the agent if it waits in a loop that may give up; returns whether it was woken."""
        wakes = not self.ended and self.waiting is not None and self.waiting.gives_up
        self.alone |= wakes
        return wakes

    def tick(self, count: int) -> None:
        """Counts ``count`` executed instructions as progress, unless the agent is polling."""
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
        """Notes that the agent executes the operation at ``site`` and therefore is not polling."""
        self.site = site
        self.polls = ""
        self._polled.clear()
        self.progress += 1

    def proceed_unless_polling(self, site: object) -> None:
        """Like `proceed`, for an operation that may also occur in a polling loop, such as a fence:
        a polling agent remains polling.
        """
        if not self.polls:
            self.proceed(site)

    def poll(self, site: object, condition: str, barrier: Mbarrier | None = None) -> None:
        """Notes that the agent polls ``condition``, which does not hold yet; this counts as no
        progress.
        """
        self.site, self.polls = site, condition
        key = site, "" if barrier is None else f"{barrier.address:#x}"
        self._polled[key] = Pending(self.lanes.active, condition, barrier)

    def pending(self) -> list[Pending]:
        """The conditions that the agent waits for, each with the lanes that wait for it."""
        found = dict(self._polled)
        if self.waiting is not None:
            now = Pending(self.lanes.active, self.waiting.describe(), self.waiting.barrier)
            found[self.site, "" if now.barrier is None else f"{now.barrier.address:#x}"] = now
        return list(found.values()) or [Pending(0, self.waiting_for)]

    def drain(self) -> None:
        """Completes every operation in flight in this cluster, and makes its effects visible to
        this agent.

        Used for programs that are executed in program order, without barriers.
        """
        self.cta.cluster.finish()
        for thread in self.issue.threads:
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

    # --- clocks: of the lanes that execute -------------------------------------------------------

    @property
    def clock(self) -> Clock:
        """The accesses that the executing lanes have observed."""
        return self.lanes.knows.clock

    @property
    def seen(self) -> list[Clock]:
        """Writes that relaxed reads and waits have returned; the agent observes them at a later
        fence, if the scope of the fence is wide enough.
        """
        return self.lanes.knows.seen

    def release(self) -> Clock:
        """Returns a copy of the agent's clock: the accesses that it has observed so far, including
        its own accesses.
        """
        return self.lanes.publish()

    def comes_after(self, component: Component, number: int) -> bool:
        """Whether this agent runs, in time, after the accesses of `component` numbered up to
        `number`.

        The order in time need not be an order of memory: relaxed arrivals count here, and so do
        arrivals and waits whose scope is too narrow.
        """
        clocks = (self.clock, self.met, *self.seen)
        lines = component, (BEYOND, component)
        return any(clock.get(line, 0) >= number for clock in clocks for line in lines)

    def own_access(
        self, kind: str, site: object, strong: Strong | None = None, *, by_lane: bool = False
    ) -> Access:
        """Creates an access that takes effect immediately. by_lane: whether each lane accesses a
        part of its own.
        """
        scope, size = (self.scope(strong.scope), strong.size) if strong else (None, 0)
        lanes = self.lanes.active or (WARP if by_lane else 0)
        if not self.lanes.separate:
            lanes = 0
        return Access(self.me, self.lanes.number, kind, site, strong=scope, lanes=lanes, size=size)

    def scope(self, word: str) -> Scope:
        """The scope of a strong operation of this agent, from its qualifier: "cta", "cluster",
        "gpu" or "sys".
        """
        return Scope(word, self.cta.index, self.cta.cluster.ctas[0].index)

    def fence(self, kind: str, *, site: object) -> None:
        """Executes a fence of this kind; `tcir.machine.engine.fencing` lists the kinds."""
        execute_fence(self, kind, site)

    def mark(self, which: str) -> None:
        """Marks the agent's accesses so far as covered by a fence. which: the kind of the fence's
        mark.
        """
        self.clock[(which, self.me)] = self.lanes.number
        self.lanes.step()  # what follows has not passed the fence
