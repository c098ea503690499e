"""Public micro-benchmarks, written as streams of events, and the times that the model gives for
them.
"""

from __future__ import annotations

from tcir.machine.events import EventStream
from tcir.time.build import WarpTrack
from tcir.time.constants import Constants, target_of
from tcir.time.engine import Surroundings, simulate

KB = 1024


def chain(
    c: Constants,
    n: int,
    count: int = 1,
    *,
    m: int = 128,
    group: int = 1,
    a_in: str = "smem",
    kind: str = "f16",
) -> float:
    """Cycles of `count` mma on one accumulator, then one commit and wait."""
    stream = EventStream(ctas=tuple(range(group)))
    warp = WarpTrack(stream, 0)
    mma = [warp.mma(n, m=m, group=group, a_in=a_in, kind=kind) for _ in range(count)]
    warp.wait(warp.commit(*mma))
    return simulate(stream, c).cycles


def interval(c: Constants, n: int, *, m: int = 128, group: int = 1, a_in: str = "smem") -> float:
    """Cycles between consecutive mma, averaged over the 256 mma after the first."""
    long, one = (chain(c, n, count, m=m, group=group, a_in=a_in) for count in (257, 1))
    return (long - one) / 256


def commit_and_wait(c: Constants) -> float:
    """Cycles of a commit and its wait if no operation was issued before."""
    warp = WarpTrack(EventStream(), 0)
    warp.wait(warp.commit())
    return simulate(warp.stream, c).cycles


def copies(c: Constants, nbytes: int, count: int = 1) -> float:
    """Cycles of `count` tcgen05.cp, then one commit and wait."""
    warp = WarpTrack(EventStream(), 0)
    warp.wait(warp.commit(*[warp.copy(nbytes) for _ in range(count)]))
    return simulate(warp.stream, c).cycles


def copy_beside_mma(c: Constants, n: int, steps: int = 1, how: str = "together") -> float:
    """Cycles of a step that copies 2 KB for the next step and executes an mma.

    how: together: one warp, one wait for copy and mma; apart: one warp that waits after the copy;
        warps: one warp for the copy and one for the mma
    """
    stream = EventStream()
    issuer, copier = WarpTrack(stream, 0), WarpTrack(stream, 1 if how == "warps" else 0)
    for _ in range(steps):
        copied = copier.copy(2 * KB)
        if how != "together":
            copier.wait(copier.commit(copied))
        mma = issuer.mma(n)
        issuer.wait(issuer.commit(mma, *([copied] if how == "together" else [])))
    return simulate(stream, c).cycles / steps


def tmem_load(c: Constants, columns: int) -> float:
    """Cycles of one warp's tcgen05.ld and its wait."""
    warp = WarpTrack(EventStream(), 0)
    warp.op("tcgen05.wait", [warp.op("tcgen05.ld", columns=columns)])
    return simulate(warp.stream, c).cycles


def tmem_store(c: Constants, columns: int) -> float:
    """Cycles of one warp's tcgen05.st and its wait."""
    warp = WarpTrack(EventStream(), 0)
    warp.op("tcgen05.wait", [warp.op("tcgen05.st", columns=columns)])
    return simulate(warp.stream, c).cycles


def tmem_bandwidth(c: Constants) -> float:
    """Bytes per cycle of one warp that loads 16 columns at a time."""
    warp, count = WarpTrack(EventStream(), 0), 64
    warp.op("tcgen05.wait", [warp.op("tcgen05.ld", columns=16) for _ in range(count)])
    return count * 16 * 32 * 4 / simulate(warp.stream, c).cycles


def one_box(c: Constants, nbytes: int, *, all_sms: bool) -> float:
    """Cycles of a TMA load of one box and its wait; with `all_sms`, all SMs load from global memory
    at the same time.
    """
    warp = WarpTrack(EventStream(), 0)
    warp.wait(warp.load(nbytes))
    around = Surroundings(target_of(c.target).sms, 1.0) if all_sms else Surroundings()
    return simulate(warp.stream, c, around).cycles


def throughput(c: Constants, in_flight: int, box: int = 4 * KB, count: int = 400) -> float:
    """Throughput in TB/s of all SMs together if each SM keeps `in_flight` bytes of TMA boxes in
    flight.
    """
    warp, loads = WarpTrack(EventStream(), 0), list[int]()
    for number in range(count):
        if number >= in_flight // box:
            warp.wait(loads[number - in_flight // box])
        loads.append(warp.load(box))
    warp.wait(*loads)
    sms = target_of(c.target).sms
    cycles = simulate(warp.stream, c, Surroundings(sms, 1.0)).cycles
    return count * box * sms / cycles * c["clock"] / 1000
