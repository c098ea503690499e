"""tile-conv: the cheapest legal schedule of a convolution, by the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.conv.schedules import rank, table, tiling_pass
from tcir.passes.conv.sources import find_convolutions
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

UNSETTLED = (
    "halo=refresh is no candidate: it rests on answers about the hardware that no document "
    "settles; conv-shift-reuse{halo=refresh} asks for it"
)


@register_pass
@dataclass(frozen=True)
class TileConv(Pass):
    """Runs the tiling pass whose program the cost model of `tcir.passes.conv.cost` finds cheapest.

    n_tile: output channels per CTA; 0 chooses

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After: the program of ``tile-conv-shift-reuse``, ``tile-conv-implicit-gemm``, …, and a remark
    with the table of candidates. Schedules that depend on an assumption (halo=refresh) are not
    candidates. Preserves what that pass preserves.
    """

    name: ClassVar[str] = "tile-conv"
    n_tile: int = 0

    def run(self, module: ir.Module) -> None:
        sources = find_convolutions(module, self.name)
        if len(sources) != 1:
            raise match_failure(module.operation, f"expected one convolution, got {len(sources)}")
        op = sources[0].op
        ranked = rank(op, self.n_tile)
        best = ranked[0]
        if best.work is None or best.reason:
            raise match_failure(op, "\n".join(f"{each.schedule}: {each.reason}" for each in ranked))
        remark(op, f"chose {best.schedule} (modelled, not measured)\n{table(ranked)}\n{UNSETTLED}")
        tiling_pass(best.schedule, best.work.n_tile).run(module)
