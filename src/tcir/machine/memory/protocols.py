"""Protocols of the agent, its CTA, cluster and machine: the members that the units (memory, TMA,
tensor core, …) use.

The classes that implement them are in `tcir.machine.engine`, which imports the units.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tcir.machine.assumptions import Assumptions
from tcir.machine.counters import Counters
from tcir.machine.findings import Findings, Unpromised
from tcir.machine.memory.effects import Effect
from tcir.machine.memory.memories import GlobalMemory, SharedMemory
from tcir.machine.memory.shared_names import SharedNames
from tcir.machine.memory.stores_in_flight import StoresInFlight
from tcir.machine.memory.tensor_memory import TensorMemory
from tcir.machine.memory.undefined import Origin
from tcir.machine.order.clocks import Access, Clock, Component, Scope
from tcir.machine.order.collected import Collected
from tcir.machine.order.involved import Involved
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.lanes import Lanes
from tcir.machine.order.loads_in_flight import LoadsInFlight
from tcir.machine.order.mbarrier import Mbarrier
from tcir.machine.order.operation import AsyncOperation, Blocking
from tcir.machine.order.ordering import Class
from tcir.machine.order.register_pool import RegisterPool
from tcir.machine.order.rounds import BarrierRound, ClusterRound
from tcir.machine.order.shadow import Shadow
from tcir.machine.order.strong import AtomicUpdate, Place, Strong, StrongWrites
from tcir.machine.order.tensor_thread import TensorThread
from tcir.machine.order.touch import Same
from tcir.machine.placement import Placement
from tcir.machine.recorder import Recorder, WarpEvents
from tcir.run_options import RunOptions

Triple = tuple[int, int, int]


class MachineProtocol(Protocol):
    """Options and global memory of a launch."""

    options: RunOptions
    assumptions: Assumptions
    checking: bool
    programmatic: bool
    counters: Counters
    effects: Callable[[Effect | None], None] | None
    findings: Findings
    recorder: Recorder | None
    running: AgentProtocol | None
    memory: GlobalMemory
    strong: dict[Place, StrongWrites]
    loads_in_flight: LoadsInFlight
    shared_names: SharedNames
    stores_in_flight: StoresInFlight
    updates: dict[Place, list[AtomicUpdate]]
    cta_group: tuple[int, object] | None
    static_smem: int
    dynamic_smem: int
    shared_start: int
    block: Triple
    placement: Placement
    spin_limit: int

    @property
    def who(self) -> str: ...
    def take_over(self) -> Triple | None: ...


class OrderProtocol(Protocol):
    """The order in which operations complete."""

    @property
    def polls_before_waiting(self) -> int: ...
    @property
    def refuses(self) -> bool: ...


class OperandReads(Protocol):
    """Reads of A and B by one mma; implemented in `tcir.machine.tensor_core.issued_mma`."""

    access: Access

    def begin(self, access: Access) -> None: ...
    def reads(self, shadow: Shadow, words: NDArray[np.int64]) -> str: ...
    def lose(self, shadow: Shadow, words: NDArray[np.int64], origin: Origin) -> bool: ...


class ClusterProtocol(Protocol):
    """The CTAs of a cluster, which run at the same time."""

    round: ClusterRound | None
    declined: object

    @property
    def order(self) -> OrderProtocol | None: ...
    @property
    def ctas(self) -> Sequence[CtaProtocol]: ...
    @property
    def agents(self) -> Sequence[AgentProtocol]: ...
    def at(self, rank: int, site: object) -> CtaProtocol: ...
    def pair(self, rank: int, site: object) -> tuple[CtaProtocol, CtaProtocol]: ...
    def launch(self, operation: AsyncOperation) -> None: ...
    def finish(self) -> None: ...
    def note_mma(self, mma: OperandReads) -> None: ...
    def last_mma(self, component: Component) -> Sequence[OperandReads]: ...


class WarpgroupPart(Protocol):
    """The wgmma operations of one warp of a warpgroup."""

    component: Component
    issued: int

    @property
    def done(self) -> int: ...


class CtaProtocol(Protocol):
    """The memories and barriers of one CTA."""

    index: Triple
    rank_in_cluster: int
    window: int
    shared: int
    smem: SharedMemory
    tmem: TensorMemory
    mbarriers: dict[int, Mbarrier]
    all_mbarriers: list[Mbarrier]
    barriers: dict[int, BarrierRound]
    last_rounds: dict[int, BarrierRound]
    register_pool: RegisterPool
    remote_accesses: dict[Component, Access]
    acquired_maps: dict[int, dict[Component, tuple[int, Clock]]]
    """Acquired tensor maps in global memory: the last acquire of each agent, and its clock then."""
    collectors: dict[str, Collected]
    warpgroups: dict[int, dict[int, tuple[tuple[Hashable, ...], object]]]
    """Warpgroup -> n -> its n-th wgmma as the first of its warps executed it, and the site."""
    warpgroup_parts: dict[int, list[WarpgroupPart]]
    """Warpgroup -> its warps that have issued a wgmma."""

    @property
    def machine(self) -> MachineProtocol: ...
    @property
    def cluster(self) -> ClusterProtocol: ...
    @property
    def agents(self) -> Sequence[AgentProtocol]: ...
    @property
    def launch(self) -> Callable[[AsyncOperation], None]: ...
    def report(
        self,
        severity: str | Unpromised,
        code: str,
        first: object,
        second: object,
        missing: str,
        involved: Involved | None = None,
    ) -> None: ...
    def report_relaxed(
        self, first: object, second: object, promise: Unpromised, involved: Involved | None = None
    ) -> None: ...
    def report_undefined(self, origin: Origin, use: object) -> None: ...


class FindsMbarriers(Protocol):
    """The part of `tcir.machine.sync.mbarriers.Mbarriers` that units below it in the import order
    use.
    """

    def at(
        self, address: int, site: object, *, proxy: str = ..., operation: bool = ...
    ) -> Mbarrier: ...


class PeersProtocol(Protocol):
    """The CTAs that an agent can access; implemented in `tcir.machine.engine.peers`."""

    def cta_of(self, address: int, site: object, *, own: bool = ...) -> CtaProtocol: ...
    def multicast(self, address: int, cta_mask: int | None, site: object) -> list[int]: ...
    def group(self, cta_group: int, site: object) -> tuple[CtaProtocol, ...]: ...


class IssueProtocol(Protocol):
    """The tensor-core operations that an agent issued; implemented in
    `tcir.machine.engine.tensor_issue`.
    """

    threads: list[TensorThread]
    thread: TensorThread
    reach: dict[Class, int]
    listed_reach: dict[Class, int]

    def by_lane(self, lane: int) -> None: ...
    def before(
        self, access: Access, agents: Iterable[AgentProtocol], *, listed: bool = False
    ) -> dict[Class, int]: ...
    def mark_before(self, threads: Iterable[TensorThread]) -> None: ...


class ChecksProtocol(Protocol):
    """Checks of an agent's accesses; implemented in `tcir.machine.engine.access_checks`."""

    def has_observed(self, shadow: Shadow, where: Granules, other: Access) -> bool: ...
    def note_read(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        *,
        lanes: NDArray[np.int64] | None = ...,
    ) -> None: ...
    def check_exchange(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        lanes: NDArray[np.int64] | None,
        *,
        write: bool,
        polled: Sequence[int] = ...,
    ) -> None: ...
    def check_write(self, shadow: Shadow | None, where: Granules, access: Access) -> None: ...
    def note_constant(self, shadow: Shadow | None, where: Granules, access: Access) -> None: ...
    def note_write(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        *,
        lanes: NDArray[np.int64] | None = ...,
        same: Same = ...,
        visit: bool = ...,
    ) -> None: ...


class AgentProtocol(Protocol):
    """The clock, waits and units of an agent; implemented in `tcir.machine.engine.agent`."""

    name: str
    warp: int
    threads: int
    me: Component
    lanes: Lanes
    met: Clock
    inits: list[int]
    polls: str
    site: object
    ended: bool
    alone: bool
    progress: int
    events: WarpEvents | None

    @property
    def cta(self) -> CtaProtocol: ...
    @property
    def machine(self) -> MachineProtocol: ...
    @property
    def mbarrier(self) -> FindsMbarriers: ...
    @property
    def peers(self) -> PeersProtocol: ...
    @property
    def issue(self) -> IssueProtocol: ...
    @property
    def checks(self) -> ChecksProtocol: ...
    @property
    def who(self) -> str: ...

    def proceed(self, site: object) -> None: ...
    def proceed_unless_polling(self, site: object) -> None: ...
    def poll(self, site: object, condition: str, barrier: Mbarrier | None = ...) -> None: ...
    def wait(
        self,
        ready: Callable[[], bool],
        describe: Callable[[], str],
        barrier: Mbarrier | None = ...,
        gives_up: bool = ...,
    ) -> Blocking: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def seen(self) -> list[Clock]: ...
    def release(self) -> Clock: ...
    def own_access(
        self, kind: str, site: object, strong: Strong | None = ..., *, by_lane: bool = ...
    ) -> Access: ...
    def comes_after(self, component: Component, number: int) -> bool: ...
    def scope(self, word: str) -> Scope: ...
    def mark(self, which: str) -> None: ...
