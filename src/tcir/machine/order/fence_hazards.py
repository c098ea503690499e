"""Fences that two accesses need although they are ordered: async-proxy fences and tcgen05
fences.
"""

from __future__ import annotations

from tcir.machine.order.clocks import (
    BEFORE,
    LATE,
    PROXY,
    marked,
    observed,
    observed_beyond,
    of_space,
)
from tcir.machine.order.hazard import Conflict, Hazard, first_site
from tcir.machine.order.ordering import piped

# --- written through the generic proxy, then used through the async proxy ------------------------


def fenced(conflict: Conflict, mark: str) -> bool:
    """Whether a fence.proxy.async covers the first access. mark: `PROXY` (the fence was executed by
    the thread of the access) or `LATE` (by another thread).
    """
    return conflict.passed(mark) or conflict.passed(of_space(mark, conflict.space))


def _fenced_late(conflict: Conflict) -> bool:
    return not fenced(conflict, PROXY) and fenced(conflict, LATE)


def _not_fenced(conflict: Conflict) -> bool:
    return not fenced(conflict, PROXY) and not fenced(conflict, LATE)


_WRITE_FENCE = (
    "fence.proxy.async between a write through the generic proxy and a use through the async proxy "
    "(PTX ISA 9.7.16.6.5)"
)

LATE_FENCE = Hazard(
    name="write, another thread's fence.proxy.async, async access",
    isa="9.7.16.6.5",
    evidence="ThunderKittens",
    wrong="wrong/proxy_fence_by_the_reader",
    right="twin/proxy_fence_by_the_reader",
    applies=_fenced_late,
    kind="late-proxy-fence",
    missing="fence.proxy.async by the writing thread, before it synchronises",
    severity="unpromised",
    promise="a fence by another thread",
    first=first_site,
)
WRITE_THEN_ASYNC_READ = Hazard(
    name="write, async read",
    isa="9.7.16.6.5",
    evidence="the two proxies are not coherent: PTX ISA 8.6",
    wrong="wrong/proxy_bulk_store_unfenced",
    right="twin/proxy_bulk_store_unfenced",
    applies=_not_fenced,
    kind="missing-proxy-fence",
    missing=_WRITE_FENCE,
    first=first_site,
)
WRITE_THEN_ASYNC_WRITE = Hazard(
    name="write, async write",
    isa="9.7.16.6.5",
    evidence="Triton and Gluon",
    wrong="wrong/proxy_copy_beside_stores",
    right="right/proxy_copy_over_stored_words",
    applies=_not_fenced,
    kind="missing-proxy-fence",
    missing=_WRITE_FENCE,
    severity="unpromised",
    first=first_site,
)

# --- read through the generic proxy, then overwritten through the async proxy --------------------
# A fence on either side of the synchronisation orders the two. Without one, a load whose value was
# not used before its thread released the copy may read the new bytes; a load whose value was used
# is complete (docs/explanation/hazards.md, "Read, then TMA").

_READ_FENCE = (
    "fence.proxy.async between a read through the generic proxy and a write over the bytes through "
    "the async proxy (PTX ISA 9.7.9.25)"
)


def _word_of_alloc(conflict: Conflict) -> bool:
    return conflict.written_by == {"alloc"}


def _in_flight(conflict: Conflict) -> bool:
    return _not_fenced(conflict) and conflict.in_flight and not _word_of_alloc(conflict)


def _word_in_flight(conflict: Conflict) -> bool:
    return _not_fenced(conflict) and conflict.in_flight and _word_of_alloc(conflict)


def _used(conflict: Conflict) -> bool:
    return _not_fenced(conflict) and not conflict.in_flight


def _reads(conflict: Conflict) -> str:
    return _read_by("reads", conflict)


def _may_still_read(conflict: Conflict) -> str:
    return _read_by("may still read", conflict)


def _read_by(verb: str, conflict: Conflict) -> str:
    space = conflict.space
    return f"{conflict.first.site} ({verb} {space}, then {conflict.second.kind} overwrites it)"


LOAD_IN_FLIGHT = Hazard(
    name="read whose value is not used yet, async write",
    isa="9.7.9.25",
    evidence="an H200 reads the new bytes",
    wrong="wrong/proxy_read_then_bulk_load",
    right="twin/proxy_read_then_bulk_load",
    applies=_in_flight,
    kind="missing-proxy-fence",
    missing=_READ_FENCE
    + ", before the barrier or arrival that releases the copy: the loaded value has not been used "
    "by then, so the load may still be in flight (an H200 reads the new bytes)",
    first=_may_still_read,
)
WORD_OF_ALLOC = Hazard(
    name="read of the word that tcgen05.alloc wrote, async write",  # ptxas: to a uniform register
    isa="9.7.9.25",
    evidence="Triton and Gluon (the word that tcgen05.alloc wrote)",
    wrong="wrong/proxy_read_then_bulk_load",
    right="right/proxy_word_of_alloc_refilled",
    applies=_word_in_flight,
    kind="missing-proxy-fence",
    missing=_READ_FENCE,
    severity="unpromised",
    first=_reads,
)
READ_THEN_ASYNC_WRITE = Hazard(
    name="read whose value is used, async write",
    isa="9.7.9.25",
    evidence="CUTLASS (consumer_release of main loops)",
    wrong="wrong/proxy_read_then_bulk_load",
    right="right/proxy_read_used_then_bulk_load",
    applies=_used,
    kind="missing-proxy-fence",
    missing=_READ_FENCE,
    severity="unpromised",
    first=_reads,
)

# --- tensor memory -------------------------------------------------------------------------------


def _between_threads(conflict: Conflict) -> bool:
    """Whether fences are needed: not between accesses of one thread, which has waited for the
    completion, nor beside dealloc, which is synchronous and needs a barrier only."""
    first, second = conflict.first, conflict.second
    if "dealloc" in (first.kind, second.kind):
        return False
    if first.component in (("ld", conflict.me), ("st", conflict.me)):
        return False
    return not first.component == second.component == conflict.tensor


def _known_after(conflict: Conflict) -> bool:
    after, first = conflict.after, conflict.first
    return observed(after, first) or observed_beyond(after, first) or piped(after, first)


def _no_fence_after(conflict: Conflict) -> bool:
    return _between_threads(conflict) and not _known_after(conflict)


def _no_fence_before(conflict: Conflict) -> bool:
    by_registers = conflict.first.component[0] in ("ld", "st")
    return (
        by_registers
        and _between_threads(conflict)
        and _known_after(conflict)
        and not marked(conflict.clock, BEFORE, conflict.first)
    )


FENCE_AFTER = Hazard(
    name="tcgen05 access, wait, tcgen05 access",
    isa="9.7.16.6.4",
    evidence="Triton, Gluon and CuTe DSL",
    wrong="wrong/tcgen05_no_fence_after",
    right="twin/tcgen05_no_fence_after",
    applies=_no_fence_after,
    kind="missing-fence-after",
    missing="tcgen05.fence::after_thread_sync between the wait and the access",
    severity="unpromised",
    first=first_site,
)
FENCE_BEFORE = Hazard(
    name="tcgen05.ld or st, arrival, tcgen05 access",
    isa="9.7.16.6.4",
    evidence="Triton and Gluon",
    wrong="wrong/tcgen05_no_fence_before",
    right="twin/tcgen05_no_fence_before",
    applies=_no_fence_before,
    kind="missing-fence-before",
    missing="tcgen05.fence::before_thread_sync between the access and the arrival",
    severity="unpromised",
    first=first_site,
)

FENCES: dict[tuple[bool, bool], tuple[Hazard, ...]] = {
    (True, False): (LATE_FENCE, WRITE_THEN_ASYNC_READ),
    (True, True): (LATE_FENCE, WRITE_THEN_ASYNC_WRITE),
    (False, True): (LOAD_IN_FLIGHT, WORD_OF_ALLOC, READ_THEN_ASYNC_WRITE),
}
"""Hazards of a generic access followed by an async one, by whether each writes; at most one
applies."""
TENSOR_FENCES: tuple[Hazard, ...] = (FENCE_AFTER, FENCE_BEFORE)
"""Hazards of ordered accesses to tensor memory; at most one applies."""
