"""Classifies the warps of a recorded CTA by their operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcir.machine.events import EventStream

ROLES = (
    ("mma", ("tcgen05.mma", "wgmma")),
    ("producer", ("tma.load", "bulk.load")),
    ("epilogue", ("tcgen05.ld",)),
    ("mma.sync", ("mma.sync",)),
    ("store", ("tma.store", "bulk.store", "st.global")),
)
"""Roles and their operations: a warp has the first role of which it issues an operation."""


def role(ops: Iterable[str]) -> str:
    """Returns the role of a warp with these operations; "" if it has no particular role."""
    done = set(ops)
    return next((name for name, kinds in ROLES if not done.isdisjoint(kinds)), "")


def roles(stream: EventStream) -> dict[tuple[int, int], str]:
    """Returns the role of each warp, by CTA and warp."""
    ops: dict[tuple[int, int], set[str]] = {}
    for event in stream:
        ops.setdefault((event.cta, event.warp), set()).add(event.op)
    return {warp: role(done) for warp, done in sorted(ops.items())}


def track_of(cta: int, warp: int) -> str:
    """Returns the name of a warp's track in a `tcir.time.Timeline`."""
    return f"CTA {cta} warp {warp}"
