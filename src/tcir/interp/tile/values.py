"""Run-time values of a tile program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tcir.interp.tile.addresses import TileLayout
from tcir.interp.tile.staged import StagedLayout
from tcir.interp.types import Array
from tcir.machine.errors import MachineError


@dataclass(frozen=True)
class Site:
    """The op that caused an event of the machine."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class MemRef:
    """A contiguous row-major array in global memory. buffer: its number among the kernel's
    buffers
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    buffer: int


@dataclass(frozen=True)
class SmemTile:
    """A shared tile at byte `base` of the CTA's shared memory."""

    base: int
    layout: TileLayout


@dataclass(frozen=True)
class StagedTile:
    """A tile read by warps, at byte `base` of the CTA's shared memory."""

    base: int
    layout: StagedLayout


@dataclass(frozen=True)
class TmemTile:
    """A tile in tensor memory. column: counted from the start of the allocation that `origin`
    finds
    """

    origin: Callable[[Any], int]
    column: int
    columns: int
    element: str
    width: int
    """Elements per lane."""
    disabled: tuple[int, ...] | None = None
    """Four words with a bit set for each lane that an mma must not write."""

    def address(self, frame: Any, column: int = 0, lane: int = 0) -> int:
        """The tensor-memory address of a lane and a column of the tile."""
        return lane << 16 | self.origin(frame) + self.column + column


@dataclass(frozen=True)
class LaneMasks:
    """A table of `count` lane masks, 16 bytes each, from byte `base` of shared memory."""

    base: int
    count: int


@dataclass(frozen=True)
class LaunchResponses:
    """`count` responses of cluster launch control in shared memory, from address `base` on."""

    base: int
    count: int


@dataclass(frozen=True)
class Mbarrier:
    """An mbarrier object at byte `address` of the CTA's shared memory."""

    address: int


@dataclass(frozen=True)
class Ring:
    """Equal objects that are used in turn, such as the stages of a pipeline."""

    slots: tuple[Any, ...]


@dataclass
class PendingLoad:
    """An asynchronous read of tensor memory. ready: whether its warp has waited for it"""

    site: Site
    ready: bool = False


@dataclass
class RegisterTile:
    """A register tile, in which each row belongs to one thread of the warp.

    `quarter` and `column` are its origin in tensor memory (-1: none). `load` is the read that
    filled it directly, if there is one.
    """

    data: Array
    quarter: int = 0
    column: int = 0
    load: PendingLoad | None = None


@dataclass
class Stored:
    """One execution of `tc.store_rows`, recorded to report the writer of an element."""

    cta: tuple[int, int, int]
    quarter: int
    column: int
    site: Site


@dataclass
class Writers:
    """For each element of the kernel's buffers, the number of the store that wrote it; -1 if none
    has.
    """

    owner: dict[int, Array] = field(default_factory=dict)
    lane: dict[int, Array] = field(default_factory=dict)
    stores: list[Stored] = field(default_factory=list)

    def watch(self, buffer: int, size: int) -> None:
        """Starts recording the stores to `buffer`, which has `size` elements."""
        self.owner[buffer] = np.full(size, -1, np.int32)
        self.lane[buffer] = np.zeros(size, np.int16)

    def record(
        self, target: MemRef, elements: Array, stored: Stored, lanes: Array | None = None
    ) -> None:
        """Records a store as the writer of some elements of a result; MachineError if the buffer is
        an input.

        lanes: the tile's lanes from which the elements come
        """
        owner = self.owner.get(target.buffer)
        if owner is None:
            message = "expected a store to a result, got one to an input"
            raise MachineError("store-to-input", message, site=stored.site)
        owner[elements] = len(self.stores)
        if lanes is not None:
            self.lane[target.buffer][elements] = lanes
        self.stores.append(stored)

    def adopt(self, known: Writers) -> None:
        """Takes over the writers of another run, for the elements that were not stored in this
        run.
        """
        count = len(self.stores)
        self.stores += known.stores
        for buffer, owner in self.owner.items():
            missing = (owner < 0) & (known.owner[buffer] >= 0)
            owner[missing] = known.owner[buffer][missing] + count
            self.lane[buffer][missing] = known.lane[buffer][missing]

    def describe(self, buffer: int, index: tuple[int, ...], shape: tuple[int, ...]) -> str:
        """Text naming the writer of element `index` of a buffer of this shape."""
        flat = int(np.ravel_multi_index(index, shape))
        number = int(self.owner[buffer][flat])
        if number < 0:
            return "never written"
        store = self.stores[number]
        lane = int(self.lane[buffer][flat])
        return f"CTA {store.cta}, lane {lane}, columns from {store.column} ({store.site})"
