"""Draws blocks of numbers whose quantisation is at a boundary.

- The largest magnitude of a block is a power of two, or a power of two times the mantissa of the
  type's largest element (1.75 of e4m3 and e5m2, 1.5 of e2m1), above which ``rceil`` rounds up; or
  it is slightly less or more. For ue4m3 scales, a sixth of the largest magnitude is a number of the
  format or a tie, including both ends.
- The largest magnitude is at each position of a block in turn. It is negative where the other
  numbers are much smaller, which exposes a maximum that is computed without the absolute value.
- The other numbers are ties of the element type, times the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import ml_dtypes
import numpy as np

from tcir.interp import OutputSpec
from tcir.interp.types import Array, DType
from tcir.program.boundary.ties import magnitudes_of
from tcir.program.spans import info_of

UE8M0, UE4M3 = np.dtype(ml_dtypes.float8_e8m0fnu), np.dtype(ml_dtypes.float8_e4m3fn)
BESIDE = 2.0**-9
"""Relative distance of a boundary's neighbours, which sums of 10 bits can reach."""
EXPONENTS = (-6, 4)
"""Range of exponents of the largest magnitudes."""
FAR_BELOW = 8
"""Minimum ratio of the largest magnitude to the others in blocks that test its sign."""


@dataclass(frozen=True)
class BlockTypes:
    """Types of the elements and scales of a result with block scales."""

    codes: DType
    scales: DType

    @property
    def block(self) -> int:
        """Number of elements that share a scale."""
        return 16 if self.scales == UE4M3 else 32

    @property
    def largest(self) -> float:
        """Largest finite element."""
        return float(info_of(self.codes).max)

    def amax(self, beside: float) -> Array:
        """Returns largest magnitudes at boundaries of the scale, and neighbours of these magnitudes
        at the relative distance `beside`; for 0, the neighbours are the adjacent f32 numbers.
        """
        if self.scales == UE4M3:
            numbers = magnitudes_of(UE4M3)
            ends = [numbers[1] / 2, numbers[1] * 0.75, 464, 480]
            near = numbers[np.searchsorted(numbers, 2.0 ** EXPONENTS[0]) :][:80]
            found = np.array([*ends, *near, *((near[1:] + near[:-1]) / 2)]) * self.largest
        else:
            powers = 2.0 ** np.arange(*EXPONENTS)
            found = np.concatenate([powers, self.largest / 2.0**self.exponent * powers])
        below, above = (found * (1 + sign * beside) for sign in (-1, 1))
        if not beside:
            below, above = (np.nextafter(np.float32(found), np.float32(e)) for e in (0, np.inf))
        return np.concatenate([found, found, below, above])

    @property
    def exponent(self) -> int:
        """Exponent of the largest finite element."""
        return int(np.log2(self.largest))

    def scale_of(self, amax: Array) -> Array:
        """Returns approximate scales for largest magnitudes; ue8m0 scales are rounded down."""
        if self.scales == UE8M0:
            return 2.0 ** (np.floor(np.log2(amax)) - self.exponent)
        nearest = np.minimum(amax / self.largest, 448).astype(UE4M3).astype(np.float64)
        return np.maximum(nearest, 2.0**-9)


def block_format_of(outputs: tuple[OutputSpec, ...]) -> BlockTypes | None:
    """Returns the types of results that are block-quantised elements and their scales; None if the
    program has no such results.
    """
    types = [spec.dtype for spec in outputs]
    for codes, scales in pairwise(types):
        narrow = codes.itemsize == 1 and codes.kind not in "iub" and codes != UE8M0
        if narrow and (scales == UE8M0 or (scales == UE4M3 and info_of(codes).bits == 4)):
            return BlockTypes(codes, scales)
    return None


def rows_of_blocks(
    form: BlockTypes,
    count: int,
    width: int,
    generator: np.random.Generator,
    beside: float = BESIDE,
) -> Array:
    """Draws numbers ``[count, width]``; in each row, one number has a largest magnitude from
    `form.amax`.
    """
    amax = np.resize(generator.permutation(form.amax(beside)), count)
    numbers = magnitudes_of(form.codes)
    ties = (numbers[1:] + numbers[:-1]) / 2
    quotients = generator.choice(np.concatenate([ties, ties, numbers]), (count, width))
    rows = quotients * form.scale_of(amax)[:, None]
    small = np.arange(count) % 2 == 0
    limit = np.where(small, amax / FAR_BELOW, amax)[:, None]
    # A power of two smaller they are quotients at ties of nothing, but of the same bits.
    rows = np.where(rows > limit, rows * np.where(small, 1 / (4 * FAR_BELOW), 0.25)[:, None], rows)
    rows = np.where(rows > limit, 0, rows)
    rows *= generator.choice([-1, 1], rows.shape)
    places = np.arange(count) // 2 % width
    rows[np.arange(count), places] = amax * np.where(small, -1, generator.choice([-1, 1], count))
    return rows
