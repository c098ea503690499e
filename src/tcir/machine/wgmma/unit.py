"""wgmma.mma_async, commit_group and wait_group of one warp of a warpgroup.

A warp computes the 16 rows of D that its registers hold, but is modelled as if it read all of A and
B. Its operations complete in order. Other threads are ordered after their reads of shared memory by
a wait_group followed by a barrier or an arrival (PTX ISA 9.7.15.7). Under the assumption
`handed_over`, a wait also ends no sooner than the same wgmma of the other warps.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.protocols import AgentProtocol, WarpgroupPart
from tcir.machine.numerics.types import MmaTypes
from tcir.machine.numerics.wgmma import WgmmaTypes, wgmma_product
from tcir.machine.order.clocks import BY_WARPGROUP, Access, Clock, Component, join
from tcir.machine.order.distinct import distinct
from tcir.machine.order.operation import AsyncOperation, Blocking
from tcir.machine.refusal import Refusal
from tcir.machine.tensor_core.operands import ElementAddresses
from tcir.machine.wgmma.descriptor import decode_matrix, element_table

Codes = np.ndarray
Operand = int | ElementAddresses
"""A descriptor, or the address of each element [rows, K]."""
WARPS = 4
ROWS = 64


@dataclass(frozen=True)
class WgmmaForm:
    """Shape and types of one instruction. k: K of the instruction, including the zeros of a sparse
    A; major: "K" or "MN", for A and for B.
    """

    n: int
    k: int
    bits: int
    types: MmaTypes
    major: tuple[str, str] = ("K", "K")
    saturate: bool = False
    sparse: bool = False

    @property
    def stored(self) -> int:
        """Number of stored elements of a row of A: half of k if A is sparse."""
        return self.k // 2 if self.sparse else self.k


@dataclass(eq=False)
class Flight:
    """A wgmma that has been issued. d: D before it, or the operation that computes this D; result:
    D after it, once it is complete.
    """

    form: WgmmaForm
    number: int
    site: object
    d: NDArray[np.uint32] | Flight | None
    result: NDArray[np.uint32] | None = None


class Wgmma:
    """The wgmma operations of one warp: how many it has issued, and the last operation of each
    group.
    """

    def __init__(self, agent: AgentProtocol, memory: Memory) -> None:
        self.agent, self.memory, self.cta = agent, memory, agent.cta
        self.component: Component = ("wgmma", agent.me)
        self.issued = 0
        self._committed: list[int] = []
        self._flying: list[AsyncOperation] = []
        """Operations that no wait has covered, in issue order."""
        self.last: object = None
        """Site of the last operation issued."""

    @property
    def quarter(self) -> int:
        """Number, 0..3, of the quarter of D (16 rows) that the registers of the warp hold."""
        return self.agent.warp % WARPS

    def issue(
        self,
        form: WgmmaForm,
        a: Operand | Codes,
        b: Operand,
        d: NDArray[np.uint32] | Flight | None,
        select: NDArray[np.int32] | None = None,
        *,
        site: object,
    ) -> Flight:
        """Issues wgmma.mma_async.

        a: 64 rows in shared memory, or codes [16, K] from registers; d: [16, n], or None if scale-d
            is false. select: k of each stored element of a sparse A, [16, K / 2].
        """
        agent = self.agent
        agent.proceed(site)
        agent.lanes.learn()
        self._together((form, _name(a), _name(b), d is not None), site)
        if not self.issued:
            self._group.append(self)
        self.issued += 1
        self.last = site
        flight = Flight(form, self.issued, site, d)
        rows = slice(16 * self.quarter, 16 * self.quarter + 16)
        access = Access(self.component, self.issued, "wgmma", site, "async")
        of_b = self._shared(b, form.n, form.k, form, 1, access)
        registers, of_a = np.empty(0), None
        if isinstance(a, np.ndarray):
            registers = a
        else:
            of_a = self._shared(a, ROWS, form.stored, form, 0, access)
        counters = agent.machine.counters
        if self.quarter == 0:
            counters.mma += 1
            counters.mma_untimed += 1
            counters.products += ROWS * form.n * form.k
            of_row = 32 * (form.k // form.stored)
            counters.shared_to_tensor += of_row * form.n + (32 * ROWS if of_a is not None else 0)

        def run() -> None:
            codes_b = self._codes(of_b, form, site)
            codes_a = registers if of_a is None else self._codes(of_a[rows], form, site)
            before = flight.d.result if isinstance(flight.d, Flight) else flight.d
            product = WgmmaTypes(form.types, form.saturate)
            flight.result = wgmma_product(codes_a, codes_b, before, product, select)
            flight.d = None

        operation = AsyncOperation(site, run, tuple(self._flying[-1:]))
        self._flying.append(operation)
        agent.cta.launch(operation)
        return flight

    def whole(
        self,
        form: WgmmaForm,
        a: ElementAddresses | Codes,
        b: ElementAddresses,
        d: NDArray[np.uint32] | None,
        *,
        site: object,
    ) -> NDArray[np.uint32]:
        """Returns the product of all rows of A, complete at once, for an agent that stands for the
        whole CTA.

        a: operand in shared memory, or codes [rows, K] from registers; d: None if scale-d is false
        """
        agent = self.agent
        agent.proceed(site)
        self.issued += 1
        access = Access(self.component, self.issued, "wgmma", site, "async")
        rows = len(a if isinstance(a, np.ndarray) else a.addresses)
        of_b = self._shared(b, form.n, form.k, form, 1, access)
        agent.machine.counters.products += rows * form.n * form.k
        product = WgmmaTypes(form.types, form.saturate)
        if isinstance(a, np.ndarray):
            codes_a = a
        else:
            codes_a = self._codes(self._shared(a, rows, form.k, form, 0, access), form, site)
        codes_b = self._codes(of_b, form, site)
        result = wgmma_product(codes_a, codes_b, d, product)
        agent.lanes.learn()
        agent.clock[self.component] = self.issued
        self._committed.append(self.issued)
        return result

    def commit(self, *, site: object) -> None:
        """wgmma.commit_group."""
        self.agent.proceed(site)
        self._committed.append(self.issued)

    def wait(self, pending: int, *, site: object) -> Blocking:
        """wgmma.wait_group: waits until all groups except the last `pending` are complete."""
        agent = self.agent
        agent.proceed(site)
        groups = self._committed[: len(self._committed) - pending]
        last = groups[-1] if groups else 0
        covered = len(self._flying) - (self.issued - last)
        if covered > 0:
            needed = self._flying[covered - 1]
            yield from agent.wait(
                lambda: needed.done and self._others_done(last),
                lambda: f"wgmma groups at {site}{self._absent(last)}",
            )
            del self._flying[:covered]
        for knowledge in agent.lanes.groups:  # .aligned: every lane waits, whatever else it knows
            known = knowledge.clock.get(self.component, 0)
            knowledge.clock[self.component] = max(known, last)
            if self._covers_all:
                together: Clock = {(BY_WARPGROUP, unit.component): last for unit in self._group}
                join(knowledge.clock, together)

    @property
    def done(self) -> int:
        """Number of the warp's operations that have finished reading their operands."""
        return self.issued - sum(not operation.done for operation in self._flying)

    @property
    def complete(self) -> int:
        """Number of the last operation that the warp has waited for."""
        return self.agent.clock.get(self.component, 0)

    # --- operands --------------------------------------------------------------------------------

    def _shared(
        self, operand: Operand, rows: int, k: int, form: WgmmaForm, which: int, access: Access
    ) -> NDArray[np.int64]:
        """Returns the addresses of an operand's elements [rows, k] and records their read."""
        size = max(8, form.bits)
        if isinstance(operand, ElementAddresses):
            at = operand.base + operand.addresses
        else:
            try:
                columns = k * form.bits // size
                base, table = element_table(
                    decode_matrix(operand), rows, columns, size, form.major[which]
                )
            except Refusal as refusal:
                raise MachineError.of(refusal, access.site) from None
            at = base + table
        smem = self.cta.smem
        smem.check(int(at.min()), int(at.max()) + size // 8, access.site)
        if smem.shadow is not None:
            self.agent.checks.note_read(smem.shadow, distinct(at // 4), access)
        return at

    def _codes(self, at: NDArray[np.int64], form: WgmmaForm, site: object) -> Codes:
        """Returns the codes of the elements and reports undefined ones."""
        size = max(8, form.bits) // 8
        smem = self.cta.smem
        missing = smem.missing(
            at[..., None] + np.arange(size), self.memory.origin("shared memory", site)
        )
        if missing is not None:
            self.cta.report_undefined(missing.origin, site)
        codes: Codes = smem.view(np.dtype(f"u{size}"))[at // size]
        if form.bits == 1:
            return np.unpackbits(codes, axis=-1, bitorder="little")
        return codes

    # --- the warpgroup ---------------------------------------------------------------------------

    @property
    def _group(self) -> list[WarpgroupPart]:
        """The warps of the warpgroup that have issued a wgmma."""
        return self.cta.warpgroup_parts.setdefault(self.agent.warp // WARPS, [])

    @property
    def _covers_all(self) -> bool:
        """Whether a wait covers the wgmma of all four warps."""
        return self.agent.machine.assumptions.handed_over == "met"

    def _others_done(self, last: int) -> bool:
        """Whether the `last` first operations are done in all four warps, if a wait covers them."""
        group = self._group
        if not self._covers_all:
            return True
        return len(group) == WARPS and all(unit.done >= last for unit in group)

    def _absent(self, last: int) -> str:
        """How many warps of the warpgroup have issued the `last` first operations; "": all."""
        there = sum(unit.issued >= last for unit in self._group)
        if there == WARPS or not self._covers_all:
            return ""
        return f": {there} of the four warps of the warpgroup have executed them"

    def _together(self, what: tuple[Hashable, ...], site: object) -> None:
        """MachineError unless all four warps execute the same instruction with the same
        descriptors."""
        cta, group = self.cta, self.agent.warp // WARPS
        if len(cta.agents) < WARPS * (group + 1):
            raise MachineError(
                "warpgroup",
                f"expected four warps, the first a multiple of four (PTX ISA 9.7.15), got a CTA of "
                f"{len(cta.agents)}: launch a multiple of 128 threads",
                site=site,
            )
        rounds = cta.warpgroups.setdefault(group, {})
        first = rounds.setdefault(self.issued, (what, site))
        if first != (what, site):
            raise MachineError(
                "warpgroup",
                f"expected the same wgmma with the same operands in all four warps, as at "
                f"{first[1]}: {_words(first[0])}; got {_words(what)} in warp {self.agent.warp}",
                site=site,
            )


def _name(operand: Operand | Codes) -> Hashable:
    if isinstance(operand, ElementAddresses):
        return int(operand.base + operand.addresses[0, 0])
    return operand if isinstance(operand, int) else "registers"


def _words(what: tuple[Hashable, ...]) -> str:
    _, a, b, accumulates = what
    named = [hex(x) if isinstance(x, int) else str(x) for x in (a, b)]
    return f"A {named[0]}, B {named[1]}, scale-d {'true' if accumulates else 'false'}"
