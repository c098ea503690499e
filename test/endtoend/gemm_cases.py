"""Dense matrix products for pipeline gemm: types, layouts, tails, tiles, batches, results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .oracle import DTYPES, Array
from .product_text import program

TYPES = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8")
LAYOUTS = (("mk", "kn"), ("mk", "nk"), ("km", "kn"), ("km", "nk"))


@dataclass(frozen=True)
class Dense:
    """One program, and options of the pipeline; `other`: type of B where it is another."""

    m: int
    n: int
    k: int
    element: str = "f16"
    a: str = "mk"
    b: str = "kn"
    out: str = ""
    batch: int = 0
    other: str = ""
    options: str = ""

    def __str__(self) -> str:
        words = [
            f"{self.batch}x" * bool(self.batch) + f"{self.m}x{self.n}x{self.k}", self.element,
            self.other, self.a, self.b, self.out, self.options,
        ]  # fmt: skip
        return "-".join(word for word in words if word)

    @property
    def text(self) -> str:
        """The module."""
        return program(
            self.m, self.n, self.k, self.element, self.a, self.b, self.out, self.batch, self.other
        )

    @property
    def pipeline(self) -> str:
        """Its pipeline with options."""
        return f"gemm{{{self.options}}}"

    def product(self, a: Array, b: Array) -> Array:
        """numpy's, summed exactly and rounded once to the sums' and once to the result's type."""
        integer = self.element == "i8"
        wide: Any = np.int64 if integer else np.float64
        left = a.astype(wide) if self.a == "mk" else a.astype(wide).swapaxes(-1, -2)
        right = b.astype(wide) if self.b == "kn" else b.astype(wide).swapaxes(-1, -2)
        sums = (left @ right).astype(np.int32 if integer else np.float32)
        return sums.astype(DTYPES[self.out]) if self.out else sums


QUICK = [
    Dense(20, 72, 160, "f8E4M3FN", "km", "nk", other="f8E5M2", out="bf16"),
    Dense(3, 200, 48, "i8", "mk", "nk", options="n-tile=192"),
    Dense(140, 40, 72, "f16", options="cta-group=2 n-tile=32"),
    Dense(130, 40, 17, "f32"),  # repacked: K = 17
    Dense(140, 40, 72, "f16", "mk", "nk", options="cluster=2x2 n-tile=32"),
]

MAJORS = [Dense(136, 80, 176, element, a, b) for element in TYPES for a, b in LAYOUTS]
"""Every type in every layout, two tiles of rows and a last step that K does not fill."""

TAILS = [
    *(Dense(m, n, k, "f16", a, b)
      for m, n, k in ((1, 1, 1), (127, 15, 63), (128, 16, 64), (129, 17, 65), (257, 130, 8))
      for a, b in (("mk", "nk"), ("km", "kn"))),
    *(Dense(5, 9, 33, element, a, b)
      for element in ("f32", "f8E5M2", "i8") for a, b in (("mk", "kn"), ("km", "nk"))),
]  # fmt: skip
"""Sizes that are one more or one less than tiles; rows that are not a multiple of 16 bytes are
repacked."""

TILES = [
    *(Dense(40, 264, 96, element, b="nk", options=f"n-tile={n}")
      for element in ("f16", "f8E4M3FN", "i8") for n in (16, 64, 96, 128, 192, 256)),
    *(Dense(140, 264, 320, "bf16", options=f"n-tile={n} stages={stages}")
      for n, stages in ((256, 1), (192, 2), (128, 4), (48, 3))),
]  # fmt: skip

OTHERS = [
    Dense(40, 48, 64, "f8E5M2", other="f8E4M3FN"),
    Dense(40, 48, 64, "f8E4M3FN", "mk", "nk", out="f16"),
    Dense(40, 48, 64, "f32", "mk", "nk", out="bf16"),
    Dense(40, 48, 64, "f16", out="f16"),
    Dense(40, 48, 64, "bf16", "km", "nk", out="bf16"),
    Dense(40, 48, 64, "f32", "km", "kn", batch=2),
    Dense(40, 48, 64, "i8", "km", "nk", batch=3),
    Dense(20, 24, 40, "f8E4M3FN", "mk", "kn", batch=2, out="f16"),
    Dense(130, 17, 33, "f16", "mk", "nk", batch=2),
]

PERSISTENT = [
    Dense(140, 40, 176, "f16", options="n-tile=16 persistent=true ctas=1"),
    Dense(140, 40, 176, "bf16", "mk", "nk", options="n-tile=16 persistent=true ctas=2"),
]
"""Six output tiles by one and by two CTAs; more in `test_gemm_persistent`."""

SWAPPED = [
    Dense(1, 130, 64, "f16", "mk", "nk"),
    Dense(8, 200, 72, "bf16", out="bf16"),
    Dense(33, 264, 40, "f32", "km", "kn"),
    Dense(64, 257, 96, "f8E4M3FN", "mk", "nk", out="f16"),
    Dense(5, 129, 33, "i8"),
    Dense(3, 140, 65, "f16", "km", "nk", batch=3, out="f16"),
    Dense(40, 200, 48, "f32", "mk", "nk", batch=2, options="swap=always"),
    Dense(140, 40, 176, "f16", "km", "kn", options="swap=always n-tile=48"),
    Dense(33, 300, 65, "bf16", "km", "kn", out="bf16", options="persistent=true ctas=2"),
]
"""Few rows, so that A and B are exchanged, and others that ask for it."""

PAIRS = [
    *(Dense(300, 200, 144, element, a, b, options="cta-group=2 n-tile=96")
      for element, (a, b) in zip(("f16", "bf16", "f8E4M3FN", "i8"), LAYOUTS)),
    Dense(140, 264, 72, "f32", "mk", "nk", options="cta-group=2 n-tile=256"),
    Dense(129, 33, 65, "f16", "km", "kn", options="cta-group=2 n-tile=32"),
    Dense(1, 1, 1, "bf16", options="cta-group=2"),
    Dense(257, 130, 200, "f16", "mk", "kn", out="f16", batch=2, options="cta-group=2 stages=1"),
    Dense(512, 512, 320, "f8E5M2", "mk", "nk", out="bf16", options="cta-group=2 stages=3"),
    Dense(600, 72, 136, options="cta-group=2 n-tile=32 persistent=true ctas=4"),
    Dense(1100, 24, 40, "i8", "km", "nk", options="cta-group=2 n-tile=32 persistent=true ctas=2"),
    Dense(300, 72, 80, "bf16", batch=2, out="f16",
          options="cta-group=2 n-tile=64 persistent=true ctas=4 acc-stages=1"),
    Dense(513, 130, 65, "f16", "mk", "nk", options="cta-group=2 persistent=true"),
]  # fmt: skip
"""Pairs of CTAs: odd tiles of rows, one CTA without rows, halves of B that begin anywhere.
Persistent: 5 and 4 tiles by two pairs; groups of 4 rows of pairs and of one; a tile for each."""

CLUSTERS = [
    *(Dense(300, 200, 144, element, a, b, options=f"cluster={cluster} n-tile=128")
      for element, (a, b), cluster in zip(("f16", "bf16", "f8E4M3FN", "i8"), LAYOUTS,
                                          ("2x1", "1x2", "2x2", "1x4"))),
    Dense(140, 264, 72, "f32", "mk", "nk", options="cluster=1x2 n-tile=96"),
    Dense(600, 33, 65, "f16", "km", "kn", options="cluster=4x1"),
    Dense(1, 1, 1, "bf16", options="cluster=2x2 swap=never"),
    Dense(257, 130, 200, "f16", "mk", "kn", out="f16", batch=2, options="cluster=2x1 stages=1"),
    Dense(20, 300, 72, "bf16", "mk", "nk", options="cluster=1x2"),
    Dense(600, 72, 136, options="cluster=2x1 n-tile=32 persistent=true ctas=4"),
    Dense(300, 200, 80, "i8", "km", "nk", options="cluster=2x2 n-tile=64 persistent=true ctas=4"),
    Dense(260, 136, 256, "f16", "mk", "nk", options="cluster=1x2 n-tile=64 store=tma"),
]  # fmt: skip
"""Clusters that load shared operands by multicast: CTAs without rows or columns, parts K-major and
MN-major, exchanged operands (1x2 along N is 2x1 of the mma), batches, tiles in turn."""

DENSE = [*MAJORS, *TAILS, *TILES, *OTHERS, *PERSISTENT, *SWAPPED, *PAIRS]
