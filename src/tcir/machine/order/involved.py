"""Describes in words the participants of a hazard: lanes, warps and CTAs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from tcir.machine.order.clocks import EARLIER, Access, Component
from tcir.machine.order.lanes import EACH, TOGETHER, WARP, members

LANES, WARPS, CTAS, LAUNCHES = "between lanes", "between warps", "between CTAs", "between launches"

_UNITS = {"tc": "tensor core", "ld": "tcgen05.ld", "st": "tcgen05.st", "bulk": "bulk copies",
          "bulk write": "bulk copies"}  # fmt: skip


def lane_words(mask: int) -> str:
    """Describes a lane mask: "all lanes", "lane 3", "lanes 0 to 7" or "lanes 0, 2, 4"; "" for no
    lane.
    """
    mask &= WARP
    if mask == WARP:
        return "all lanes"
    lanes = list(members(mask))
    if len(lanes) < 2:
        return "".join(f"lane {n}" for n in lanes)
    if lanes[-1] - lanes[0] == len(lanes) - 1:
        return f"lanes {lanes[0]} to {lanes[-1]}"
    return f"lanes {', '.join(map(str, lanes[:8]))}" + ", …" * (len(lanes) > 8)


def issuer(component: Component) -> tuple[Hashable, Hashable]:
    """The agent to which a component belongs: its CTA and its number in the CTA. A component of TMA
    has no agent number.
    """
    head, agent = component[0], component[1]
    if isinstance(head, tuple) and len(head) == 3:
        return head, agent
    if isinstance(agent, tuple) and len(agent) == 2:
        return agent[0], agent[1]
    return agent, None


def between(first: Component, second: Component) -> str:
    """Level at which two components differ: lanes of a warp, warps of a CTA, CTAs, or launches; ""
    for asynchronous operations of one warp."""
    if EARLIER in (first, second):
        return LAUNCHES
    one, other = issuer(first), issuer(second)
    if one[0] != other[0]:
        return CTAS
    if one != other:
        return WARPS
    return LANES if first == second else ""


def actor(access: Access, lanes: int, names: Sequence[str]) -> tuple[str, Hashable]:
    """Names the executor of an access, with its CTA. names: names of a CTA's agents, by number."""
    if access.component == EARLIER:
        return "a launch before this", None
    cta, number = issuer(access.component)
    if access.component[0] == "tma":
        return "TMA" if access.proxy == "async" else access.kind, cta
    name = names[number] if isinstance(number, int) and number < len(names) else "an agent"
    unit = _UNITS.get(str(access.component[0]), "")
    if unit:
        return f"{unit} of {name}", cta
    some = lanes & ~(1 << TOGETHER | 1 << EACH) or access.lanes
    one = lane_words(some) if some & WARP != WARP else ""
    return (f"{name}, {one}" if one else name), cta


def actors(first: tuple[str, Hashable], second: tuple[str, Hashable]) -> str:
    """Names the two agents with their CTAs; if they are the same, names it once."""
    (one, cta), (other, its) = first, second
    if cta == its or cta is None:
        return f"{one} and {other} of CTA {its}" if one != other else f"{one} of CTA {its}"
    return f"{one} of CTA {cta} and {other} of CTA {its}"


def meeting(
    two: Sequence[tuple[str, Hashable]], words: Callable[[int, int], str], span: tuple[int, int]
) -> tuple[str, str]:
    """Describes two lanes that access the same bytes, and these bytes. The names of the lanes are
    those of `actor`.
    """
    return actors(*two), words(*span)


class Involved(NamedTuple):
    """Participants of two conflicting accesses.

    `between` distinguishes them from other participants at the same two operations. Their names and
    the bytes that they share are computed once, when they are first requested.
    """

    kind: str
    words: Callable[[], tuple[str, str]]
