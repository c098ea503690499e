"""The functions of convolutions that the passes of this folder take."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.tile_kernel import Source, find_sources
from tcir.target import TARGETS


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
        if k_part(source.op) is not None and not TARGETS[target_of(module)].wgmma:
            raise match_failure(
                source.op,
                f"expected whole sums for {target_of(module)}, got k_part = {k_part(source.op)} "
                "(tensor memory keeps them until they are stored, rounded); leave split-k out, or "
                "take target sm_90a",
                SMALLEST_CONV,
            )
    return sources
