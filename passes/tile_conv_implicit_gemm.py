"""tile-conv-implicit-gemm: a convolution as a matrix product whose A is gathered by TMA, tap by tap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tcir._mlir import ir, memref
from tcir.dialect import tc
from tcir.passes.conv_shapes import ConvShape
from tcir.passes.emit import make_tensor_map, mma, tma_load
from tcir.passes.index_math import IndexMath
from tcir.passes.limits import (
    IM2COL_CORNER,
    IM2COL_OFFSET_MAX,
    MMA_K_BYTES,
    MMA_ROWS,
    QUARTER,
    TMA_MAX_ELEMENT_STRIDE,
    ceil_div,
)
from tcir.passes.operand_tiles import k_major, k_step
from tcir.passes.refusal import SMALLEST_CONV, refuse
from tcir.passes.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    block_id,
    choose_n_tile,
    find_sources,
    kernel,
    loop,
    store_tile,
)
from tcir.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class TileConvImplicitGemm(Pass):
    """Turns ``tc.conv2d`` into the sequential program of one CTA.

    A CTA computes 128 neighbouring output pixels, counted through (n, p, q), times `n_tile` output
    channels. For every tap TMA brings the pixels it needs (im2col mode), so the input goes to
    shared memory once per tap.

    n_tile: output channels per CTA, N of the mma; 0 chooses

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After (`func.func @f(%x: memref, %w: memref, %y: memref) attributes {tc.kernel, tc.grid, …}`)::

        %map_x = "tc.make_tensor_map"(%x) {mode = "im2col", box = [64, 128], corners = [-1, -1, -1, -1]}
        %d = "tc.tmem_tile"() : !tc.tmem<128x64, f32>
        scf.for %i = 0 to R * S * ceil(C / 64) {
          %a = "tc.smem_tile"(); %b = "tc.smem_tile"()
          "tc.tma_load"(%map_x, %c0, %w, %h, %n, offsets %s, %r, %a); "tc.tma_load"(%map_w, …, %b)
          per K slice j: "tc.mma"(%d, %a, %b)
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_rows {rows = 32} } }

    Preserves the value of every output element up to the order of the f32 sums, and the location
    of the convolution on every op.
    """

    name: ClassVar[str] = "tile-conv-implicit-gemm"
    n_tile: int = 0

    def run(self, module: ir.Module) -> None:
        for source in find_sources(module, tc.Conv2dOp, self.name):
            shape = ConvShape.of(source.op)
            _check_im2col(source.op, shape)
            _tile(source, shape, choose_n_tile(source.op, self.n_tile, shape.k))


def im2col_corners(shape: ConvShape) -> list[int]:
    """``[lower w, lower h, upper w, upper h]`` of the box of positions that tap (0, 0) visits."""
    return [
        -shape.pad_left,
        -shape.pad_top,
        shape.pad_right - (shape.s - 1) * shape.dilations[1],
        shape.pad_bottom - (shape.r - 1) * shape.dilations[0],
    ]


def _check_im2col(op: Any, shape: ConvShape) -> None:
    corners = im2col_corners(shape)
    for corner in corners:
        if corner not in IM2COL_CORNER:
            raise refuse(
                op,
                f"expected corners of the im2col box from {IM2COL_CORNER.start} to "
                f"{IM2COL_CORNER.stop - 1}, got {corners} from padding, filter and dilation (a tensor "
                "map of rank 4 holds 8 bits per corner); pad in an op of its own before this function",
                SMALLEST_CONV,
            )
    for name, stride in zip("hw", shape.strides):
        if stride > TMA_MAX_ELEMENT_STRIDE:
            raise refuse(
                op,
                f"expected strides up to {TMA_MAX_ELEMENT_STRIDE}, got {stride} along {name} (the "
                "traversal stride of a tensor map); slice the input to every second pixel first",
                SMALLEST_CONV,
            )
    for name, size, dilation in zip("hw", (shape.r, shape.s), shape.dilations):
        if (size - 1) * dilation > IM2COL_OFFSET_MAX:
            raise refuse(
                op,
                f"expected taps at most {IM2COL_OFFSET_MAX} pixels apart, got "
                f"{(size - 1) * dilation} along {name} (8 bits per offset of an im2col load)",
                SMALLEST_CONV,
            )


def _tile(source: Source, shape: ConvShape, n_tile: int) -> None:
    math, op = IndexMath(), source.op
    pixels = shape.n * shape.p * shape.q
    kc = k_step(shape.c, shape.element_bytes)
    channel_steps = ceil_div(shape.c, kc)
    a_type = k_major(MMA_ROWS, kc, shape.element)
    sh, sw = shape.strides
    dh, dw = shape.dilations
    grid = [ceil_div(pixels, MMA_ROWS), ceil_div(shape.k, n_tile), 1]
    with kernel(source, grid) as arguments:
        map_x = make_tensor_map(
            argument(arguments, op.x),
            mode="im2col",
            dims=[shape.c, shape.w, shape.h, shape.n],
            box=[kc, MMA_ROWS],
            element_strides=[1, sw, sh, 1],
            corners=im2col_corners(shape),
            element_bytes=shape.element_bytes,
            swizzle=a_type.swizzle,
        )
        filters = shape.filter_operand(argument(arguments, op.w), n_tile, kc)
        out = memref.collapse_shape(
            ir.MemRefType.get([pixels, shape.k], op.out.type.element_type),
            arguments[-1],
            [[0, 1, 2], [3]],
        )
        m0 = math.mul(block_id("x"), MMA_ROWS)
        k0 = math.mul(block_id("y"), n_tile)
        n0, p0, q0 = math.delinearize(m0, [shape.n, shape.p, shape.q])
        w0 = math.sub(math.mul(q0, sw), shape.pad_left)
        h0 = math.sub(math.mul(p0, sh), shape.pad_top)
        d = accumulator(n_tile)
        with loop(shape.r * shape.s * channel_steps) as i:
            r, s, step = math.delinearize(i, [shape.r, shape.s, channel_steps])
            c0 = math.mul(step, kc)
            a = tc.SmemTileOp(a_type).tile
            b = tc.SmemTileOp(filters.type).tile
            offsets = math.values([math.mul(s, dw), math.mul(r, dh)])
            tma_load(map_x, math.values([c0, w0, h0, n0]), a, 0, a_type.nbytes, offsets)
            filters.load(b, {"mn": k0, "k": c0, "s": s, "r": r})
            accumulate = Accumulate(i)
            for j in range(kc * shape.element_bytes // MMA_K_BYTES):
                mma(d, a, b, accumulate.take(), j)

        def indices(quarter: Any) -> Any:
            row = math.add(m0, math.mul(quarter, QUARTER))
            return lambda column: [row, math.add(k0, column)]

        store_tile(d, out, rows=QUARTER, row_dim=0, indices=indices)
