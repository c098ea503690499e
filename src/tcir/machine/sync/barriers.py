"""Named barriers and mbarriers of an agent."""

from __future__ import annotations

from typing import Any

from tcir.machine.engine.core import Blocking
from tcir.machine.engine.operation import Round
from tcir.machine.errors import MachineError
from tcir.machine.order.happens_before import HappensBefore
from tcir.machine.order.hazards import INIT, Clock, join, marked, observed
from tcir.machine.sync.mbarrier import Mbarrier

WARP = 32


class Barriers(HappensBefore):
    """bar.sync and mbarrier.* (PTX ISA 9.7.13)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seen: Clock = {}
        """What relaxed waits saw: a fence makes it observed."""
        self._fenced_in_cta: Clock = {}
        """What relaxed arrivals of CTA scope release."""

    def barrier(self, number: int, threads: int | None, *, site: Any) -> Blocking:
        """bar.sync: blocks until ``threads`` threads (None: all that still run) have arrived."""
        self._at(site)
        self.machine.counters.barriers += 1
        if not 0 <= number < 16:
            raise MachineError(
                "barrier-number", f"expected a barrier in 0..15, got {number}", site=site
            )
        if threads is not None and (threads < WARP or threads % WARP):
            raise MachineError(
                "barrier-threads",
                f"expected a multiple of {WARP} threads (PTX ISA 9.7.13.1), got {threads}",
                site=site,
            )
        rounds = self.cta.barriers
        this = rounds.setdefault(number, Round(threads))
        if this.threads != threads:
            raise MachineError(
                "barrier-threads",
                f"expected the thread count of who waits at barrier {number} ({this.threads}), "
                f"got {threads}",
                site=site,
            )
        join(this.clock, self.release())
        this.arrived += _whole_warps(self.threads)
        if threads is not None and this.arrived > threads:
            raise MachineError(
                "barrier-over-arrival",
                f"expected {threads} threads at barrier {number}, got {this.arrived}",
                site=site,
            )

        def expected() -> int:
            if threads is not None:
                return threads
            return sum(_whole_warps(a.threads) for a in self.cta.agents if not a.ended)

        def passed() -> bool:
            if not this.done and this.arrived >= expected():
                this.done = True
                del rounds[number]
            return this.done

        yield from self._wait(
            passed, lambda: f"barrier {number} ({this.arrived} of {expected()} threads) at {site}"
        )
        join(self.clock, this.clock)

    # --- mbarriers -------------------------------------------------------------------------------

    def mbarrier_init(self, address: int, count: int, *, site: Any) -> None:
        """mbarrier.init."""
        self._at(site)
        if address % 8:
            raise MachineError(
                "misaligned", f"expected a multiple of 8, got {address:#x}", site=site
            )
        address -= self.cta_of(address, site, own=True).window
        smem = self.cta.smem
        smem.check(address, address + 8, site)
        for known in self.cta.mbarriers.values():
            if known.address == address:
                raise MachineError(
                    "mbarrier-reuse",
                    f"expected mbarrier.inval before a new mbarrier.init at {address:#x}, got "
                    f"{known}",
                    site=site,
                )
        tma = ("tma", self.cta.index, len(self.cta.all_mbarriers))
        barrier = Mbarrier(address, count, site, tma)
        self.cta.mbarriers[address] = barrier
        self.cta.all_mbarriers.append(barrier)
        smem.data[address : address + 8] = 0
        smem.defined[address : address + 8] = True
        self.clock[self.me] += 1  # a number that it shares with no other access
        self.inits.append(self.clock[self.me])
        self.note_write(smem.shadow, _words(address), self.own_access("mbarrier.init", site))
        self.clock[self.me] += 1

    def mbarrier_inval(self, address: int, *, site: Any) -> None:
        """mbarrier.inval: the memory is free for other use."""
        self._at(site)
        barrier = self._own_mbarrier(address, site)
        address = barrier.address
        for component, (number, user) in barrier.users.items():
            if self.machine.checking and self.clock.get(component, 0) < number:
                self.cta.report(
                    "error", "race", f"{user} (uses {barrier})", site,
                    "not ordered: whatever signals the mbarrier must be complete before "
                    "mbarrier.inval",
                )  # fmt: skip
        del self.cta.mbarriers[address]
        barrier.live = False
        smem = self.cta.smem
        smem.poison(address, 8)
        self.note_write(smem.shadow, _words(address), self.own_access("mbarrier.inval", site))

    def _mbarrier(self, address: int, site: Any, *, proxy: str = "generic") -> Mbarrier:
        """The object at ``address``, for a use by this agent (or, through it, the async proxy)."""
        cta = self.cta_of(address, site)
        address -= cta.window
        barrier = cta.mbarriers.get(address)
        if barrier is None:
            known = ", ".join(f"{a:#x}" for a in sorted(cta.mbarriers)) or "none"
            raise MachineError(
                "mbarrier-not-initialised",
                f"expected the address of an initialised mbarrier ({known}), got {address:#x}",
                site=site,
            )
        shadow = cta.smem.shadow
        if shadow is None:
            return barrier
        if cta is not self.cta:
            cta.visitors[self.me] = self.own_access("mbarrier operation", site)
        barrier.users[self.me] = (self.clock[self.me], site)
        meet = "a CTA barrier" if cta is self.cta else "a cluster barrier"
        for other in shadow.writers_at(_words(address)):
            fenced = proxy == "generic" or other.component == self.me
            if not observed(self.clock, other):
                self.cta.report(
                    "error", "mbarrier-init-race", other.site, site,
                    f"{meet} between mbarrier.init and the first use by another warp",
                )  # fmt: skip
            elif not fenced and not marked(self.clock, INIT, other):
                self.cta.report(
                    "warning", "missing-init-fence", other.site, site,
                    "fence.mbarrier_init between mbarrier.init and use by the async proxy",
                )  # fmt: skip
        return barrier

    def _own_mbarrier(self, address: int, site: Any) -> Mbarrier:
        """The object at ``address``, which has to be in this CTA's shared memory."""
        self.cta_of(address, site, own=True)
        return self._mbarrier(address, site)

    def mbarrier_arrive(
        self,
        address: int,
        count: int = 1,
        expect_tx: int | None = None,
        *,
        drop: bool = False,
        completes: bool = True,
        relaxed: str | None = None,
        site: Any,
    ) -> None:
        """mbarrier.arrive and arrive_drop, with ``expect_tx`` announced first.

        completes: False for .noComplete, which must not end the phase. relaxed: the scope of an
        arrival that releases only what a fence did before.
        """
        self._at(site)
        barrier = self._mbarrier(address, site)
        if expect_tx is not None:
            barrier.expect(expect_tx, site)
        if not completes and count >= barrier.pending:
            raise MachineError(
                "mbarrier-no-complete",
                f"expected .noComplete to leave arrivals pending, got {count} of the last ones: "
                f"{barrier}",
                site=site,
            )
        if drop:
            barrier.drop(count, site)
        barrier.arrive(count, self._relaxed(relaxed) if relaxed else self.release(), site)

    def _relaxed(self, scope: str) -> Clock:
        known = dict(self.fenced)
        if scope == "cta":
            join(known, self._fenced_in_cta)
        return known

    def fence(self, kind: str, *, site: Any) -> None:
        """As the base's; and what relaxed waits have seen, or relaxed arrivals will release."""
        if kind in ("cta", "cluster", "gpu", "sys"):
            join(self.clock, self._seen)
        super().fence(kind, site=site)
        if kind == "cta":
            join(self._fenced_in_cta, self.release())

    def mbarrier_complete_tx(self, address: int, nbytes: int, *, site: Any) -> None:
        """mbarrier.complete_tx: counts bytes that no operation brought."""
        self._at(site)
        self._mbarrier(address, site).count_bytes(nbytes, site)

    def mbarrier_expect_tx(self, address: int, nbytes: int, *, site: Any) -> None:
        """mbarrier.expect_tx."""
        self._at(site)
        self._mbarrier(address, site).expect(nbytes, site)

    def mbarrier_test(self, address: int, parity: int, *, relaxed: bool = False, site: Any) -> bool:
        """mbarrier.test_wait.parity; ``relaxed`` acquires with a fence that follows only."""
        self.site = site
        barrier = self._own_mbarrier(address, site)
        if not barrier.complete(parity):
            self.polls = f"parity {parity} of {barrier} at {site}"
            return False
        self._at(site)
        join(self._seen if relaxed else self.clock, barrier.released)
        return True

    def mbarrier_state(self, address: int, *, site: Any) -> tuple[int, int]:
        """Open phase and pending arrivals: the state an arrival returns. Acquires nothing."""
        barrier = self._own_mbarrier(address, site)
        return barrier.phase, barrier.pending

    def mbarrier_wait(self, address: int, parity: int, *, site: Any) -> Blocking:
        """mbarrier.try_wait.parity in a loop."""
        self._at(site)
        barrier = self._own_mbarrier(address, site)
        yield from self._wait(
            lambda: barrier.complete(parity) or not barrier.live,
            lambda: f"parity {parity} of {barrier} at {site}",
        )
        barrier.check_live(site)
        join(self.clock, barrier.released)


def _words(address: int) -> slice:
    return slice(address // 4, address // 4 + 2)


def _whole_warps(threads: int) -> int:
    """bar.sync counts a warp that is not full like a full one (PTX ISA 9.7.13.1)."""
    return -(-threads // WARP) * WARP
