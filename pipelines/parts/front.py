"""The front ends of pipelines: passes from linalg to launches of one op each. Launches for CUDA
cores are already kernels after them.

A pipeline consists of a front end (`raised`, rewrites of the raised ops, and `launched`), the
tiling passes of its schedule, and a back end, which is a list of passes from
`tcir.pipelines.parts.back`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from tcir.passes.module.constants_to_arguments import ConstantsToArguments
from tcir.passes.module.fold_constant_launches import FoldConstantLaunches
from tcir.passes.module.fold_empty import FoldEmpty
from tcir.passes.module.fold_layouts import FoldLayouts
from tcir.passes.module.fuse_epilogue import FuseEpilogue
from tcir.passes.module.join_siblings import JoinSiblings
from tcir.passes.module.share_kernels import ShareKernels
from tcir.passes.module.split_launches import SplitLaunches
from tcir.passes.module.split_layers import SplitLayers
from tcir.passes.raising.raise_attention import RaiseAttention
from tcir.passes.raising.raise_block_scaled import RaiseBlockScaled
from tcir.passes.raising.raise_quantise import RaiseQuantise
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.passmanager.pipeline import Pass

ON_ARRAYS = (FoldEmpty(), ConstantsToArguments(), RaiseQuantise())
"""Passes with which every pipeline begins."""
SHARED = (ShareKernels(),)
"""Launches that compute the same are one kernel."""

PassType = TypeVar("PassType", bound=Pass)


def raised(
    tf32: bool = True, attention: bool = False, vectors: bool = False, siblings: bool = False
) -> list[Pass]:
    """The passes that raise the function of each layer to a ``tc`` product or convolution with its
    ``tc.epilogue``.

    tf32:      whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores
               multiply them in f32
    attention: whether attention is one op of ``tc`` (`tile_attention`)
    vectors:   whether CUDA cores multiply matrices by vectors
    siblings:  whether products of one tensor with frozen matrices are joined
    """
    first = [RaiseAttention()] if attention else []
    joined = [JoinSiblings()] if siblings else []
    layers = SplitLayers(tf32=tf32, vectors=vectors)
    return [*first, *ON_ARRAYS, *joined, FoldLayouts(), layers, FuseEpilogue(), RaiseToTc()]


def raised_block_scaled() -> list[Pass]:
    """The passes that raise the function of each layer to a ``tc.block_scaled_matmul`` with its
    ``tc.epilogue``."""
    return [*ON_ARRAYS, SplitLayers(), FuseEpilogue(), RaiseBlockScaled()]


def launched(
    *fusing: Pass,
    quantise_apart: bool = True,
    joining: Sequence[Pass] = (),
    sharing: Sequence[Pass] = SHARED,
    simt: ConvertToSimt | None = None,
) -> list[Pass]:
    """The passes that make a separate function of each launch.

    fusing: passes that fuse launches, before equal launches are shared
    quantise_apart: the option of split-launches and, unless `simt` is given, of convert-to-simt
    joining: passes that join launches
    sharing: passes that let equal launches share one kernel
    simt:    the pass that converts launches without tensor cores to kernels of CUDA cores
    """
    split = [SplitLaunches(quantise_apart=quantise_apart), *joining, FoldConstantLaunches()]
    return [*split, *fusing, *sharing, simt or ConvertToSimt(quantise_apart=quantise_apart)]


def with_options(cls: type[PassType], options: object) -> PassType:
    """Builds a pass that takes the pipeline's options as its options of the same names; options
    that the pipeline lacks keep their defaults."""
    names = [each.name for each in dataclasses.fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: getattr(options, name) for name in names if hasattr(options, name)})
