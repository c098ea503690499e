"""The pixels that a TMA load reads, row by row, in the modes box, im2col and im2col::w::128 (PTX
ISA 5.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

GROUP = 32
"""Pixels between two halos of im2col::w::128."""


@dataclass(frozen=True)
class Pixel:
    """Coordinates of a pixel in the input, from the last dimension (W) to the first (N). outside:
    whether the pixel is outside the input, so that zeros are loaded.
    """

    coordinates: tuple[int, ...]
    outside: bool


@dataclass(frozen=True)
class Map:
    """A tensor map without channels; only `dims` and `box` include them.

    steps: element steps, which are the strides of the convolution; shape: shape of the tensor
        without channels, from the last dimension to the first.
    """

    mode: str
    dims: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    corners: tuple[int, ...]
    shape: tuple[int, ...]

    def pixels(
        self, start: Sequence[int], offsets: Sequence[int] = (), halo: int = 0
    ) -> list[Pixel]:
        """Returns the pixels of a load at `start` (without the channel), in the order of their
        rows."""
        if self.mode == "tiled":
            return [self._pixel(point) for point in self._box(start)]
        if self.mode == "im2col":
            walk = self._walk(start)
            points = [next(walk) for _ in range(self.box[1])]
            moved = (*offsets, 0)
            return [self._pixel([c + o for c, o in zip(p, moved, strict=True)]) for p in points]
        return [self._pixel(point) for point in self._wide(start, offsets[0], halo)]

    def _box(self, start: Sequence[int]) -> Iterator[list[int]]:
        steps = self.steps[1:]
        extents = [-(-size // step) for size, step in zip(self.box[1:], steps, strict=True)]
        for number in range(prod(extents)):
            point = []
            for extent, step, first in zip(extents, steps, start, strict=True):
                point.append(first + number % extent * step)
                number //= extent
            yield point

    def _walk(self, start: Sequence[int]) -> Iterator[list[int]]:
        """Walks from `start` through the bounding box, W first; the last dimension has no end."""
        spatial = len(start) - 1
        lower, upper = self.corners[:spatial], self.corners[spatial:]
        last = [n - 1 + u for n, u in zip(self.dims[1:], upper, strict=False)]
        point = list(start)
        while True:
            yield list(point)
            for axis in range(len(point)):
                point[axis] += self.steps[1 + axis]
                if axis == spatial or point[axis] <= last[axis]:
                    break
                point[axis] = lower[axis]

    def _wide(self, start: Sequence[int], offset: int, halo: int) -> Iterator[list[int]]:
        """Walks 128 pixels through W, then N, of the rows of `start`; then, for every k, the k-th
        pixel of the halo after each 32 of them, which the traversal reaches next."""
        w, *between, n = start
        flat = Map("im2col", (0, self.dims[1], 0), (0, 0), (1, self.steps[1], self.steps[-1]),
                   self.corners, ())  # fmt: skip
        walk = flat._walk([w, n])
        count = self.box[1]
        points = [next(walk) for _ in range(count + halo)]
        order = [
            *range(count),
            *(g + GROUP + k for k in range(halo) for g in range(0, count, GROUP)),
        ]
        for number in order:
            column, image = points[number]
            yield [column + offset, *between, image]

    def _pixel(self, point: Sequence[int]) -> Pixel:
        """Returns the pixel at a position of the map, given by coordinates or by one running
        index."""
        outside = any(not 0 <= c < n for c, n in zip(point, self.dims[1:], strict=True))
        if len(point) == 1 < len(self.shape):
            rest, counted = point[0], []
            for extent in self.shape[:-1]:
                counted.append(rest % extent)
                rest //= extent
            point = [*counted, rest]
        return Pixel(tuple(point), outside)
