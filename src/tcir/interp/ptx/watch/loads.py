"""Tells the machine which loads are in flight while their thread lets others go on.

Only kernels with bulk copies ask: such a copy may overwrite what a load has not read yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tcir.interp.ptx.op import BRANCH, EXIT, INDEXED, Op, Run
from tcir.interp.ptx.syntax import Site
from tcir.interp.ptx.warp import Warp

_LOADS = ("ld", "ldmatrix.sync")
_COPIES = ("cp.async.bulk", "cp.reduce.async.bulk")
_SIGNALS = ("mbarrier.arrive", "bar.", "barrier.", *_COPIES)
_NO_SIGNALS = ("bar.warp.sync", "barrier.cluster.wait")
_FENCE = "fence.proxy.async"


def watch_loads(code: list[Op]) -> None:
    """Loads that may not be complete at a signal to other threads, and what uses them first, tell
    the machine from now on."""
    if not any(op.name.startswith(_COPIES) for op in code):
        return
    found = [at for at, op in enumerate(code) if op.name in _LOADS and op.writes]
    uses = {at: users for at in found if (users := _uses_behind_a_signal(code, at))}
    by_user: dict[int, list[Site]] = {}
    for load, users in uses.items():
        for user in users:
            by_user.setdefault(user, []).append(code[load].site)
    for user, sites in by_user.items():
        code[user].run = partial(_use, code[user].run, sites)
    for load in uses:
        code[load].run = partial(_load, code[load].run, code[load].site)


def _uses_behind_a_signal(code: list[Op], load: int) -> set[int]:
    """The first uses of what a load loads; none: there is no signal on the way without a fence."""
    loaded, signalled = {*code[load].writes}, False
    uses: set[int] = set()
    seen: set[int] = {load}
    work = [*_next(code, load)]
    while work:
        at = work.pop()
        if at in seen or at >= len(code):
            continue
        seen.add(at)
        op = code[at]
        if loaded & {*op.reads}:
            uses.add(at)
        elif not op.name.startswith(_FENCE):
            signalled |= op.name.startswith(_SIGNALS) and not op.name.startswith(_NO_SIGNALS)
            work += _next(code, at)
    return uses if signalled else set()


def _next(code: list[Op], at: int) -> Iterator[int]:
    op = code[at]
    if op.kind == BRANCH:
        yield op.target
    if op.kind == INDEXED:
        yield from op.targets
    if op.kind not in (BRANCH, EXIT, INDEXED) or op.guard >= 0:
        yield at + 1


def _load(run: Run, site: Site, w: Warp, m: int) -> object:
    w.launch.machine.loads_in_flight.load(w.agent.me, site, w.agent.lanes.number)
    return run(w, m)


def _use(run: Run, sites: list[Site], w: Warp, m: int) -> object:
    for site in sites:
        w.launch.machine.loads_in_flight.use(w.agent.me, site, w.agent.lanes.number)
    return run(w, m)
