"""A plugin's product ``demo.summed_batch``, a store, and an op with a role that the store emits.

First what does not combine with them, then each with what executes and lowers it, and the pass.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

import tcir
from tcir.dialect import tc
from tcir.dialect.base import Dialect
from tcir.dialect.indexing import BATCH, IndexedOperand, Indexing, K, M, N
from tcir.dialect.limits import QUARTER_LANES, QUARTERS, TMEM_LANES
from tcir.dialect.operation import Op
from tcir.interp.tensor import evaluate
from tcir.interp.tile.compiler import Compiler, execute
from tcir.interp.tile.compiler import Step as CompiledStep
from tcir.mlir import ext, ir, llvm
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.operand_tiles import TiledOperand, k_step
from tcir.passes.emit.tile_kernel import (
    STORE_COLUMNS,
    argument,
    choose_n_tile,
    find_sources,
    load_registers,
    loop,
)
from tcir.passes.kernels import legal
from tcir.passes.kernels.cores.tcgen05 import multiplied
from tcir.passes.kernels.cores.wgmma import Warpgroups
from tcir.passes.kernels.product import Load, OfMatrices, Step, Tile, TilePlace
from tcir.passes.kernels.scheduled import Scheduled
from tcir.passes.kernels.stores.accumulator import Storing
from tcir.passes.kernels.stores.fragment import tile_fragments
from tcir.passes.nvvm.converter import Converter, lower
from tcir.pipelines.parts.back import tile_to_llvm

SUMMED = legal.register(
    "summed-batch",
    "with a summed batch",
    legal.Limit("cta_group", (1,), {"product": "summed-batch"}, "a CTA loads whole tiles of B"),
    legal.Limit("cluster", ("1x1",), {"product": "summed-batch"}, "a CTA loads whole tiles"),
    legal.Limit("store", ("direct",), {"turned": True}, "threads store from the right"),
)


class Demo(Dialect, name="demo"):
    """The dialect of the tests."""


class SummedBatchOp(Op, dialect=Demo, name="summed_batch", arithmetic="products"):
    """``out[m, n] = sum_(l, k) a[l, m, k] * b[l, n, k]`` in f32."""

    a: ext.Operand[ir.RankedTensorType]
    b: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]

    def indexing(self) -> Indexing:
        """The loop over the batch is one of the sum."""
        a = IndexedOperand(self.a, ((BATCH, 1), (M, 1), (K, 1)))
        b = IndexedOperand(self.b, ((BATCH, 1), (N, 1), (K, 1)))
        return Indexing((a, b), frozenset((M, N)))


@evaluate(SummedBatchOp)
def summed_batch(interpreter, op, a, b):
    """Computes the op by numpy."""
    return [np.einsum("lmk,lnk->mn", a.astype("f8"), b.astype("f8")).astype("f4")]


@dataclass(frozen=True)
class SummedBatch(OfMatrices):
    """Each matrix of the batch is a range of steps."""

    a: TiledOperand
    b: TiledOperand
    k: int
    each: int
    steps: int
    sums: ir.Type

    @staticmethod
    def create(op: SummedBatchOp, arguments: list[ir.Value], n_tile: int) -> "SummedBatch":
        """Builds the tensor maps in a kernel of these `arguments`."""
        batch, _, k = op.a.type.shape
        kc = k_step(k, tc.element_bytes(op.a.type.element_type))

        def operand(value: ir.Value, mn: int) -> TiledOperand:
            extents = {"k": k, "mn": value.type.shape[1], "batch": batch}
            return TiledOperand.create(argument(arguments, value), tuple(extents), extents, mn, kc)

        a, b, each = operand(op.a, TMEM_LANES), operand(op.b, n_tile), ceil_div(k, kc)
        return SummedBatch(a, b, kc, each, batch * each, ir.F32Type.get())

    def loads(self, place: TilePlace) -> Load:
        """The tiles of a step at `place`."""

        def load(step: index.Index) -> tuple[ir.Value, list[ir.Value]]:
            batch, k = index.div(step, self.each), index.rem(step, self.each)
            a, b = (tc.SmemTileOp(each.type).tile for each in (self.a, self.b))
            for operand, memory, mn in ((self.a, a, place.row), (self.b, b, place.column)):
                operand.load(memory, {"mn": mn, "k": index.mul(k, self.k), "batch": batch})
            return a, [b]

        return load

    def at(self, place: TilePlace) -> Step:
        """The steps of the tile at `place`."""
        return multiplied(self.loads(place))


class MarkOp(Op, dialect=Demo, name="mark", role="epilogue"):
    """Triggers performance monitor event 0 (``pmevent``)."""


@execute(MarkOp)
def mark(compiler: Compiler, op: MarkOp) -> CompiledStep:
    """Nothing: events leave no trace in memory."""
    return lambda frame: None


@lower(MarkOp)
def convert_mark(converter: Converter, op: MarkOp) -> None:
    """Lowers the op to one instruction."""
    llvm.inline_asm(None, [], "pmevent 0;", "", has_side_effects=True)


def from_the_right(out: ir.Value) -> Storing:
    """A store of columns from the last to the first, which marks its begin."""

    def store(d, indices, epilogue, reads) -> None:
        MarkOp()
        with loop(QUARTERS) as quarter:
            place = indices(quarter)
            with loop(d.type.shape[1], STORE_COLUMNS) as turn:
                column = index.value(index.sub(d.type.shape[1] - STORE_COLUMNS, turn))
                at = place(column)
                value = epilogue(load_registers(d, quarter, column), at)
                tc.StoreRowsOp(value, out, index.values(at), i64(QUARTER_LANES), i64(0))

    return store


@tcir.register_pass
@dataclass(frozen=True)
class TileSummedBatch(Scheduled):
    """Tiles ``demo.summed_batch``, with the options of tile-gemm.

    turned: whether `from_the_right` stores
    """

    name: ClassVar[str] = "tile-summed-batch"
    turned: bool = False

    def run(self, module: ir.Module) -> None:
        """Builds the kernel as all products do, for tcgen05 or wgmma."""
        for source in find_sources(module, SummedBatchOp, self.name, epilogues=True):
            op, (m, n) = source.op, source.op.out.type.shape
            facts = legal.facts_of(source, SUMMED, target_of(module))
            legal.check(legal.options_of(self) | facts, op)
            n_tile = choose_n_tile(op, self.n_tile, n)
            create = partial(SummedBatch.create, op, n_tile=n_tile)
            tiles = self.output_tiles(source, m, ceil_div(n, n_tile), None)
            if facts["core"] == legal.WGMMA:
                core = Warpgroups(op, Tile(TMEM_LANES, n_tile), target_of(module))
                tile_fragments(source, create, tiles, core, m, n, self.staging(core, tiles))
                continue
            storing = from_the_right if self.turned else None
            self.tile(source, create, n_tile, tiles, storing=storing)


def pipeline(**options: object) -> tcir.Pipeline:
    """From the op to PTX."""
    tiling = TileSummedBatch(**options)
    clc = tiling.scheduler == "clc"
    return tcir.Pipeline([tiling, *tile_to_llvm(0, takes_over=clc)])
