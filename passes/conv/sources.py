"""Finds the functions with convolutions that the tiling passes of this folder can tile."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.emit.diagnostics import SMALLEST_CONV
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.tile_kernel import Source, find_sources
from tcir.passes.kernels import legal
from tcir.passes.kernels.collector import SharedTiles
from tcir.passes.kernels.scheduled import Scheduled


@dataclass(frozen=True)
class ConvTiling(Scheduled):
    """A tiling pass of convolutions.

    n_tiles: tiles of `n_tile` output channels, each with its own accumulator, that a CTA computes
        from the same pixels
    """

    n_tiles: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.together

    @property
    def together(self) -> SharedTiles:
        """Number of tiles of filters that are multiplied by the same tile of pixels."""
        return SharedTiles(self.n_tiles)


def find_convolutions(
    module: ir.Module,
    pass_name: str,
    product: str = legal.IM2COL,
    others: bool = False,
    options: legal.Facts | None = None,
) -> list[Source]:
    """The ``tc.conv2d`` of every function, with the ``tc.epilogue`` that follows it, if any.

    others: whether functions without a convolution are allowed
    options: options of the kernel, checked against each op
    """
    sources = find_sources(module, tc.Conv2dOp, pass_name, epilogues=True, others=others)
    for source in sources:
        facts = legal.facts_of(source, product, target_of(module))
        legal.check({**(options or {}), **facts}, source.op, SMALLEST_CONV)
    return sources
