"""compare-conv-schedules: emits a remark when the cost model prefers another schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.passes.conv.cost import SCHEDULES
from tcir.passes.conv.schedules import ConvSchedules, table
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.sources import find_convolutions
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark


@register_pass
@dataclass(frozen=True)
class CompareConvSchedules(Pass):
    """Emits a remark if conv-shift-reuse is legal but another schedule is modelled as faster.

    n_tile: output channels per CTA of conv-shift-reuse; 0: the number that its pass chooses
    tiling: tiling of conv-shift-reuse, with halo=mask; halo=refresh is not modelled

    Before and after::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x7x7x512xf16>, tensor<3x3x512x512xf16>) -> …

    Changes nothing: the schedule that the user requested is built.
    """

    name: ClassVar[str] = "compare-conv-schedules"
    n_tile: int = 0
    tiling: str = "rows"

    def run(self, module: ir.Module) -> None:
        schedule = f"conv-shift-reuse{{tiling={self.tiling}}}"
        for source in find_convolutions(module, self.name):
            op = source.op
            if schedule not in SCHEDULES:
                continue  # the tiling pass reports the tilings it has
            n_tile = ConvShape.of(op).choose_n_tile(op, self.n_tile)
            own, ranked = ConvSchedules(op, n_tile).best(schedule), ConvSchedules(op).ranked()
            best = ranked[0]
            if own.reason or best.work is None or own.microseconds <= best.microseconds:
                continue
            remark(
                op,
                f"{schedule} with n-tile={n_tile} is built and takes {own.microseconds:.2f} us; "
                f"the cheapest schedule, {best.schedule} with n-tile={best.work.n_tile}, takes "
                f"{best.microseconds:.2f} us (both modelled, not measured); pipeline conv builds "
                f"the cheapest\n{table(ranked)}",
            )
