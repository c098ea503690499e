"""A convolution as a matrix product on warpgroups: the sums are in registers, and the pixels of
each tap are loaded to shared memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from tcir.dialect import tc
from tcir.dialect.limits import WGMMA_M, WGMMA_TRANSPOSED_BYTES
from tcir.dialect.ops.warpgroup import columns_of
from tcir.passes.conv.im2col import (
    Im2col,
    check_cluster,
    check_im2col,
    check_parts,
    filters_step,
    gathered,
)
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.element_epilogue import check_elements
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source, choose_n_tile
from tcir.passes.kernels.cores.wgmma import (
    M_TILE,
    MAPS,
    N_TILES,
    Warpgroups,
    check_width,
    is_promoted,
    parts_of,
)
from tcir.passes.kernels.cores.wgmma_cost import multiplying, of_rounds
from tcir.passes.kernels.product import Tile
from tcir.passes.kernels.scheduled import Scheduled
from tcir.passes.kernels.stores.fragment import tile_fragments
from tcir.target import TARGETS
from tcir.time.warpgroups import FILTER, PIXEL, ROW_BYTES, SUMMED_BYTES, SUMMING

LEAST_SHARED, MOST_SHARED = 64, {WGMMA_M: 128, 2 * WGMMA_M: 128, 3 * WGMMA_M: 64}
"""Columns of a tile of which an SM has two CTAs: fewer were slower, more have, by rows, no room for
their sums."""
MOST_COLUMNS = {WGMMA_M: 256, 2 * WGMMA_M: 256, 3 * WGMMA_M: 192}
"""The most columns of a tile, by its rows: for more, a thread has too few registers."""


def tile_for_warpgroups(source: Source, options: Scheduled, target: str) -> None:
    """Replaces the function of a ``tc.conv2d`` by a kernel of wgmma.

    Its output is a matrix of pixels and channels. A kernel with more tiles than CTAs fit on the SMs
    is persistent: the next tile is loaded while the current one is stored.
    """
    op, shape = source.op, gathered(ConvShape.of(source.op))
    cluster = ClusterShape.parse(options.cluster)
    check_im2col(op, shape)
    chosen = choose(op, shape, options.n_tile, target, cluster)
    options.in_parts(op, chosen.columns, cluster, filters_step(op, shape))
    if source.after is not None:
        check_elements(source.after, f"in a kernel for {target}", "take target sm_100a")
    pixels, most = shape.n * shape.p * shape.q, chosen.per_sm * TARGETS[target].sms
    parts = shape.parts if shape.k_part else None
    tiles = OutputTiles(
        ceil_div(pixels, chosen.rows), ceil_div(shape.k, chosen.columns), parts, cluster=cluster
    )
    tiles = options.shared_out(tiles, most, most)
    create = partial(Im2col.create, op, n_tile=chosen.columns, rows=chosen.rows, cluster=cluster)
    core = Warpgroups(op, chosen, target)
    staging = options.staging(core, tiles, parts_of(op.x.type.element_type, chosen.columns))
    tile_fragments(source, create, tiles, core, pixels, shape.k, staging)


def fastest_parts(
    op: tc.Conv2dOp, shape: ConvShape, option: int, target: str, cluster: ClusterShape
) -> int:
    """Number of parts into which the sums are divided in the fastest program. option: the option
    n-tile of the pass; 0 chooses"""
    sms = TARGETS[target].sms

    def cost(parts: int) -> float:
        part = shape.in_parts(parts)
        return cycles(part, choose(op, part, option, target, cluster), sms)

    return min((n for n in range(1, shape.steps + 1) if shape.steps % n == 0), key=cost)


def choose(
    op: tc.Conv2dOp, shape: ConvShape, option: int, target: str, cluster: ClusterShape = ALONE
) -> Tile:
    """Chooses the numbers of pixels and of output channels of a tile. The channels belong to one
    group, and the CTAs of `cluster` load equal parts of them. Raises a match failure for types that
    wgmma cannot multiply."""
    check_parts(op, shape)
    check_cluster(op, shape, cluster)
    multiple = cluster.multiple(filters_step(op, shape))
    option = check_product(op, shape, option, multiple)
    widths = [option] if option else [each for each in N_TILES if each % multiple == 0]
    return fastest_tile(shape, widths, TARGETS[target].sms)


def fastest_tile(shape: ConvShape, widths: Iterable[int], sms: int) -> Tile:
    """The fastest tile with one of the output-channel counts `widths`. shape: returned by
    `gathered`"""
    pixels = shape.n * shape.p * shape.q
    promoted = is_promoted(shape.element)
    alone = [
        Tile(rows, each)
        for each in widths
        for rows in ([M_TILE] if promoted else sorted(MAPS))
        if each <= MOST_COLUMNS[rows]
    ]
    beside = [
        replace(each, per_sm=2)
        for each in alone
        if shape.parts == 1 and not promoted and each.count(pixels, shape.k) > sms
        if LEAST_SHARED <= each.columns <= MOST_SHARED[each.rows]
    ]
    return min(alone + beside, key=lambda tile: cycles(shape, tile, sms))


def cycles(shape: ConvShape, tile: Tile, sms: int) -> float:
    """Modelled cycles to compute the sums of `shape` (returned by `gathered`) in tiles of this
    size, and to add up their parts."""
    pixels, parts = shape.n * shape.p * shape.q, shape.parts
    rounds = ceil_div(parts * tile.count(pixels, shape.k), sms * tile.per_sm)
    share = shape.kc * shape.element_bytes / ROW_BYTES
    filters = shape.filter_bytes(tile.columns, shape.kc) / ROW_BYTES / share
    loading = share * (PIXEL * tile.rows + FILTER * filters)
    total = of_rounds(rounds, tile, shape.steps // parts, loading, share * multiplying(tile))
    if parts > 1:
        total += SUMMING + 4 * parts * pixels * shape.k / SUMMED_BYTES
    return total


def check_product(op: tc.Conv2dOp, shape: ConvShape, option: int, multiple: int = 1) -> int:
    """Number of output channels of a tile according to `option`, checked to lie in one group and to
    be a multiple of `multiple`. Raises a match failure for types that wgmma cannot multiply."""
    if shape.filter == "hwcf" and shape.element_bytes != WGMMA_TRANSPOSED_BYTES:
        raise match_failure(
            op,
            f"expected a filter of {shape.element} with its input channels innermost, got layout "
            "hwcf (wgmma can transpose elements of 16 bits only, PTX ISA 9.7.15.5.1.2); use "
            "linalg.conv_2d_nhwc_fhwc, or pipeline conv-implicit-gemm for sm_100a",
            SMALLEST_CONV,
        )
    if option:
        check_width(op, option, shape.element, SMALLEST_CONV)
    if shape.groups == 1:
        return option
    chosen = option or choose_n_tile(op, 0, shape.group_k)
    return shape.of_one_group(op, chosen, option, multiple, columns_of(shape.element))
