"""Names for bytes of shared memory in reports: the program's variables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from tcir.machine.memory.memories import RANK_SHIFT, address_words


class SharedNames:
    """The variables in shared memory, by their offset in a CTA's window."""

    def __init__(self, variables: Mapping[str, int] | None = None) -> None:
        found = {offset: name for name, offset in (variables or {}).items()}
        self._offsets = sorted(found)
        self._names = [found[offset] for offset in self._offsets]

    def offset(self, offset: int) -> str:
        """Formats an offset as `variable+0x8`, or in hexadecimal if no variable begins at or before
        it.
        """
        place = bisect_right(self._offsets, offset) - 1
        if place < 0:
            return address_words(offset)
        inside = offset - self._offsets[place]
        return self._names[place] + (f"+{inside:#x}" if inside else "")

    def address(self, address: int) -> str:
        """Formats an address: its offset, as the method `offset` does, and the rank of its CTA in
        the cluster.
        """
        offset = address & (1 << RANK_SHIFT) - 1
        return f"{self.offset(offset)} of the CTA of rank {address >> RANK_SHIFT}"
