"""tile-conv: tiles a convolution by its cheapest legal schedule, according to the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.conv import warpgroup_schedules
from tcir.passes.conv.schedules import ConvSchedules, table, tiling_pass
from tcir.passes.conv.sources import find_convolutions
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS

UNSETTLED = (
    "halo=refresh is not considered, because it relies on hardware behaviour that no document "
    "specifies; conv-shift-reuse{halo=refresh} selects it"
)
NO_SHIFT = (
    "conv-shift-reuse is not considered: it needs tensor memory, which this target does not have"
)


@register_pass
@dataclass(frozen=True)
class TileConv(Pass):
    """Runs the tiling pass of the schedule that the cost model of `tcir.passes.emit.cost` finds
    cheapest.

    n_tile: output channels per CTA; 0 chooses
    others: whether functions without a convolution are left to another pass (tile-gemm)

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After: the program of ``tile-conv-shift-reuse``, ``tile-conv-implicit-gemm`` or another tiling
        pass, and a remark with the table of candidates. Schedules that depend on an assumption
        (halo=refresh) are not candidates. Each convolution of a module is scheduled by itself. For
        sm_90a, which has no tensor memory, the candidates are ``tile-conv-implicit-gemm`` and
        ``tile-conv-smem-offset``, compared by the cycles of `tcir.passes.conv.warpgroup_schedules`.
        Preserves what the chosen pass preserves.
    """

    name: ClassVar[str] = "tile-conv"
    n_tile: int = 0
    others: bool = False

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in find_convolutions(module, self.name, others=self.others):
            op = source.op
            if TARGETS[target].wgmma:
                schedule = _for_warpgroups(op, self.n_tile, target)
                _alone(module, source.function, tiling_pass(schedule, self.n_tile))
                continue
            if k_part(op) is not None:
                _alone(module, source.function, tiling_pass("conv-implicit-gemm", self.n_tile))
                continue
            schedules = ConvSchedules(op, self.n_tile)
            ranked = schedules.ranked()
            best = ranked[0]
            if best.work is None or best.reason:
                words = "\n".join(f"{each.schedule}: {each.reason}" for each in ranked)
                raise match_failure(op, words)
            table_ = f"{table(ranked)}\n{UNSETTLED}\n{schedules.disputes()}"
            remark(op, f"chose {best.schedule} (modelled, not measured)\n{table_}")
            _alone(module, source.function, tiling_pass(best.schedule, best.work.n_tile))


def _for_warpgroups(op: tc.Conv2dOp, n_tile: int, target: str) -> str:
    """The schedule that takes the fewest cycles on warpgroups; a remark has the table."""
    found = warpgroup_schedules.ranked(op, n_tile, target)
    words = f"chose {found[0].schedule} (modelled, not measured)"
    remark(op, f"{words}\n{warpgroup_schedules.table(found)}\n{NO_SHIFT}")
    return found[0].schedule


def _alone(module: ir.Module, function: func.FuncOp, tiling: Pass) -> None:
    """Runs a pass on one function of a module: another convolution may have another schedule."""
    alone = ir.Module.create(module.operation.location)
    for name in module.operation.attributes:
        alone.operation.attributes[name] = module.operation.attributes[name]
    alone.body.append(function)
    tiling.run(alone)
    for op in list(alone.body.operations):
        module.body.append(op)
