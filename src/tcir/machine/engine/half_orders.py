"""Orders that no document promises and shipping code relies on: marks in a clock keep them."""

from __future__ import annotations

from collections.abc import Callable

from tcir.machine.engine.fences import Checked, check_fences
from tcir.machine.engine.touch import Touch
from tcir.machine.findings import Unpromised
from tcir.machine.order.clocks import BY_EXIT, BY_TICKET, BY_WARP, Access
from tcir.machine.order.fence_marks import BY_FENCES
from tcir.machine.order.involved import Involved


def half_ordered(
    agent: Checked, touch: Touch, other: Access, wrote: bool, first: str, involved: Involved
) -> bool:
    """A finding if only such an order puts an access after another one; whether it does.

    wrote: whether the earlier one wrote. first: what a report calls it.
    """
    for mark, report in _REPORTS.items():
        if mark == BY_TICKET and touch.access.strong is None:
            continue  # shipping code reads by volatile loads; a weak one may find what a cache kept
        if mark == BY_WARP and not _kept_by_arrivals(agent, touch, other):
            continue
        if agent.passed(touch, other, mark, wrote=wrote):
            report(agent, first, touch.access.site, involved)
            if mark in (BY_EXIT, BY_WARP) and touch.shadow.space != "tensor memory":
                check_fences(agent, touch, other, wrote)
            return True
    return False


def _kept_by_arrivals(agent: Checked, touch: Touch, other: Access) -> bool:
    """Whether what lanes of another warp did is done when one of them arrives: a warp's accesses to
    shared memory keep their order on an H200."""
    return touch.shadow.space == "shared memory" and other.component != agent.me


def _ticket(agent: Checked, first: str, second: object, involved: Involved) -> None:
    agent.cta.report(
        Unpromised("8.8", "threadFenceReduction (CUDA samples), PyTorch", "order by the ticket"),
        "missing-reader-fence", first, second,
        "a fence (or .acquire) behind the atomic by which the last one knows that it is",
        involved,
    )  # fmt: skip


def _exit(agent: Checked, first: str, second: object, involved: Involved) -> None:
    agent.cta.report(
        Unpromised("9.7.13.1", "ThunderKittens (tensor_allocator)", "order by an exit"),
        "exit-before-barrier", first, second,
        "the barrier in the thread that ends, too: others wait for its end instead",
        involved,
    )  # fmt: skip


def _fence(agent: Checked, first: str, second: object, involved: Involved) -> None:
    agent.cta.report(
        Unpromised("8.8", "DeepEP (barrier_block)", "order by another thread's fence"),
        "fence-before-barrier", first, second,
        "a fence by the thread that signals, behind the barrier (fence.acq_rel in front of it is "
        "no part of a release pattern of another thread; fence.sc on both sides is)",
        involved,
    )  # fmt: skip


def _warp(agent: Checked, first: str, second: object, involved: Involved) -> None:
    agent.cta.report(
        Unpromised("9.7.13.2", "NVIDIA's CuTe DSL primitives", "order by an elected lane"),
        "elected-for-warp", first, second,
        "bar.warp.sync in front of elect.sync, or an arrival of every lane",
        involved,
    )  # fmt: skip


_REPORTS: dict[str, Callable[[Checked, str, object, Involved], None]] = {
    BY_EXIT: _exit,
    BY_FENCES: _fence,
    BY_TICKET: _ticket,
    BY_WARP: _warp,
}
