"""tile-conv-implicit-gemm: a convolution as a matrix product; TMA gathers A tap by tap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tcir._mlir import ir, memref
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import (
    MMA_K_BYTES,
    QUARTER_LANES,
    TMA_CORNER,
    TMA_ELEMENT_STRIDE,
    TMA_OFFSET,
    TMEM_LANES,
)
from tcir.passes.build import index
from tcir.passes.build.cta_pair import check_cta_group, first_column
from tcir.passes.build.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.build.emit import Box, make_tensor_map, mma, of_pair, tma_load
from tcir.passes.build.index import Index
from tcir.passes.build.lanes import Lanes, lane_index
from tcir.passes.build.limits import ceil_div, round_up
from tcir.passes.build.operand_tiles import k_major
from tcir.passes.build.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    block_id,
    kernel,
    loop,
    store_tile,
    store_tile_lanes,
)
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.sources import find_convolutions
from tcir.passmanager.pipeline import Pass, register_pass

RANK = 4
"""Rank of the tensor map of an NHWC tensor."""


@register_pass
@dataclass(frozen=True)
class TileConvImplicitGemm(Pass):
    """Turns ``tc.conv2d`` into the sequential program of one CTA.

    A CTA computes 128 neighbouring output pixels, counted through (n, p, q), times `n_tile` output
    channels. TMA loads the pixels of each tap in im2col mode, so the input goes to shared memory
    once per tap.

    n_tile: output channels per CTA, N of the mma; 0 chooses
    cta_group: 2: pairs of CTAs compute tiles of 256 pixels together, M of the mma

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After (`func.func @f(%x: memref, %w: memref, %y: memref) attributes {tc.kernel, tc.grid, …}`)::

        %map_x = "tc.make_tensor_map"(%x) {mode = "im2col", box = [64, 128], …}
        %d = "tc.tmem_tile"() : !tc.tmem<128x64, f32>
        scf.for %i = 0 to R * S * ceil(C / 64) {
          %a = "tc.smem_tile"(); %b = "tc.smem_tile"()
          "tc.tma_load"(%map_x, %c0, %w, %h, %n, offsets %s, %r, %a); "tc.tma_load"(%map_w, …, %b)
          per K slice j: "tc.mma"(%d, %a, %b)
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_rows {rows = 32} } }

    With `cta_group` 2 (``tc.cluster = array<i64: 2, 1, 1>``, a grid of whole clusters) a CTA has
    its 128 pixels of A, of D and of the output, and loads half of the filters of the tile::

        %rank = "tc.cta_rank"()
        %mine = arith.addi %k0, (%rank * 32)
          "tc.tma_load"(%map_x, %c0, %w, %h, %n, offsets %s, %r, %a)
          "tc.tma_load"(%map_w, %mine, …, %b)
          per K slice j: "tc.mma"(%d, %a, %b) {cta_group = 2}

    Of an odd number of tiles the last CTA has no pixels: TMA fills its A with zeros, and it stores
    nothing.

    Preserves the value of every output element up to the order of the f32 sums, and the location
    of the convolution on every op.
    """

    name: ClassVar[str] = "tile-conv-implicit-gemm"
    n_tile: int = 0
    cta_group: int = 1

    def __post_init__(self) -> None:
        check_cta_group(self.cta_group)

    def run(self, module: ir.Module) -> None:
        for source in find_convolutions(module, self.name):
            self.check(source.op)
            shape = ConvShape.of(source.op)
            n_tile = shape.choose_n_tile(source.op, self.n_tile, self.cta_group)
            _tile(source, shape, n_tile, self.cta_group)

    def check(self, op: ir.OpView) -> None:
        """Raises `PassError` when this pass cannot tile `op`, a ``tc.conv2d``."""
        shape = ConvShape.of(op)
        _check_im2col(op, shape)
        shape.choose_n_tile(op, self.n_tile, self.cta_group)


def im2col_corners(shape: ConvShape) -> list[int]:
    """``[lower w, lower h, upper w, upper h]`` of the box of positions that tap (0, 0) visits."""
    return [
        -shape.pad_left,
        -shape.pad_top,
        shape.pad_right - (shape.s - 1) * shape.dilations[1],
        shape.pad_bottom - (shape.r - 1) * shape.dilations[0],
    ]


def _check_im2col(op: ir.OpView, shape: ConvShape) -> None:
    corners = im2col_corners(shape)
    for corner in corners:
        if corner not in TMA_CORNER[RANK]:
            raise match_failure(
                op,
                f"expected corners of the im2col box {TMA_CORNER[RANK]}, got {corners} from "
                f"padding, filter and dilation ({TMA_CORNER[RANK].source}); pad in an op of "
                "its own before this function",
                SMALLEST_CONV,
            )
    for name, stride in zip("hw", shape.strides):
        if stride not in TMA_ELEMENT_STRIDE:
            raise match_failure(
                op,
                f"expected strides {TMA_ELEMENT_STRIDE}, got {stride} along {name} (traversal "
                f"stride of a tensor map, {TMA_ELEMENT_STRIDE.source}); drop unread pixels "
                "before this function",
                SMALLEST_CONV,
            )
    for name, size, dilation in zip("hw", (shape.r, shape.s), shape.dilations):
        if (size - 1) * dilation not in TMA_OFFSET[RANK]:
            raise match_failure(
                op,
                f"expected distances between taps {TMA_OFFSET[RANK]}, got {(size - 1) * dilation} "
                f"along {name} (offset of an im2col load, {TMA_OFFSET[RANK].source}); use a "
                "smaller filter or dilation",
                SMALLEST_CONV,
            )


def _tile(source: Source, shape: ConvShape, n_tile: int, cta_group: int) -> None:
    op = source.op
    pixels = shape.n * shape.p * shape.q
    kc = shape.kc
    channel_steps = ceil_div(shape.c, kc)
    a_type = k_major(TMEM_LANES, kc, shape.element)
    sh, sw = shape.strides
    dh, dw = shape.dilations
    grid = [round_up(ceil_div(pixels, TMEM_LANES), cta_group), ceil_div(shape.k, n_tile), 1]
    cluster = [PAIR, 1, 1] if cta_group == PAIR else None
    with kernel(source, grid, cluster=cluster) as arguments:
        map_x = _pixel_map(argument(arguments, op.x), shape, a_type)
        filters = shape.filter_operand(argument(arguments, op.w), n_tile // cta_group, kc)
        m0 = index.mul(block_id("x"), TMEM_LANES)
        k0 = index.mul(block_id("y"), n_tile)
        n0, p0, q0 = index.delinearize(m0, [shape.n, shape.p, shape.q])
        w0 = index.sub(index.mul(q0, sw), shape.pad_left)
        h0 = index.sub(index.mul(p0, sh), shape.pad_top)
        group_c0 = shape.first_channel(k0)
        own_k0 = first_column(k0, filters.type.shape[0], cta_group)
        d = accumulator(n_tile, shape.sum_element)
        with loop(shape.r * shape.s * channel_steps) as i:
            r, s, step = index.delinearize(i, [shape.r, shape.s, channel_steps])
            c0 = index.mul(step, kc)
            a = tc.SmemTileOp(a_type).tile
            b = tc.SmemTileOp(filters.type).tile
            offsets = index.values([index.mul(s, dw), index.mul(r, dh)])
            at = index.values([index.add(group_c0, c0), w0, h0, n0])
            tma_load(map_x, at, a, 0, a_type.nbytes, offsets)
            filters.load(b, {"mn": own_k0, "k": c0, "s": s, "r": r})
            accumulate = Accumulate(i)
            for j in range(kc * shape.element_bytes // MMA_K_BYTES):
                product = mma(d, a, b, accumulate.take(), j, unsigned=shape.unsigned)
                if cta_group == PAIR:
                    of_pair(product)

        _store(source, shape, d, arguments, m0, lambda first: source.column(index.add(k0, first)))


def _store(
    source: Source,
    shape: ConvShape,
    d: ir.Value,
    arguments: list[ir.Value],
    m0: Index,
    channel: Callable[[Index], Index],
) -> None:
    """Stores the sums of the pixels from `m0`, which follow each other in memory.

    To a ``tc.epilogue`` every lane has a pixel of its own, as rows and images end anywhere; without
    one the output is a matrix.
    """
    out = arguments[-1]
    epilogue = source.epilogue(arguments, None)

    def pixels(quarter: ir.Value) -> list[Lanes]:
        number = lane_index() + index.add(m0, index.mul(quarter, QUARTER_LANES))
        row = number // shape.q
        return [row // shape.p, row % shape.p, number % shape.q]

    def indices(quarter: ir.Value) -> Callable[[Index], list[Index]]:
        first = index.add(m0, index.mul(quarter, QUARTER_LANES))
        return lambda column: [first, channel(column)]

    if source.after is not None:
        store_tile_lanes(d, out, places=pixels, column=channel, epilogue=epilogue)
        return
    *image, channels = out.type.shape
    matrix = ir.MemRefType.get([prod(image), channels], out.type.element_type)
    rows = memref.collapse_shape(matrix, out, [[0, 1, 2], [3]])
    store_tile(d, rows, rows=QUARTER_LANES, row_dim=0, indices=indices, epilogue=epilogue)


def _pixel_map(x: ir.Value, shape: ConvShape, a_type: tc.SmemType) -> ir.Value:
    """The im2col map of the input: tiles of 128 pixels of one tap."""
    pixels, channels = a_type.shape
    sh, sw = shape.strides
    return make_tensor_map(
        x,
        Box([channels, pixels], [1, sw, sh, 1], "im2col", im2col_corners(shape)),
        dims=[shape.channels, shape.w, shape.h, shape.n],
        swizzle=a_type.swizzle,
    )
