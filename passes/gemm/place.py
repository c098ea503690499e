"""Tiles of a GEMM's output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect.limits import QUARTER_LANES
from tcir.passes.build import index
from tcir.passes.build.index import Index


@dataclass(frozen=True)
class Place:
    """Where a tile begins in the output: its first row and column, and its matrix of a batch."""

    row: Index
    column: Index
    batch: Index | None = None

    def indices(self, quarter: ir.Value) -> Callable[[ir.Value], list[Index]]:
        """Indices in the output of lane 0 of a sub-partition, by the tile's column."""
        batch = [] if self.batch is None else [self.batch]
        row = index.add(self.row, index.mul(quarter, QUARTER_LANES))
        return lambda column: [*batch, row, index.add(self.column, column)]
