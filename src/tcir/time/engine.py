"""Assigns times to events: an operation waits for its warp, its dependences, and its resources.

The order of a warp's events is kept. An asynchronous operation occupies its warp while it is
issued, and then its resources. A wait blocks its warp until the awaited operations are complete.
All times are modelled, from the constants of one target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from tcir.errors import LaunchError
from tcir.target import DEFAULT_TARGET
from tcir.time.constants import Constants
from tcir.time.resources import SUB_PARTITIONS, Resource, SmResources
from tcir.time.timeline import Flow, Span, Timeline

if TYPE_CHECKING:
    from tcir.machine.events import Event, EventStream

OPERAND_ROW_BYTES = 32
"""Bytes of K of one row of A or B in a dense tcgen05.mma or wgmma."""
MMA_SYNC_FACTOR = {"tf32": 0.5, "f64": 0.0625, "s8": 2, "u8": 2, "e4m3": 2, "e5m2": 2}
"""Rate of mma.sync relative to f16, by type of A."""
WAITS = (
    "mbarrier.wait", "bar.sync", "tcgen05.wait", "cp.async.wait", "bulk.wait", "wgmma.wait",
)  # fmt: skip
HOISTED = 8
"""Number of consecutive arithmetic instructions that a compiler moves above the wait for a load
(assumed): only a longer run waits for the loads before it."""
SLICE = 16
"""Number of arithmetic instructions that a scheduler issues from one warp before it switches to
another."""


def loaded_bytes(event: Event, sector: float) -> float:
    """Returns the bytes that a load reads from L2. A load by threads reads whole sectors, and each
    sector once.
    """
    sectors = event.detail.get("sectors")
    return int(event.detail["bytes"]) if sectors is None else int(sectors) * sector


def stages(stream: EventStream) -> dict[int, int]:
    """Maps each load to the bytes of its stage. A stage consists of all loads of a CTA that one
    wait at an mbarrier waits for.
    """
    found: dict[int, int] = {}
    for event in stream:
        if event.op == "mbarrier.wait":
            loads = [n for n in event.after if stream[n].op in ("tma.load", "bulk.load")]
            total = Counter[int]()
            for n in loads:
                total[stream[n].cta] += int(stream[n].detail["bytes"])
            for n in loads:
                found[n] = max(found.get(n, 0), total[stream[n].cta])
    return found


@dataclass(frozen=True)
class Surroundings:
    """The state of the GPU as far as it influences the events of one SM.

    active_sms:   number of SMs that share global memory
    hbm_fraction: fraction of the loaded bytes that miss in L2
    residents:    number of CTAs (or clusters) that an SM holds at a time, all like the recorded
                  ones
    ctas:         total number of CTAs that the SM executes; when one ends, the next starts
    """

    active_sms: int = 1
    hbm_fraction: float = 0.0
    residents: int = 1
    ctas: int = 0

    @property
    def count(self) -> int:
        """Total number of CTAs, at least the number of initial residents."""
        return max(self.ctas, self.residents)


@dataclass
class _Lane:
    """A warp of one of the CTAs that the SM executes.

    next, issued: index of its next event, and the issued instructions of a run of arithmetic
    loads:        time when the last of its loads is complete; before_mma: the last before its last
                  mma.sync
    """

    events: list[int]
    instance: int
    sm: SmResources
    quarter: int
    track: str
    next: int = 0
    time: float = 0.0
    loads: float = 0.0
    before_mma: float = 0.0
    issued: int = 0
    in_mma: bool = False


def simulate(
    stream: EventStream,
    target: str | Constants = DEFAULT_TARGET.name,
    around: Surroundings | None = None,
) -> Timeline:
    """Returns the modelled timeline of the CTAs of `stream`, which run concurrently in one wave.

    target: a name, or `Constants` in which the disputed constants have been chosen

    Raises LaunchError if the target lacks an operation, or if the dependences of events form a
    cycle.
    """
    constants = target if isinstance(target, Constants) else Constants(target)
    return _Run(stream, constants, around or Surroundings()).timeline()


class _Run:
    """One simulation."""

    def __init__(self, stream: EventStream, constants: Constants, around: Surroundings) -> None:
        self.stream, self.around, self.target = stream, around, constants.target
        self.c = constants.values()
        self.l2_port = constants.l2_port
        self.stages = stages(stream)
        ctas = sorted({event.cta for event in stream})
        several = len(ctas) > 1
        self.sms = {cta: SmResources(f"CTA {cta} " if several else "") for cta in ctas}
        self.spans: list[Span] = []
        self.waits: list[tuple[int, int]] = []
        """The event that ended each wait, and the wait's span."""
        self.hbm_share = self.c["hbm"] / self.c["clock"] / around.active_sms
        self.lanes = list(self._lanes())
        total = len(stream) * around.count
        self.complete: list[float | None] = [None] * total
        self.arrived: list[float | None] = [None] * total
        self.span_of = [-1] * total
        self.rules: dict[str, Callable[[_Lane, int, Event, float], float]] = {
            "tcgen05.mma": self._mma,
            "wgmma": self._wgmma,
            "tcgen05.cp": self._cp,
            "tcgen05.shift": self._shift,
            "tcgen05.ld": self._tmem_ld,
            "tcgen05.st": self._tmem_st,
            "tcgen05.commit": self._commit,
            "tcgen05.wait": self._tmem_wait,
            "tma.load": self._tma_load,
            "bulk.load": self._tma_load,
            "tma.store": self._tma_store,
            "bulk.store": self._tma_store,
            "cp.async": self._load,
            "ld.global": self._load,
            "st.global": self._store,
            "ld.shared": self._shared,
            "st.shared": self._shared,
            "ldmatrix": self._shared,
            "stmatrix": self._shared,
            "mma.sync": self._mma_sync,
            "mbarrier.arrive": self._arrive,
            "mbarrier.wait": self._mbarrier_wait,
            "bar.sync": self._bar_sync,
            "fence": self._fence,
            "alu": self._alu,
            "sfu": self._sfu,
        }

    def _lanes(self) -> list[_Lane]:
        """Yields every warp of every CTA, with the indices of its events."""
        programs: dict[tuple[int, int], list[int]] = {}
        for index, event in enumerate(self.stream):
            programs.setdefault((event.cta, event.warp), []).append(index)
        width = 1 + max((warp for _, warp in programs), default=0)
        several = self.around.count > 1
        return [
            _Lane(
                events,
                instance,
                self.sms[cta],
                (warp + instance * width) % SUB_PARTITIONS,
                f"{f'number {instance} ' if several else ''}CTA {cta} warp {warp}",
            )
            for instance in range(self.around.count)
            for (cta, warp), events in programs.items()
        ]

    def timeline(self) -> Timeline:
        """Executes all events in order of time; raises LaunchError if some events can never
        complete.
        """
        ready: list[tuple[float, int]] = []
        width = len(self.lanes) // self.around.count
        running, ended = [width] * self.around.count, [0.0] * self.around.count
        started = self.around.residents
        for number in range(width * started):
            heappush(ready, (0.0, number))
        blocked: dict[int, list[int]] = {}
        left = sum(len(lane.events) for lane in self.lanes)
        while ready:
            _, number = heappop(ready)
            lane = self.lanes[number]
            base = lane.instance * len(self.stream)
            index = lane.events[lane.next]
            event = self.stream[index]
            key = base + index
            if self.arrived[key] is None:
                self.arrived[key] = lane.time
                for other in blocked.pop(~key, ()):
                    heappush(ready, (lane.time, other))
            if (missing := self._missing(event, base)) is not None:
                blocked.setdefault(missing, []).append(number)
                continue
            if (loaded := self._operands(lane, event)) > lane.time:
                lane.time = loaded
                heappush(ready, (loaded, number))
                continue
            if event.op == "alu" and self._slice(lane, event):
                heappush(ready, (lane.time, number))
                continue
            self._execute(lane, key, event)
            left -= 1
            for other in blocked.pop(key, ()):
                heappush(ready, (max(self.lanes[other].time, lane.time), other))
            lane.next += 1
            if lane.next < len(lane.events):
                heappush(ready, (lane.time, number))
                continue
            running[lane.instance] -= 1
            ended[lane.instance] = max(ended[lane.instance], lane.time)
            if not running[lane.instance] and started < self.around.count:
                for following in range(width * started, width * (started + 1)):
                    self.lanes[following].time = ended[lane.instance] + self.c["cta-start"]
                    heappush(ready, (self.lanes[following].time, following))
                started += 1
        if left:
            stuck = next(lane for lane in self.lanes if lane.next < len(lane.events))
            raise LaunchError(
                f"time model: expected events that can all complete, got {left} that wait for one "
                f"another: {stuck.track} at event {stuck.events[stuck.next]}"
            )
        return self._result()

    def _missing(self, event: Event, base: int) -> int | None:
        """Returns the key of an awaited event that has no time yet, ~key if its arrival is missing;
        None if there is none."""
        for index in event.after:
            key = base + index
            if event.op == "bar.sync" and self.stream[index].op == "bar.sync":
                if self.arrived[key] is None:
                    return ~key
            elif self.complete[key] is None:
                return key
        return None

    def _operands(self, lane: _Lane, event: Event) -> float:
        """Returns when the loads that an event may use are complete; its warp stalls until then."""
        if event.op == "mma.sync":  # fragments are loaded one step ahead
            return 0.0 if lane.in_mma else lane.before_mma
        if event.op == "alu":
            return lane.loads if int(event.detail.get("count", 1)) > HOISTED else 0.0
        return lane.loads if event.op in ("st.global", "st.shared", "sfu") else 0.0

    def _execute(self, lane: _Lane, key: int, event: Event) -> None:
        start = self.arrived[key] or 0.0
        rule = self.rules.get(event.op, self._other)
        slot = lane.time
        if event.op != "alu":
            slot, _ = lane.sm.issue[lane.quarter].take(slot, self.c["issue"])
        # Most operations complete as their warp goes on; the others set complete themselves.
        try:
            lane.time = rule(lane, key, event, slot)
        except KeyError as missing:
            raise LaunchError(
                f"time model: {event.op} with {dict(event.detail)} cannot be timed on "
                f"{self.target}: the constant or the detail {missing} is missing"
            ) from None
        if self.complete[key] is None:
            self.complete[key] = lane.time
        if self.span_of[key] < 0:
            self.span_of[key] = len(self.spans)
        self.spans.append(Span(lane.track, event.op, start, lane.time, key))
        if event.after and event.op in WAITS:
            base = lane.instance * len(self.stream)
            times = self.arrived if event.op == "bar.sync" else self.complete
            last = max((base + i for i in event.after), key=lambda k: times[k] or 0.0)
            if event.op != "bar.sync" or (times[last] or 0.0) > start:
                self.waits.append((last, len(self.spans) - 1))

    def _use(self, resource: Resource, key: int, at: float, cycles: float) -> tuple[float, float]:
        """Occupies a resource and records the span."""
        start, end = resource.take(at, cycles)
        op = self.stream[key % len(self.stream)].op
        self.span_of[key] = len(self.spans)
        self.spans.append(Span(resource.name, op, start, end, key))
        return start, end

    def _after(self, lane: _Lane, event: Event) -> float:
        """Returns when all events that this one waits for are complete."""
        base = lane.instance * len(self.stream)
        return max((self.complete[base + index] or 0.0 for index in event.after), default=0.0)

    # Tensor core.

    def _mma(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        d = event.detail
        m, n, group = int(d["m"]), int(d["n"]), int(d.get("cta_group", 1))
        rows = 0 if d.get("a_in") == "tmem" else m // group
        reading = rows * OPERAND_ROW_BYTES / self.c["shared-port"]
        columns = n // 2 if (group, m) == (2, 128) else n
        math = columns / self.c["mma-n-per-cycle"]
        operands = reading + n // group * OPERAND_ROW_BYTES / self.c["shared-port"]
        issued = at + self.c["mma-issue"]
        pipes = [lane.sm.tensor]
        if group == 2 and event.cta ^ 1 in self.sms:
            pipes.append(self.sms[event.cta ^ 1].tensor)
            issued = max(issued, *(pipe.free for pipe in pipes))
        for pipe in reversed(pipes):
            start, _ = self._use(pipe, key, issued, max(math, operands))
        extra = self.c["mma-pair"] if group == 2 else 0.0
        if str(d.get("kind", "")).startswith("mx"):
            extra += self.c["mma-scaled"]
        self.complete[key] = start + reading + math + extra
        return at + self.c["mma-issue"]

    def _wgmma(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        """Times the 16 rows of one warp on the tensor core of its sub-partition. The four warps of
        a warpgroup read B, and a tile of A in shared memory, together."""
        d = event.detail
        m, n = int(d["m"]), int(d["n"])
        rows = n * (1 + int(d.get("sparse", 0))) + (m if d["a_in"] == "smem" else 0)
        reading = rows * OPERAND_ROW_BYTES / self.c["shared-port"]
        issued = at + self.c["mma-issue"]
        cycles = max(n / self.c["mma-n-per-cycle"], reading)
        _, end = self._use(lane.sm.wgmma[lane.quarter], key, issued, cycles)
        self.complete[key] = end + self.c["mma-latency"] + n * self.c["mma-latency-column"]
        return issued

    def _cp(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        cycles = int(event.detail["bytes"]) / self.c["cp-rate"]
        issued = at + self.c["mma-issue"]
        pipe = lane.sm.tensor if self.c["cp-blocks-mma"] else lane.sm.copies
        _, self.complete[key] = self._use(pipe, key, issued, cycles)
        return issued

    def _shift(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        issued = at + self.c["mma-issue"]
        _, self.complete[key] = self._use(lane.sm.tensor, key, issued, self.c["shift"])
        return issued

    def _commit(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        issued = at + self.c["mma-issue"]
        done = max(issued, self._after(lane, event))
        self.complete[key] = done + max(0.0, self.c["mma-latency"] - self.c["mbarrier"])
        return issued

    def _mma_sync(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        d = event.detail
        flop = 2 * int(d["m"]) * int(d["n"]) * int(d["k"]) * int(d.get("count", 1))
        rate = self.c["mma-sync"] / SUB_PARTITIONS * MMA_SYNC_FACTOR.get(str(d.get("kind")), 1)
        if not lane.in_mma:
            lane.before_mma, lane.in_mma = lane.loads, True
        start, end = self._use(lane.sm.mma_sync[lane.quarter], key, at, flop / rate)
        self.complete[key] = end + self.c["mma-sync-latency"]
        return start + 1

    # Tensor memory.

    def _tmem_ld(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        cycles = int(event.detail["columns"]) * self.c["ld-column"]
        _, end = self._use(lane.sm.tmem[lane.quarter], key, at, cycles)
        self.complete[key] = end + self.c["ld-latency"]
        return at + self.c["issue"]

    def _tmem_st(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        cycles = int(event.detail["columns"]) * self.c["st-column"]
        _, end = self._use(lane.sm.tmem[lane.quarter], key, at, cycles)
        self.complete[key] = end + self.c["st-latency"]
        return at + self.c["issue"]

    def _tmem_wait(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        return max(at + self.c["tmem-wait"], self._after(lane, event))

    # Copies.

    def _arrival(self, lane: _Lane, key: int, at: float, nbytes: float, latency: float) -> float:
        """Returns when `nbytes` from L2, or from global memory, have arrived.

        If only one SM is active, they arrive after `latency`; else the rate of the port adds to it.
        """
        stage = self.stages.get(key % len(self.stream), 0)
        missed, cycles = self.around.hbm_fraction, nbytes / self.l2_port(stage)
        start, end = self._use(lane.sm.l2, key, at, cycles)
        passed = start if self.around.active_sms == 1 else end
        if missed:
            _, sent = lane.sm.hbm.take(start, nbytes * missed / self.hbm_share)
            passed, latency = max(passed, sent), latency + missed * self.c["hbm-latency"]
        return passed + latency

    def _tma_load(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        nbytes = int(event.detail["bytes"])
        inner = int(event.detail.get("inner_bytes", 128))
        latency = self.c["tma-latency"] + self.c["tma-inner"] * min((inner - 1) // 512, 2)
        if self.around.active_sms == 1:
            latency += nbytes / 1024 * self.c["tma-cycles-per-kb"]
        _, issued = lane.sm.tma.take(at, self.c["tma-issue"])
        sectors = nbytes * max(1.0, self.c["sector"] / inner)
        there = self._arrival(lane, key, issued, sectors, latency - self.c["tma-issue"])
        self.complete[key] = there - self.c["mbarrier"]
        return issued

    def _tma_store(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        _, issued = lane.sm.tma.take(at, self.c["tma-issue"])
        end = self._sent(lane, key, issued, int(event.detail["bytes"]))
        self.complete[key] = end + self.c["tma-store-latency"]
        return issued

    def _sent(self, lane: _Lane, key: int, at: float, nbytes: float) -> float:
        """Returns when `nbytes` have been sent to L2."""
        return self._use(
            lane.sm.l2_out, key, at, nbytes / 1024 * self.c["tma-store-cycles-per-kb"]
        )[1]

    def _load(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        nbytes = loaded_bytes(event, self.c["sector"])
        self.complete[key] = there = self._arrival(lane, key, at, nbytes, self.c["l2-latency"])
        if event.op == "ld.global":
            lane.loads = max(lane.loads, there)
        return at + self.c["issue"]

    def _store(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        self.complete[key] = self._sent(lane, key, at, int(event.detail["bytes"]))
        return at + self.c["issue"]

    def _shared(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        d = event.detail
        cycles = d.get("wavefronts", int(d["bytes"]) / self.c["shared-port"])
        _, end = self._use(lane.sm.shared, key, at, float(cycles))
        if event.op in ("ld.shared", "ldmatrix"):
            lane.in_mma = False
            name = "shared-latency" if event.op == "ld.shared" else "ldmatrix-latency"
            self.complete[key] = there = end + self.c[name]
            lane.loads = max(lane.loads, there)
        return at + self.c["issue"]

    # Barriers.

    def _arrive(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        self.complete[key] = max(at, self._after(lane, event))
        return at + self.c["arrive"]

    def _mbarrier_wait(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        ended = self._after(lane, event) + self.c["mbarrier"] if event.after else 0.0
        return max(at + self.c["wait-ready"], ended)

    def _bar_sync(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        base = lane.instance * len(self.stream)
        last = max((self.arrived[base + index] or 0.0 for index in event.after), default=at)
        return max(at, last) + self.c["bar-sync"]

    def _fence(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        proxy = str(event.detail.get("kind", "")).startswith("proxy.async")
        return at + (self.c["fence"] if proxy else self.c["issue"])

    # Arithmetic.

    def _slice(self, lane: _Lane, event: Event) -> bool:
        """Issues a part of a run of arithmetic, so that the warps of a scheduler take turns.

        Returns False if only the last part is left.
        """
        left = int(event.detail.get("count", 1)) - lane.issued
        if left <= SLICE:
            return False
        lane.time = self._arithmetic(lane, lane.time, SLICE)
        lane.issued += SLICE
        return True

    def _arithmetic(self, lane: _Lane, at: float, count: int) -> float:
        _, issued = lane.sm.issue[lane.quarter].take(at, count * self.c["issue"])
        return max(issued, at + count * self.c["alu"])

    def _alu(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        left, lane.issued = int(event.detail.get("count", 1)) - lane.issued, 0
        return self._arithmetic(lane, at, left)

    def _sfu(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        count = int(event.detail.get("count", 1))
        _, end = self._use(lane.sm.sfu[lane.quarter], key, at, count * self.c["sfu"])
        return end

    def _other(self, lane: _Lane, key: int, event: Event, at: float) -> float:
        """Times an operation without a cost of its own: it only waits for its dependences."""
        return max(at + self.c["issue"], self._after(lane, event))

    def _result(self) -> Timeline:
        cycles = max((time for time in self.complete if time is not None), default=0.0)
        cycles = max(cycles, *(lane.time for lane in self.lanes)) if self.lanes else cycles
        limits: dict[str, float] = {}
        for sm in self.sms.values():
            limits |= sm.limits(cycles)
        flows = tuple(Flow(self.span_of[last], wait) for last, wait in self.waits)
        return Timeline(tuple(self.spans), flows, cycles, self.target, self.c["clock"], limits)
