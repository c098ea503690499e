"""What the tilings of a shift-reuse convolution have in common: units of one 32-lane quarter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.passes.conv_shapes import ConvShape
from tcir.passes.index_math import Index
from tcir.passes.limits import ceil_div
from tcir.passes.shift_classes import ShiftClasses

QUARTERS = TMEM_LANES // QUARTER_LANES

Load = Callable[[Any, Index, int, Index], None]
"""``load(tile, r, c, c0)``: brings the slabs of filter row r, class c, channels from c0."""


@dataclass(frozen=True)
class Tiling(ABC):
    """How outputs are laid on lanes: units of one quarter each, four a CTA.

    masked: whether lanes see pixels that do not belong to their output, so that the mma of a tap
            must leave them alone: D is zeroed first and every mma adds to it
    """

    masked: ClassVar[bool] = False
    shape: ConvShape
    classes: ShiftClasses

    @property
    @abstractmethod
    def count(self) -> int:
        """All units."""

    @property
    def ctas(self) -> int:
        """CTAs that compute all units."""
        return ceil_div(self.count, QUARTERS)

    @abstractmethod
    def check(self, op: Any) -> None:
        """Refuses `op` when this tiling cannot compute it."""

    @abstractmethod
    def loader(self, x: Any, a_type: Any, first_unit: Index) -> Load:
        """Builds the tensor map of the input; the function that loads from it."""

    @abstractmethod
    def store(self, d: Any, out: Any, first_unit: Index, k0: Index) -> None:
        """The epilogue."""
