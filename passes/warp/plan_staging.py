"""plan-staging: assigns addresses in shared memory to the tiles of a warp-level kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import SMEM_TILE_ALIGNMENT
from tcir.dialect.types import one_of, shared_bytes, slots
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import find_kernels, walk_body
from tcir.passes.emit.limits import round_up
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class PlanStaging(Pass):
    """Assigns byte offsets (``offset``) to shared tiles and mbarriers, and adds up their sizes.

    The sum of the sizes is ``tc.smem_bytes``. Tiles start at multiples of 1024 bytes, and the
    mbarriers follow them.

    Before::

        %ring = "tc.smem_tile"() : () -> !tc.ring<4, !tc.staged<…>>

    After::

        %ring = "tc.smem_tile"() {offset = 0} : () -> !tc.ring<4, !tc.staged<…>>

    Preserves everything else.
    """

    name: ClassVar[str] = "plan-staging"

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "pipeline-cp-async or pipeline-tma"):
            _place(kernel)


def _place(kernel: func.FuncOp) -> None:
    if "tc.smem_bytes" in kernel.attributes:
        raise match_failure(kernel, "expected a kernel without planned memory, got tc.smem_bytes")
    target = string(kernel, "tc.target")
    most, end = TARGETS[target].smem_per_cta, 0
    tiles = [op for op in walk_body(kernel) if isinstance(op, tc.SmemTileOp)]
    for tile in tiles:
        tile.attributes["offset"] = i64(end)
        end = round_up(end + tile.nbytes, SMEM_TILE_ALIGNMENT)
    for bar in (op for op in walk_body(kernel) if isinstance(op, tc.MbarrierInitOp)):
        bar.attributes["offset"] = i64(end)
        end += bar.nbytes
    if end > most:
        parts = ", ".join(
            f"{slots(t.tile.type)} x {shared_bytes(one_of(t.tile.type))} bytes" for t in tiles
        )
        raise match_failure(
            tiles[0],
            f"expected at most {most} bytes of shared memory ({target}), got {end} (tiles: "
            f"{parts}); take fewer stages or a smaller block-m, block-n or block-k (smallest "
            "accepted: stages=2, block-m=16, block-n=16)",
        )
    kernel.attributes["tc.smem_bytes"] = i64(end)
