"""The options `n-tiles` and `collector`: a CTA multiplies several tiles of B by each tile of A."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect.limits import MMA_K_BYTES, TMEM_COLUMNS, TMEM_LANES
from tcir.errors import InputError
from tcir.passes.emit.cost import mma_cycles
from tcir.passes.emit.diagnostics import match_failure
from tcir.passmanager.remarks import remark


@dataclass(frozen=True)
class SharedTiles:
    """Tiles of B that are multiplied by the same tile of A.

    count: number of tiles of B for each tile of A, with one accumulator for each
    collector: whether the tensor core's collector buffer keeps A from the first of these tiles to
        the last
    """

    count: int = 1
    collector: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(
                f"n-tiles must be at least 1, got {self.count}; smallest accepted: n-tiles=1"
            )

    def check(self, op: ir.OpView, n_tile: int) -> None:
        """Raises a match failure if tensor memory has no room for the accumulators."""
        if self.count * n_tile > TMEM_COLUMNS:
            raise match_failure(
                op,
                f"expected n-tiles of at most {TMEM_COLUMNS // n_tile} with {n_tile} columns each, "
                f"got {self.count}: tensor memory has {TMEM_COLUMNS} columns for their "
                f"accumulators; take n-tiles={TMEM_COLUMNS // n_tile}",
            )

    def usage(self, number: int) -> str:
        """The collector usage of mma `number`: the first mma fills the buffer, and the last one
        releases it."""
        if number == 0:
            return "fill"
        return "use" if number < self.count - 1 else "lastuse"

    def tell(self, op: ir.OpView, n_tile: int) -> None:
        """Emits a remark with the bytes and cycles that the collector saves."""
        if not self.collector:
            return
        apart = mma_cycles(n_tile, a_in_tmem=False)
        kept = mma_cycles(n_tile, a_in_tmem=True)
        a, b = MMA_K_BYTES * TMEM_LANES, MMA_K_BYTES * n_tile
        n = self.count
        read = f"{n * (a + b)} -> {a + n * b} bytes of shared memory"
        cycles = f"{n * apart} -> {apart + (n - 1) * kept} cycles of the tensor core"
        remark(
            op,
            f"collector: {n} mma of {n_tile} columns read A from shared memory once: {read}, "
            f"{cycles} for {MMA_K_BYTES} bytes of K (modelled, not measured; the saving is an "
            "upper bound, as the PTX ISA permits the hardware to reuse the buffer, and does not "
            "promise it)",
        )


ONE = SharedTiles()
"""Each tile of A is multiplied by one tile of B."""
