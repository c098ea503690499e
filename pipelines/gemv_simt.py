"""Pipeline gemv-simt."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.module.constants_to_arguments import ConstantsToArguments
from tcir.passes.module.fold_constant_launches import FoldConstantLaunches
from tcir.passes.module.fold_empty import FoldEmpty
from tcir.passes.module.fuse_epilogue import FuseEpilogue
from tcir.passes.module.plan_workspaces import PlanWorkspaces
from tcir.passes.module.reorder_scales import ReorderScales
from tcir.passes.module.split_launches import SplitLaunches
from tcir.passes.module.split_layers import SplitLayers
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passes.raising.raise_block_scaled import RaiseBlockScaled
from tcir.passes.raising.raise_quantise import RaiseQuantise
from tcir.passes.simt.convert_block_scaled_to_simt import ConvertBlockScaledToSimt
from tcir.passes.simt.convert_codes_to_simt import ConvertCodesToSimt
from tcir.passes.simt.convert_linalg_to_simt import ConvertLinalgToSimt
from tcir.passes.simt.convert_quantise_to_simt import ConvertQuantiseToSimt
from tcir.passes.simt.convert_scales_to_simt import ConvertScalesToSimt
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.target import targets_with


@dataclass(frozen=True)
class GemvSimtOptions:
    """Options of the pipeline.

    rows:    rows of A per warp
    warps:   warps per CTA
    reorder: whether row-major scales are first brought into the tensor core's layout, by kernels of
             their own (not needed here; measures its cost)
    """

    rows: int = 4
    warps: int = 4
    reorder: bool = False


def build(options: GemvSimtOptions) -> Pipeline:
    """The passes."""
    convert = ConvertBlockScaledToSimt(rows=options.rows, warps=options.warps)
    reorder = [ReorderScales()] if options.reorder else []
    raising = [FoldEmpty(), ConstantsToArguments(), RaiseQuantise(), SplitLayers(), FuseEpilogue()]
    split = [SplitLaunches(quantise_apart=True), FoldConstantLaunches()]
    helpers = [ConvertScalesToSimt(), ConvertCodesToSimt()]
    others = [ConvertLinalgToSimt(), ConvertQuantiseToSimt(), convert, PlanWorkspaces()]
    return Pipeline(
        [*raising, RaiseBlockScaled(), *reorder, *split, *helpers, *others, "cse", *LOWER_TO_LLVM]
    )


register_pipeline(
    NamedPipeline(
        name="gemv-simt",
        doc="block-scaled product on CUDA cores, decoded in software: a baseline.",
        options=GemvSimtOptions,
        accepted_forms=(
            "linalg.generic of elements times scales of two operands, summed over k (matrix or "
            "vector, batched or not), or tc.block_scaled_matmul",
            "elements f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2; scales f8E8M0FNU or f8E4M3FN "
            "in blocks of 16 (fp4) or 32, as tcgen05.mma has them",
            "codes of fp4 and fp6 one to a byte (tensor of i8) by tc.pack_codes",
            "f32 accumulator, global scales tensor<f32>; after it elementwise linalg, arith ops on "
            "tensors, broadcasts of other arguments: its epilogue; result f32, f16, bf16 or fp8",
            "static shapes, K a multiple of the block",
        ),
        build=build,
        targets=tuple(targets_with("fp8")),
    )
)
