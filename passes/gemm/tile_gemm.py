"""tile-gemm: a (batched) matrix product, 128-row tiles of the output, one or several per CTA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import MMA_K_BYTES, QUARTER_LANES, TMEM_LANES
from tcir.errors import InputError
from tcir.passes.build import index
from tcir.passes.build.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.build.emit import i64, mma
from tcir.passes.build.epilogue import rounded
from tcir.passes.build.index import Index
from tcir.passes.build.kernel_ops import CTAS_PER_SM
from tcir.passes.build.limits import ceil_div
from tcir.passes.build.operand_tiles import TiledOperand, check_pitch, k_step
from tcir.passes.build.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    choose_n_tile,
    find_sources,
    kernel,
    loop,
    store_tile,
)
from tcir.passes.gemm.output_tiles import OutputTiles
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import DEFAULT_TARGET


@register_pass
@dataclass(frozen=True)
class TileGemm(Pass):
    """Turns ``tc.matmul`` into the sequential program of one CTA.

    n_tile: columns of an output tile, N of the mma; 0 chooses
    persistent: no more CTAs than SMs, each of which computes several tiles one after another
    ctas: CTAs of a persistent kernel, at most one per tile; 0: one per SM

    Before::

        %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<256x192xf16>, …) -> …

    After (`func.func @f(%a: memref, %b: memref, %c: memref) attributes {tc.kernel, tc.grid, …}`)::

        %d = "tc.tmem_tile"() : !tc.tmem<128x128, f32>
        scf.for %i = 0 to ceil(K / 64) {
          %ta = "tc.smem_tile"(); %tb = "tc.smem_tile"()
          "tc.tma_load"(%map_a, …, %ta); "tc.tma_load"(%map_b, …, %tb)
          per K slice j: "tc.mma"(%d, %ta, %tb)
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_rows {rows = 32} } }

    A persistent kernel has this in a loop over the CTA's tiles, whose order goes down groups of 8
    rows of tiles.
    ``mk`` and ``nk`` give K-major tiles, ``km`` and ``kn`` MN-major ones; the batch is grid z.
    Preserves the value of every output element up to the order of the f32 sums, and the location of
    the product on every op.
    """

    name: ClassVar[str] = "tile-gemm"
    n_tile: int = 0
    persistent: bool = False
    ctas: int = 0

    def __post_init__(self) -> None:
        if self.ctas < 0 or (self.ctas and not self.persistent):
            raise InputError(
                f"expected ctas of at least 1 and persistent=true, or 0 to choose, got "
                f"ctas={self.ctas} persistent={str(self.persistent).lower()}; smallest accepted: "
                "persistent=true ctas=1"
            )

    def run(self, module: ir.Module) -> None:
        for source in find_sources(module, tc.MatmulOp, self.name):
            n = source.op.out.type.shape[-1]
            n_tile = choose_n_tile(source.op, self.n_tile, n)
            _tile(source, n_tile, self._output_tiles(source, n_tile))

    def _output_tiles(self, source: Source, n_tile: int) -> OutputTiles:
        *batch, m, n = source.op.out.type.shape
        tiles = OutputTiles(
            ceil_div(m, TMEM_LANES), ceil_div(n, n_tile), batch[0] if batch else None
        )
        if not self.persistent:
            return tiles
        source.function.attributes[CTAS_PER_SM] = i64(1)
        return replace(tiles, ctas=min(tiles.count, self.ctas or DEFAULT_TARGET.sms))


OPERAND_TYPES = ("f16", "bf16")
"""Operand types of tcgen05.mma.kind::f16."""


def _check(op: ir.OpView) -> None:
    """Rejects what kind::f16 does not multiply and TMA does not load."""
    kinds = [str(value.type.element_type) for value in (op.a, op.b)]
    if not set(kinds) <= set(OPERAND_TYPES):
        raise match_failure(
            op,
            f"expected operands of {' or '.join(OPERAND_TYPES)}, got {' and '.join(kinds)} "
            "(tcgen05.mma.kind::f16 multiplies those); pipeline matmul-warp multiplies this type "
            "with mma.sync",
            SMALLEST_MATMUL,
        )
    for value, layout in ((op.a, "a_layout"), (op.b, "b_layout")):
        innermost = string(op, layout)[1].upper()
        check_pitch(op, innermost, value.type.shape[-1], SMALLEST_MATMUL)


def _tile(source: Source, n_tile: int, tiles: OutputTiles) -> None:
    op = source.op
    _check(op)
    *batch, m, n = op.out.type.shape
    a_layout, b_layout = string(op, "a_layout"), string(op, "b_layout")
    k = op.a.type.shape[-1 if a_layout == "mk" else -2]
    bytes_ = tc.element_bytes(op.a.type.element_type)
    kc = k_step(k, bytes_)
    rest = {"batch": batch[0]} if batch else {}
    with kernel(source, tiles.grid) as arguments:

        def operand(value: ir.Value, k_first: bool, extent: int, tile: int) -> TiledOperand:
            order = (("k", "mn") if k_first else ("mn", "k")) + tuple(rest)
            extents = {"mn": extent, "k": k, **rest}
            return TiledOperand.create(argument(arguments, value), order, extents, tile, kc)

        left = operand(op.a, a_layout == "mk", m, TMEM_LANES)
        right = operand(op.b, b_layout == "nk", n, n_tile)
        with tiles.each() as (x, y, z):
            m0, n0 = index.mul(x, TMEM_LANES), index.mul(y, n_tile)
            at: dict[str, Index] = {} if z is None else {"batch": z}
            d = accumulator(n_tile)
            with loop(ceil_div(k, kc)) as i:
                k0 = index.mul(i, kc)
                a, b = tc.SmemTileOp(left.type).tile, tc.SmemTileOp(right.type).tile
                left.load(a, {"mn": m0, "k": k0, **at})
                right.load(b, {"mn": n0, "k": k0, **at})
                accumulate = Accumulate(i)
                for j in range(kc * bytes_ // MMA_K_BYTES):
                    mma(d, a, b, accumulate.take(), j)

            def indices(quarter: ir.Value) -> Callable[[ir.Value], list[Index]]:
                row = index.add(m0, index.mul(quarter, QUARTER_LANES))
                return lambda column: [*at.values(), row, index.add(n0, column)]

            store_tile(
                d,
                arguments[-1],
                rows=QUARTER_LANES,
                row_dim=len(batch),
                indices=indices,
                epilogue=rounded(arguments[-1].type.element_type),
            )
