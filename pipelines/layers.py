"""Pipeline layers."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.conv.fold_filter_rows import FoldFilterRows
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv import TileConv
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines import gemm
from tcir.target import targets_with


@dataclass(frozen=True)
class LayersOptions:
    """Options of the pipeline.

    stages: slots of the rings in shared memory; 0 chooses
    """

    stages: int = 0


def build(options: LayersOptions) -> Pipeline:
    """The passes of gemm, and before its tiling that of the convolutions."""
    passes = gemm.build(gemm.GemmOptions(stages=options.stages))
    passes = passes.insert(FoldFilterRows(wgmma=True), after="raise-to-tc")
    passes = passes.insert(SplitConvK(shifted=True), before="split-launches")
    return passes.insert(TileConv(others=True), before="tile-gemm")


register_pipeline(
    NamedPipeline(
        name="layers",
        doc="convolutions and matrix products in one function, each by a schedule of its own.",
        options=LayersOptions,
        accepted_forms=("what gemm accepts, and what conv accepts; several of both",),
        build=build,
        targets=tuple(targets_with("tcgen05") + targets_with("wgmma")),
    )
)
