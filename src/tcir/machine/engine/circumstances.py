"""Describes two conflicting accesses for a report: their threads, and the bytes that both
access.
"""

from __future__ import annotations

import numpy as np

from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import Access
from tcir.machine.order.distinct import distinct
from tcir.machine.order.involved import actor, actors
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.lanes import TOGETHER, WARP, LaneNumbers, members
from tcir.machine.order.shadow import Shadow


def circumstances(
    agent: AgentProtocol,
    shadow: Shadow,
    where: Granules,
    pair: tuple[Access, Access],
    lanes: LaneNumbers | None,
    wrote: bool,
) -> tuple[str, str]:
    """Describes an access that `agent` is about to record and an earlier access to the same
    granules: their threads, and the bytes that both access.

    pair: the earlier access and the new one; lanes: lanes of the new access, as in `Touch`; wrote:
        whether the earlier access wrote. The threads described are those that access the first
        common granule.
    """
    other, access = pair
    numbers, met = shadow.flat(where), shadow.met(where, other, wrote)
    places = np.argwhere(met)
    if not len(places):
        return "", ""
    first = int(numbers[tuple(places[0])])
    mine = access.lanes
    executing = list(members(mine))
    rows = sorted({int(row) for row in np.argwhere(numbers == first)[:, 0]})
    if isinstance(lanes, int) and lanes < TOGETHER:
        mine = 1 << lanes
    elif len(executing) == len(numbers):
        mine = sum(1 << executing[row] for row in rows)
    names = [a.name for a in agent.cta.agents]
    who = actors(
        actor(other, _lanes(shadow, first, other, wrote), names), actor(access, mine, names)
    )
    return who, _place(agent, shadow, first) + _more(shadow, len(distinct(numbers[met])))


def _lanes(shadow: Shadow, granule: int, other: Access, wrote: bool) -> int:
    """The lanes of the earlier access at a granule."""
    if shadow.lanes is None or not other.lanes:
        return other.lanes
    if not wrote:
        return int(shadow.lanes.readers.flat[granule]) & other.lanes
    lane = int(shadow.lanes.writer.flat[granule])
    return 1 << lane if lane < TOGETHER else other.lanes & WARP


def _place(agent: AgentProtocol, shadow: Shadow, granule: int) -> str:
    owner = shadow.owner
    if owner is None:
        buffer = next((b for b in agent.machine.memory.buffers if b.shadow is shadow), None)
        if buffer is None:
            return shadow.space
        low = granule * buffer.granule
        return buffer.words(low, min(low + buffer.granule, buffer.data.size))
    whose = "" if owner is agent.cta else f" of CTA {owner.index}"
    if shadow.writer.ndim == 2 and not shadow.bytewise:
        lane, column = divmod(granule, shadow.writer.shape[1])
        return f"lane {lane}, column {column} of {shadow.space}{whose}"
    last = 4 * granule + 3
    span = f"byte {granule:#x}" if shadow.bytewise else f"bytes {last - 3:#x}..{last:#x}"
    return f"{span} of {shadow.space}{whose}"


def _more(shadow: Shadow, granules: int) -> str:
    unit = "bytes" if shadow.bytewise else "words" if shadow.owner is not None else "places"
    return f", the first of {granules} {unit}" if granules > 1 else ""
