"""mbarrier instructions (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tcir.machine.errors import MachineError
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import BEYOND, INIT, beyond, join, marked
from tcir.machine.order.lanes import known_to
from tcir.machine.order.mbarrier import Mbarrier, MemoryOrder, PhaseWait, Released
from tcir.machine.order.operation import Blocking
from tcir.machine.order.unpromised import (
    INIT_AGAIN,
    INIT_THEN_RELAXED_BARRIER,
    INIT_WITHOUT_FENCE,
    OVERTAKEN_WAIT,
)

RELEASE = ACQUIRE = MemoryOrder()
MBARRIER_OPERATION = "mbarrier operation"
"""Access kind of an mbarrier operation by a thread of another CTA."""


class Mbarriers:
    """Executes the mbarrier.* instructions of an agent (warp or role)."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta, self.machine = agent, agent.cta, agent.machine
        self.remembered: Mapping[tuple[int, int], PhaseWait] = {}
        """Waits that `test` continues, by address and parity."""
        self._asked: dict[Mbarrier, int] = {}
        """For each mbarrier, the last phase whose end the agent has tested or caused."""

    def init(self, address: int, count: int, *, site: object) -> None:
        """mbarrier.init."""
        self.agent.proceed(site)
        if address % 8:
            raise MachineError(
                "misaligned", f"expected a multiple of 8, got {address:#x}", site=site
            )
        address -= self.agent.peers.cta_of(address, site, own=True).window
        smem = self.cta.smem
        smem.check(address, address + 8, site)
        known = self.cta.mbarriers.get(address)
        if known is not None:
            self._init_again(known, count, site)
            return
        tma = ("tma", self.cta.index, len(self.cta.all_mbarriers))
        events = self.agent.events
        make = Mbarrier if events is None else partial(events.mbarrier, self.cta.window)
        barrier = make(address, count, site, tma)
        barrier.name = self.machine.shared_names.offset(address)
        self.cta.mbarriers[address] = barrier
        self.cta.all_mbarriers.append(barrier)
        smem.data[address : address + 8] = 0
        smem.written(slice(address, address + 8), None, site)
        self.agent.lanes.step()  # a number that it shares with no other access
        self.agent.inits.append(self.agent.lanes.number)
        self.agent.checks.note_write(
            smem.shadow, _words(address), self.agent.own_access("mbarrier.init", site)
        )
        self.agent.lanes.step()

    def _init_again(self, known: Mbarrier, count: int, site: object) -> None:
        """mbarrier.init of an initialised object: a finding if it is unused and the count is the
        same, else an error."""
        if known.count != count or not known.unused:
            raise MachineError(
                "mbarrier-reuse",
                f"expected mbarrier.inval of the {known} first, got another mbarrier.init",
                site=site,
            )
        self.cta.report(
            INIT_AGAIN,
            "mbarrier-init-again",
            known.site,
            site,
            "mbarrier.init by one thread, or mbarrier.inval between",
        )
        self.agent.inits.append(self.agent.lanes.number)
        known.again.append(self.agent.own_access("mbarrier.init", site))
        self.agent.lanes.step()

    def inval(self, address: int, *, site: object) -> None:
        """mbarrier.inval: ends the mbarrier, so that its memory may be used for other data."""
        self.agent.proceed(site)
        barrier = self._own(address, site)
        address = barrier.address
        for component, (number, user) in barrier.users.items():
            if self.machine.checking and not any(
                self.agent.lanes.sees(component, number, mark) for mark in (None, BEYOND)
            ):
                self.cta.report(
                    "error",
                    "race",
                    f"{user} (uses {barrier})",
                    site,
                    "not ordered: whatever signals the mbarrier must be complete before "
                    "mbarrier.inval",
                )
        del self.cta.mbarriers[address]
        barrier.live = False
        smem = self.cta.smem
        smem.poison(address, 8)
        self.agent.checks.note_write(
            smem.shadow, _words(address), self.agent.own_access("mbarrier.inval", site)
        )

    def at(
        self, address: int, site: object, *, proxy: str = "generic", operation: bool = False
    ) -> Mbarrier:
        """Returns the mbarrier object at ``address``, which this agent, or the async proxy on its
        behalf, is about to use.

        operation: an asynchronous operation of the generic proxy (st.async) that signals the
            mbarrier later; the use ends when the operation completes.
        """
        cta = self.agent.peers.cta_of(address, site)
        address -= cta.window
        barrier = cta.mbarriers.get(address)
        if barrier is None:
            known = ", ".join(cta.mbarriers[a].where for a in sorted(cta.mbarriers)) or "none"
            raise MachineError(
                "mbarrier-not-initialised",
                f"expected the address of an initialised mbarrier ({known}), got "
                f"{self.machine.shared_names.offset(address)}",
                site=site,
            )
        shadow = cta.smem.shadow
        if shadow is None:
            return barrier
        if proxy == "generic" and not operation:  # loads, commits: their own
            if cta is not self.cta:
                cta.remote_accesses[self.agent.me] = self.agent.own_access(MBARRIER_OPERATION, site)
            barrier.users[self.agent.me] = (self.agent.lanes.number, site)
        meet = "a CTA barrier" if cta is self.cta else "a cluster barrier"
        again = [other for other in barrier.again if other.component != self.agent.me]
        for other in (*shadow.writers_at(_words(address)), *again):
            fenced = proxy == "generic" or other.component == self.agent.me
            observed = self.agent.checks.has_observed(shadow, _words(address), other)
            if not observed and known_to(self.agent.met, other):
                self.cta.report_relaxed(other.site, site, INIT_THEN_RELAXED_BARRIER)
            elif not observed:
                lanes = other.component == self.agent.me
                self.cta.report(
                    "error",
                    "mbarrier-init-race",
                    other.site,
                    site,
                    f"{'bar.warp.sync' if lanes else meet} between mbarrier.init and the first use "
                    f"by another {'lane' if lanes else 'warp'}",
                )
            elif not fenced and not marked(self.agent.clock, INIT, other):
                self.cta.report(
                    INIT_WITHOUT_FENCE,
                    "missing-init-fence",
                    other.site,
                    site,
                    "fence.mbarrier_init between mbarrier.init and use by the async proxy",
                )
        return barrier

    def _own(self, address: int, site: object) -> Mbarrier:
        """Returns the object at ``address``, which must be in this CTA's shared memory."""
        self.agent.peers.cta_of(address, site, own=True)
        return self.at(address, site)

    def arrive(
        self,
        address: int,
        count: int = 1,
        expect_tx: int | None = None,
        *,
        drop: bool = False,
        completes: bool = True,
        more: int = 0,
        order: MemoryOrder = RELEASE,
        site: object,
    ) -> None:
        """mbarrier.arrive and arrive_drop; the bytes of ``expect_tx`` are announced before the
        arrival.

        completes: False for .noComplete, which must not end the phase. more: lanes of this
            instruction that arrive at the same mbarrier after this arrival; it is undefined whether
            their arrivals count in the same phase, and which arrival ends it. A relaxed arrival
            releases only accesses that an earlier fence covers.
        """
        self.agent.proceed(site)
        barrier = self.at(address, site)
        phase = barrier.phase
        if expect_tx is not None:
            barrier.expect(expect_tx, site)
        if not completes and count >= barrier.pending:
            raise MachineError(
                "mbarrier-no-complete",
                f"expected .noComplete to leave arrivals pending, got a count of {count}, which "
                f"completes the phase: {barrier}",
                site=site,
            )
        if drop:
            barrier.drop(count, site)
        agent, far = self.agent, self.agent.peers.cta_of(address, site) is not self.cta
        # The waiting threads are in the mbarrier's CTA; a fence must include them as well.
        released = agent.lanes.fenced(int(far)) if order.relaxed else agent.release()
        if far and not order.of_cluster:
            barrier.arrive(count, beyond(released), site)
        else:
            barrier.arrive(count, released, site, far=far)
        if barrier.phase != phase:
            self._asked[barrier] = barrier.phase
            if more:
                self.cta.report(
                    "error",
                    "arrivals-of-two-phases",
                    site,
                    f"the next phase of the mbarrier at {barrier.address:#x}",
                    f"a count of all lanes that arrive, or an arrival of one lane: {barrier.count} "
                    "of the lanes end the phase, and the others arrive in later phases",
                )

    def complete_tx(self, address: int, nbytes: int, *, site: object) -> None:
        """mbarrier.complete_tx: counts bytes as transferred without a copy."""
        self.agent.proceed(site)
        self.at(address, site).count_bytes(nbytes, site)

    def expect_tx(self, address: int, nbytes: int, *, site: object) -> None:
        """mbarrier.expect_tx."""
        self.agent.proceed(site)
        self.at(address, site).expect(nbytes, site)

    def test(
        self,
        address: int,
        parity: int,
        *,
        order: MemoryOrder = ACQUIRE,
        heeded: bool = True,
        site: object,
    ) -> bool:
        """mbarrier.test_wait.parity. A relaxed test acquires only at a later fence. A test whose
        result the program does not read (`heeded` is False) acquires nothing, because the result
        might have been false.
        """
        barrier = self._own(address, site)
        released = barrier.released
        if not barrier.complete(parity):
            wait = self.remembered.get((address, parity))
            barrier.asked = barrier.phase
            if wait is None or wait.released is None:
                self.agent.poll(site, f"parity {parity} of {barrier} at {site}", barrier)
                return False
            released = wait.released
            self._overtaken(barrier, site)
        self.agent.proceed(site)
        if heeded:
            self._acquire(released, order)
        if self.agent.events is not None:
            self.agent.events.ended(barrier, parity)
        return True

    def refuses(self, address: int, parity: int, *, site: object) -> bool:
        """Whether a test_wait or try_wait returns false although the phase is complete. This
        happens at most once per phase, and only if nothing that the agent has observed implies that
        the phase is complete (`CompletionOrder.refuses`).
        """
        order, barrier = self.cta.cluster.order, self._own(address, site)
        if order is None or not order.refuses:
            return False
        asked, self._asked[barrier] = self._asked.get(barrier), barrier.phase
        if asked == barrier.phase or not barrier.complete(parity):
            return False
        clock, released = self.agent.clock, barrier.released
        known = all(
            clock.get(line, 0) >= number or clock.get((BEYOND, line), 0) >= number
            for part in (released.near, released.far)
            for line, number in part.items()
        )
        if not known and self.agent.events is not None:
            self.agent.events.refused()
        return not known

    def watch(self, address: int, *, site: object) -> PhaseWait:
        """Returns an object that represents a wait for the open phase; pass it to `remembered` or
        `sleep`.
        """
        return self._own(address, site).watch()

    def sleep(
        self, address: int, wait: PhaseWait, *, gives_up: bool = False, site: object
    ) -> Blocking:
        """Blocks until the phase of the wait is complete or the mbarrier is invalid. If the loop
        around the wait `gives_up`, blocks at most until no other agent can run. Acquires nothing.
        """
        agent, barrier = self.agent, self._own(address, site)
        agent.proceed(site)
        yield from agent.wait(
            lambda: wait.released is not None or not barrier.live or (gives_up and agent.alone),
            lambda: f"parity {barrier.phase & 1} of {barrier} at {site}",
            barrier,
            gives_up,
        )
        barrier.check_live(site)

    def state(self, address: int, *, site: object) -> tuple[int, int]:
        """Returns the open phase and the pending arrivals, which make up the state that
        mbarrier.arrive returns. Acquires nothing.
        """
        barrier = self._own(address, site)
        return barrier.phase, barrier.pending

    def wait(
        self, address: int, parity: int, *, order: MemoryOrder = ACQUIRE, site: object
    ) -> Blocking:
        """mbarrier.try_wait.parity, repeated until it succeeds."""
        self.agent.proceed(site)
        barrier = self._own(address, site)
        released: Released | None = barrier.released
        if not barrier.complete(parity):
            wait = barrier.watch()
            yield from self.sleep(address, wait, site=site)
            released = wait.released
            if not barrier.complete(parity):
                self._overtaken(barrier, site)
        barrier.check_live(site)
        self._acquire(released or Released(), order)

    def _acquire(self, released: Released, order: MemoryOrder) -> None:
        """Merges the clock that a wait acquires; the scope of a fence after a relaxed one must
        include the releasing thread."""
        self.agent.lanes.learn()
        near, far = self.agent.seen[:2] if order.relaxed else [self.agent.clock] * 2
        join(near, released.near)
        if released.far:
            join(far, released.to(order))

    def _overtaken(self, barrier: Mbarrier, site: object) -> None:
        self.cta.report(
            OVERTAKEN_WAIT,
            "phase-overtaken",
            f"the wait at {site}",
            f"mbarrier at {barrier.where}",
            "an arrival of the waiter that the next phase also needs",
        )


def _words(address: int) -> slice:
    return slice(address // 4, address // 4 + 2)
