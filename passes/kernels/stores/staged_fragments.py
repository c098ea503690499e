"""TMA stores of sums that are in registers: each warp first writes its rows to shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import TMA_INNER_BOX_MULTIPLE
from tcir.layout.atoms import mma_atom
from tcir.passes.emit.builders import TmaBox, i64, make_tensor_map
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.staged_load import widest_swizzle
from tcir.passes.emit.staged_store import check_pitch
from tcir.passmanager.remarks import remark

IN_TURN = 2
"""Tiles of a persistent kernel: one is written while TMA reads the other."""


@dataclass(frozen=True)
class StagedFragments:
    """TMA stores of fragments to a row-major output, through the shared-memory tiles of `ring`.

    map: tensor map of the output, in boxes of one warp's rows and one swizzle span of columns
    """

    map: ir.Value
    ring: ir.Value

    def store(self, sums: ir.Value, place: list[ir.Value]) -> tc.StoreFragmentStagedOp:
        """Stores `sums`, a fragment whose first element is at `place`."""
        return tc.StoreFragmentStagedOp(sums, self.map, self.ring, place, i64(0))


@dataclass(frozen=True)
class Staging:
    """Parameters of the shared-memory tiles through which TMA stores the fragments of a kernel.

    rows, columns: shape of a fragment
    atom: mma atom of the main loop
    stages: number of tiles that are used in turn; 0 chooses
    persistent: whether a CTA stores several tiles of the output
    """

    rows: int
    columns: int
    atom: str
    stages: int
    persistent: bool

    def create(self, op: ir.OpView, out: ir.Value) -> StagedFragments:
        """Builds the tensor map and the tiles, for the result `out` of a product `op`."""
        check_pitch(op, out)
        shape, element = list(out.type.shape), out.type.element_type
        bytes_ = tc.element_bytes(element)
        self._check_row(op, bytes_)
        swizzle = widest_swizzle(self.columns * bytes_)
        width = tc.SWIZZLE_BYTES[swizzle] // bytes_
        stages = self._stages(op, self.columns // width)
        box = [width, mma_atom(self.atom).shape[0], *[1] * (len(shape) - 2)]
        made = make_tensor_map(out, TmaBox(box), dims=shape[::-1], swizzle=swizzle)
        tile = tc.SmemType.build([self.rows, width], element, "K", swizzle)
        ring = tc.SmemTileOp(tc.RingType.build(stages, tile)).tile
        remark(
            op,
            f"TMA stores boxes of {self.rows}x{width} elements, in turn from {stages} buffers "
            "in shared memory",
        )
        return StagedFragments(made, ring)

    def _check_row(self, op: ir.OpView, bytes_: int) -> None:
        """Rejects rows of a fragment that no box of TMA has."""
        if self.columns * bytes_ % TMA_INNER_BOX_MULTIPLE:
            raise match_failure(
                op,
                f"expected the rows of a tile to have a multiple of {TMA_INNER_BOX_MULTIPLE} "
                f"bytes with store=tma, got {self.columns} x {bytes_} = {self.columns * bytes_} "
                "(inner extent of a box, CUDA driver API, cuTensorMapEncodeTiled); take "
                f"n-tile={TMA_INNER_BOX_MULTIPLE // bytes_}, or store=direct",
            )

    def _stages(self, op: ir.OpView, tiles: int) -> int:
        """Number of tiles that are used in turn: a divisor of the tiles of a fragment, so that each
        fragment begins with the first."""
        if not self.stages:
            return IN_TURN if self.persistent and tiles % IN_TURN == 0 else 1
        if tiles % self.stages:
            legal = [n for n in range(1, tiles + 1) if tiles % n == 0]
            raise match_failure(
                op,
                f"store-stages must be one of {', '.join(map(str, legal))}, got {self.stages}: a "
                f"tile of {self.columns} columns is stored in {tiles} boxes, and the next tile "
                "begins with the first buffer, so the number of buffers must divide that of the "
                f"boxes; take store-stages={legal[-1]}",
            )
        return self.stages
