"""Properties of a launch that no program can know beforehand: the addresses of its memory, and
which lane elect.sync elects.

Without an order seed, the properties are those observed on hardware; with `RunOptions.placement`
"adverse" they are the opposite extreme. With an order seed they are drawn, within the limits that
the assumptions set (`tcir.machine.assumptions`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from tcir.machine.assumptions import Assumptions
from tcir.run_options import RunOptions
from tcir.target import DEFAULT_TARGET

RESERVED = DEFAULT_TARGET.smem_reserved
"""Bytes at the start of a CTA's window of shared memory that are the system's: ptxas 13.5 places
the first variable at 0x400 for sm_90 and later."""
_FURTHEST = 8 * RESERVED
_DESCRIBED = 1 << 18
"""Addresses that a matrix descriptor can name (PTX ISA 9.7.16.4.1: 14 bits of 16 bytes)."""
_SM_THREADS = 2048


class Placement:
    """The addresses and the elected lanes of one launch."""

    def __init__(self, options: RunOptions) -> None:
        self.assumptions = options.assumptions or Assumptions()
        self.seed, self.adverse = options.order_seed, options.placement == "adverse"
        self._leaders: dict[int, int] = {}

    def shared_start(self, size: int) -> int:
        """The first address of `size` bytes of shared memory, a multiple of `RESERVED`."""
        if self.seed is None or self.assumptions.shared_start == "reserved":
            return RESERVED
        last = min(_FURTHEST, _DESCRIBED - size) // RESERVED
        return RESERVED * self._draw("shared").randint(1, max(1, last))

    def shuffled(self, variables: Sequence[str]) -> list[str]:
        """Returns the static shared variables in the order of their addresses."""
        found = list(variables)
        if self.seed is not None and self.assumptions.shared_start == "drawn":
            self._draw("variables").shuffle(found)
        return found

    def leader(self, members: int) -> int:
        """The lane that elect.sync elects; it is always the same for the same member mask (PTX ISA
        9.7.13.15).
        """
        if self.assumptions.elected_lane == "lowest":
            return (members & -members).bit_length() - 1
        if self.seed is None:
            return (members if self.adverse else members & -members).bit_length() - 1
        if members not in self._leaders:
            lanes = [lane for lane in range(32) if members >> lane & 1]
            self._leaders[members] = self._draw(f"leader of {members}").choice(lanes)
        return self._leaders[members]

    def columns(
        self, cta: object, block: Sequence[int], shared: int
    ) -> Callable[[Sequence[int]], int]:
        """Returns a function that picks one of the columns at which tcgen05.alloc of a CTA may
        begin; its argument lists them in ascending order.

        block: threads of a CTA, by axis
        shared: bytes of shared memory of a CTA
        """
        alone = 2 * (shared + RESERVED) > DEFAULT_TARGET.smem_per_sm
        alone |= 2 * math.prod(block) > _SM_THREADS
        choice = self.assumptions.alloc_place
        if choice == "lowest" or choice == "by-residents" and alone and not self.adverse:
            return min
        if self.seed is None:
            return lambda free: free[-1 if self.adverse else 0]
        draw = self._draw(f"columns of {cta}")
        return lambda free: draw.choice(free[1:] or free)

    def _draw(self, what: str) -> random.Random:
        return random.Random(f"{self.seed}/{what}")
