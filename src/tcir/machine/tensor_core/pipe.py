"""The pipe that tcgen05.mma, cp, shift and commit share (PTX ISA 9.7.16.6.2)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from tcir.machine.memory.protocols import AgentProtocol, CtaProtocol, OperandReads
from tcir.machine.memory.undefined import Origin, Undefined
from tcir.machine.order.clocks import Access
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.operation import AsyncOperation
from tcir.machine.order.ordering import class_of
from tcir.machine.order.shadow import Shadow
from tcir.machine.order.unpromised import DESCRIPTOR_CONSTANT
from tcir.machine.tensor_core.narrow import HOLDER_SHIFT
from tcir.machine.tensor_core.operands import SharedDesc

Places = Sequence[tuple[Shadow | None, Granules]]
Missing = Undefined | None
"""Rows of an operand that hold anything undefined; None: no row."""


class Pipe:
    """The in-order pipe of the tensor core, in the view of one agent."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta, self.machine = agent, agent.cta, agent.machine

    def issue(
        self,
        kind: str,
        site: object,
        target: Hashable,
        run: Callable[[], None],
        reads: Places = (),
        writes: Places = (),
        ctas: tuple[CtaProtocol, ...] = (),
        mma: OperandReads | None = None,
    ) -> Access:
        """Issues one operation; the pairs (shadow, granules) are its reads and its writes.

        ctas: the pair on which the operation acts; empty: this CTA. mma: the mma whose results a
            race may make undefined. The operation may complete once the earlier operations that the
            pipe orders before it have completed.
        """
        self.agent.proceed(site)
        thread = self.agent.issue.thread
        thread.issued += 1
        access = Access(thread.component, thread.issued, kind, site, "async", target)
        agents: Sequence[AgentProtocol] = self.cta.agents
        if len(ctas) > 1:
            agents = [agent for cta in ctas for agent in cta.agents]
        issue = self.agent.issue
        issue.reach = reach = issue.before(access, agents)
        issue.listed_reach = promised = issue.before(access, agents, listed=True)
        earlier = tuple(
            o
            for agent in agents
            for t in agent.issue.threads
            for o in t.in_flight
            if o.access is not None
            and not o.done
            and reach.get(class_of(o.access), 0) >= o.access.number
        )
        operation = AsyncOperation(site, run, earlier, access)
        if mma is not None and self.machine.checking:
            mma.begin(access)
            self.cta.cluster.note_mma(mma)
        for shadow, where in writes:
            self.agent.checks.note_write(shadow, where, access)
        for shadow, where in reads:
            self.agent.checks.note_read(shadow, where, access)
        thread.kept.add(access, reach)
        thread.listed.add(access, promised)
        self.cta.launch(operation)
        thread.in_flight = [o for o in thread.in_flight if not o.done]
        if not operation.done:
            thread.in_flight.append(operation)
        return access

    def check_constant(self, operand: object, site: object) -> None:
        """Reports a matrix descriptor that lacks the constant 0b001 in bits 48..46."""
        if isinstance(operand, SharedDesc) and operand.lacks_constant:
            self.cta.report(
                DESCRIPTOR_CONSTANT,
                "descriptor-constant",
                site,
                "matrix descriptor bits 48..46",
                "0b001",
            )

    def origin(self, place: str, site: object) -> Origin:
        """Returns the origin (where the undefined value comes from) of unwritten bytes that an
        operation at `site` reads in `place`.
        """
        return Origin("undefined-read", site, place, cta=self.cta.index)

    def holder_shift(self, bits: int) -> int:
        """Position of a narrow element's lowest bit in its byte of tensor memory."""
        if bits == 6 and self.machine.assumptions.fp6_holder == "5..0":
            return 0
        return HOLDER_SHIFT[bits]


def by_row(undefined: Undefined | None) -> Missing:
    """Reduces a mask over all axes but the first: a row is undefined if any of its elements is."""
    if undefined is None:
        return None
    rows = undefined.where.reshape(len(undefined.where), -1)
    return Undefined(rows, undefined.origin).any(axis=1)
