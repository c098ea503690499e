"""One table of what a tensor-core kernel is chosen by; cases that cover every pair of its values.

cd test && python -m endtoend.axes 0 20    # the random cases of seeds 0 to 19, and their verdicts
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations, islice
from random import Random
from typing import Any

import numpy as np

import tcir
from tcir.passes.conv.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passes.kernels import legal

from .computed import Computed, finished, outcome
from .module_cases import Case, conv, product

AXES: dict[str, tuple[str, ...]] = {
    "product": ("matmul", "batched", "convolution", "strided convolution"),
    "target": ("sm_100a", "sm_90a"),
    "element": ("f16", "bf16", "f32", "f8E4M3FN", "i8"),
    "layout": ("mk kn", "km kn", "mk nk", "km nk"),
    "size": ("tiles", "tails", "few rows"),
    "epilogue": ("", "bias relu", "scale residual:f16", "bias gelu bf16", "f16"),
    "store": ("direct", "tma"),
    "scheduler": ("static", "persistent", "clc"),
    "ctas": ("1x1", "2x1", "1x2", "pair"),
    "split": ("whole", "parts"),
}
"""Values by axis; the first is the default. layout: of a product's operands, the second of a
convolution's; split: of K."""
SIZES = {"tiles": (256, 128, 256), "tails": (200, 88, 264), "few rows": (3, 136, 256)}
"""M, N, K of a product."""
IMAGES = {
    "tiles": (1, 16, 16, 64, 128),
    "tails": (2, 13, 11, 40, 72),
    "few rows": (1, 3, 2, 64, 24),
}
"""N, H, W, C and K of a convolution."""


Pair = tuple[tuple[str, str], tuple[str, str]]
"""Two axes with a value each."""


@dataclass(frozen=True)
class Chosen:
    """A value of each axis."""

    product: str
    target: str
    element: str
    layout: str
    size: str
    epilogue: str
    store: str
    scheduler: str
    ctas: str
    split: str

    def __str__(self) -> str:
        words = [value for name, value in asdict(self).items() if value != AXES[name][0]]
        return " ".join([self.product, *words[self.product != AXES["product"][0] :]])

    @property
    def pairs(self) -> frozenset[Pair]:
        """Pairs of its values, with the axes in the order of `AXES`."""
        return frozenset(combinations(vars(self).items(), 2))

    @property
    def is_conv(self) -> bool:
        """Whether it is a convolution."""
        return self.product.endswith("convolution")

    @property
    def channels(self) -> tuple[int, int]:
        """C and K of the convolution."""
        c, k = IMAGES[self.size][3:]
        return (128 if self.split == "parts" else c), k  # whole steps of a tap

    @property
    def case(self) -> Case:
        """The program."""
        words = self.epilogue
        if self.element == "i8" and words not in ("", "f16"):
            words = f"f32 {words}"  # epilogues compute in f32
        if self.is_conv:
            (n, h, w, *_), (c, k) = IMAGES[self.size], self.channels
            layout = "nhwc fhwc" if "nk" in self.layout else "nhwc"
            steps = {"stride": 2} if self.product.startswith("strided") else {}
            return conv((n, h, w, c), k, (3, 3), self.element, words, layout, pad=1, **steps)
        m, n, k = SIZES[self.size]
        a, b = self.layout.split()
        batch = "l" if self.product == "batched" else ""
        sizes = {"l": 2} if batch else {}
        maps = f"{batch}{a} {batch}{b} {batch}mn"
        return product({**sizes, "m": m, "n": n, "k": k}, maps, self.element, words)

    @property
    def options(self) -> dict[str, Any]:
        """Options of the pipeline that are not the defaults."""
        found: dict[str, Any] = {}
        if self.store != "direct":
            found["store"] = "tma"
        if self.scheduler != "static":
            found["persistent"] = True
        if self.scheduler == "clc":
            found["scheduler"] = "clc"
        if self.ctas == "pair":
            found["cta_group"] = 2
        elif self.ctas != "1x1":
            found["cluster"] = self.ctas
        if self.split == "parts":
            found["split_k"] = 3 if self.is_conv else 2  # of nine taps
        return found

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return "conv-implicit-gemm" if self.is_conv else "gemm"

    @property
    def refusal(self) -> str:
        """The errors that the case may end in, as a regular expression; "" if it compiles."""
        exchanged = not self.is_conv and self.size == "few rows" and self.target == "sm_100a"
        tiling = TileConvImplicitGemm() if self.is_conv else TileGemm()
        facts = {
            **legal.options_of(tiling), **self.options,
            "product": legal.IM2COL if self.is_conv else legal.DENSE,
            "core": legal.core_of(self.target), "target": self.target, "results": legal.PLAIN,
            "operands": "exchanged" if exchanged else "given",
            "sums": "parts" if self.split == "parts" else "whole",
        }  # fmt: skip
        reasons = [row.reason for row in legal.ROWS if row.applies(facts)]
        return "|".join(map(re.escape, reasons))

    def run(self, seed: int = 0, *, every_pass: bool = False) -> str:
        """Compiled, run from PTX beside numpy, and on request validated after every pass: "equal",
        "within bound" or "refused: " and why. Even seeds draw whole numbers, odd ones floats."""
        for normal in (seed % 2 == 1, False):  # whole numbers where the bound of floats is too wide
            program = Computed(generator=np.random.default_rng(seed), normal=normal)
            text, arrays, wanted = finished(program, self.case.build(program))
            if all(each.tells() for each in wanted.values()):
                break
        found = outcome(text, arrays, wanted, self.pipeline, target=self.target, **self.options)
        if every_pass and not found.startswith("refused"):
            report = tcir.validate(text, self.pipeline, target=self.target, **self.options)
            assert report.verdict == "held", str(report)
        return found


def pairs(tries: int = 600, enough: int = 30) -> tuple[list[Chosen], list[Pair]]:
    """Cases that compile and have each pair of values of two axes, each the best of `enough`; and
    the pairs that none of `tries` random cases has, as some row of `legal` excludes them."""
    draw = Random(0)
    left = dict.fromkeys(
        ((one, value), (other, partner))
        for one, other in combinations(AXES, 2)
        for value in AXES[one]
        for partner in AXES[other]
    )
    found: list[Chosen] = []
    excluded: list[Pair] = []
    while left:
        wanted = next(iter(left))
        cases = (drawn(draw, dict(wanted)) for _ in range(tries))
        some = list(islice((case for case in cases if not case.refusal), enough))
        if not some:
            excluded.append(wanted)
            del left[wanted]
            continue
        found.append(max(some, key=lambda case: len(case.pairs & left.keys())))
        left = dict.fromkeys(pair for pair in left if pair not in found[-1].pairs)
    return found, excluded


def drawn(draw: Random, given: Mapping[str, str] = {}) -> Chosen:
    """A random case with the values that are given."""
    return Chosen(
        **{name: given[name] if name in given else draw.choice(AXES[name]) for name in AXES}
    )


if __name__ == "__main__":
    for seed in range(*map(int, sys.argv[1:])):
        case = drawn(Random(seed))
        print(f"{seed} {case}: {case.run(seed)[:200]} (expected {case.refusal!r})", flush=True)
