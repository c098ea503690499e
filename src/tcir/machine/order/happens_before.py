"""The checks: is an access ordered after those before it, and are the fences there?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tcir.machine.engine.core import Core
from tcir.machine.errors import NotModelled
from tcir.machine.order.hazards import (
    BEFORE,
    INIT,
    LATE,
    PIPE,
    PROXY,
    Access,
    Component,
    join,
    marked,
    morally_strong,
    observed,
)
from tcir.machine.order.ordering import Class, class_of, missing_edge, pipe_order
from tcir.machine.order.shadow import Shadow
from tcir.machine.order.tensor_thread import TensorThread

_NO_EFFECT = ("cta", "proxy.tensormap", "proxy.alias")
"""Fences without a rule of their own: memory here is coherent, and clocks travel with barriers,
mbarriers and strong accesses. Those of wider scope matter to relaxed arrivals only."""


MOST_BESIDE = 64
"""Unordered strong writes to one place that are remembered: a later access that is not ordered with
one of those before them goes unnoticed."""


class HappensBefore(Core):
    """Fences, and the check of every access against the shadow of its memory."""

    def fence(self, kind: str, *, site: Any) -> None:
        """A fence: "tcgen05.after", "tcgen05.before", "proxy.async", "mbarrier_init", "cta", …"""
        self._at(site)
        match kind:
            case "tcgen05.after":
                self.after_clock = dict(self.clock)
            case "tcgen05.before":
                self._mark_before(self.tensor_threads)
            case "proxy.async" | "proxy.async.shared":
                for c in [c for c in self.clock if not isinstance(c[0], str)]:
                    own = c == self.me or c[1] == self.me  # its cp.async, too
                    self.clock[(PROXY if own else LATE, c)] = self.clock[c]
                self._mark_own(INIT)
            case "mbarrier_init":
                self._mark_own(INIT)
                self.fenced.update({(self.me, number): 1 for number in self.inits})
                self.fenced[(INIT, self.me)] = self.clock[(INIT, self.me)]
            case "cluster" | "gpu" | "sys":
                join(self.fenced, self.release())
            case _ if kind in _NO_EFFECT:
                pass
            case _:
                raise NotModelled(f"fence {kind}", site=site)

    def _mark_own(self, which: str) -> None:
        self.clock[(which, self.me)] = self.clock[self.me]
        self.clock[self.me] += 1  # what follows has not passed the fence

    def _mark_before(self, threads: Iterable[TensorThread]) -> None:
        """tcgen05.fence::before_thread_sync; of which threads' tensor-core operations."""
        for component in (("ld", self.me), ("st", self.me)):
            self.clock[(BEFORE, component)] = self.clock.get(component, 0)
        for thread in threads:
            self.clock[(PIPE, thread.component)] = thread.issued

    def note_read(self, shadow: Shadow | None, where: Any, access: Access) -> None:
        """Checks and records a read of the granules ``where``."""
        if shadow is not None:
            self._check(shadow, where, access, write=False)
            shadow.record_read(where, access)
            self._visit(shadow, access)

    def note_write(
        self, shadow: Shadow | None, where: Any, access: Access, *, same: bool = False
    ) -> None:
        """Checks and records a write; `same`: it puts back the bytes that were there."""
        if shadow is not None:
            if self._check(shadow, where, access, write=True, same=same):
                for earlier, part in shadow.parts(where):
                    shadow.record_write(part, replace(access, beside=self._beside(earlier, access)))
            else:
                shadow.record_write(where, access)
            self._visit(shadow, access)

    def _beside(self, earlier: list[Access], access: Access) -> tuple[Access, ...]:
        """Strong accesses that `access` is no race with and not ordered after, the last of each
        component: whoever comes later has to be ordered with them, too."""
        last: dict[Component, Access] = {}
        for other in earlier:
            if morally_strong(other, access) and not observed(self.clock, other):
                known = last.get(other.component)
                if known is None or known.number < other.number:
                    last[other.component] = replace(other, beside=())
        return tuple(last.values())[-MOST_BESIDE:]

    def _visit(self, shadow: Shadow, access: Access) -> None:
        """The owner of the memory must not end before."""
        if shadow.owner is not None and shadow.owner is not self.cta:
            shadow.owner.visitors[access.component] = access

    def _check(
        self, shadow: Shadow, where: Any, access: Access, *, write: bool, same: bool = False
    ) -> bool:
        """True if it comes beside an earlier strong write."""
        beside = False
        for last in shadow.writers_at(where):
            for other in (last, *last.beside):
                if morally_strong(other, access) and not observed(self.clock, other):
                    beside = True
                else:
                    self._pair(shadow, other, access, True, write, same)
        if write:
            for other in shadow.readers_at(where):
                if not morally_strong(other, access):
                    self._pair(shadow, other, access, False, write, same)
        return beside

    def pipe_before(self, access: Access, agents: Iterable[HappensBefore]) -> dict[Class, int]:
        """Which tensor-core operations the pipe completes before this new one of this thread.

        Its own; and of the other threads of `agents`, those of its CTA or pair, those that passed
        tcgen05.fence::before_thread_sync before the synchronisation that this agent followed by
        ::after_thread_sync.
        """
        reach = self.tensor.order.before(access)
        for thread in (t for agent in agents for t in agent.tensor_threads):
            fenced = self.after_clock.get((PIPE, thread.component), 0)
            if thread is not self.tensor and fenced:
                foreign = thread.order.before(access)
                join(reach, {group: min(number, fenced) for group, number in foreign.items()})
        return reach

    def _pair(
        self, shadow: Shadow, other: Access, access: Access, wrote: bool, write: bool, same: bool
    ) -> None:
        if other.kind == access.kind == "dealloc":
            return  # the two calls of a pair
        if observed(self.clock, other):
            self._fences(shadow, other, access, wrote, write)
            return
        both_piped = other.component[0] == "tc" and access.component == self.tensor.component
        if both_piped and self.pipe_reach.get(class_of(other), 0) >= other.number:
            return
        one_cluster = shadow.owner is not None
        mine = other.component == self.tensor.component
        missing = missing_edge(other, access, mine, one_cluster)
        if both_piped and pipe_order(other, access, self.machine.assumptions):
            missing += "; or tcgen05.fence::before_thread_sync, a barrier and ::after_thread_sync"
        verb = f"{'writes' if wrote else 'reads'} {shadow.space}, then {access.kind} " + (
            "overwrites it" if write else "reads it"
        )
        # Whoever comes last, the bytes are the same: compilers let several warps store a constant.
        harmless = same and other.kind == "generic"
        severity, code = ("warning", "same-value-race") if harmless else ("error", "race")
        self.cta.report(
            severity, code, f"{other.site} ({other.kind} {verb})", access.site,
            f"not ordered: {missing}",
        )  # fmt: skip

    def _fences(
        self, shadow: Shadow, other: Access, access: Access, wrote: bool, write: bool
    ) -> None:
        """Ordered; are the fences there that the two kinds of access need besides?"""
        if shadow.space == "tensor memory":
            self._thread_sync_fences(other, access)
        elif wrote and other.proxy == "generic" and access.proxy == "async":
            self._proxy_fence(other, access, write)

    def _proxy_fence(self, other: Access, access: Access, write: bool) -> None:
        """Reads of what was written need the fence. Overwriting it needs it by the ISA's text too,
        but Triton lets TMA refill memory that was stored to, with a barrier in between."""
        if marked(self.clock, PROXY, other):
            return
        if marked(self.clock, LATE, other):
            self.cta.report(
                "warning", "late-proxy-fence", other.site, access.site,
                "fence.proxy.async by the writing thread, before it synchronises; here another "
                "thread executes it (PTX ISA 9.7.16.6.5)",
            )  # fmt: skip
            return
        self.cta.report(
            "warning" if write else "error", "missing-proxy-fence", other.site, access.site,
            "fence.proxy.async between a write through the generic proxy and a use "
            "through the async proxy (PTX ISA 9.7.16.6.5)",
        )  # fmt: skip

    def _thread_sync_fences(self, other: Access, access: Access) -> None:
        if access.kind == "dealloc" or other.kind == "dealloc":
            return  # synchronous: a barrier is enough
        if other.component in (("ld", self.me), ("st", self.me)):
            return
        if other.component == access.component == self.tensor.component:
            return  # one thread, which has waited for the completion
        if self.after_clock.get(other.component, 0) < other.number:
            self.cta.report(
                "warning", "missing-fence-after", other.site, access.site,
                "tcgen05.fence::after_thread_sync between the wait and the access",
            )  # fmt: skip
        elif other.component[0] in ("ld", "st") and not marked(self.clock, BEFORE, other):
            self.cta.report(
                "warning", "missing-fence-before", other.site, access.site,
                "tcgen05.fence::before_thread_sync between the access and the arrival",
            )  # fmt: skip
