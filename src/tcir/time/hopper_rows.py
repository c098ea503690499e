"""Public measurements of wgmma, each with the prediction of the model.

All measurements are from source GH (`tcir.time.constants`), in cycles of a GH200's SM or in FLOP
per cycle. The constants were determined from the rows marked *fit*; the other rows were held out.
"""

from __future__ import annotations

from functools import partial

from tcir.machine.events import EventStream
from tcir.time.build import WarpTrack
from tcir.time.constants import Constants, target_of
from tcir.time.engine import Surroundings, simulate
from tcir.time.rows import Row
from tcir.time.timeline import Timeline

M, K = 64, 16
WARPS = 4
STAGE = (128 + 256) * 64 * 2
"""Bytes of a stage of CUTLASS's 128 x 256 x 64."""
STAGES = 4
MISSED = 1 / 12
"""Fraction of unique bytes among those that all CTAs load: 128 tiles of 2048 x 2048."""


class Warpgroup:
    """Appends the same events to four warps."""

    def __init__(self, stream: EventStream, number: int) -> None:
        self.warps = [WarpTrack(stream, WARPS * number + n) for n in range(WARPS)]

    def multiply(self, n: int, count: int) -> list[list[int]]:
        """Appends a group of `count` wgmma; returns their events, by warp."""
        return [
            [warp.op("wgmma", m=M, n=n, k=K, kind="f16", a_in="smem") for _ in range(count)]
            for warp in self.warps
        ]

    def wait(self, group: list[list[int]]) -> None:
        """Appends a wait until this group is complete."""
        for warp, done in zip(self.warps, group, strict=True):
            warp.op("wgmma.wait", done)


def round_trip(c: Constants, n: int) -> float:
    """Cycles of one wgmma, its commit and its wait."""
    group = Warpgroup(stream := EventStream(), 0)
    group.wait(group.multiply(n, 1))
    return simulate(stream, c).cycles


def rate(c: Constants, pending: int, warpgroups: int) -> float:
    """FLOP per cycle of m64n64k16 wgmma, issued in groups of 32; all groups except the last
    `pending` are waited for.
    """

    def cycles(rounds: int) -> float:
        stream = EventStream()
        groups = [Warpgroup(stream, number) for number in range(warpgroups)]
        made: list[list[list[list[int]]]] = [[] for _ in groups]
        for _ in range(rounds):
            for group, done in zip(groups, made, strict=True):
                done.append(group.multiply(64, 32))
                if len(done) > pending:
                    group.wait(done[-1 - pending])
        return simulate(stream, c).cycles

    return 20 * 32 * warpgroups * 2 * M * 64 * K / (cycles(30) - cycles(10))


def main_loop(c: Constants, steps: int) -> Timeline:
    """Returns the timeline of CUTLASS's cooperative kernel with tiles of 128 x 256 x 64, for one
    tile without an epilogue."""
    stream = EventStream()
    loader, groups = (
        WarpTrack(stream, 2 * WARPS),
        [Warpgroup(stream, number) for number in range(2)],
    )
    loaded: list[int] = []
    freed: list[list[int]] = []
    before: list[list[list[int]]] = []
    for step in range(steps):
        if step >= STAGES:
            loader.wait(*freed[step - STAGES])
        loaded.append(loader.load(STAGE))
        for group in groups:
            for warp in group.warps:
                warp.wait(loaded[step])
        current = [group.multiply(256, 4) for group in groups]
        if before:
            freed.append(_release(groups, before))
        before = current
    _release(groups, before)
    return simulate(stream, c, Surroundings(target_of(c.target).sms, MISSED))


def _release(groups: list[Warpgroup], made: list[list[list[int]]]) -> list[int]:
    """Lets both warpgroups wait for a group of wgmma and arrive on the barrier "empty"."""
    for group, done in zip(groups, made, strict=True):
        group.wait(done)
    return [group.warps[0].op("mbarrier.arrive") for group in groups]


def _first(line: Timeline) -> float:
    return min(span.start for span in line.spans if span.track.startswith("tensor pipe"))


def per_step(c: Constants) -> float:
    """Cycles per step of the main loop."""
    return (main_loop(c, 64).cycles - main_loop(c, 32).cycles) / 32


def beside_steps(c: Constants) -> float:
    """Cycles after the first wgmma of the main loop that do not depend on the number of steps."""
    line = main_loop(c, 64)
    return line.cycles - _first(line) - 64 * per_step(c)


def first_mma(c: Constants) -> float:
    """Cycles of a kernel before its first wgmma."""
    return c["kernel-start"] + _first(main_loop(c, STAGES))


_LOOP = "GH: CUTLASS, 128 x 256 x 64"
HOPPER_ROWS = [
    Row("GH: wgmma, commit, wait", f"N = {n}", want, "cycles", partial(round_trip, n=n), True)
    for n, want in ((64, 76), (128, 115), (256, 195))
]
HOPPER_ROWS += [
    Row("GH: m64n64k16, groups of 32", name, want, "FLOP/clk",
        partial(rate, pending=pending, warpgroups=groups))
    for name, want, pending, groups in (
        ("one warpgroup, wait_group 0", 3858, 0, 1),
        ("one warpgroup, wait_group 3", 4096, 3, 1),
        ("two warpgroups, wait_group 0", 4090, 0, 2),
    )
]  # fmt: skip
HOPPER_ROWS += [
    Row(_LOOP, "a step", 1024.0, "cycles", per_step),
    Row(_LOOP, "beside the steps", 185, "cycles", beside_steps),
    Row(_LOOP, "before the first wgmma", 4160, "cycles", first_mma),
]
"""All rows of Hopper; fit rows first."""
