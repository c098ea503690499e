"""Tensor memory of a CTA, and the record of its columns, which the CTAs on one SM share (PTX ISA
9.7.16.1, 9.7.16.7).

An allocation belongs to one CTA, and its contents are undefined at first. Therefore each CTA has
its own array of words, and the CTAs share only the record of the allocated columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.undefined import Tracked
from tcir.machine.order.shadow import Owner, Shadow
from tcir.threads import cached_property

LANES, COLUMNS = 128, 512
"""Tensor memory of one SM: lanes x 32-bit columns (PTX ISA 9.7.16.1)."""
Lanes = slice | NDArray[np.int64]
"""An index of lanes."""
POISON_WORD = 0x7FFF_CBCB
"""Value of undefined words: a NaN as f32."""
UNSPECIFIED_HALF = 0xCBCB_0000
"""Upper half of a word that holds a 16-bit value; no document defines it."""


@dataclass(eq=False)
class PairCall:
    """An alloc or dealloc with cta_group::2 that waits for the matching call in the other CTA of
    the pair.
    """

    what: tuple[object, ...]
    memory: TensorMemory
    site: object
    checks: Sequence[Callable[[], None]] = ()
    """Checks of the call's accesses, run once both CTAs have called: the peer's memory, then its
    own."""
    done: bool = False
    base: int = 0


class SmTensorMemory:
    """The tensor memories of the CTAs on one SM.

    permits: whether the first CTA that allocates excludes the other CTAs until it relinquishes its
        permit.
    """

    def __init__(self, permits: bool = False) -> None:
        self.permits = permits
        self.memories: list[TensorMemory] = []

    def taken(self) -> NDArray[np.bool_]:
        """Mask of the columns that are allocated."""
        return np.logical_or.reduce([m.allocated for m in self.memories])

    def closed(self, asking: TensorMemory, exclusive: bool) -> bool:
        """Whether the CTA `asking` may not allocate, because another CTA has an exclusive
        allocation or the permit to allocate.
        """
        others = [m for m in self.memories if m is not asking]
        return (
            any(m.exclusive for m in self.memories)
            or (exclusive and any(m.allocations for m in self.memories))
            or (self.permits and any(m.has_permit for m in others))
        )

    def holders(self, asking: TensorMemory) -> str:
        """Describes the CTAs that own columns, for messages."""
        return "".join(
            f"; {'it' if m is asking else m.name} has {m.columns()}"
            for m in self.memories
            if m.allocations
        )


class Accumulation:
    """A sequence of consecutive mma that add to the same columns of D. The first mma does not add
    D.

    lanes, columns: masks of the lanes and columns that have been read so far.
    """

    def __init__(self, columns: slice) -> None:
        self.place = columns
        self.lanes = np.zeros(LANES, bool)
        self.columns = np.zeros(COLUMNS, bool)

    def read(self, lanes: Lanes, columns: slice) -> None:
        """Notes that words of these lanes and columns are read."""
        if columns.start < self.place.stop and self.place.start < columns.stop:
            self.lanes[lanes] = True
            self.columns[columns] = True

    def was_read(self, words: NDArray[np.bool_], lanes: Lanes) -> bool:
        """Whether any of D's words [lanes, columns] has been read, or may have been."""
        read = words & self.lanes[lanes][:, None] & self.columns[self.place]
        return bool(read.any())


class TensorMemory(Tracked):
    """Tensor memory of a CTA: its words [lane, column], a mask of the defined words, and a mask of
    the allocated columns.

    An allocation takes the lowest free columns, or the place that the function `pick` chooses.
    """

    def __init__(
        self,
        hazards: bool,
        zeros: bool = False,
        pick: Callable[[Sequence[int]], int] = min,
        sm: SmTensorMemory | None = None,
        name: str = "the CTA",
        owner: Owner | None = None,
    ) -> None:
        self._hazards = hazards
        self._owner = owner
        self._pick = pick
        self.name = name
        self.sm = sm or SmTensorMemory()
        self.sm.memories.append(self)
        self.zeros = zeros
        """Whether alloc returns zeroed columns: an open question."""
        self.defined: NDArray[np.bool_] = np.zeros((LANES, COLUMNS), bool)
        self.allocated = np.zeros(COLUMNS, bool)
        self.allocations: dict[int, int] = {}
        self.largest = COLUMNS
        self.relinquished: object = None
        """Site of tcgen05.relinquish_alloc_permit; None: not executed."""
        self.pair_calls: list[PairCall] = []
        """Calls in progress of the pair, kept in the even CTA."""
        self.exclusive = False
        """Whether its allocation was made by tcgen05.alloc.exclusive."""
        self.has_permit = False
        """Whether the CTA has allocated and not relinquished its permit to allocate more."""
        self.accumulations: dict[Hashable, Accumulation] = {}
        """Accumulator -> the sums in progress in it."""

    @cached_property
    def words(self) -> NDArray[np.uint32]:
        """The words, [lane, column]; created on first use, because most kernels use no tensor
        memory.
        """
        return np.full((LANES, COLUMNS), POISON_WORD, np.uint32)

    @cached_property
    def shadow(self) -> Shadow | None:
        """The last accesses to each word; None if hazards are not checked."""
        if not self._hazards:
            return None
        shadow = Shadow((LANES, COLUMNS), "tensor memory")
        shadow.owner = self._owner
        return shadow

    def forget(self) -> None:
        """Breaks the reference cycles between this object and its CTA, which has ended."""
        self.sm.memories.clear()
        self._owner = None
        vars(self).pop("shadow", None)

    def read(self, lanes: Lanes, columns: slice) -> None:
        """Notes that words are read."""
        for accumulation in self.accumulations.values():
            accumulation.read(lanes, columns)

    def accumulate(self, accumulator: Hashable, columns: slice, *, anew: bool) -> Accumulation:
        """Returns the accumulation to which an mma belongs. anew: the mma adds D to no word and so
        starts a new accumulation.
        """
        if anew or accumulator not in self.accumulations:
            self.accumulations[accumulator] = Accumulation(columns)
        return self.accumulations[accumulator]

    def room(
        self, columns: int, peer: TensorMemory | None = None, exclusive: bool = False
    ) -> int | None:
        """Returns the first of `columns` adjacent free columns; None if there are not enough. With
        `peer`, the other CTA of a pair, the columns must be free in both CTAs.

        The first column is a multiple of `columns`, so that the columns left free have room for all
        later allocations, which are not larger. An exclusive allocation is the only one on the SM
        and may have any multiple of 32 columns.
        """
        both = (self,) if peer is None else (self, peer)
        if any(memory.sm.closed(memory, exclusive) for memory in both):
            return None
        taken = np.logical_or.reduce([memory.sm.taken() for memory in both])
        starts = range(0, COLUMNS - columns + 1, 32 if exclusive else columns)
        free = [b for b in starts if not taken[b : b + columns].any()]
        return self._pick(free) if free else None

    def allocate(self, base: int, columns: int, exclusive: bool = False) -> None:
        """Allocates free columns. Their contents are undefined, because they were never written or
        because `free` made them undefined.
        """
        self.exclusive, self.has_permit = exclusive, True
        self.allocated[base : base + columns] = True
        if self.zeros:
            self.words[:, base : base + columns] = 0
            self.defined[:, base : base + columns] = True
        self.allocations[base] = columns

    def free(self, base: int) -> None:
        """Ends an allocation and makes its columns undefined."""
        columns = self.allocations.pop(base)
        self.exclusive = False
        self.allocated[base : base + columns] = False
        self.poison(base, columns)

    def poison(self, column: int, columns: int) -> None:
        """Makes columns undefined."""
        self.words[:, column : column + columns] = POISON_WORD
        self.cleared((slice(None), slice(column, column + columns)))

    def columns(self) -> str:
        """Describes the allocations, for messages."""
        return ", ".join(f"{b}..{b + n - 1}" for b, n in sorted(self.allocations.items()))

    def check(self, low: int, high: int, site: object) -> None:
        """Raises MachineError unless columns [low, high) are allocated."""
        if any(base <= low and high <= base + n for base, n in self.allocations.items()):
            return
        if low < 0 or high > COLUMNS or not self.allocated[low:high].all():
            raise MachineError(
                "tensor-memory-columns",
                f"expected columns inside an allocation ({self.columns() or 'none exists'}), "
                f"got {low}..{high - 1}",
                site=site,
            )
