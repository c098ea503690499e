"""Computes the time of a launch from the events of one CTA: number of CTAs per SM, waves of CTAs,
and shared global memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.errors import LaunchError
from tcir.target import Target
from tcir.time.constants import Constants, target_of
from tcir.time.engine import Surroundings, loaded_bytes, simulate
from tcir.time.timeline import Timeline

if TYPE_CHECKING:
    from tcir.machine.events import EventStream

WARP_THREADS = 32
THREADS_PER_SM = 2048
CTAS_PER_SM = 32
STEADY = 3
"""Number of waves after which the CTAs of an SM follow one another at a constant rate."""
REGISTER_UNIT = 256
"""Registers are allocated to a warp in multiples of this (CUDA occupancy calculator)."""
LOADS = ("tma.load", "bulk.load", "cp.async", "ld.global")
STORES = ("tma.store", "bulk.store", "st.global")


@dataclass(frozen=True)
class ModelledTime:
    """The modelled time of a launch; it was not measured.

    cycles:    cycles of the SM that is busy longest, without `launch_us`
    residents: number of CTAs on an SM at a time; for clusters, number of clusters on as many SMs as
        a cluster has CTAs
    waves:     number of consecutive waves of residents; the last wave may be smaller. If an SM
               holds several residents, a resident that ends makes room for the next one, and waves
               overlap
    launch_us: microseconds that a launch takes in addition to its kernel
    limits:    share of the time of the first waves in which each resource was busy
    """

    cycles: float
    clock_ghz: float
    target: str
    residents: int
    waves: int
    launch_us: float
    limits: Mapping[str, float]
    bound: str

    @property
    def microseconds(self) -> float:
        """Time of the kernel at `clock_ghz`."""
        return self.cycles / self.clock_ghz / 1000

    def __str__(self) -> str:
        waves = "1 wave" if self.waves == 1 else f"{self.waves} waves"
        return (
            f"modelled: {self.microseconds:.2f} us ({self.cycles:.0f} cycles at "
            f"{self.clock_ghz:g} GHz) on {self.target}, {waves}, limited by {self.bound}"
        )


def ctas_per_sm(threads: int, registers: int, shared_bytes: int, target: str | Target) -> int:
    """Returns the number of CTAs that an SM holds at a time; LaunchError if it cannot hold one.

    registers: registers per thread
    """
    chip = target_of(target) if isinstance(target, str) else target
    warps = -(-threads // WARP_THREADS)
    per_warp = -(-registers * WARP_THREADS // REGISTER_UNIT) * REGISTER_UNIT
    shared = shared_bytes + chip.smem_reserved
    fits = min(
        CTAS_PER_SM,
        THREADS_PER_SM // (warps * WARP_THREADS),
        chip.registers // max(1, warps * per_warp),
        chip.smem_per_sm // shared,
    )
    if fits < 1:
        raise LaunchError(
            f"time model: expected a CTA that fits on an SM of {chip.name} ({THREADS_PER_SM} "
            f"threads, {chip.registers} registers, {chip.smem_per_cta} bytes of shared memory), "
            f"got {threads} threads with {registers} registers and {shared_bytes} bytes"
        )
    return fits


def loads_and_stores(stream: EventStream, sector: float) -> tuple[float, int]:
    """Returns the bytes that the recorded CTAs load from global memory or L2, and the bytes that
    they store there."""
    loaded = sum(loaded_bytes(event, sector) for event in stream if event.op in LOADS)
    return loaded, sum(int(event.detail["bytes"]) for event in stream if event.op in STORES)


def modelled_time(
    stream: EventStream,
    target: str | Constants,
    ctas: int,
    *,
    unique_bytes: int | None = None,
) -> ModelledTime:
    """Returns the modelled time of a launch of `ctas` CTAs that all do the same as the CTAs of
    `stream`.

    target:       a name, or `Constants` with choices; the clock is its constant ``clock``
    unique_bytes: bytes of the arrays that the launch accesses, each counted once; the bytes of its
        loads and stores limit this number. None: all loads hit in L2
    """
    if ctas < 1:
        raise LaunchError(f"time model: expected a launch of at least one CTA, got {ctas}")
    constants = target if isinstance(target, Constants) else Constants(target)
    chip = target_of(constants.target)
    threads = stream.block[0] * stream.block[1] * stream.block[2]
    residents = ctas_per_sm(threads, stream.registers, stream.shared_bytes, chip)
    cluster = len({event.cta for event in stream}) or 1
    clusters, slots = -(-ctas // cluster), chip.sms // cluster
    moved = loads_and_stores(stream, constants["sector"])
    loaded, stored = (nbytes * clusters for nbytes in moved)
    unique = min(unique_bytes or 0, loaded + stored)
    missed = min(1.0, unique / loaded) if loaded else 0.0

    most = -(-clusters // slots)  # of the SM that has the most of them

    def line(active: int, at_a_time: int, ctas: int) -> Timeline:
        around = Surroundings(active * cluster, missed, at_a_time, ctas)
        return simulate(stream, constants, around)

    if most <= residents:
        first = line(min(clusters, slots), most, most)
        cycles = first.cycles
    elif residents > 1:  # one that ends makes room for the next, so waves blur
        some = min(most, STEADY * residents)
        first = line(slots, residents, some)
        cycles = first.cycles
        if most > some:
            before = line(slots, residents, some - residents).cycles
            cycles += (most - some) * (cycles - before) / residents
    else:
        rest = clusters % slots
        first = line(slots, 1, 1)
        last = line(rest, 1, 1) if rest else first
        cycles = (most - 1) * (first.cycles + constants["cta-start"]) + last.cycles
    waves = -(-most // residents)
    cycles += constants["kernel-start"]
    clock, bound = constants["clock"], first.bound
    if (at_least := unique / constants["hbm"] * clock) > cycles:
        cycles, bound = at_least, "HBM"
    launch = constants["launch"]
    return ModelledTime(
        cycles, clock, constants.target, residents, waves, launch, first.limits, bound
    )


def in_sequence(times: Sequence[ModelledTime]) -> tuple[float, str]:
    """Returns the microseconds of consecutive launches, including the time between them, and
    the resource that bounds the longest launch."""
    longest = max(times, key=lambda time: time.microseconds, default=None)
    between = sum(time.launch_us for time in times[1:])
    kernels = sum(time.microseconds for time in times)
    return kernels + between, longest.bound if longest else ""
