"""Watches of places in a CTA's memories: an element of shared memory, or a word of tensor
memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tcir.debug.control import Follower
from tcir.debug.places import check_numbers
from tcir.debug.show import one
from tcir.debug.stop import SEEN_AS
from tcir.errors import LaunchError
from tcir.interp.ptx.launch import Triple
from tcir.machine.memory.swizzle import SWIZZLES, swizzle_address
from tcir.machine.order.clocks import Access

ORIGIN: Triple = (0, 0, 0)


def _cta(seen: Follower, index: Triple) -> Any:
    """The running CTA with that index; None: it has not started, or has ended."""
    return next((cta for cta in seen.warps if cta.index == index), None)


@dataclass(frozen=True)
class SharedWatch:
    """A stop after a write to an element of shared memory.

    address: in bytes
    type:    type of the element, as in a dump
    cta:     index of the CTA
    hit:     number of the write, from 1
    """

    address: int
    type: str = "u32"
    cta: Triple = ORIGIN
    hit: int = 1
    element: str = field(default="", compare=False)
    """The element's position in a tile, in words."""

    @staticmethod
    def of_tile(
        base: int, type: str, columns: int, swizzle: str, index: tuple[int, int]
    ) -> SharedWatch:
        """Watches element [row, column] of a tile whose rows have `columns` elements and that is
        swizzled as TMA does it.
        """
        row, column = index
        if swizzle not in SWIZZLES:
            raise LaunchError(
                f"watch: expected a swizzle of {', '.join(SWIZZLES)}, got {swizzle!r}"
            )
        if not 0 <= column < columns:
            raise LaunchError(f"watch: expected a column of 0..{columns - 1}, got {column}")
        size = _type(type)
        address = int(swizzle_address(base + (row * columns + column) * size, swizzle))
        element = f"[{row}, {column}] of the tile at {base:#x}, "
        return SharedWatch(address, type, element=element)

    def __str__(self) -> str:
        place = f"{self.type} at {self.address:#x} of shared memory of CTA {self.cta}"
        return f"{self.element}{place}"

    def check(self, args: Sequence[object]) -> None:
        """Raises LaunchError for an unknown type or a misaligned address."""
        size = _type(self.type)
        if self.address < 0 or self.address % size:
            raise LaunchError(
                f"watch: expected an address of shared memory that is a multiple of {size}, got "
                f"{self.address:#x}"
            )

    def start(self, seen: Follower) -> None:
        """Raises LaunchError for a CTA or a hit that the launch does not have."""
        check_numbers(self.hit, None, self.cta, seen.machine.grid, seen.launch.sizes.warps)

    def value(self, seen: Follower, args: Sequence[object]) -> str:
        """The watched value."""
        cta, size = _cta(seen, self.cta), _type(self.type)
        where = slice(self.address, self.address + size)
        if cta is None or not cta.smem.defined[where].all():
            return "poison"
        return one(cta.smem.data[where].view(SEEN_AS[self.type])[0])

    def writer(self, seen: Follower, args: Sequence[object]) -> Access | None:
        """The last write to the watched place; None: none yet."""
        cta, size = _cta(seen, self.cta), _type(self.type)
        if cta is None:
            return None
        smem = cta.smem
        if not smem.start <= self.address <= smem.size - size:
            raise LaunchError(
                f"watch: expected an address of shared memory, {smem.start:#x} to "
                f"{smem.size - 1:#x}, got {self.address:#x}"
            )
        first, last = self.address // 4, (self.address + size - 1) // 4
        where: Any = slice(first, last + 1)
        if smem.shadow.bytewise and size < 4:
            at = self.address % 4
            where = (where, slice(at, at + size))
        found: list[Access] = smem.shadow.writers_at(where)
        return found[-1] if found else None


def _type(name: str) -> int:
    """Bytes of an element. Raises LaunchError for an unknown type."""
    names = [each for each in SEEN_AS if not each.endswith("x2")]
    if name not in names:
        raise LaunchError(f"watch: expected a type of {', '.join(names)}, got {name!r}")
    return SEEN_AS[name].itemsize


@dataclass(frozen=True)
class TensorWatch:
    """A stop after a write to a word of tensor memory, which is shown as f32.

    lane, column: position of the word
    cta:          index of the CTA
    hit:          number of the write, from 1
    """

    lane: int
    column: int
    cta: Triple = ORIGIN
    hit: int = 1

    def __str__(self) -> str:
        return f"lane {self.lane}, column {self.column} of tensor memory of CTA {self.cta}"

    def check(self, args: Sequence[object]) -> None:
        """Raises LaunchError if there is no such word."""
        if not (0 <= self.lane < 128 and 0 <= self.column < 512):
            raise LaunchError(
                "watch: expected a lane of 0..127 and a column of 0..511 of tensor memory, got "
                f"[{self.lane}, {self.column}]"
            )

    def start(self, seen: Follower) -> None:
        """Raises LaunchError for a CTA or a hit that the launch does not have."""
        check_numbers(self.hit, None, self.cta, seen.machine.grid, seen.launch.sizes.warps)

    def value(self, seen: Follower, args: Sequence[object]) -> str:
        """The watched value."""
        cta = _cta(seen, self.cta)
        if cta is None or not cta.tmem.defined[self.lane, self.column]:
            return "poison"
        return one(cta.tmem.words[self.lane, self.column : self.column + 1].view("f4")[0])

    def writer(self, seen: Follower, args: Sequence[object]) -> Access | None:
        """The last write to the watched place; None: none yet."""
        cta = _cta(seen, self.cta)
        if cta is None:
            return None
        where = (slice(self.lane, self.lane + 1), slice(self.column, self.column + 1))
        found: list[Access] = cta.tmem.shadow.writers_at(where)
        return found[-1] if found else None


_SHARED = re.compile(r"smem(?::(\w+))?\[(0x[0-9a-fA-F]+|\d+)\]")
_TILE = re.compile(r"smem:(\w+)@(0x[0-9a-fA-F]+|\d+),(\d+),(\w+)\[(\d+), *(\d+)\]")
_TENSOR = re.compile(r"tmem\[(\d+), *(\d+)\]")


def cta_watch(text: str, cta: Triple, hit: int) -> SharedWatch | TensorWatch | None:
    """Parses `smem[ADDRESS]`, `smem:TYPE[ADDRESS]`, `smem:TYPE@BASE,COLUMNS,SWIZZLE[ROW,COLUMN]`
    or `tmem[LANE,COLUMN]`; None for anything else."""
    if found := _SHARED.fullmatch(text):
        return SharedWatch(int(found[2], 0), found[1] or "u32", cta, hit)
    if found := _TILE.fullmatch(text):
        kind, base, columns, swizzle, row, column = found.groups()
        index = int(row), int(column)
        made = SharedWatch.of_tile(int(base, 0), kind, int(columns), swizzle, index)
        return replace(made, cta=cta, hit=hit)
    if found := _TENSOR.fullmatch(text):
        return TensorWatch(int(found[1]), int(found[2]), cta, hit)
    return None
