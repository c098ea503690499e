"""conv-smem-offset with fewer CTAs than tiles: every level equal, on both cores."""

from __future__ import annotations

import pytest

import tcir

from .cases import SAME_3x3
from .linalg_text import Conv

CONV = Conv(2, 20, 20, 16, 40, 3, 3, SAME_3x3, out="f16")
"""Several tiles of pixels, three of channels."""


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_every_level(target: str) -> None:
    kernel = tcir.compile(
        CONV.text(), "conv-smem-offset", target=target, persistent=True, ctas=2, n_tile=16,
        validate=True, orders=2,
    )  # fmt: skip
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]
    assert kernel.launches.launches[0].grid == (2, 1, 1)


def test_ctas_need_a_persistent_kernel() -> None:
    with pytest.raises(tcir.InputError, match="take persistent=true"):
        tcir.named_pipeline("conv-smem-offset", ctas=2)
