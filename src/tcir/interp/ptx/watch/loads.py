"""Reports to the machine which loads are still in flight when their thread signals other threads.

This matters only in kernels with bulk copies, because a bulk copy may overwrite bytes before the
load has read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tcir.interp.ptx.op import Op, Run
from tcir.interp.ptx.syntax import Site
from tcir.interp.ptx.warp import Warp

_LOADS = ("ld", "ldmatrix.sync")
_COPIES = ("cp.async.bulk", "cp.reduce.async.bulk")
_SIGNALS = ("mbarrier.arrive", "bar.", "barrier.", *_COPIES)
_NO_SIGNALS = ("bar.warp.sync", "barrier.cluster.wait")
_FENCE = "fence.proxy.async"


def watch_loads(code: list[Op]) -> None:
    """Wraps loads that may be incomplete when the thread signals other threads, and the first uses
    of their values, so that both are reported to the machine.
    """
    if not any(op.name.startswith(_COPIES) for op in code):
        return
    uses = _uses_behind_a_signal(code)
    by_user: dict[int, list[Site]] = {}
    for load, users in uses.items():
        for user in users:
            by_user.setdefault(user, []).append(code[load].site)
    for user, sites in by_user.items():
        code[user].run = partial(_use, code[user].run, sites)
    for load in uses:
        code[load].run = partial(_load, code[load].run, code[load].site)


def _uses_behind_a_signal(code: list[Op]) -> dict[int, set[int]]:
    """The first uses of each load's value, where a signal without a fence may come between."""
    loads = [at for at, op in enumerate(code) if op.name in _LOADS and op.writes]
    bit = {load: 1 << n for n, load in enumerate(loads)}
    loaders: dict[int, int] = {}  # of a register, a set of loads as bits
    for load in loads:
        for register in code[load].writes:
            loaders[register] = loaders.get(register, 0) | bit[load]
    used = [_union(loaders, op.reads) & ~bit.get(at, 0) for at, op in enumerate(code)]
    before = _in_flight(code, bit, used)

    signalled = 0
    uses: dict[int, set[int]] = {}
    for at, op in enumerate(code):
        if op.name.startswith(_SIGNALS) and not op.name.startswith(_NO_SIGNALS):
            signalled |= before[at] & ~used[at]
    for at in range(len(code)):
        ended = before[at] & used[at] & signalled
        while ended:
            lowest = ended & -ended
            uses.setdefault(loads[lowest.bit_length() - 1], set()).add(at)
            ended ^= lowest
    return uses


def _in_flight(code: list[Op], bit: dict[int, int], used: list[int]) -> list[int]:
    """Before each op, the loads that may have been neither used nor fenced, as bits."""
    before = [0] * len(code)
    changed = True
    while changed:
        changed = False
        for at, op in enumerate(code):
            fenced = op.name.startswith(_FENCE)
            after = (0 if fenced else before[at] & ~used[at]) | bit.get(at, 0)
            for following in op.following(at):
                if following < len(code) and after & ~before[following]:
                    before[following] |= after
                    changed |= following <= at
    return before


def _union(sets: dict[int, int], keys: Iterable[int]) -> int:
    found = 0
    for key in keys:
        found |= sets.get(key, 0)
    return found


def _load(run: Run, site: Site, w: Warp, m: int) -> object:
    w.launch.machine.loads_in_flight.load(w.agent.me, site, w.agent.lanes.number)
    return run(w, m)


def _use(run: Run, sites: list[Site], w: Warp, m: int) -> object:
    for site in sites:
        w.launch.machine.loads_in_flight.use(w.agent.me, site, w.agent.lanes.number)
    return run(w, m)
