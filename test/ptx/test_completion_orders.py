"""Orders that favour extremes find what averages do not: a wait that gives up too early."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.run import RunReport

from .test_tcgen05 import WAIT_FULL, gemm, launch, operands

POLLS = 40
BOUNDED = f"""
 mov.b32 %r20, 0;
ASK: mbarrier.test_wait.parity.shared::cta.b64 %p6, [%r5], 0;
 @%p6 bra GO_ON;
 add.u32 %r20, %r20, 1;
 setp.lt.u32 %p7, %r20, {POLLS};
 @%p7 bra ASK;
GO_ON:
"""
"""Asks so many times whether the operands are there, then goes on in any case."""


def run(text: str, order: int | None) -> tuple[RunReport, bool]:
    a, b, maps, out = operands(64, exact=True)
    report = launch(text, maps, out, 24576, order_seed=order)
    return report, bool((out == a.astype(np.float32) @ b.astype(np.float32).T).all())


def test_the_sound_kernel_is_right_in_every_order() -> None:
    assert gemm().count(WAIT_FULL) == 1
    for order in (None, *range(12)):
        report, right = run(gemm(), order)
        assert right and report.ok and not report.findings, (order, str(report))


@pytest.mark.parametrize("order", [None, *range(1, 10)])
def test_a_bounded_wait(order: int | None) -> None:
    """Only orders in which copies come as late as they may (1, 3, 7, 9) show that it gives up."""
    report, right = run(gemm().replace(WAIT_FULL, BOUNDED), order)
    if order in (1, 3, 7, 9):
        assert not right or order in (1, 7)  # there the mma may come even later than the copies
        assert "race" in {f.code for f in report.findings}
    else:
        assert right and not report.findings, str(report)


def test_a_wait_that_gives_up_later() -> None:
    """Order 3 holds each of two copies for 64 polls in vain: giving up after 130 is not seen."""
    patient = BOUNDED.replace(f"{POLLS};", "130;")
    assert patient != BOUNDED
    report, right = run(gemm().replace(WAIT_FULL, patient), 3)
    assert right and not report.findings
