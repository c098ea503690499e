"""Conflicts that the clocks do not order: rules that order some of them, and the reports about the
others.
"""

from __future__ import annotations

from functools import partial

from tcir.machine.order.clocks import BY_EXIT, BY_TICKET, BY_WARP, BY_WARPGROUP, UNUSED
from tcir.machine.order.fence_marks import BY_FENCES
from tcir.machine.order.hazard import (
    SCOPE_OF_CLUSTER,
    SHARED_MEMORY,
    TENSOR_MEMORY,
    Conflict,
    Hazard,
    OrderRule,
)
from tcir.machine.order.lanes import known_to
from tcir.machine.order.ordering import SHIPPED, piped
from tcir.machine.order.unpromised import RELAXED_BARRIER, RELAXED_ORDER, RELEASING_ARRIVAL

# --- what orders them ----------------------------------------------------------------------------


def _both_free(conflict: Conflict) -> bool:
    return conflict.first.kind == conflict.second.kind == "dealloc"


def _tracked(conflict: Conflict) -> bool:
    return piped(conflict.clock, conflict.first)


def _listed(conflict: Conflict) -> bool:
    return conflict.in_pipe(listed=True)


def _read_since(conflict: Conflict) -> bool:
    return conflict.read_since()


ORDERS = (
    OrderRule(
        name="two tcgen05.dealloc: the alloc between them waited for the first",
        isa="9.7.16.7",
        evidence="tcgen05.alloc blocks until the columns are free",
        wrong="wrong/tcgen05_dealloc_under_readers",
        right="right/tcgen05_two_owners_in_turn",
        applies=_both_free,
    ),
    OrderRule(
        name="cp, mma of another thread that reads it, commit of that thread",
        isa="9.7.16.12",
        evidence="PTX ISA 9.7.16.6.2: the pipe completes the cp before the mma",
        wrong="wrong/tcgen05_commit_by_another_thread",
        right="right/tcgen05_cp_consumed_elsewhere",
        applies=_tracked,
        fences=True,
    ),
    OrderRule(
        name="tensor-core operations that the pipe keeps in order",
        isa="9.7.16.6.2",
        evidence="the list in `tcir.machine.order.ordering`",
        wrong="wrong/tcgen05_cp_then_mma_of_another_thread",
        right="right/tcgen05_two_steps",
        applies=_listed,
    ),
    OrderRule(
        name="a strong write that an observed strong read has read",
        isa="8.9.5",
        evidence="a read comes after the writes that it observed, fences or not",
        wrong="wrong/atomics_counter_set_too_early",
        right="twin/atomics_counter_set_too_early",
        applies=_read_since,
    ),
)
"""Rules by which two accesses are ordered although the agents' clocks do not order them."""

# --- orders that no document promises, and what is none ------------------------------------------


def _issued_in_order(kinds: tuple[str, str], conflict: Conflict) -> bool:
    first, second = conflict.first.kind, conflict.second.kind
    return conflict.writes and (first, second) == kinds and conflict.in_pipe(listed=False)


def _edge(conflict: Conflict) -> str:
    return conflict.edge


def _issue_order(first: str, second: str, wrong: str, right: str) -> Hazard:
    return Hazard(
        name=f"{first}, {second} of the same thread",
        isa="9.7.16.6.2",
        evidence=SHIPPED[first, second],
        wrong=wrong,
        right=right,
        applies=partial(_issued_in_order, (first, second)),
        kind="issue-order",
        missing=_edge,
        severity="unpromised",
        promise=f"order of issue of {first} and {second}",
    )


def _on_the_sm(conflict: Conflict) -> bool:
    return conflict.beyond and conflict.near and not (conflict.wrote and conflict.on_its_way)


def _always(conflict: Conflict) -> bool:
    return True


def _dealloc_of_a_peers(conflict: Conflict) -> bool:
    return conflict.second.kind == "dealloc" and conflict.of_peer


def _met_by_relaxed_arrivals(conflict: Conflict) -> bool:
    """No other store may go without a release."""
    return conflict.first.kind == "alloc" and known_to(conflict.met, conflict.first)


def _by_exit(conflict: Conflict) -> bool:
    return conflict.passed(BY_EXIT)


def _by_fences(conflict: Conflict) -> bool:
    return conflict.passed(BY_FENCES)


def _by_ticket(conflict: Conflict) -> bool:
    """Whether a ticket orders a strong second access. A weak one may find a cached value; shipping
    code uses volatile loads."""
    return conflict.second.strong is not None and conflict.passed(BY_TICKET)


def _by_warp(conflict: Conflict) -> bool:
    """What lanes of another warp did is done when one of them arrives: a warp's accesses to shared
    memory keep their order on an H200."""
    of_others = conflict.space == SHARED_MEMORY and conflict.first.component != conflict.me
    return of_others and conflict.passed(BY_WARP)


def _by_warpgroup(conflict: Conflict) -> bool:
    return conflict.passed(BY_WARPGROUP)


def _proxies(conflict: Conflict) -> bool:
    return conflict.space != TENSOR_MEMORY


def _operands(conflict: Conflict) -> bool:
    return bool(conflict.lose_operands())


def _lost(conflict: Conflict) -> str:
    return f"{conflict.edges} ({conflict.lose_operands()}; what depends on them is undefined)"


def _same_bytes(conflict: Conflict) -> bool:
    first, second = conflict.first, conflict.second
    alike = first.kind == second.kind if second.proxy == "async" else first.kind == "generic"
    return alike and conflict.same_bytes


def _unused(conflict: Conflict) -> bool:
    return UNUSED in (conflict.first.kind, conflict.second.kind)


def _not_ordered(conflict: Conflict) -> str:
    return f"not ordered: {conflict.edges}"


RACES = (
    _issue_order("mma", "mma", "wrong/tcgen05_two_issuers", "right/tcgen05_mma_over_an_operand"),
    _issue_order("mma", "cp", "wrong/tcgen05_cp_then_ld", "right/tcgen05_mma_then_cp"),
    _issue_order("cp", "cp", "wrong/tcgen05_cp_then_ld", "right/tcgen05_cp_then_cp"),
    Hazard(
        name="an access that stays on its SM, arrival or wait of scope .cta for another CTA",
        isa="9.7.13.15.13",
        evidence="CUTLASS's example 70 and DeepGEMM's pairs",
        wrong="wrong/clusters_default_scope",
        right="right/clusters_slot_given_back",
        applies=_on_the_sm,
        kind="mbarrier-scope",
        missing=SCOPE_OF_CLUSTER,
        severity="unpromised",
        promise="order between CTAs by an arrival or a wait of scope .cta",
        fences=_always,
    ),
    Hazard(
        name="a peer's use of its tensor memory, dealloc of the pair",
        isa="9.7.16.5",
        evidence="CUTLASS's Blackwell tutorials 04 and 05",
        wrong="wrong/clusters_dealloc_pair",
        right="twin/clusters_dealloc_pair",
        applies=_dealloc_of_a_peers,
        kind="pair-dealloc",
        missing="a cluster barrier between what the peer does with its tensor memory and dealloc",
        severity="unpromised",
    ),
    Hazard(
        name="the word of tcgen05.alloc, a relaxed cluster barrier",
        isa="9.7.13.3",
        evidence="DeepGEMM's pairs",
        wrong="wrong/clusters_relaxed_barrier",
        right="right/clusters_word_of_alloc_behind_relaxed_arrivals",
        applies=_met_by_relaxed_arrivals,
        kind=RELAXED_BARRIER,
        missing=RELEASING_ARRIVAL,
        severity="unpromised",
        promise=RELAXED_ORDER,
    ),
    Hazard(
        name="an access, the end of its thread, a barrier of the others",
        isa="9.7.13.1",
        evidence="ThunderKittens (tensor_allocator)",
        wrong="wrong/barriers_stored_then_exit",
        right="twin/barriers_stored_then_exit",
        applies=_by_exit,
        kind="exit-before-barrier",
        missing="the barrier in the thread that ends, too: others wait for its end instead",
        severity="unpromised",
        promise="order by an exit",
        fences=_proxies,
    ),
    Hazard(
        name="another thread's fence.acq_rel, a barrier, a strong access",
        isa="8.8",
        evidence="DeepEP (barrier_block)",
        wrong="wrong/fences_last_block_no_fence",
        right="right/fences_acq_rel_in_front_of_a_barrier",
        applies=_by_fences,
        kind="fence-before-barrier",
        missing="a fence by the thread that signals, after the barrier (fence.acq_rel before "
        "it is no part of a release pattern of another thread; fence.sc on both sides is)",
        severity="unpromised",
        promise="order by another thread's fence",
    ),
    Hazard(
        name="the reads of the last one, known by a relaxed ticket",
        isa="8.8",
        evidence="threadFenceReduction (CUDA samples), PyTorch",
        wrong="wrong/fences_last_block_reader",
        right="right/fences_ticket_without_reader_fence",
        applies=_by_ticket,
        kind="missing-reader-fence",
        missing="a fence (or .acquire) after the atomic by which the last one knows that it is",
        severity="unpromised",
        promise="order by the ticket",
    ),
    Hazard(
        name="an access of a warp, the arrival of a lane that elect.sync chose",
        isa="9.7.13.2",
        evidence="NVIDIA's CuTe DSL primitives",
        wrong="wrong/lanes_arrival_without_an_election",
        right="right/lanes_elected_for_the_warp",
        applies=_by_warp,
        kind="elected-for-warp",
        missing="bar.warp.sync before elect.sync, or an arrival of every lane",
        severity="unpromised",
        promise="order by an elected lane",
        fences=_proxies,
    ),
    Hazard(
        name="wgmma of a warp, the wait of another warp of its warpgroup",
        isa="9.7.15.7",
        evidence="CUTLASS (PipelineTmaAsync), FlashAttention-3, ThunderKittens",
        wrong="wrong/wgmma_released_before_the_wait",
        right="right/wgmma_released_by_one_thread",
        applies=_by_warpgroup,
        kind="waited-for-warpgroup",
        missing="an arrival of every warp after its wgmma.wait_group, or a barrier of the "
        "warpgroup",
        severity="unpromised",
        promise="order by another warp's wgmma.wait_group",
    ),
    Hazard(
        name="TMA writes that an mma may read as rows of A or B that nobody uses",
        isa="8.7.1",
        evidence="DeepGEMM (BLOCK_M 32 and 64)",
        wrong="wrong/tcgen05_operand_overwritten",
        right="right/tcgen05_rows_of_the_next_stage",
        applies=_operands,
        kind="operand-race",
        missing=_lost,
        severity="unpromised",
        promise="that the race takes only what depends on them",
    ),
    Hazard(
        name="two writes of the same bytes",
        isa="8.7.1",
        evidence="compilers let several warps store a constant",
        wrong="wrong/barriers_two_warps_one_word",
        right="right/barriers_flag_raised_by_two_warps",
        applies=_same_bytes,
        kind="same-value-race",
        missing=_not_ordered,
        severity="warning",
    ),
    Hazard(
        name="a read by a lane in which nothing uses the value, a write",
        isa="8.7.1",
        evidence="Liger-Kernel (rope): Triton, in place, with fewer elements than threads",
        wrong="wrong/barriers_in_place_by_two_warps",
        right="twin/barriers_in_place_by_two_warps",
        applies=_unused,
        kind="unused-read",
        missing=_not_ordered,
        severity="unpromised",
        promise="that nothing depends on such a race",
    ),
    Hazard(
        name="no edge",
        isa="8.7.1",
        evidence="the result depends on timing",
        wrong="wrong/barriers_two_warps_one_word",
        right="twin/barriers_two_warps_one_word",
        applies=_always,
        kind="race",
        missing=_not_ordered,
    ),
)
"""Hazards of accesses that nothing orders; the first that applies is reported."""
