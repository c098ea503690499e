"""Convolutions for conv-implicit-gemm by pairs of CTAs: layers, tails, steps, types, tiles."""

from __future__ import annotations

from dataclasses import dataclass

from .cases import CONVS
from .linalg_text import Conv
from .shift_cases import TYPES as NARROW

SAME = (1, 1, 1, 1)


@dataclass(frozen=True)
class PairCase:
    """One convolution, and options of the pipeline beside ``cta-group=2``."""

    conv: Conv
    options: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.conv.name, self.options)))

    @property
    def pipeline(self) -> str:
        """The pipeline with options."""
        return f"conv-implicit-gemm{{cta-group=2 {self.options}}}"


LAYERS = [
    *(PairCase(conv) for conv in CONVS[:4]),
    PairCase(Conv(1, 56, 56, 128, 128, 3, 3, SAME, strides=(2, 2)), "n-tile=64"),
    PairCase(Conv(1, 14, 14, 512, 256, 1, 1, strides=(2, 2), out="bf16"), "n-tile=256"),
    PairCase(Conv(1, 28, 30, 3, 64, 7, 7, (3, 3, 3, 3), strides=(2, 2))),
]
"""ResNet-50: the four 3x3 layers in full, two with stride 2, a corner of the stem (C = 3)."""

TAILS = [
    PairCase(Conv(1, 3, 3, 8, 8, 3, 3)),  # one pixel
    PairCase(Conv(1, 8, 16, 32, 32, 1, 1)),  # 128 pixels: the second CTA has none
    PairCase(Conv(1, 3, 43, 40, 40, 1, 1)),  # 129
    PairCase(Conv(1, 16, 16, 32, 72, 3, 3, SAME, filter="fhwc")),  # 256
    PairCase(Conv(1, 1, 257, 24, 40, 1, 3, (0, 0, 1, 1))),  # 257: three tiles of four
    PairCase(Conv(3, 11, 13, 40, 24, 3, 3, SAME), "stages=1"),  # 429
    PairCase(Conv(2, 13, 13, 72, 200, 3, 3, SAME), "n-tile=96 stages=3"),
]
"""Pixels: fewer than a tile, one more, one less; a last CTA without any; tiles over two images."""

STEPS = [
    PairCase(Conv(1, 20, 33, 24, 40, 3, 3, SAME, strides=(2, 1))),
    PairCase(Conv(2, 12, 20, 16, 48, 3, 3, (2, 2, 2, 2), dilations=(2, 2), element="bf16")),
    PairCase(Conv(1, 24, 39, 16, 32, 5, 4, (2, 1, 0, 3), strides=(3, 2), dilations=(1, 3))),
    PairCase(Conv(1, 8, 30, 32, 32, 3, 3, (1, 0, 2, 1), filter="fhwc")),
    PairCase(Conv(1, 17, 17, 64, 64, 1, 7, (0, 0, 3, 3), out="f16")),
]
"""Strides, dilations, uneven padding, filters of other shapes."""

_IMAGE = {"h": 12, "w": 14, "k": 48}
TYPES = [PairCase(Conv(**{**vars(conv), **_IMAGE})) for conv in NARROW]
"""bf16, f16, tf32, fp8, i8 and unsigned i8: 168 pixels or fewer."""

TILES = [
    PairCase(Conv(1, 15, 13, c, k, 2, 2, filter=order, element=element), f"n-tile={n}")
    for order, element, c, k, sizes in (
        ("hwcf", "f16", 72, 264, (32, 96, 160, 256)),
        ("fhwc", "bf16", 72, 264, (32, 64, 192)),
        ("hwcf", "f8E4M3FN", 80, 272, (32, 96, 224)),
        ("fhwc", "f8E5M2", 80, 272, (64, 256)),
    )
    for n in sizes
]
"""Halves of 16 to 128 filters, along K of the filter or across it; K_out that no tile fills. Rows
are multiples of 16 bytes, so nothing is repacked and hwcf filters stay MN-major."""

CASES = [*LAYERS, *TAILS, *STEPS, *TYPES, *TILES]
