"""pipeline-cp-async: turns shared tiles into rings that cp.async fills several iterations ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.warp.loops import clone_all
from tcir.passes.warp.ring import Fill, RingLoop, check_stages, pipeline_kernels
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class PipelineCpAsync(Pass):
    """Hoists the tiles of the main loop into rings of `stages` slots, which are filled several
    iterations ahead.

    stages: number of slots, at least 2; 0: 4, or as many as fit in the shared memory of the target

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

    After the barrier, every thread's copies of this step are complete and no warp still reads the
    slot to be filled next. Every iteration commits a group, possibly empty, so that ``pending`` can
    be the same number in every iteration. Preserves the order of the sums. Kernels that copy by TMA
    are left to `pipeline-tma`.
    """

    name: ClassVar[str] = "pipeline-cp-async"
    stages: int = 0

    def __post_init__(self) -> None:
        check_stages(self.stages)

    def run(self, module: ir.Module) -> None:
        pipeline_kernels(module, self.name, tc.CpAsyncOp, self.stages, _Groups)


class _Groups(RingLoop):
    """A group of copies for each step."""

    def begin(self) -> None:
        if self.tile_loop is not None:
            raise match_failure(
                self.loop,
                "expected one tile a CTA, got a loop over tiles, which needs copies by TMA",
            )

    def fill(self, copy: Fill | None) -> None:
        if copy is not None:
            clone_all([*self.places, *self.copies], self.at(copy.step, copy.slot))
        tc.CpAsyncCommitOp()

    def ready(self, step: Index) -> None:
        tc.CpAsyncWaitOp(i64(self.stages - 2))
        tc.CtaBarrierOp()
