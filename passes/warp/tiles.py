"""Tiles of the output that a CTA of warps computes: one, or several one after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tcir._mlir import ir
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import block_id
from tcir.passes.kernels import legal
from tcir.passes.warp.tiling import WarpTiling
from tcir.target import TARGETS

GROUP = 16
"""Rows of tiles in a group: 128 CTAs at a time have 16 by 8 tiles of 128 by 256, a square."""


@dataclass(frozen=True)
class WarpTiles(OutputTiles):
    """Output tiles in the grouped order, addressed by the CTA's number along x even if each CTA has
    only one tile."""

    @property
    def grid(self) -> list[int]:
        """CTAs along x, y and z."""
        if self.ctas is not None:
            return super().grid
        return [self.m * self.n, 1, self.batch or 1]

    @contextmanager
    def each(self) -> Iterator[tuple[Index, Index, Index | None]]:
        """Positions of the CTA's next tile along m, along n, and in the batch."""
        if self.ctas is not None:
            with super().each() as place:
                yield place
            return
        row, column, _ = replace(self, batch=None).place(block_id("x"))
        yield row, column, None if self.batch is None else block_id("z")

    def shared_out(
        self, op: ir.OpView, tiling: WarpTiling, asked: int, by_tma: bool, target: str
    ) -> WarpTiles:
        """Divides these tiles among `asked` CTAs. If `asked` is 0, there is one CTA per tile,
        except if TMA loads and a tile's sums take half an SM's registers, which leaves no room for
        a second CTA: then there are as many CTAs as `fewest_ctas` says."""
        if asked < 0:
            raise match_failure(
                op,
                f"expected ctas of at least 1, or 0 to choose, got {asked}; leave it out",
                SMALLEST_MATMUL,
            )
        several = asked if asked < self.count else 0
        facts = {"ctas": several, "copies": "tma" if by_tma else "cp.async"}
        legal.check(facts, op, SMALLEST_MATMUL)
        of = TARGETS[target]
        fills = by_tma and 2 * tiling.m * tiling.n >= of.registers
        ctas = asked or (self.fewest_ctas(of.sms) if fills else self.count)
        return self.shared_by(ctas) if ctas < self.count else self
