"""The pipeline attention."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.attention.split_kv import SplitKv
from tcir.passes.attention.tile_attention import TileAttention
from tcir.passes.attention.tile_attention_backward import TileAttentionBackward
from tcir.passes.attention.transpose_values import TransposeValues
from tcir.passes.module.split_launches import SplitLaunches
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import ATTENTION, tile_to_llvm
from tcir.pipelines.parts.front import with_options
from tcir.target import targets_with


@dataclass(frozen=True)
class AttentionOptions:
    """Options of the pipeline.

    rows: queries of a tile, 64, 128 or 192; 0 chooses
    keys: keys of a block; 0 chooses
    ctas: number of CTAs, each of which computes several tiles in turn; 0: on sm_100a one for each
        tile, else one per SM if there are more tiles
    stages: blocks of keys and values in shared memory; 0 chooses
    tau: growth of exponents up to which the sums of earlier blocks are not rescaled; -1 chooses
    split_kv: number of parts of the keys, whose results a second kernel combines; 0 chooses; 1: no
        second kernel
    polynomial: number of exponentials of every 16 keys that a polynomial computes, on sm_100a
    store: how results are stored on sm_100a: "direct", by threads, or "tma", by TMA
    programmatic: whether a launch may start before the previous one has ended (programmatic
        dependent launch)
    """

    rows: int = 0
    keys: int = 0
    ctas: int = 0
    stages: int = 0
    tau: float = -1.0
    split_kv: int = 0
    polynomial: int = 0
    store: str = "direct"
    programmatic: bool = True


def build(options: AttentionOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    return Pipeline(
        [
            SplitKv(parts=options.split_kv, keys=options.keys),
            TransposeValues(),
            SplitLaunches(),
            ConvertToSimt(programmatic=options.programmatic),
            with_options(TileAttention, options),
            TileAttentionBackward(),
            *tile_to_llvm(
                options.stages,
                programmatic=options.programmatic,
                several=True,
                warpgroups=ATTENTION,
            ),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="attention",
        doc="scaled dot-product attention in one kernel, whose scores stay on the SM.",
        options=AttentionOptions,
        accepted_forms=(
            "tc.attention of f16, bf16, f8E4M3FN or f8E5M2, heads of a multiple of 16 elements up "
            "to 256 (8 bits: of 32, on sm_90a up to 128), grouped or not, a causal mask or none",
            "tc.block_scaled_attention of MXFP8, MXFP4 or NVFP4 queries and keys, on sm_100a",
        ),
        build=build,
        targets=tuple(targets_with("wgmma") + targets_with("tcgen05")),
    )
)
