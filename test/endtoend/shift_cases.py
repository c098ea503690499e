"""The family of conv-shift-reuse: tilings x halos x strides, dilations, paddings, shapes; types."""

from __future__ import annotations

from dataclasses import dataclass

from .cases import SAME_3x3
from .linalg_text import Conv

SHAPES = [
    Conv(2, 9, 9, 8, 16, 3, 3),
    Conv(1, 7, 7, 16, 16, 3, 3, SAME_3x3),
    Conv(2, 5, 8, 8, 16, 3, 3, (1, 0, 2, 1)),
    Conv(3, 4, 5, 8, 16, 3, 3, SAME_3x3, filter="fhwc"),
    Conv(1, 9, 10, 8, 16, 3, 3, SAME_3x3, strides=(2, 2)),
    Conv(1, 8, 11, 8, 16, 3, 5, (1, 1, 2, 2), strides=(1, 2)),
    Conv(1, 10, 9, 8, 16, 3, 3, (2, 2, 2, 2), dilations=(2, 2)),
    Conv(1, 9, 12, 8, 16, 3, 4, (1, 1, 3, 3), strides=(2, 1), dilations=(1, 3)),
    Conv(1, 11, 13, 8, 16, 3, 5, (2, 2, 4, 4), strides=(1, 2), dilations=(2, 2)),
    Conv(1, 10, 14, 8, 16, 2, 7, (0, 1, 4, 4), strides=(3, 3), dilations=(1, 2)),
    Conv(1, 12, 13, 8, 16, 3, 7, (1, 1, 3, 3), strides=(2, 3), dilations=(3, 1)),
    Conv(1, 7, 16, 8, 16, 1, 7, (0, 0, 3, 3)),
    Conv(1, 14, 15, 8, 16, 7, 7, (3, 3, 3, 3), strides=(2, 2)),
    Conv(1, 9, 9, 8, 16, 5, 5, (2, 2, 2, 2)),
    Conv(1, 6, 36, 40, 24, 3, 3, SAME_3x3),
]
OF_FEW_ROWS = [
    Conv(2, 3, 21, 8, 16, 3, 3, (0, 0, 1, 2)),
    Conv(1, 2, 21, 8, 16, 2, 5, (1, 0, 2, 1), strides=(2, 2)),
    Conv(3, 1, 48, 8, 16, 1, 3, (0, 0, 1, 1), filter="fhwc"),
    Conv(1, 3, 25, 8, 16, 2, 4, (0, 0, 3, 3), dilations=(2, 3), strides=(1, 2)),
    Conv(1, 4, 34, 72, 24, 2, 7, (0, 0, 3, 3), strides=(3, 3), dilations=(2, 1)),
    Conv(1, 1, 34, 32, 16, 1, 3, element="u8", w_element="i8", out="i32"),
    Conv(2, 1, 9, 16, 16, 1, 5, (0, 0, 2, 2), element="f8E4M3FN", out="f16"),
    Conv(1, 2, 34, 12, 16, 2, 3, element="f32", filter="fhwc"),
]
"""Cases for halo_load=w128, which uses a CTA for every output row."""
TYPES = [
    Conv(1, 6, 9, 16, 16, 3, 3, SAME_3x3, element="i8", out="i32"),
    Conv(1, 6, 9, 32, 16, 3, 3, SAME_3x3, element="u8", w_element="i8", out="i32"),
    Conv(1, 6, 9, 16, 16, 3, 3, (1, 0, 1, 2), element="u8", out="i32", filter="fhwc"),
    Conv(1, 6, 9, 16, 16, 3, 3, SAME_3x3, element="f8E4M3FN"),
    Conv(1, 6, 9, 48, 16, 3, 3, SAME_3x3, element="f8E5M2", w_element="f8E4M3FN", generic=True,
         out="f16"),
    Conv(1, 6, 9, 12, 16, 3, 3, SAME_3x3, element="f32", filter="fhwc", out="bf16"),
    Conv(1, 6, 9, 8, 16, 3, 3, SAME_3x3, element="bf16", out="bf16", strides=(1, 2)),
    Conv(1, 6, 9, 8, 16, 3, 3, SAME_3x3, element="f16", out="f16", dilations=(1, 2)),
]  # fmt: skip
HALOS = {
    "mask": {"halo": "mask"},
    "refresh": {"halo": "refresh"},
    "refresh-shift": {"halo": "refresh", "shift": "shift"},
}
W128 = {
    "w128": {"halo": "refresh", "halo_load": "w128"},
    "w128-shift": {"halo": "refresh", "halo_load": "w128", "shift": "shift"},
}
"""Cases with tiling packed only."""


@dataclass(frozen=True)
class ShiftCase:
    """One convolution under one tiling and one halo."""

    conv: Conv
    tiling: str
    halo: str

    @property
    def options(self) -> dict[str, str]:
        """Options of the pipeline."""
        return {"tiling": self.tiling, **(HALOS | W128)[self.halo]}

    @property
    def name(self) -> str:
        """Short test id."""
        return f"{self.tiling}-{self.halo}-{self.conv.name}"

    @property
    def shifts(self) -> bool:
        """Whether two taps of a filter row are whole lanes apart, by definition."""
        stride, dilation = self.conv.strides[1], self.conv.dilations[1]
        return any(k * dilation % stride == 0 for k in range(1, self.conv.s))


def anchored(conv: Conv) -> bool:
    """Whether tiling linear has an input pixel for every output."""
    sh, sw = conv.strides
    return (conv.q - 1) * sw < conv.w and (conv.p - 1) * sh < conv.h


TILINGS = ("rows", "packed", "linear")
CASES = (
    [
        ShiftCase(conv, tiling, halo)
        for conv in SHAPES
        for tiling in TILINGS
        for halo in HALOS
        if tiling != "linear" or anchored(conv)
    ]
    + [ShiftCase(conv, "packed", "w128") for conv in OF_FEW_ROWS]
    + [ShiftCase(conv, "packed", "w128-shift") for conv in OF_FEW_ROWS[:2]]
    + [
        ShiftCase(conv, tiling, "mask")
        for conv in TYPES
        for tiling in TILINGS
        if tiling != "linear" or anchored(conv)
    ]
)
