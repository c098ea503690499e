"""The fields of a tensor map, and values that are computed from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcir.machine.memory.swizzle import SWIZZLES
from tcir.machine.tma.tensor_types import SLICE, TYPES, Unit
from tcir.threads import cached_property


@dataclass(frozen=True)
class Fields:
    """The fields of a tensor map except the address, not validated; `MapFields` validates them.

    With an interleaved layout, dimension 0 is W (then H, D), dimension rank - 2 indexes channel
    slices, and one coordinate addresses a whole slice of 16 or 32 bytes.
    """

    mode: str
    """"tiled", "im2col", "im2col_w" or "im2col_w128"."""
    dtype: str
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: str
    box: tuple[int, ...] = ()
    """Tile mode: extent of the box per dimension, before element strides."""
    lower_corner: tuple[int, ...] = ()
    upper_corner: tuple[int, ...] = ()
    channels_per_pixel: int = 0
    pixels_per_column: int = 0
    interleave: str = "NONE"
    oob_fill: str = "zero"

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @cached_property
    def unit(self) -> Unit:
        """The indivisible unit of a copy: one element, 2 or 16 packed elements, or a channel
        slice.
        """
        size = SLICE[self.interleave]
        return Unit(1, size, size) if size else TYPES[self.dtype]

    @property
    def interleaved(self) -> bool:
        """Whether the layout is interleaved, so that dimension 0 is W and channels are stored in
        slices.
        """
        return self.interleave != "NONE"

    @property
    def first_spatial(self) -> int:
        """The number of the dimension that is W."""
        return 0 if self.interleaved else 1

    @property
    def spatial(self) -> int:
        """Number of dimensions of the bounding box of an im2col map."""
        return 1 if self.mode.startswith("im2col_w") else self.rank - 2

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of units that a copy writes along each dimension in shared memory, innermost
        first, without halo pixels.
        """
        if self.mode != "tiled":
            pixels = 128 if self.mode == "im2col_w128" else self.pixels_per_column
            inner = 1 if self.interleaved else self.channels_per_pixel // self.unit.elements
            return (inner, pixels)
        if self.interleaved:
            counts = [-(-b // s) for b, s in zip(self.box, self.element_strides)]
            counts[-2] = 1  # one slice of channels at a time, whatever the box says
            return tuple(counts)
        # The element stride of dimension 0 is ignored unless the layout is interleaved.
        outer = (-(-b // s) for b, s in zip(self.box[1:], self.element_strides[1:]))
        return (self.box[0] // self.unit.elements, *outer)

    @cached_property
    def box_bytes(self) -> int:
        """Bytes that one instruction writes and counts on the mbarrier: the whole box, fill and
        padding included.

        Halo pixels of the w modes are not included.
        """
        return math.prod(self.counts) * self.unit.shared_bytes

    @cached_property
    def row_pitch(self) -> int:
        """Bytes from one row to the next in shared memory: at least the span of the swizzle."""
        packed = self.counts[0] * self.unit.shared_bytes
        return packed if self.interleaved else SWIZZLES[self.swizzle].span or packed

    @property
    def piece_bytes(self) -> int:
        """Size in bytes of the words in which a traversal moves data."""
        return self.unit.piece

    def bounds(self, spatial: int) -> tuple[int, int]:
        """First and last base position along a spatial dimension (0 is W) of the im2col box."""
        return (
            self.lower_corner[spatial],
            self.dims[spatial + self.first_spatial] - 1 + self.upper_corner[spatial],
        )
