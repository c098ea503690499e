"""Pipeline simt-elementwise."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.module.constants_to_arguments import ConstantsToArguments
from tcir.passes.module.fold_constant_launches import FoldConstantLaunches
from tcir.passes.module.fold_empty import FoldEmpty
from tcir.passes.module.plan_workspaces import PlanWorkspaces
from tcir.passes.module.share_kernels import ShareKernels
from tcir.passes.module.split_layers import SplitLayers
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passes.raising.raise_quantise import RaiseQuantise
from tcir.passes.simt.convert_linalg_to_simt import ConvertLinalgToSimt
from tcir.passes.simt.convert_quantise_to_simt import ConvertQuantiseToSimt
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.target import TARGETS


@dataclass(frozen=True)
class SimtElementwiseOptions:
    """No options."""


def build(_: SimtElementwiseOptions) -> Pipeline:
    """The passes."""
    return Pipeline(
        [
            FoldEmpty(),
            ConstantsToArguments(),
            RaiseQuantise(),
            SplitLayers(simt=True),
            FoldConstantLaunches(),
            ShareKernels(),
            ConvertLinalgToSimt(),
            ConvertQuantiseToSimt(),
            PlanWorkspaces(),
            "cse",
            *LOWER_TO_LLVM,
        ]
    )


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
