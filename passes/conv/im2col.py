"""A convolution as a matrix product of pixels and output channels, whose operand A is gathered by
TMA one tap at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tcir._mlir import ir, memref
from tcir.dialect import tc
from tcir.dialect.limits import (
    QUARTER_LANES,
    TMA_CORNER,
    TMA_ELEMENT_STRIDE,
    TMA_OFFSET,
    TMEM_LANES,
)
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.sources import ConvTiling
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, make_tensor_map, tma_load
from tcir.passes.emit.cluster import ALONE, EXTENTS, ClusterShape, multicast
from tcir.passes.emit.cta_pair import first_column
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import lane_index
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.operand_tiles import TiledOperand, k_major, part_step
from tcir.passes.emit.tile_kernel import Places, Source, argument
from tcir.passes.kernels.cores.tcgen05 import multiplied
from tcir.passes.kernels.product import Elements, Load, OfMatrices, Step, TilePlace

RANK = 4
"""Rank of the tensor map of an NHWC tensor."""
PIXEL, CHANNEL = [0, 1, 2], 3
"""Dimensions of an NHWC tensor."""


@dataclass(frozen=True)
class Im2col(OfMatrices):
    """``tc.conv2d`` in tiles of neighbouring pixels, counted through (n, p, q).

    shape: the convolution as `gathered` returns it
    pixels: the im2col map of the input; tile: tile of A; filters: operand B of one tap
    steps: iterations over taps and channels, for one part of the sums
    cta_group: 2 for a product of CTA pairs, whose CTAs load half of a tile of B each
    cluster: CTAs that load tiles of pixels and filters together
    count: adjacent tiles of filters by which a tile of pixels is multiplied
    """

    shape: ConvShape
    pixels: ir.Value
    tile: tc.SmemType
    filters: TiledOperand
    steps: int
    cta_group: int = 1
    cluster: ClusterShape = ALONE
    count: int = 1

    @staticmethod
    def create(
        op: tc.Conv2dOp,
        arguments: list[ir.Value],
        n_tile: int,
        cta_group: int = 1,
        rows: int = TMEM_LANES,
        cluster: ClusterShape = ALONE,
        count: int = 1,
    ) -> Im2col:
        """Builds the tensor maps in a kernel of these `arguments`."""
        stored = ConvShape.of(op)
        shape = gathered(stored)
        tile = k_major(rows, shape.kc, shape.element)
        pixels = _pixel_map(argument(arguments, op.x), stored, tile, rows // cluster.n)
        filters = shape.filter_operand(
            argument(arguments, op.w), n_tile // cta_group, shape.kc, cluster.m
        )
        steps = shape.steps // shape.parts
        return Im2col(shape, pixels, tile, filters, steps, cta_group, cluster, count)

    @property
    def sums(self) -> ir.Type:
        """Type of the accumulator."""
        return self.shape.sum_element

    def at(self, place: TilePlace) -> Step:
        """The steps of the main loop for the tile at `place`."""
        return multiplied(self.loads(place), self.shape.unsigned, self.cta_group)

    def output(self, memory: ir.Value) -> ir.Value:
        """View of the NHWC output as a matrix with a row for each pixel."""
        return as_matrix(memory)

    def reads(self, source: Source, place: TilePlace) -> Places:
        """The indices that each lane reads. Each lane has its own pixel's indices, because rows and
        images may end at any lane."""
        shape = self.shape

        def of_quarter(quarter: Index) -> Callable[[Index], list[Index]]:
            number = lane_index() + index.add(place.row, index.mul(quarter, QUARTER_LANES))
            row = number // shape.q
            lanes = [row // shape.p, row % shape.p, number % shape.q]
            pixel: list[Index] = [each.value for each in lanes]

            def at(first: Index) -> list[Index]:
                return [*pixel, source.column(index.add(place.column, first))]

            return at

        return of_quarter

    def elements(self, after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> Elements:
        """The tensors that the epilogue `after` reads, as matrices of pixels and channels, or as
        vectors."""
        row, column = (ir.AffineDimExpr.get(number) for number in range(2))
        zero = ir.AffineConstantExpr.get(0)
        tensors, maps = {}, []
        for each in after.elements:
            memory, dims = argument(arguments, each.tensor), each.dims
            several = [dim for dim, size in zip(dims, memory.type.shape, strict=True) if size > 1]
            if dims[:-1] == PIXEL and dims[-1] in (None, CHANNEL):
                memory, places = as_matrix(memory), [row, column if dims[-1] == CHANNEL else zero]
            elif several in ([], [CHANNEL]):
                memory, places = _as_vector(memory), [column if several else zero][: len(dims)]
            else:
                raise match_failure(
                    each,
                    "expected a tensor with an element for each pixel and channel, for each "
                    f"channel, or one for all, got dimensions {dims} of NHWC (on sm_90a the "
                    "pixels of all images are the rows of one matrix, so a row has no image "
                    "index); broadcast the tensor to the shape of the result, or take target "
                    "sm_100a",
                    SMALLEST_CONV,
                )
            tensors[each.tensor] = memory
            maps.append(ir.AffineMap.get(2, 0, places))
        return tensors, maps

    def loads(self, place: TilePlace) -> Load:
        """Returns a function that loads the operands of a step of the tile at `place`."""
        shape, filters = self.shape, self.filters
        m0, k0, part = place.row, place.column, place.part
        of_pixels, of_filters = self.cluster.share_of_a(), self.cluster.share_of_b()
        if of_pixels is not None:
            m0 = of_pixels.first(m0, self.tile.shape[0] // of_pixels.parts)
        (sh, sw), (dh, dw) = shape.strides, shape.dilations
        n0, p0, q0 = index.delinearize(m0, [shape.n, shape.p, shape.q])
        w0 = index.sub(index.mul(q0, sw), shape.pad_left)
        h0 = index.sub(index.mul(p0, sh), shape.pad_top)
        group_c0 = shape.first_channel(k0)
        columns = tiles_of_filters(k0, filters, self.count, self.cta_group)

        def load(step: Index) -> tuple[ir.Value, list[ir.Value]]:
            number = step if part is None else index.add(index.mul(part, self.steps), step)
            r, s, channels = index.delinearize(
                number, [shape.r, shape.s, ceil_div(shape.c, shape.kc)]
            )
            c0 = index.mul(channels, shape.kc)
            a = tc.SmemTileOp(self.tile).tile
            tiles = [tc.SmemTileOp(filters.type).tile for _ in columns]
            offsets = index.values([index.mul(s, dw), index.mul(r, dh)])
            at = index.values([index.add(group_c0, c0), w0, h0, n0])
            mine = a if of_pixels is None else of_pixels.part(a)
            loaded = tma_load(self.pixels, at, mine, 0, mine.type.nbytes, offsets)
            if of_pixels is not None:
                multicast(loaded, of_pixels.masks)
            for b, column in zip(tiles, columns, strict=True):
                filters.load(b, {"mn": column, "k": c0, "s": s, "r": r}, of_filters)
            return a, tiles

        return load


def gathered(shape: ConvShape) -> ConvShape:
    """The convolution as TMA gathers it. If the pixels of a window's row are adjacent in memory,
    they are treated as one pixel."""
    return shape.of_windows() if shape.rows_are_windows else shape


def im2col_corners(shape: ConvShape) -> list[int]:
    """``[lower w, lower h, upper w, upper h]``: corners of the box of positions that tap (0, 0)
    visits."""
    return [
        -shape.pad_left,
        -shape.pad_top,
        shape.pad_right - (shape.s - 1) * shape.dilations[1],
        shape.pad_bottom - (shape.r - 1) * shape.dilations[0],
    ]


def check_im2col(op: ir.OpView, shape: ConvShape) -> None:
    """Raises a match failure for a convolution whose taps no im2col load can gather."""
    corners = im2col_corners(shape)
    for corner in corners:
        if corner not in TMA_CORNER[RANK]:
            raise match_failure(
                op,
                f"the corners of the im2col box must be {TMA_CORNER[RANK]}, got {corners}, which "
                f"follow from padding, filter and dilation ({TMA_CORNER[RANK].source}); pad in a "
                "separate function before this one",
                SMALLEST_CONV,
            )
    for name, stride in zip("hw", shape.strides):
        if stride not in TMA_ELEMENT_STRIDE:
            raise match_failure(
                op,
                f"strides must be {TMA_ELEMENT_STRIDE}, got {stride} along {name} (traversal "
                f"stride of a tensor map, {TMA_ELEMENT_STRIDE.source}); drop the pixels that are "
                "not read in a function before this one",
                SMALLEST_CONV,
            )
    for name, size, dilation in zip("hw", (shape.r, shape.s), shape.dilations):
        if (size - 1) * dilation not in TMA_OFFSET[RANK]:
            raise match_failure(
                op,
                f"the first and the last tap of a filter must be {TMA_OFFSET[RANK]} pixels apart, "
                f"got {(size - 1) * dilation} along {name} (offset of an im2col load, "
                f"{TMA_OFFSET[RANK].source}); use a smaller filter or dilation",
                SMALLEST_CONV,
            )


def check_parts(op: ir.OpView, shape: ConvShape) -> None:
    """Raises a match failure if the parts of the sums are unequal."""
    if shape.k_part is not None and not shape.has_equal_parts:
        raise match_failure(
            op,
            f"k_part, the elements of K that a CTA sums, must divide the {shape.steps} steps of "
            f"{shape.kc} channels into equal parts, got {shape.k_part} (every CTA executes the "
            "same number of steps); let the pass split-conv-k choose it",
            SMALLEST_CONV,
        )


def check_filter_rows(op: ir.OpView, shape: ConvShape) -> None:
    """Raises a match failure if a part of the sums does not consist of whole filter rows, or if
    parts have different numbers of them."""
    row = shape.s * shape.c
    if shape.k_part is not None and (shape.k_part % row or shape.r * row % shape.k_part):
        raise match_failure(
            op,
            f"k_part, the elements of K that a CTA sums, must divide the {shape.r} filter rows of "
            f"{row} elements into equal parts, got {shape.k_part} (a step of the main loop "
            "multiplies all taps of a filter row); let the pass split-conv-k{rows=true} choose it",
            SMALLEST_CONV,
        )


def check_cluster(op: ir.OpView, shape: ConvShape, cluster: ClusterShape) -> None:
    """Raises a match failure if the CTAs of a cluster could not share loads: they would need
    different channels of the same pixels, or filters of different groups."""
    if shape.groups == 1:
        return
    if cluster.n > 1:
        raise match_failure(
            op,
            f"expected cluster={cluster.m}x1 for a convolution with groups of channels, got "
            f"cluster={cluster}: CTAs side by side along the output channels compute different "
            "groups, which read different input channels, so they share no loads; take "
            f"cluster={cluster.m}x1",
            SMALLEST_CONV,
        )
    step = filters_step(op, shape)
    if shape.group_k % cluster.multiple(step):
        fewer = max(m for m in EXTENTS if shape.group_k % ClusterShape(m).multiple(step) == 0)
        raise match_failure(
            op,
            f"expected cluster={fewer}x1 for groups of {shape.group_k} output channels, got "
            f"cluster={cluster}: {cluster.m} CTAs each load a part of a tile's filters, and each "
            f"part must be a multiple of the {step} rows of a swizzle pattern, all of one group; "
            f"take cluster={fewer}x1",
            SMALLEST_CONV,
        )


def tiles_of_filters(k0: Index, filters: TiledOperand, count: int, cta_group: int) -> list[Index]:
    """First output channels of the `count` adjacent tiles of filters that this CTA loads, from
    channel `k0` on."""
    own = filters.type.shape[0]
    firsts = [index.add(k0, number * own * cta_group) for number in range(count)]
    return [first_column(first, own, cta_group) for first in firsts]


def choose_channels(options: ConvTiling, op: ir.OpView, shape: ConvShape) -> int:
    """Number of output channels of a tcgen05 tile, of which the CTAs of a cluster or pair load
    equal parts."""
    cluster = options.cluster_of(op)
    check_cluster(op, shape, cluster)
    step = filters_step(op, shape)
    multiple = cluster.multiple(step)
    n_tile = shape.choose_n_tile(op, options.n_tile, options.cta_group, multiple)
    n_tile, count = options.in_parts(op, n_tile, cluster, step), options.n_tiles
    options.together.check(op, n_tile)
    if shape.groups > 1 and shape.group_k % (count * n_tile):
        raise match_failure(
            op,
            f"n-tiles times n-tile must divide the {shape.group_k} output channels of a group, "
            f"got {count} * {n_tile}: all tiles of a CTA multiply the same input channels; take "
            "n-tiles=1",
            SMALLEST_CONV,
        )
    return n_tile


def filters_step(op: ir.OpView, shape: ConvShape) -> int:
    """The number that must divide the output channels that one CTA loads."""
    return part_step("mn" if shape.filter == "hwcf" else "k", op.w.type.element_type)


def as_matrix(tensor: ir.Value) -> ir.Value:
    """Reshapes an NHWC memref to a matrix with a row per pixel; a leading dimension of parts is
    kept."""
    *parts, n, h, w, channels = tensor.type.shape
    kind = ir.MemRefType.get([*parts, n * h * w, channels], tensor.type.element_type)
    first = len(parts)
    pixel = [first, first + 1, first + 2]
    return memref.collapse_shape(kind, tensor, [*[[0]] * first, pixel, [first + 3]])


def _as_vector(tensor: ir.Value) -> ir.Value:
    """A memref as one of rank 1, or of rank 0 as it is."""
    if tensor.type.rank < 2:
        return tensor
    kind = ir.MemRefType.get([prod(tensor.type.shape)], tensor.type.element_type)
    return memref.collapse_shape(kind, tensor, [list(range(tensor.type.rank))])


def _pixel_map(x: ir.Value, stored: ConvShape, tile: tc.SmemType, pixels: int) -> ir.Value:
    """The im2col map of the input: `pixels` of a tile, of one tap. Windows of a row overlap."""
    channels = tile.shape[1]
    shape = gathered(stored)
    sh, sw = shape.strides
    across = stored.strides[1] if stored.rows_are_windows else 1
    row = stored.w * stored.pixel_bytes
    return make_tensor_map(
        x,
        TmaBox([channels, pixels], [1, sw, sh, 1], "im2col", im2col_corners(shape)),
        dims=[shape.channels, shape.w, shape.h, shape.n],
        strides=[across * stored.pixel_bytes, row, shape.h * row],
        swizzle=tile.swizzle,
    )
