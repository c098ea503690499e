"""Relaxed arrivals with tcgen05 fences order tensor memory (PTX ISA 9.7.16.6.4.3, 9.7.16.6.4.4)."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .conftest import HEADER

KERNEL = """.visible .entry k(.param .u64 out) .reqntid 64
{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .b64 %out;
  .shared .align 8 .b64 bar; .shared .align 4 .b32 base; .shared .align 4 .b32 data;
  ld.param.u64 %out, [out]; mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 32;
  setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared::cta.b64 [bar], 32;
  @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32;
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r1, [base]; @!%p0 bra WAITER;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r0}; tcgen05.wait::st.sync.aligned;
  @!%p1 st.shared.u32 [data], %r0;
  BEFORE mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];
  bar.sync 1; bra END;
WAITER:
  L: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p2, [bar], 0; @!%p2 bra L;
  AFTER LOOK
  bar.sync 1; bra DONE;
END: tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
DONE: ret; }
"""
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"


def run(before: str, after: str, look: str, seed: int | None) -> RunReport:
    text = KERNEL.replace("BEFORE", before).replace("AFTER", after).replace("LOOK", look)
    if look == FREE:
        text = text.replace("END: " + FREE, "END:")
    return run_ptx(HEADER + text, grid=1, block=64, args=[np.zeros(1, np.uint32)], order_seed=seed)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_relaxed_arrivals_order_tensor_memory(seed: int | None) -> None:
    report = run(BEFORE, AFTER, FREE, seed)
    assert report.ok and not report.findings, str(report)
    for before, after in (("", AFTER), (BEFORE, ""), ("", "")):
        assert "race" in {f.code for f in run(before, after, FREE, seed).findings}


def test_they_order_nothing_else() -> None:
    report = run(BEFORE, AFTER, "ld.shared.u32 %r2, [data];", None)
    assert [f.code for f in report.findings] == ["race"], str(report)


def test_nor_what_the_arriver_has_observed() -> None:
    """A third warp's store, which a barrier ordered before the arrival."""
    text = KERNEL.replace("64\n{", "96\n{", 1).replace("BEFORE", BEFORE).replace("AFTER", AFTER)
    text = text.replace("@!%p1 st.shared.u32 [data], %r0;", "bar.sync 2, 64;")
    text = text.replace("LOOK", "ld.shared.u32 %r2, [data];").replace(
        "WAITER:",
        "WAITER: setp.lt.u32 %p3, %r0, 64; @%p3 bra L;"
        " setp.eq.u32 %p3, %r0, 64; @%p3 st.shared.u32 [data], %r0;"
        " bar.sync 2, 64; bar.sync 1; bra DONE;",
    )

    def found(ptx: str) -> list[str]:
        report = run_ptx(HEADER + ptx, grid=1, block=96, args=[np.zeros(1, np.uint32)])
        assert not report.incomplete, str(report)
        return [f.code for f in report.findings]

    assert found(text) == ["race"]
    assert found(text.replace(".relaxed.cta", "")) == []
