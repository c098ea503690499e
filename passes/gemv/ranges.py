"""Divides the work of a GEMV among CTAs: each CTA gets a range of the stages of all tiles, counted
one tile after another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import cast

from tcir._mlir import arith, ir
from tcir.passes.emit import index
from tcir.passes.emit.index import Index
from tcir.target import DEFAULT_TARGET
from tcir.threads import cached_property

SMS = DEFAULT_TARGET.sms


@dataclass(frozen=True)
class Ranges:
    """Divides `tiles` tiles of `units` stages each into `ctas` ranges of nearly equal length.

    A range covers parts of one or more tiles, its *segments*. Range c starts in tile ``c * tiles /
    ctas``: the integer part is the tile, and the fraction is the place in the tile, which is the
    beginning of the tile only if the fraction is 0. So segments can be numbered by a formula:
    segment (c, tile) has the number ``c + tile`` minus the number of ranges up to c that start at
    the beginning of a tile. With one range per tile the segment number is the tile's number; with p
    ranges per tile (split-k) it is c. All other divisions are called stream-k.
    """

    tiles: int
    units: int
    ctas: int

    @property
    def valid(self) -> bool:
        """Whether every CTA has work, and every range starts in the tile that the formula gives."""
        starts = self.starts
        tiles = [self.first_tile(c) for c in range(self.ctas + 1)]
        return all(a < b for a, b in pairwise(starts)) and all(
            start // self.units == tile for start, tile in zip(starts, tiles, strict=True)
        )

    @property
    def total(self) -> int:
        """Number of stages of all tiles."""
        return self.tiles * self.units

    @property
    def whole(self) -> bool:
        """Whether each tile is one range, so that no partial results must be added."""
        return self.ctas == self.tiles

    @property
    def segments(self) -> int:
        """Number of segments of all ranges."""
        return self.ctas + self.tiles - gcd(self.tiles, self.ctas)

    @property
    def period(self) -> int:
        """Number of ranges from one that starts at the beginning of a tile to the next such
        range."""
        return self.ctas // gcd(self.tiles, self.ctas)

    def first_tile(self, cta: Index) -> Index:
        """The tile in which a range starts."""
        return index.div(index.mul(cta, self.tiles), self.ctas)

    def start(self, cta: Index) -> Index:
        """First stage of a range, counted over all tiles."""
        place = index.mul(cta, self.tiles)
        rest = index.rem(place, self.ctas)
        inside = index.div(index.mul(rest, self.units), self.ctas)
        if self.units * gcd(self.tiles, self.ctas) < self.ctas:
            inside = largest(inside, smallest(rest, 1))
        return index.add(index.mul(index.div(place, self.ctas), self.units), inside)

    @cached_property
    def starts(self) -> list[int]:
        """The first stage of each range, and the end of the last range."""
        once = [cast(int, self.start(c)) for c in range(self.period)]
        stages = self.total * self.period // self.ctas
        return [
            *(first + start for first in range(0, self.total, stages) for start in once),
            self.total,
        ]

    @property
    def lengths(self) -> list[int]:
        """Number of stages of each range."""
        return [after - start for start, after in pairwise(self.starts)]

    def segment(self, cta: Index, tile: Index) -> Index:
        """The number of the segment of range `cta` in `tile`."""
        return index.sub(index.add(cta, tile), index.div(cta, self.period))

    @cached_property
    def per_cta(self) -> int:
        """Largest number of segments that a range has."""
        first = [self.first_tile(c) for c in range(self.ctas)]
        last = [(after - 1) // self.units for after in self.starts[1:]]
        return int(max(b - a + 1 for a, b in zip(first, last, strict=True)))

    @cached_property
    def longest(self) -> int:
        """Largest number of stages in a range."""
        return max(self.lengths)

    def shares(self, sms: int = SMS) -> list[int]:
        """Number of stages that each SM computes if CTAs are assigned round-robin; idle SMs are not
        listed."""
        lengths = self.lengths
        return [sum(lengths[sm::sms]) for sm in range(min(sms, self.ctas))]

    def balance(self, sms: int = SMS) -> float:
        """Number of stages of the busiest SM divided by the mean over all SMs."""
        return max(self.shares(sms)) * sms / self.total


def smallest(a: Index, b: int) -> Index:
    """The smaller of two non-negative values."""
    return min(a, b) if isinstance(a, int) else arith.minui(a, index.value(b))


def largest(a: Index, b: Index) -> Index:
    """The larger of two non-negative values."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return arith.maxui(index.value(a), index.value(b))


@dataclass(frozen=True)
class CtaRange:
    """The work of one CTA, as MLIR values of its kernel."""

    ranges: Ranges
    cta: ir.Value
    begin: Index
    end: Index

    @staticmethod
    def of(ranges: Ranges, cta: ir.Value) -> CtaRange:
        """Emits the range of CTA `cta`."""
        return CtaRange(ranges, cta, ranges.start(cta), ranges.start(index.add(cta, 1)))

    @property
    def segments(self) -> Index:
        """Number of tiles that the CTA works on."""
        last = index.div(index.sub(self.end, 1), self.ranges.units)
        return index.add(index.sub(last, self.ranges.first_tile(self.cta)), 1)

    def tile(self, segment: Index) -> Index:
        """Tile of the CTA's segment number `segment`."""
        return index.add(self.ranges.first_tile(self.cta), segment)

    def segment(self, tile: Index) -> Index:
        """Number of the CTA's segment in `tile`."""
        return self.ranges.segment(self.cta, tile)

    def bounds(self, tile: Index) -> tuple[Index, Index]:
        """First and last of the CTA's stages in `tile`, counted from the CTA's first stage."""
        if self.ranges.per_cta == 1:
            return 0, index.sub(self.end, self.begin)
        first = index.mul(tile, self.ranges.units)
        after = index.add(first, self.ranges.units)
        begin = index.sub(largest(self.begin, first), self.begin)
        end = arith.minui(index.value(self.end), index.value(after))
        return begin, index.sub(end, self.begin)
