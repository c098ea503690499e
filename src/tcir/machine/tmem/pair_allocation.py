"""tcgen05.alloc and .dealloc of a CTA pair: one warp of each CTA executes each of them (PTX ISA
9.7.16.7).
"""

from __future__ import annotations

from collections.abc import Generator

from tcir.machine.errors import MachineError
from tcir.machine.memory.protocols import AgentProtocol, CtaProtocol
from tcir.machine.memory.tensor_memory import PairCall, TensorMemory
from tcir.machine.order.operation import Blocking, Waiting


class PairAllocation:
    """Allocates and frees tensor memory in both CTAs of a pair. The CTA that calls first waits
    until the other CTA makes the matching call.

    The ISA leaves open whether dealloc blocks. It blocks here by default, so a program that relies
    on a dealloc that does not block deadlocks. Neither call orders other accesses.
    """

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta, self.machine = agent, agent.cta, agent.machine

    def alloc(
        self, columns: int, exclusive: bool, site: object
    ) -> Generator[Waiting | None, None, int]:
        """Allocates the same columns in both CTAs; returns the first column."""
        kind = "tcgen05.alloc.exclusive" if exclusive else "tcgen05.alloc"
        call = self._call((kind, columns), site)
        first, second = (cta.tmem for cta in self._ctas())

        def matched() -> bool:
            if call.done:
                return True
            other = self._other(call)
            if other is not None and (base := first.room(columns, second, exclusive)) is not None:
                for mine in (call, other):
                    mine.done, mine.base = True, base
                    mine.memory.allocate(base, columns, exclusive)
                    self._calls().remove(mine)
            return call.done

        def describe() -> str:
            if self._other(call) is None:
                return self._peer_call(call)
            held = "".join(tmem.sm.holders(tmem) for tmem in (first, second))
            return f"{columns} free columns of tensor memory at {site}{held}"

        yield from self.agent.wait(matched, describe)
        return call.base

    def dealloc(self, taddr: int, columns: int, exclusive: bool, site: object) -> Blocking:
        """tcgen05.dealloc.cta_group::2: frees a whole allocation in both CTAs."""
        self.agent.proceed(site)
        ctas = self.agent.peers.group(2, site)
        alone = self.machine.assumptions.pair_dealloc == "at-once"
        if alone:
            ctas = (self.cta,)
        for cta in ctas:
            if cta.tmem.allocations.get(taddr) != columns:
                raise MachineError(
                    "tensor-memory-dealloc",
                    f"expected an allocation of CTA {cta.index} to free "
                    f"({cta.tmem.allocations or 'none exists'}), got {columns} columns at "
                    f"{taddr:#x}",
                    site=site,
                )
            check_exclusive(cta.tmem, exclusive, site)
        where = (slice(None), slice(taddr, taddr + columns))
        access = self.agent.own_access("dealloc", site)
        if alone:
            self.agent.checks.note_write(self.cta.tmem.shadow, where, access)
            self.cta.tmem.free(taddr)
            return
        call = self._call(("tcgen05.dealloc", taddr, columns), site)
        peer = self._peer().tmem.shadow
        call.checks = (
            lambda: self.agent.checks.check_write(peer, where, access),
            lambda: self.agent.checks.note_write(self.cta.tmem.shadow, where, access),
        )

        def matched() -> bool:
            if call.done:
                return True
            other = self._other(call)
            if other is not None:
                # All accesses of both CTAs have been made: first against the peer's dealloc.
                for first, second in zip(call.checks, other.checks, strict=True):
                    first()
                    second()
                for mine in (call, other):
                    mine.done = True
                    mine.memory.free(taddr)
                    self._calls().remove(mine)
            return call.done

        yield from self.agent.wait(matched, lambda: self._peer_call(call))

    def _ctas(self) -> tuple[CtaProtocol, CtaProtocol]:
        return self.cta.cluster.pair(self.cta.rank_in_cluster, self.agent.site)

    def _calls(self) -> list[PairCall]:
        return self._ctas()[0].tmem.pair_calls

    def _call(self, what: tuple[object, ...], site: object) -> PairCall:
        call = PairCall(what, self.cta.tmem, site)
        self._calls().append(call)
        return call

    def _other(self, call: PairCall) -> PairCall | None:
        """The matching call of the peer CTA."""
        calls = (c for c in self._calls() if c.memory is not call.memory)
        return next((c for c in calls if c.what == call.what), None)

    def _peer(self) -> CtaProtocol:
        return next(c for c in self._ctas() if c is not self.cta)

    def _peer_call(self, call: PairCall) -> str:
        return f"{call.what[0]} {call.what[1:]} of the peer CTA {self._peer().index} at {call.site}"


def check_exclusive(tmem: TensorMemory, exclusive: bool, site: object) -> None:
    """Raises MachineError unless alloc and dealloc are both exclusive or both not exclusive."""
    if tmem.exclusive != exclusive:
        words = [".exclusive" if e else "no .exclusive" for e in (tmem.exclusive, exclusive)]
        raise MachineError(
            "tensor-memory-dealloc",
            f"expected {words[0]} as in tcgen05.alloc, got {words[1]}",
            site=site,
        )
