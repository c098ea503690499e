"""A dense matrix product on warpgroups (wgmma): sums are in registers, operands in shared
memory."""

from __future__ import annotations

from math import prod

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.ops.highlevel import k_part
from tcir.dialect.ops.quantise import WORD_COLUMNS
from tcir.dialect.ops.tma import EVICT
from tcir.dialect.warp_types import ATOM_COLUMNS
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.element_epilogue import check_by_element
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.output_tiles import GROUP, OutputTiles
from tcir.passes.emit.tile_kernel import Source
from tcir.passes.gemm.computed_tiles import check_computed_rows, is_computed, rows_step
from tcir.passes.gemm.dense import DenseProduct, check_dense, check_rows, columns_step, k_of
from tcir.passes.kernels.cores.wgmma import (
    M_TILE,
    N_TILES,
    Warpgroups,
    check_width,
    is_promoted,
    parts_of,
    rows_of,
)
from tcir.passes.kernels.cores.wgmma_cost import matrix_cycles
from tcir.passes.kernels.product import Tile
from tcir.passes.kernels.scheduled import Scheduled
from tcir.passes.kernels.stores.fragment import check_fragment_quantised, tile_fragments
from tcir.target import TARGETS

PROMOTED_GROUP = 2 * GROUP
"""Rows of tiles in a group for fp8: their bytes of A equal those of a group of 16-bit elements. L2
is asked to keep A and to evict B first, since the CTAs of a group read B at about the same time."""

COMPUTED_COLUMNS = 192
"""The most columns of a tile if a third warpgroup computes an operand: 96 sums in 152 registers."""


def tile_for_warpgroups(source: Source, options: Scheduled, target: str) -> None:
    """Replaces the function of a ``tc.matmul`` by a kernel of wgmma.

    A kernel with more tiles than the target has SMs is always persistent: the next tile is loaded
    while the current one is stored.
    """
    op, cluster = source.op, ClusterShape.parse(options.cluster)
    check_rows(op, cluster)
    option = options.in_parts(op, options.n_tile, cluster, columns_step(op))
    check_dense(op)
    gated = source.after is not None and source.after.gated
    check_by_element(source, "tile-gemm", quantised=True, gated=source.quantise is None)
    *batch, m, n = op.out.type.shape
    sms, quantise = TARGETS[target].sms, source.quantise
    columns = source.quantised_columns or n  # scales of padding are zeros: stored, too
    tile = _tile(source, columns, option, cluster, sms)
    n_tile = tile.columns
    check_computed_rows(op, n_tile)
    check_width(op, n_tile, op.a.type.element_type, SMALLEST_MATMUL)
    parts = parts_of(op.a.type.element_type, n_tile)
    if quantise is not None:
        check_fragment_quantised(quantise, n_tile, parts, target)
    if gated:
        check_gated(op, n_tile, parts)
    promoted = is_promoted(op.a.type.element_type)
    tiles = OutputTiles(
        ceil_div(m, tile.rows),
        ceil_div(columns, n_tile),
        prod(batch) if batch else None,
        cluster=cluster,
        group=PROMOTED_GROUP if promoted else GROUP,
    )
    tiles = options.shared_out(tiles, sms * tile.per_sm, tiles.fewest_ctas(sms * tile.per_sm))
    core = Warpgroups(op, tile, target, computed=is_computed(op))

    def create(arguments: list[ir.Value]) -> DenseProduct:
        product = DenseProduct.create(op, arguments, n_tile, cluster=cluster, rows=tile.rows)
        if promoted and tiles.ctas is not None:
            product.a.map.owner.attributes[EVICT] = ir.StringAttr.get("last")
            product.b.map.owner.attributes[EVICT] = ir.StringAttr.get("first")
        return product

    tile_fragments(source, create, tiles, core, m, n, options.staging(core, tiles, parts))


def check_gated(op: tc.MatmulOp, n_tile: int, parts: int) -> None:
    """Raises a match failure for tiles that separate a block of gates from its values. parts:
    number of fragments that hold a tile's columns"""
    whole = 2 * ATOM_COLUMNS * parts
    if n_tile % whole:
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {whole} with a gated result, got {n_tile} (a "
            f"thread has the same columns of a block of {ATOM_COLUMNS} gates and of the "
            f"{ATOM_COLUMNS} values after it, PTX ISA 9.7.14.5); take "
            f"n-tile={min(round_up(n_tile, whole), 256)}",
            SMALLEST_MATMUL,
        )


def _tile(source: Source, n: int, option: int, cluster: ClusterShape, sms: int) -> Tile:
    """The tile of an output with n columns: of `option` columns, or of the fastest width whose
    parts the CTAs of a cluster can load."""
    op = source.op
    *batch, m, _ = op.out.type.shape
    alone = cluster == ALONE and source.quantise is None and not is_computed(op)
    rows = rows_of(m, op) if alone else (M_TILE,)
    widths = [option] if option else _widths(source, n, cluster)
    steps = ceil_div((k_part(op) or k_of(op)) * tc.element_bytes(op.a.type.element_type), 128)

    def cycles(tile: Tile) -> float:
        return matrix_cycles(tile, steps, prod(batch) * tile.count(m, n), sms)

    return min((Tile(each, width) for each in rows for width in widths), key=cycles)


def _widths(source: Source, n: int, cluster: ClusterShape) -> list[int]:
    """Columns that a tile may have."""
    op = source.op
    least = WORD_COLUMNS if source.quantise else N_TILES[-1]
    if not isinstance(op.b, ir.BlockArgument):
        least = max(least, rows_step(op))
    most = COMPUTED_COLUMNS if is_computed(op) else N_TILES[0]
    parts = cluster.multiple(columns_step(op))
    fits = (each for each in N_TILES if each % least == 0 and each % parts == 0)
    return [each for each in fits if each <= min(most, round_up(n, least))] or [parts]
