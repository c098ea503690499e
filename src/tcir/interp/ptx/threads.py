"""Instructions that access memory or order accesses: determines which lanes execute them together.

Lanes of a warp that have observed different accesses of other threads (see
`tcir.machine.order.lanes`) execute such an instruction one set of lanes after the other, which is a
legal schedule. An `.aligned` instruction is executed by all lanes together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import BLOCKING, PLAIN, TRY_WAIT, WAIT, Blocking, Op, Run
from tcir.interp.ptx.warp import Warp

Row = TypeVar("Row", bound=Hashable)

FAMILIES = frozenset(
    (
        "ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "cp", "mbarrier", "bar",
        "barrier", "fence", "membar", "tcgen05", "tensormap", "clusterlaunchcontrol", "discard",
        "griddepcontrol",
    )
)  # fmt: skip
"""First words of these instructions."""


def in_threads(op: Op) -> Op:
    """Returns an op that executes `op` separately for each set of lanes with the same
    observations.
    """
    run = op.run
    if op.aligned:
        op.run = _together(run)
    elif op.kind == PLAIN:
        op.run = _plain(run)
    elif op.kind == BLOCKING:
        op.run = _blocking(run)
    elif op.kind == TRY_WAIT:
        op.run = lambda w, m: [p for part in w.agent.lanes.parts(m) for p in run(w, part)]
    elif op.kind == WAIT:
        op.run = lambda w, m: min([run(w, part) for part in w.agent.lanes.parts(m)])
    return op


def _together(run: Run) -> Run:
    def by_all(w: Warp, m: int) -> object:
        w.agent.lanes.together()
        return run(w, m)

    return by_all


def _plain(run: Run) -> Run:
    def by_parts(w: Warp, m: int) -> None:
        lanes = w.agent.lanes
        if len(lanes.groups) == 1:
            lanes.active = m
            run(w, m)
            return
        for part in lanes.parts(m):
            run(w, part)

    return by_parts


def _blocking(run: Run) -> Run:
    def by_parts(w: Warp, m: int) -> Blocking:
        for part in w.agent.lanes.parts(m):
            yield from run(w, part)

    return by_parts


def one_by_one(w: Warp, m: int, rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the row of operands of each lane of a mask, with only that lane active meanwhile."""
    lanes = w.agent.lanes
    for lane, row in zip(LANE_INDICES[m].tolist(), rows, strict=True):
        lanes.active = 1 << lane
        yield row
    lanes.active = m


def alike(w: Warp, m: int, rows: Iterable[Row]) -> Iterator[Row]:
    """Like `one_by_one`, but yields each distinct row of operands once, with all lanes that have it
    active.
    """
    same: dict[Row, int] = {}
    for lane, row in zip(LANE_INDICES[m].tolist(), rows, strict=True):
        same[row] = same.get(row, 0) | 1 << lane
    for row, lanes in same.items():
        w.agent.lanes.active = lanes
        yield row
    w.agent.lanes.active = m
