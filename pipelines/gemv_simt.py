"""The pipeline gemv-simt."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.errors import InputError
from tcir.passes.module.reorder_scales import ReorderScales
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import threads_to_llvm
from tcir.pipelines.parts.front import launched, raised_block_scaled
from tcir.target import targets_with


@dataclass(frozen=True)
class GemvSimtOptions:
    """Options of the pipeline.

    rows:    rows of A per warp
    warps:   warps per CTA
    reorder: whether separate kernels first bring row-major scales into the tensor core's layout
             (these kernels do not need it; the option exists to measure its cost)
    """

    rows: int = 4
    warps: int = 4
    reorder: bool = False


def build(options: GemvSimtOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    reorder = [ReorderScales()] if options.reorder else []
    if options.rows < 1:  # 0 would leave products as they are
        raise InputError(f"expected rows of 1 to 8, got {options.rows}: rows of A per warp")
    simt = ConvertToSimt(rows=options.rows, warps=options.warps)
    launches = [*raised_block_scaled(), *reorder, *launched(sharing=(), simt=simt)]
    return Pipeline([*launches, *threads_to_llvm("cse")])


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
