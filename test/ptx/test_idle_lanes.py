"""Loads that some lanes do for nothing: the guard of the only store that uses them is false."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry twice(.param .u64 x)
.reqntid 128
{
  .reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %x, %d;
  ld.param.b64 %x, [x];
  mov.u32 %r0, %ctaid.x; mul.lo.u32 %r0, %r0, 256;
  mov.u32 %r3, %tid.x; and.b32 %r4, %r3, MASK;
  mad.wide.u32 %d, %r4, 4, %x; cvt.u64.u32 %x, %r0; add.u64 %d, %d, %x;
  mov.u32 %r1, 0; setp.lt.u32 %q, %r4, 1000;
  @%q ld.global.b32 %r1, [%d];
  add.u32 %r2, %r1, %r1;
BEFORE
  and.b32 %r5, %r3, 64; setp.eq.b32 %p, %r5, 0;
  STORE st.global.b32 [%d], %r2;
AFTER
  ret;
}
"""


def twice(
    *, mask: int = 63, store: str = "@%p", before: str = "", after: str = "", ctas: int = 1
) -> tuple[RunReport, np.ndarray]:
    x: Any = np.arange(64 * ctas, dtype=np.int32)
    text = KERNEL.replace("MASK", str(mask)).replace("STORE", store)
    text = text.replace("BEFORE", before).replace("AFTER", after)
    return run_ptx(text, grid=ctas, args=[x], order_seed=None), x


@pytest.mark.parametrize("ctas", [1, 12])
def test_threads_that_store_nothing_load_for_nothing(ctas: int) -> None:
    report, x = twice(ctas=ctas)
    assert report.ok and {each.code for each in report.findings} == {"unused-read"}, str(report)
    assert x.tolist() == [2 * n for n in range(64 * ctas)]


RACES = {
    "every thread stores": {"store": ""},
    "others store in the same place": {"store": "@!%p", "after": "@%p st.global.b32 [%d], %r3;"},
    "the value decides something else": {"before": "setp.eq.u32 %q, %r1, 5000; @%q trap;"},
    "another instruction uses it": {"after": "shfl.sync.idx.b32 %r6, %r1, 0, 31, -1;"},
    "the guard depends on it": {"after": "setp.eq.b32 %p, %r1, 0; @%p st.global.b32 [%d], %r1;"},
}


@pytest.mark.parametrize("change", RACES.values(), ids=RACES)
def test_a_load_that_counts_is_a_race(change: dict[str, str]) -> None:
    report, _ = twice(**change)
    found = {each.code for each in report.findings if each.severity == "error"}
    assert found == {"race"}, str(report)


def test_idle_lanes_stay_within_bounds() -> None:
    report, _ = twice(mask=127)
    assert [each.code for each in report.errors] == ["out-of-bounds"], str(report)
