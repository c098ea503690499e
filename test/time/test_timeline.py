"""What a timeline says of itself."""

from __future__ import annotations

from tcir.time import Span, Timeline


def _timeline(**limits: float) -> Timeline:
    span = Span("tensor pipe", "tcgen05.mma", 10.0, 138.0, 0)
    return Timeline((span,), (), 1850.0, "sm_100a", 1.85, limits)


def test_microseconds_are_at_the_stated_clock() -> None:
    assert _timeline().microseconds == 1.0


def test_the_busiest_resource_is_the_bound() -> None:
    assert _timeline(**{"tensor pipe": 0.8, "TMA": 0.6}).bound == "tensor pipe"
    assert _timeline(**{"tensor pipe": 0.4}).bound == "latency"
    assert _timeline(**{"CTA 1 tensor pipe": 0.9, "CTA 0 TMA": 0.8}).bound == "tensor pipe"
    assert _timeline().bound == "latency"


def test_it_says_that_it_is_modelled() -> None:
    text = str(_timeline(HBM=0.9))
    assert text == "modelled: 1850 cycles, 1.00 us at 1.85 GHz on sm_100a, limited by HBM"
