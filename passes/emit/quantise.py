"""The quantising end of an epilogue, which turns a register tile into codes and scale factors in
memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import arith, ir, memref, vector
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.ops.block_scaled import BLOCK_SCALES
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import round_up

QUANTISED_COLUMNS = 64
"""Columns that a thread quantises at a time: 4 scales of 16, or 2 of 32."""


@dataclass(frozen=True)
class Quantiser:
    """Quantises register tiles as ``tc.quantise_blocks`` does.

    codes, scales: the kernel's memrefs of the results
    rows: number of rows of the tensor
    norm: the loaded number by which values are multiplied first, if any
    """

    op: tc.QuantiseBlocksOp
    codes: ir.Value
    scales: ir.Value
    norm: ir.Value | None

    @staticmethod
    def create(
        op: tc.QuantiseBlocksOp, results: Sequence[ir.Value], norm: ir.Value | None
    ) -> Quantiser:
        """Builds the quantiser of a kernel with these results. norm: the memref of the norm"""
        codes, scales = results
        return Quantiser(op, codes, scales, memref.load(norm, []) if norm else None)

    def store(self, values: ir.Value, at: Sequence[Index]) -> None:
        """Quantises a register tile whose first element is at the indices `at` of the tensor, and
        stores codes and scales."""
        form, columns = self.op.format, values.type.shape[1]
        if self.norm:
            values = arith.mulf(values, vector.broadcast(values.type, self.norm))
        packed = 8 // form.bits

        def tile(count: int, memory: ir.Value) -> ir.Type:
            return ir.VectorType.get([QUARTER_LANES, count], memory.type.element_type)

        made = tc.QuantiseRowsOp(
            values, tile(columns // packed, self.codes), tile(columns // form.block, self.scales)
        )
        if "scale_rounding" in self.op.attributes:
            made.attributes["scale_rounding"] = self.op.attributes["scale_rounding"]
        *rows, column = at
        place = index.values([*rows, index.div(column, packed)])
        tc.StoreRowsOp(made.codes, self.codes, place, i64(QUARTER_LANES), i64(len(rows) - 1))
        place = index.values([*rows, index.div(column, form.block)])
        if self.op.row_major:
            tc.StoreRowsOp(made.scales, self.scales, place, i64(QUARTER_LANES), i64(len(rows) - 1))
            return
        *_, rows, extent = self.op.values.type.shape
        tc.StoreScalesOp(made.scales, self.scales, place, i64(rows), i64(extent // form.block))


def padded_columns(op: tc.QuantiseBlocksOp) -> int:
    """Number of columns of the values, plus the columns that pad the last block of scales."""
    if op.row_major:
        return int(op.values.type.shape[-1])
    return round_up(op.values.type.shape[-1], op.format.block * BLOCK_SCALES)


def check_quantised(op: tc.QuantiseBlocksOp, n_tile: int) -> None:
    """Raises a match failure for tiles that a thread cannot quantise."""
    if n_tile % QUANTISED_COLUMNS:
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {QUANTISED_COLUMNS} to quantise, got {n_tile} "
            f"(a thread quantises {QUANTISED_COLUMNS} columns at a time, whose scales it stores "
            f"together); take n-tile={round_up(n_tile, QUANTISED_COLUMNS)}",
        )
