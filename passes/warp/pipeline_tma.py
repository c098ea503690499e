"""pipeline-tma: turns shared tiles into rings that TMA fills several iterations ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.limits import CTA_BARRIERS
from tcir.passes.emit.builders import fence, i64, tma_load
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.index import Index
from tcir.passes.warp.loops import clone_all
from tcir.passes.warp.ring import Fill, RingLoop, check_stages, pipeline_kernels
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class PipelineTma(Pass):
    """Hoists the tiles of the main loop into rings of `stages` slots, which are loaded several
    iterations ahead.

    stages: number of slots, 2 to 15; 0: 4, or as many as fit in the shared memory of the target

    Before::

        scf.for %i = 0 to n iter_args(%acc) { tiles; tma_load; load_fragment, mma_sync … }

    After (``tc.async``)::

        %ring_a = "tc.smem_tile"() : () -> !tc.ring<4, …>
        %full = "tc.mbarrier_init"() {arrivals = 1} : !tc.ring<4, !tc.mbarrier>
        "tc.fence"() {kind = "mbarrier_init"}; "tc.cta_barrier"()
        3 x "tc.one_thread"({ "tc.mbarrier_expect_tx"(%full[0, 1, 2]); tma_load of step 0, 1, 2 })
        scf.for %i = 0 to n - 3 iter_args {
          "tc.mbarrier_wait"(%full[%i mod 4], %i / 4 mod 2)
          "tc.fence"() {kind = "proxy.async.shared"}; "tc.first_warp_barrier"(%i mod 4)
          "tc.one_thread"({ "tc.mbarrier_expect_tx"(%full[(%i + 3) mod 4]); tma_load of that step })
          load_fragment from slot %i mod 4, mma_sync …
        }
        scf.for %i = n - 3 to n iter_args { the same without loads }

    After the mbarrier wait, the bytes of the step are visible to the waiting thread. The first
    thread of the first warp issues the TMA loads; after the barrier for which this warp waits, no
    warp still reads the slot that is filled next. The fence before the barrier keeps TMA from
    overtaking loads of fragments that are still in flight. In a loop over tiles, %i also counts the
    steps of earlier tiles, and the last loop loads the first steps of the next tile, if there is
    one. Preserves the order of the sums. Kernels that copy by cp.async are left to
    `pipeline-cp-async`.
    """

    name: ClassVar[str] = "pipeline-tma"
    stages: int = 0

    def __post_init__(self) -> None:
        check_stages(self.stages)

    def run(self, module: ir.Module) -> None:
        pipeline_kernels(module, self.name, tc.TmaLoadOp, self.stages, _Phases)


class _Phases(RingLoop):
    """An mbarrier per slot; its phases count the steps that filled the slot."""

    def begin(self) -> None:
        if self.stages >= CTA_BARRIERS:
            raise match_failure(
                self.loop,
                f"expected stages of at most {CTA_BARRIERS - 1}, got {self.stages}: a slot has one "
                f"of the {CTA_BARRIERS} barriers of a CTA (PTX ISA 9.7.13.1), of which "
                "tc.cta_barrier is another; take fewer (smallest accepted: stages=2), or "
                "copy=cp.async",
            )
        kind = tc.MbarrierType.get()
        self.full = tc.MbarrierInitOp(i64(1), tc.RingType.build(self.stages, kind)).bar
        fence("mbarrier_init")
        tc.CtaBarrierOp()

    def fill(self, copy: Fill | None) -> None:
        if copy is None:
            return
        mapping = {**copy.place, **self.at(copy.step, copy.slot)}
        clone_all(self.places, mapping)
        full = tc.SlotOp(self.full, copy.slot, tc.MbarrierType.get()).slot
        one = tc.OneThreadOp()
        with ir.InsertionPoint(one.body.blocks.append()):
            tc.MbarrierExpectTxOp(full, i64(sum(integer(load, "nbytes") for load in self.copies)))
            for load in self.copies:
                with load.location:
                    tma_load(
                        load.map,
                        [mapping.get(c, c) for c in load.coords],
                        mapping[load.tile],
                        integer(load, "row"),
                        integer(load, "nbytes"),
                        signal=full,
                    )

    def ready(self, step: Index) -> None:
        slot = self.slot_of(step)
        full = tc.SlotOp(self.full, slot, tc.MbarrierType.get()).slot
        tc.MbarrierWaitOp(full, self.phase_of(step))
        fence("proxy.async.shared")
        tc.FirstWarpBarrierOp(slot)
