"""Block-scaled products for pipeline gemm: formats, N tiles, tails, batches, results."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .block_scaled_text import F4, F6A, F6B, F8A, F8B, UE8M0, BlockScaled

FORMATS = (
    BlockScaled(),  # NVFP4
    BlockScaled(scale=UE8M0),
    BlockScaled(scale=UE8M0, block=32),
    *(
        BlockScaled(a=a, b=b, scale=UE8M0, block=32)
        for a, b in ((F8A, F8A), (F8B, F8A), (F6A, F6B), (F4, F8A), (F8B, F4))
    ),
)


@dataclass(frozen=True)
class Scaled:
    """One program, and options of the pipeline."""

    case: BlockScaled
    options: str = ""

    def __str__(self) -> str:
        return f"{self.case}-{self.options}".rstrip("-")

    @property
    def pipeline(self) -> str:
        """Its pipeline with options."""
        return f"gemm{{{self.options}}}"


SHAPES = (
    (BlockScaled(m=130, n=200, k=384), "n-tile=192"),  # the second tile begins inside a block
    (BlockScaled(m=40, n=264, k=256, out="bf16"), "n-tile=64"),
    (BlockScaled(m=40, n=300, k=256, alpha="after", out="f16"), ""),
    (BlockScaled(m=129, n=40, k=640), "stages=1"),
    (BlockScaled(m=20, n=260, k=256, blocked="a1b1"), "n-tile=256"),
    (BlockScaled(m=20, n=140, k=256, batch=2, alpha="in"), "n-tile=96"),
)


def _of(shape: BlockScaled, format_: BlockScaled) -> BlockScaled:
    packed = format_.a == F4 and format_.b == F4
    k = shape.k if packed or shape.k % 128 == 0 else 2 * shape.k
    types = {name: getattr(format_, name) for name in ("a", "b", "scale", "block")}
    return replace(shape, k=k, **types)


QUICK = [Scaled(BlockScaled(m=20, n=200, k=256, alpha="in", blocked="a1b1"), "n-tile=192")]
SCALED = [Scaled(_of(shape, format_), options) for format_ in FORMATS for shape, options in SHAPES]
TILES = [
    Scaled(BlockScaled(m=20, n=400, k=320), f"n-tile={n}") for n in (32, 96, 128, 160, 224, 256)
] + [
    Scaled(BlockScaled(m=140, n=300, k=512), "n-tile=192 persistent=true ctas=2"),
    Scaled(BlockScaled(m=140, n=300, k=512, out="bf16"), "persistent=true ctas=1 acc-stages=1"),
    Scaled(BlockScaled(m=20, n=24, k=64), "n-tile=80"),
    Scaled(BlockScaled(m=8, n=200, k=256, alpha="in", blocked="a1b1", out="bf16")),  # exchanged
    Scaled(BlockScaled(m=20, n=140, k=256, batch=2, a=F4, b=F8A, scale=UE8M0, block=32)),
]

_PAIR = BlockScaled(m=300, n=200, k=256, alpha="in")
PAIRS = [
    *(Scaled(_of(_PAIR, format_), "cta-group=2 n-tile=128") for format_ in FORMATS),
    Scaled(BlockScaled(m=300, n=400, k=640, blocked="a1b1"), "cta-group=2"),
    Scaled(BlockScaled(m=260, n=400, k=512, out="bf16"), "cta-group=2 n-tile=192 stages=2"),
    Scaled(BlockScaled(m=140, n=200, k=256, batch=2), "cta-group=2 n-tile=96"),
    Scaled(BlockScaled(m=1, n=24, k=64), "cta-group=2"),
    Scaled(BlockScaled(m=129, n=33, k=320, out="f16", alpha="after"), "cta-group=2 n-tile=64"),
    Scaled(BlockScaled(m=300, n=200, k=256, out="bf16"), "cta-group=2 store=tma"),
    Scaled(BlockScaled(m=300, n=200, k=512), "cta-group=2 n-tile=96 persistent=true ctas=2"),
    Scaled(BlockScaled(m=600, n=300, k=256, out="bf16"), "cta-group=2 persistent=true ctas=4"),
    Scaled(
        BlockScaled(m=300, n=300, k=640, a=F8A, b=F4, scale=UE8M0, block=32),
        "cta-group=2 n-tile=256 persistent=true ctas=2 acc-stages=1",
    ),
]
"""Pairs of CTAs: the second loads the other half of B, and the scales of all of it. Tiles of one,
of two blocks of scales, that begin inside a block; CTAs without rows."""
