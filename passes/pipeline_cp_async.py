"""pipeline-cp-async: shared tiles become rings that cp.async fills several iterations ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.limits import SMEM_TILE_ALIGNMENT
from tcir.dialect.warp_limits import TARGETS
from tcir.errors import InputError
from tcir.passes import index_math as math
from tcir.passes.emit import i64, text
from tcir.passes.index_math import Index
from tcir.passes.kernel_ops import find_kernels, trip_count
from tcir.passes.limits import round_up
from tcir.passes.refusal import refuse
from tcir.passes.warp_loops import Mapping, clone, clone_all, loops_with, slice_of
from tcir.pipeline import Pass, register_pass

MOST_STAGES = 4
"""Three tiles in flight outlast the latency of memory; more only lengthen the prologue."""
LEAST_STAGES = 2


@register_pass
@dataclass(frozen=True)
class PipelineCpAsync(Pass):
    """Hoists the tiles of the main loop into rings of `stages` slots and copies ahead.

    stages: slots, at least 2; 0: 4, or what fits in the shared memory of the target

    Before::

        scf.for %i = 0 to n iter_args(%acc) { tiles; cp_async; load_fragment, mma_sync … }

    After (``tc.async``)::

        %ring_a = "tc.smem_tile"() : () -> !tc.ring<4, …>
        3 x { cp_async of step 0, 1, 2 into slot 0, 1, 2; "tc.cp_async_commit"() }
        scf.for %i = 0 to n - 3 iter_args {
          "tc.cp_async_wait"() {pending = 2}; "tc.cta_barrier"()
          cp_async of step %i + 3 into slot (%i + 3) mod 4; "tc.cp_async_commit"()
          load_fragment from slot %i mod 4, mma_sync …
        }
        scf.for %i = n - 3 to n iter_args { the same without copies }

    The barrier says two things: every thread's copies of this step are there, and no warp reads
    the slot any more that is filled next. Every iteration commits a group, if an empty one, so that
    ``pending`` always counts the same. Preserves the order of the sums.
    """

    name: ClassVar[str] = "pipeline-cp-async"
    stages: int = 0

    def __post_init__(self) -> None:
        if self.stages and self.stages < LEAST_STAGES:
            raise InputError(
                f"expected stages of at least {LEAST_STAGES}, or 0 to choose, got {self.stages}: "
                "one slot is read while another is filled; smallest accepted: stages=2"
            )

    def run(self, module: ir.Module) -> None:
        for kernel in find_kernels(module, self.name, "tile-matmul-warp"):
            loops = loops_with(kernel, tc.CpAsyncOp)
            if len(loops) != 1 or "tc.async" in kernel.attributes:
                raise refuse(
                    kernel, f"expected one sequential loop with tc.cp_async, got {len(loops)}"
                )
            with loops[0].location:
                _Pipeline(kernel, loops[0], self.stages).build()
            kernel.attributes["tc.async"] = ir.UnitAttr.get()


class _Pipeline:
    def __init__(self, kernel: Any, loop: Any, stages: int) -> None:
        self.loop = loop
        self.trips = trip_count(loop)
        block = loop.body
        self.tiles = [op for op in block if isinstance(op, tc.SmemTileOp)]
        copies = [op for op in block if isinstance(op, tc.CpAsyncOp)]
        indices = [i for op in copies for i in op.indices]
        self.copies = [*slice_of(indices, block), *copies]
        moved = [op.operation for op in (*self.tiles, *self.copies)]
        *ops, self.end = block
        self.compute = [op for op in ops if op.operation not in moved]
        self.stages = stages or _choose_stages(kernel, self.tiles)

    def build(self) -> None:
        """Replaces the loop."""
        loop, ahead = self.loop, self.stages - 1
        with ir.InsertionPoint(loop):
            self.rings = [
                tc.SmemTileOp(tc.RingType.build(self.stages, t.tile.type)).tile for t in self.tiles
            ]
            for step in range(ahead):
                if step < self.trips:
                    self._copy(step)
                tc.CpAsyncCommitOp()
            steady = max(self.trips - ahead, 0)
            totals = list(loop.initArgs)
            if steady:
                totals = self._loop(0, steady, totals, ahead)
            totals = self._loop(steady, self.trips, totals, None)
        for old, new in zip(loop.results, totals, strict=True):
            old.replace_all_uses_with(new)
        loop.operation.erase()

    def _slots(self, step: Index, mapping: Mapping) -> None:
        slot = math.value(math.rem(step, self.stages))
        for tile, ring in zip(self.tiles, self.rings, strict=True):
            mapping[tile.tile] = tc.SlotOp(ring, slot, tile.tile.type).slot

    def _copy(self, step: Index) -> None:
        mapping: Mapping = {self.loop.induction_variable: math.value(step)}
        self._slots(step, mapping)
        clone_all(self.copies, mapping)

    def _loop(self, start: int, end: int, totals: list[Any], ahead: int | None) -> list[Any]:
        new = scf.ForOp(math.value(start), math.value(end), math.value(1), totals)
        with ir.InsertionPoint(new.body):
            step = new.induction_variable
            tc.CpAsyncWaitOp(i64(self.stages - 2))
            tc.CtaBarrierOp()
            if ahead is not None:
                self._copy(math.add(step, ahead))
            tc.CpAsyncCommitOp()
            mapping: Mapping = {self.loop.induction_variable: step}
            mapping |= dict(zip(self.loop.inner_iter_args, new.inner_iter_args, strict=True))
            self._slots(step, mapping)
            clone_all(self.compute, mapping)
            clone(self.end, mapping)
        return list(new.results)


def _choose_stages(kernel: Any, tiles: list[Any]) -> int:
    room = TARGETS[text(kernel.attributes["tc.target"])].smem_bytes
    stage = sum(round_up(t.tile.type.nbytes, SMEM_TILE_ALIGNMENT) for t in tiles)
    return max(LEAST_STAGES, min(MOST_STAGES, room // stage))
