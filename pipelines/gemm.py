"""The pipeline gemm."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.dialect.limits import QUARTERS
from tcir.passes.attention.split_kv import SplitKv
from tcir.passes.attention.tile_attention import TileAttention
from tcir.passes.attention.transpose_values import TransposeValues
from tcir.passes.gemm.collapse_batch import CollapseBatch
from tcir.passes.gemm.fuse_operands import FuseOperands
from tcir.passes.gemm.repack_gemm import RepackGemm
from tcir.passes.gemm.split_k import SplitK
from tcir.passes.gemm.swap_operands import SwapOperands
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passes.kernels.scheduled import CLC
from tcir.passes.kernels.stores.epilogue_tile import AUTO
from tcir.passes.module.reorder_scales import ReorderScales
from tcir.passmanager.pipeline import NamedPipeline, Pass, Pipeline, register_pipeline
from tcir.pipelines.parts.back import ATTENTION, WARPGROUPS, tile_to_llvm
from tcir.pipelines.parts.front import launched, raised, with_options
from tcir.pipelines.parts.products import PRODUCT_FORMS
from tcir.target import targets_with


@dataclass(frozen=True)
class GemmOptions:
    """Options of the pipeline.

    n_tile: output columns per CTA, a multiple of 16 up to 256; 0 takes the width that is fastest by
            the cost model
    stages: slots of the ring in shared memory; 0 chooses
    persistent: whether there are no more CTAs than SMs, so that a CTA computes several tiles one
                after another
    ctas: CTAs of a persistent kernel; 0: one per SM, or with wgmma the smallest number that
          computes all tiles in as many rounds
    scheduler: how the tiles of a persistent kernel are distributed. static: CTA c computes the
               tiles c, c + ctas, …; clc: a CTA also computes the tiles of CTAs that have not been
               launched (cluster launch control)
    acc_stages: accumulators that the tiles of a CTA use in turn; 0 chooses
    programmatic: whether the launch may start before the previous one has ended (programmatic
                  dependent launch)
    store: how results are stored, direct: by each thread from its registers; tma: through swizzled
           shared memory, whole lines at a time
    store_stages: tiles that a warp stores by TMA in turn, so that it writes one while others are
                  read; 0 chooses
    epilogue_tile: MxN: sums that the epilogue loads, stages and stores at a time; auto: 128x16 if
                   threads store, 32 rows of one swizzle span if TMA stores
    n_tiles: tiles of n-tile columns by which a CTA multiplies a tile of A
    collector: whether the tensor core's collector buffer keeps A from the first of the n-tiles
               tiles to the last
    producer_warps, consumer_warps, epilogue_warps: warps that load (1, or 2 where the epilogue
                                                    reads by TMA), multiply (1; 8 with wgmma) and
                                                    store (4, 8, 12); 0 chooses
    cta_group: 2: pairs of CTAs compute tiles of 256 rows (M of the mma) together
    cluster: MxN: clusters of M by N CTAs, neighbours along rows and columns of the output, load the
             operands that they share together, by multicast
    kind: mxf4nvf4, mxf4 or mxf8f6f4, if several kinds multiply the block-scaled types; left out,
          the kind whose operands take the fewest bytes in shared memory
    swap: always, never or auto. auto exchanges A and B if few rows leave most of the tensor core's
          128 rows empty and n-tile is left out
    split_k: number of CTAs that divide K of an output tile among them; a second kernel sums up
             their results
    quantise_apart: whether tc.quantise_blocks is a separate launch, which may also quantise an
                    argument; a product then reads its codes and scales. Left out, it is one launch
                    with the product before it
    tf32: whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores multiply
          them in f32
    attention: whether two products and the softmax between them become one kernel, whose
               exponentials are rounded to the type of the values; left out, each of the three is a
               kernel
    """

    n_tile: int = 0
    stages: int = 0
    persistent: bool = False
    ctas: int = 0
    scheduler: str = "static"
    acc_stages: int = 0
    programmatic: bool = False
    store: str = "direct"
    store_stages: int = 0
    epilogue_tile: str = AUTO
    n_tiles: int = 1
    collector: bool = False
    producer_warps: int = 0
    consumer_warps: int = 0
    epilogue_warps: int = 0
    cta_group: int = 1
    cluster: str = "1x1"
    kind: str = ""
    swap: str = "auto"
    split_k: int = 1
    quantise_apart: bool = False
    tf32: bool = True
    attention: bool = False


def build(options: GemmOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    return Pipeline(
        [
            *raised(options.tf32, options.attention),
            *rewrites(options),
            *([SplitKv(), TransposeValues()] if options.attention else []),
            *launched(FuseOperands(alone=_alone(options)), quantise_apart=options.quantise_apart),
            TileAttention(),
            with_options(TileGemm, options),
            *tile_to_llvm(
                options.stages,
                options.acc_stages,
                takes_over=options.scheduler == CLC,
                programmatic=options.programmatic,
                warpgroups=(*ATTENTION, *WARPGROUPS),
            ),
        ]
    )


def rewrites(options: GemmOptions) -> list[Pass]:
    """Returns the passes that rewrite products to forms that tensor cores and TMA support."""
    swap = SwapOperands(swap=options.swap, n_tile=options.n_tile)
    split = [SplitK(splits=options.split_k)] if options.split_k != 1 else []
    return [CollapseBatch(), swap, ReorderScales(), RepackGemm(), *split]


def _alone(options: GemmOptions) -> bool:
    """Whether a CTA has its tiles to itself, and one warpgroup stores them: it can make an operand
    until there are sums."""
    together = options.cta_group > 1 or options.cluster != "1x1" or options.n_tiles > 1
    return not together and options.epilogue_warps in (0, QUARTERS)


register_pipeline(
    NamedPipeline(
        name="gemm",
        doc="matrix product, batched or not, operands transposed or not, block-scaled or not.",
        options=GemmOptions,
        accepted_forms=(
            "linalg.matmul (also with transposing indexing_maps), linalg.batch_matmul, or the same "
            "as linalg.generic",
            *PRODUCT_FORMS,
            "f16, bf16, f32 (multiplied as tf32) or f8 inputs, f32 accumulator; i8 with an i32 one",
            "after it elementwise linalg, arith ops on tensors, broadcasts of other arguments: its "
            "epilogue, whose result may have another type, or be made of its even and odd columns; "
            "last tc.quantise_blocks to NVFP4, MXFP4 or MXFP8, or the same in "
            "linalg, arith and math ops",
            "linalg.generic of elements times scales of two matrices, summed over k, or "
            "tc.block_scaled_matmul: types, scales, global scales and results as with "
            "gemv-padded-n, any number of columns; row-major scales are reordered",
            "several products, and what simt-elementwise accepts around them: a launch each",
            "tc.grouped_matmul: rows in groups, each with a matrix B of its own",
            "static shapes; rows of no multiple of 16 bytes, and f32 without K innermost, are "
            "repacked",
        ),
        build=build,
        targets=tuple(targets_with("tcgen05") + targets_with("wgmma")),
    )
)
