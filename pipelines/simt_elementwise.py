"""The pipeline simt-elementwise."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.module.fold_constant_launches import FoldConstantLaunches
from tcir.passes.module.split_layers import SplitLayers
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import threads_to_llvm
from tcir.pipelines.parts.front import ON_ARRAYS, SHARED
from tcir.target import TARGETS


@dataclass(frozen=True)
class SimtElementwiseOptions:
    """The pipeline has no options."""


def build(_: SimtElementwiseOptions) -> Pipeline:
    """Returns the passes of the pipeline."""
    launches = [*ON_ARRAYS, SplitLayers(simt=True), FoldConstantLaunches(), *SHARED]
    return Pipeline([*launches, ConvertToSimt(), *threads_to_llvm("cse")])


register_pipeline(
    NamedPipeline(
        name="simt-elementwise",
        doc="elementwise ops, reductions and pooling on CUDA cores, one thread an element.",
        options=SimtElementwiseOptions,
        accepted_forms=(
            "linalg ops with indexing maps: elementwise, broadcasts, transposes, reductions "
            "(argmax, too), pooling, softmax; products, too, without tensor cores",
            "arith ops on numbers, functions (exp, log, sqrt, rsqrt, tanh, erf, powers with "
            "constant exponents, …); tensor.pad, concat, extract_slice, reshapes",
            "block quantisation of an argument to NVFP4, MXFP4 or MXFP8: tc.quantise_blocks, or in "
            "linalg, arith and math ops",
            "static tensors of f32, f16, bf16, f64, i64, i32, i16, i8, i4, i2, i1, f8E4M3FN, "
            "f8E5M2, f8E8M0FNU, f6E2M3FN, f6E3M2FN, f4E2M1FN (rows of whole bytes; floats of a "
            "byte or less are converted only); a launch for each reduction and result",
        ),
        build=build,
        targets=tuple(TARGETS),
    )
)
