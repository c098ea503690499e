"""Collector buffers, in which an mma can leave an operand for later mma.

PTX ISA 9.7.16.10.9.1 and .3: there is one buffer for A, and under .ws there are four for B. `fill`
keeps in the buffer the matrix that the mma read from memory. `use` and `lastuse` may read the
matrix from the buffer, which "requires a previous fill to be still valid". `lastuse` and `discard`,
the default, release the buffer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tcir.machine.memory.protocols import CtaProtocol
from tcir.machine.order.clocks import Access, observed
from tcir.machine.order.collected import Collected
from tcir.machine.order.ordering import class_of
from tcir.machine.order.unpromised import last_use_of_nothing
from tcir.machine.tensor_core.instruction_descriptor import InstructionDescriptor
from tcir.machine.tensor_core.instruction_descriptor_scaled import ScaledDescriptor
from tcir.machine.tensor_core.mma_operands import OperandSource
from tcir.machine.tensor_core.operands import ElementAddresses, TmemAddr
from tcir.machine.tensor_core.pipe import Pipe


@dataclass(frozen=True)
class MatrixIdentity:
    """Identifies the matrix in a collector buffer. what: place, type and shape of the matrix.
    versions: the last writes of its bytes.
    """

    what: Hashable
    versions: frozenset[tuple[Hashable, ...]]


def matrix(
    operand: TmemAddr | ElementAddresses,
    i: InstructionDescriptor | ScaledDescriptor,
    sources: Sequence[OperandSource],
) -> MatrixIdentity:
    """Identity of the operand of one mma that a collector buffer may hold: A, or B under .ws.
    `sources`: the operand in each CTA of the pair.
    """
    if isinstance(operand, TmemAddr):
        place: Hashable = operand
    else:
        place = operand.base, operand.addresses.shape, operand.addresses.tobytes()
    form = i.b_type if i.ws else (i.a_type, i.m, i.sparse)
    writers = {
        (number, writer.component, writer.number)
        for number, source in enumerate(sources)
        if source.shadow is not None
        for last in source.shadow.writers_at(source.where)
        for writer in (last, *last.concurrent)
    }
    return MatrixIdentity((place, i.kind, form), frozenset(writers))


class Collectors:
    """The collector buffers of a CTA or a pair, in the view of one agent."""

    def __init__(self, pipe: Pipe) -> None:
        self.agent = pipe.agent

    def note(
        self, usage: tuple[str, str], matrix: MatrixIdentity | None, mma: Access, owner: CtaProtocol
    ) -> None:
        """Checks and records the issue of `mma` with `.collector::BUFFER::OP`.

        usage: (BUFFER, OP). matrix: None for `discard`.
        """
        buffer, op = usage
        held = owner.collectors.get(buffer)
        if op in ("use", "lastuse") and matrix is not None:
            self._check(f".collector::{buffer}::{op}", buffer, held, matrix, mma)
        if op == "fill" and matrix is not None:
            owner.collectors[buffer] = Collected(mma, matrix.what, matrix.versions)
        elif op != "use" and held is not None and held.matrix is not None:
            owner.collectors[buffer] = Collected(mma)

    def _check(
        self, words: str, buffer: str, held: Collected | None, matrix: MatrixIdentity, mma: Access
    ) -> None:
        name = "B" if buffer.startswith("b") else "A"
        if held is None or held.matrix is None:
            self._empty(words, name, held, mma)
        elif held.matrix != matrix.what:
            self._report(
                held.mma,
                mma,
                f"{words} with the {name} of the fill, or a fill of this {name}: "
                "the buffer holds another matrix (place, type or shape)",
            )
        elif held.versions != matrix.versions:
            self._report(
                held.mma, mma, f"a fill of the new contents: {name} was overwritten since the fill"
            )
        elif not self._ordered(held.mma):
            self._report(
                held.mma,
                mma,
                "tcgen05.fence::before_thread_sync, a barrier and "
                "::after_thread_sync between the fill of one thread and the use of another",
            )

    def _empty(self, words: str, name: str, held: Collected | None, mma: Access) -> None:
        first = "the start of the kernel" if held is None else f"{held.mma.site} (gives it up)"
        if words.endswith("lastuse"):
            self.agent.cta.report(
                last_use_of_nothing(words, name),
                "collector-not-filled",
                first,
                mma.site,
                f"a fill of the same {name}",
            )
            return
        self.agent.cta.report(
            "error",
            "collector-not-filled",
            first,
            mma.site,
            f"a fill of the same {name} that is still valid at {words} (PTX ISA 9.7.16.10.9): an "
            "mma without a collector qualifier gives up the buffer",
        )

    def _ordered(self, fill: Access) -> bool:
        if fill.component == self.agent.issue.thread.component:
            return True  # a fill and a use of one thread, whatever their accumulators
        reach = self.agent.issue.reach.get(class_of(fill), 0)
        return reach >= fill.number or observed(self.agent.clock, fill)

    def _report(self, fill: Access, mma: Access, missing: str) -> None:
        self.agent.cta.report(
            "error", "collector-mismatch", f"{fill.site} (fill)", mma.site, missing
        )
