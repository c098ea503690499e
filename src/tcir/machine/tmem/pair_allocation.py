"""tcgen05.alloc and .dealloc of a pair of CTAs: a warp of each takes part (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tcir.machine.engine.cluster import PairCall
from tcir.machine.engine.core import Blocking
from tcir.machine.errors import MachineError
from tcir.machine.memory.memories import TensorMemory
from tcir.machine.order.happens_before import HappensBefore


class PairAllocation(HappensBefore):
    """The first of the two calls waits for the second.

    The ISA lets dealloc wait or not wait: by default it does here, so that a program which relies
    on its not waiting ends in a deadlock. Neither call orders anything else.
    """

    def _pair_alloc(self, columns: int, exclusive: bool, site: Any) -> Generator[Any, Any, int]:
        """The first column of the same columns of both CTAs."""
        kind = "tcgen05.alloc.exclusive" if exclusive else "tcgen05.alloc"
        call = self._call((kind, columns), site)
        first, second = (cta.tmem for cta in self._my_pair.ctas)

        def matched() -> bool:
            if call.done:
                return True
            other = self._other(call)
            if other is not None and (base := first.room(columns, second, exclusive)) is not None:
                for mine in (call, other):
                    mine.done, mine.base = True, base
                    mine.cta.tmem.allocate(base, columns, exclusive)
                    self._my_pair.calls.remove(mine)
            return call.done

        def words() -> str:
            if self._other(call) is None:
                return self._peer_call(call)
            held = "".join(tmem.sm.holders(tmem) for tmem in (first, second))
            return f"{columns} free columns of tensor memory at {site}{held}"

        yield from self._wait(matched, words)
        return call.base

    def same_kind(self, tmem: TensorMemory, exclusive: bool, site: Any) -> None:
        """MachineError unless dealloc and the alloc before it are both exclusive, or neither."""
        if tmem.exclusive != exclusive:
            words = [".exclusive" if e else "no .exclusive" for e in (tmem.exclusive, exclusive)]
            raise MachineError(
                "tensor-memory-dealloc",
                f"expected {words[0]} as in tcgen05.alloc, got {words[1]}",
                site=site,
            )

    def tmem_pair_dealloc(
        self, taddr: int, columns: int, exclusive: bool = False, *, site: Any
    ) -> Blocking:
        """tcgen05.dealloc.cta_group::2 of a whole allocation of both CTAs."""
        self._at(site)
        ctas = self.group(2, site)
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
            self.same_kind(cta.tmem, exclusive, site)
        access = self.own_access("dealloc", site)
        for cta in ctas:
            shadow, where = cta.tmem.shadow, (slice(None), slice(taddr, taddr + columns))
            if shadow is not None:  # no visit of the other CTA: it takes part, so it is there
                self._check(shadow, where, access, write=True)
                shadow.record_write(where, access)
        if alone:
            self.cta.tmem.free(taddr)
            return
        call = self._call(("tcgen05.dealloc", taddr, columns), site)

        def matched() -> bool:
            if call.done:
                return True
            other = self._other(call)
            if other is not None:
                for mine in (call, other):
                    mine.done = True
                    mine.cta.tmem.free(taddr)
                    self._my_pair.calls.remove(mine)
            return call.done

        yield from self._wait(matched, lambda: self._peer_call(call))

    @property
    def _my_pair(self) -> Any:
        return self.cta.cluster.pair(self.cta.rank_in_cluster, self.site)

    def _call(self, what: tuple[Any, ...], site: Any) -> PairCall:
        call = PairCall(what, self.cta, site)
        self._my_pair.calls.append(call)
        return call

    def _other(self, call: PairCall) -> PairCall | None:
        """The same call of the other CTA."""
        calls = (c for c in self._my_pair.calls if c.cta is not call.cta)
        return next((c for c in calls if c.what == call.what), None)

    def _peer_call(self, call: PairCall) -> str:
        peer = next(c for c in self._my_pair.ctas if c is not call.cta)
        return f"{call.what[0]} {call.what[1:]} of the peer CTA {peer.index} at {call.site}"
