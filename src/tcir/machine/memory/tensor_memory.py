"""Tensor memory of a CTA, and what the CTAs on one SM share of it (PTX ISA 9.7.16.1, 9.7.16.7).

An allocation belongs to its CTA, and what it holds is undefined at first; so each CTA keeps words
of its own, and what CTAs share is which columns are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.undefined import Tracked
from tcir.machine.order.shadow import Shadow

LANES, COLUMNS = 128, 512
"""Tensor memory of one SM: lanes x 32-bit columns (PTX ISA 9.7.16.1)."""
Lanes = slice | NDArray[np.int64]
"""What indexes lanes."""
POISON_WORD = 0x7FFF_CBCB
"""Undefined words: a NaN as f32."""
UNSPECIFIED_HALF = 0xCBCB_0000
"""Upper half of a word that holds 16 bits: no document says what is in it."""


@dataclass(eq=False)
class PairCall:
    """An alloc or dealloc of cta_group::2 that waits for the same one of the other CTA."""

    what: tuple[object, ...]
    memory: TensorMemory
    site: object
    checks: Sequence[Callable[[], None]] = ()
    """Checks of its accesses, run once both CTAs have called: the peer's memory, then its own."""
    done: bool = False
    base: int = 0


class Sm:
    """The tensor memories of the CTAs on one SM; `permits`: whether its first user keeps it."""

    def __init__(self, permits: bool = False) -> None:
        self.permits = permits
        self.memories: list[TensorMemory] = []

    def taken(self) -> NDArray[np.bool_]:
        """Columns that are not free."""
        return np.logical_or.reduce([m.allocated for m in self.memories])

    def closed(self, asking: TensorMemory, exclusive: bool) -> bool:
        """Whether an exclusive allocation, or the permit of another CTA, keeps this one out."""
        others = [m for m in self.memories if m is not asking]
        return (
            any(m.exclusive for m in self.memories)
            or (exclusive and any(m.allocations for m in self.memories))
            or (self.permits and any(m.has_permit for m in others))
        )

    def holders(self, asking: TensorMemory) -> str:
        """Owners of columns, for messages."""
        return "".join(
            f"; {'it' if m is asking else m.name} has {m.columns()}"
            for m in self.memories
            if m.allocations
        )


class Accumulation:
    """Sums that mma make in columns of D, from one that does not add D on.

    lanes, columns: of which anything has been read so far.
    """

    def __init__(self, columns: slice) -> None:
        self.place = columns
        self.lanes = np.zeros(LANES, bool)
        self.columns = np.zeros(COLUMNS, bool)

    def read(self, lanes: Lanes, columns: slice) -> None:
        """Words of these lanes and columns are read."""
        if columns.start < self.place.stop and self.place.start < columns.stop:
            self.lanes[lanes] = True
            self.columns[columns] = True

    def was_read(self, words: NDArray[np.bool_], lanes: Lanes) -> bool:
        """Whether any of D's words [lanes, columns] has been read, or may have been."""
        read = words & self.lanes[lanes][:, None] & self.columns[self.place]
        return bool(read.any())


class TensorMemory(Tracked):
    """Tensor memory of a CTA: words [lane, column], which are defined, which allocated.

    An allocation takes the lowest free columns, or the place that `pick` chooses.
    """

    def __init__(
        self,
        hazards: bool,
        zeros: bool = False,
        pick: Callable[[Sequence[int]], int] = min,
        sm: Sm | None = None,
        name: str = "the CTA",
    ) -> None:
        self._pick = pick
        self.name = name
        self.sm = sm or Sm()
        self.sm.memories.append(self)
        self.zeros = zeros
        """Whether alloc gives columns of zeros: an open question."""
        self.words = np.full((LANES, COLUMNS), POISON_WORD, np.uint32)
        self.defined: NDArray[np.bool_] = np.zeros((LANES, COLUMNS), bool)
        self.allocated = np.zeros(COLUMNS, bool)
        self.allocations: dict[int, int] = {}
        self.largest = COLUMNS
        self.relinquished: object = None
        """Where tcgen05.relinquish_alloc_permit was."""
        self.pair_calls: list[PairCall] = []
        """Calls in progress of the pair whose even CTA this is."""
        self.exclusive = False
        """Whether its allocation is one by tcgen05.alloc.exclusive."""
        self.has_permit = False
        """Whether it has allocated, and not given up its right to allocate more."""
        self.shadow = Shadow((LANES, COLUMNS), "tensor memory") if hazards else None
        self.accumulations: dict[Hashable, Accumulation] = {}
        """What mma are summing, by accumulator."""

    def read(self, lanes: Lanes, columns: slice) -> None:
        """Notes that words are read."""
        for accumulation in self.accumulations.values():
            accumulation.read(lanes, columns)

    def accumulate(self, accumulator: Hashable, columns: slice, *, anew: bool) -> Accumulation:
        """What an mma adds to; `anew`: it does not add D to any word of it."""
        if anew or accumulator not in self.accumulations:
            self.accumulations[accumulator] = Accumulation(columns)
        return self.accumulations[accumulator]

    def room(
        self, columns: int, peer: TensorMemory | None = None, exclusive: bool = False
    ) -> int | None:
        """A free place for that many columns (also in the pair's other CTA); None: there is none.

        It is aligned to their number, so that what is left has room for all that may follow: later
        allocations are not larger. An exclusive one is alone, and of any number of 32 columns.
        """
        both = (self,) if peer is None else (self, peer)
        if any(memory.sm.closed(memory, exclusive) for memory in both):
            return None
        taken = np.logical_or.reduce([memory.sm.taken() for memory in both])
        starts = range(0, COLUMNS - columns + 1, 32 if exclusive else columns)
        free = [b for b in starts if not taken[b : b + columns].any()]
        return self._pick(free) if free else None

    def allocate(self, base: int, columns: int, exclusive: bool = False) -> None:
        """Takes free columns: what they hold is undefined, from the start or since `free`."""
        self.exclusive, self.has_permit = exclusive, True
        self.allocated[base : base + columns] = True
        if self.zeros:
            self.words[:, base : base + columns] = 0
            self.defined[:, base : base + columns] = True
        self.allocations[base] = columns

    def free(self, base: int) -> None:
        """Ends an allocation."""
        columns = self.allocations.pop(base)
        self.exclusive = False
        self.allocated[base : base + columns] = False
        self.poison(base, columns)

    def poison(self, column: int, columns: int) -> None:
        """Makes columns undefined."""
        self.words[:, column : column + columns] = POISON_WORD
        self.cleared((slice(None), slice(column, column + columns)))

    def columns(self) -> str:
        """The allocations, for messages."""
        return ", ".join(f"{b}..{b + n - 1}" for b, n in sorted(self.allocations.items()))

    def check(self, low: int, high: int, site: object) -> None:
        """MachineError unless columns [low, high) are allocated."""
        if any(base <= low and high <= base + n for base, n in self.allocations.items()):
            return
        if low < 0 or high > COLUMNS or not self.allocated[low:high].all():
            raise MachineError(
                "tensor-memory-columns",
                f"expected columns inside an allocation ({self.columns() or 'none exists'}), "
                f"got {low}..{high - 1}",
                site=site,
            )
