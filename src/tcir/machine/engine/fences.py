"""Fences that two ordered accesses need besides: of the async proxy, and of tensor memory."""

from __future__ import annotations

from typing import Protocol

from tcir.machine.engine.touch import Touch
from tcir.machine.findings import Unpromised
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import (
    BEFORE,
    LATE,
    PROXY,
    Access,
    marked,
    observed,
    observed_beyond,
)
from tcir.machine.order.involved import Involved
from tcir.machine.order.ordering import piped


class Checked(AgentProtocol, Protocol):
    """An agent whose access is being checked."""

    def passed(self, touch: Touch, other: Access, mark: str, *, wrote: bool) -> bool: ...
    def involved(self, touch: Touch, other: Access, *, wrote: bool) -> Involved: ...


def check_fences(agent: Checked, touch: Touch, other: Access, wrote: bool) -> None:
    """Findings about an access that is ordered after another one; wrote: whether that wrote."""
    if touch.shadow.space == "tensor memory":
        _thread_sync_fences(agent, touch, other, wrote)
    elif other.proxy == "generic" and touch.access.proxy == "async":
        if wrote:
            _write_then_async(agent, touch, other)
        elif touch.write:
            _read_then_async(agent, touch, other)


def _write_then_async(agent: Checked, touch: Touch, other: Access) -> None:
    """Reads of what was written need the fence. Overwriting it needs it by the ISA's text too,
    but Triton lets TMA refill memory that was stored to, with a barrier in between."""
    if agent.passed(touch, other, PROXY, wrote=True):
        return
    if agent.passed(touch, other, LATE, wrote=True):
        agent.cta.report(
            Unpromised("9.7.16.6.5", "ThunderKittens", "a fence by another thread"),
            "late-proxy-fence", other.site, touch.access.site,
            "fence.proxy.async by the writing thread, before it synchronises",
            agent.involved(touch, other, wrote=True),
        )  # fmt: skip
        return
    agent.cta.report(
        Unpromised("9.7.16.6.5", "Triton and Gluon") if touch.write else "error",
        "missing-proxy-fence", other.site, touch.access.site,
        "fence.proxy.async between a write through the generic proxy and a use "
        "through the async proxy (PTX ISA 9.7.16.6.5)",
        agent.involved(touch, other, wrote=True),
    )  # fmt: skip


def _read_then_async(agent: Checked, touch: Touch, other: Access) -> None:
    """A copy overwrites bytes that were read. A fence on either side of the synchronisation
    orders the two. Without one, a load whose value was not used before its thread released the
    copy may read the new bytes; a load whose value was used is over, and so is a load of the
    word that tcgen05.alloc wrote: ptxas moves it to a uniform register after the load
    (docs/hazards.md, "Read, then TMA")."""
    if any(agent.passed(touch, other, mark, wrote=False) for mark in (PROXY, LATE)):
        return
    access, space = touch.access, touch.shadow.space
    missing = (
        "fence.proxy.async between a read through the generic proxy and a write over the bytes "
        "through the async proxy (PTX ISA 9.7.9.25)"
    )
    ships = "CUTLASS (consumer_release of main loops)"
    late = agent.machine.loads_in_flight.unused(other, agent.me, agent.clock)
    if late and {w.kind for w in touch.shadow.writers_read(touch.where, other)} == {"alloc"}:
        late, ships = False, "Triton and Gluon (the word that tcgen05.alloc wrote)"
    read = "may still read" if late else "reads"
    first = f"{other.site} ({read} {space}, then {access.kind} overwrites it)"
    if late:
        missing += (
            ", in front of the barrier or arrival that lets the copy go: nothing has used the "
            "loaded value there, so the load may still be in flight (an H200 reads the new bytes)"
        )
    agent.cta.report(
        "error" if late else Unpromised("9.7.9.25", ships),
        "missing-proxy-fence", first, access.site, missing,
        agent.involved(touch, other, wrote=False),
    )  # fmt: skip


def _thread_sync_fences(agent: Checked, touch: Touch, other: Access, wrote: bool) -> None:
    access = touch.access
    if access.kind == "dealloc" or other.kind == "dealloc":
        return  # synchronous: a barrier is enough
    if other.component in (("ld", agent.me), ("st", agent.me)):
        return
    if other.component == access.component == agent.tensor.component:
        return  # one thread, which has waited for the completion
    after = agent.after_clock
    known = observed(after, other) or observed_beyond(after, other) or piped(after, other)
    if not known:
        agent.cta.report(
            Unpromised("9.7.16.6.4", "Triton, Gluon and CuTe DSL"),
            "missing-fence-after", other.site, access.site,
            "tcgen05.fence::after_thread_sync between the wait and the access",
            agent.involved(touch, other, wrote=wrote),
        )  # fmt: skip
    elif other.component[0] in ("ld", "st") and not marked(agent.clock, BEFORE, other):
        agent.cta.report(
            Unpromised("9.7.16.6.4", "Triton and Gluon"),
            "missing-fence-before", other.site, access.site,
            "tcgen05.fence::before_thread_sync between the access and the arrival",
            agent.involved(touch, other, wrote=wrote),
        )  # fmt: skip
