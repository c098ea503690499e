"""The functions of convolutions that the passes of this folder take."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.build.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.build.tile_kernel import Source, find_sources


def find_convolutions(module: ir.Module, pass_name: str, others: bool = False) -> list[Source]:
    """The ``tc.conv2d`` of every function, with its ``tc.epilogue`` if any; others: whether there
    may be functions without one."""
    sources = find_sources(module, tc.Conv2dOp, pass_name, epilogues=True, others=others)
    for source in sources:
        if source.quantise is not None:
            raise match_failure(
                source.quantise,
                "expected a result of one tensor of a convolution, got a quantised one (a block of "
                "scales has 128 rows of a matrix, and tiles of pixels are others); take pipeline "
                "conv, where a launch of its own quantises (split-launches{quantise-apart=true})",
                SMALLEST_CONV,
            )
    return sources
