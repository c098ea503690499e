"""TMA writes that race with an mma that reads A and B from the same bytes.

Only the results computed from those bytes become undefined, as if the bytes had never been written;
the race is reported when the program uses such a result. DeepGEMM's kernels depend on this: their
descriptors name 128 rows of A where a tile has 32 or 64, and TMA refills the memory after the tile,
but the kernels do not use the results of the other rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.protocols import AgentProtocol, OperandReads
from tcir.machine.memory.undefined import Origin
from tcir.machine.order.clocks import Access, observed
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.ordering import class_of, piped
from tcir.machine.order.shadow import Shadow

RECENT = 1024
"""The mma of one thread that are kept: of those before them nothing is known."""


class Race(NamedTuple):
    """Two accesses to granules that are not ordered. text: describes the first access, and the
    effect of the second access on its bytes.
    """

    shadow: Shadow
    where: Granules
    first: Access
    second: Access
    text: str

    def lose_rows(self, agent: AgentProtocol, missing: str) -> str:
        """Makes the results of an mma that races with a TMA load undefined. Returns a description
        of the bytes and rows; returns "" for any other race, or if the results have been used.

        missing: the synchronisation that would order the two accesses
        """
        words, readers = self._operands(agent)
        found = [(mma, rows) for mma in readers if (rows := mma.reads(self.shadow, words))]
        if not found:
            return ""
        span = f"bytes {4 * words.min():#x}..{4 * words.max() + 3:#x}"
        for mma, rows in found:
            why = f"not ordered: {missing} ({span}: {rows})"
            origin = Origin("race", self.text, str(self.second.site), why, agent.cta.index)
            if not mma.lose(self.shadow, words, origin):
                return ""
        return f"{span}: {found[0][1]}"

    def _operands(self, agent: AgentProtocol) -> tuple[NDArray[np.int64], list[OperandReads]]:
        """Words of shared memory that TMA writes, and the mma that read them unordered."""
        where, kinds = self.where, (self.first.kind, self.second.kind)
        words = np.arange(where.start, where.stop) if isinstance(where, slice) else where
        if self.shadow.space != "shared memory" or isinstance(words, tuple):
            return np.empty(0, np.int64), []
        if kinds == ("mma", "TMA load"):
            return words, _unordered(agent, self.first)
        if kinds == ("TMA load", "mma"):
            last = agent.cta.cluster.last_mma(self.second.component)[-1]
            return self.shadow.written_by(self.first, words), [last]
        return words, []


def _unordered(agent: AgentProtocol, last: Access) -> list[OperandReads]:
    """The mma like `last` that nothing puts before what the agent does now; none: there may be
    more of them than are kept."""
    found: list[OperandReads] = []
    kept = agent.cta.cluster.last_mma(last.component)
    for mma in reversed(kept):
        if observed(agent.clock, mma.access):
            return found
        if class_of(mma.access) == class_of(last) and not piped(agent.clock, mma.access):
            found.append(mma)
    return found if len(kept) < RECENT else []
