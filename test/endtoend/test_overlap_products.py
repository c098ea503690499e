"""A group of wgmma under way while the next one is issued: every level equal, breaks seen."""

from __future__ import annotations

from typing import Any

import pytest

import tcir

from .linalg_text import Conv
from .test_conv_wgmma import beside_numpy
from .test_matmul_warp_breaks import Break, number

TARGET, PASS = "sm_90a", "overlap-products"
LAPS = Conv(1, 5, 7, 576, 24, 1, 1, out="f16")
"""Nine steps: two laps of four slots and one more."""
MORE = [
    ("conv-implicit-gemm", Conv(1, 5, 7, 320, 24, 1, 1, element="bf16", out="bf16")),
    ("conv-implicit-gemm", Conv(1, 5, 7, 288, 32, 1, 1, filter="fhwc", element="f32")),
    ("conv-implicit-gemm", Conv(1, 5, 7, 1152, 32, 1, 1, filter="fhwc", element="i8", out="i32")),
    ("conv-smem-offset", Conv(1, 5, 6, 576, 8, 3, 1, (1, 1, 0, 0), out="f16")),
    ("conv", Conv(1, 5, 7, 576, 24, 1, 1)),
]


@pytest.mark.parametrize(
    ("pipeline", "conv"),
    [
        ("conv-implicit-gemm", LAPS),
        *MORE,
    ],
    ids=str,
)
def test_every_level(pipeline: str, conv: Conv) -> None:
    kernel = tcir.compile(
        conv.text(), pipeline, target=TARGET, validate=True, orders=2, stages=4,
        **({"split_k": 1} if pipeline == "conv-implicit-gemm" else {}),
    )  # fmt: skip
    kernel.report.check()
    assert "wgmma.wait_group.sync.aligned 1;" in kernel.ptx
    beside_numpy(kernel, conv, 2)


def test_a_ring_of_three_slots_and_two_warpgroups_wait_for_every_group() -> None:
    wide = Conv(64, 14, 14, 256, 256, 1, 1, out="f16")  # 128 pixels a tile
    for conv, options in ((LAPS, {"stages": 3}), (wide, {"n_tile": 256})):
        kernel = tcir.compile(
            conv.text(), "conv-implicit-gemm", target=TARGET, split_k=1, **options
        )
        assert "wgmma.wait_group.sync.aligned 0;" in kernel.ptx
        assert "wgmma.wait_group.sync.aligned 1;" not in kernel.ptx


def waits_for_none(op: Any) -> None:
    """A slot is freed while a group reads it."""
    if str(op.attributes["pending"]).startswith("1"):
        number("pending", 1)(op)


def reads_early(op: Any) -> None:
    """The sums are stored while a group adds to them."""
    if str(op.attributes["pending"]).startswith("0"):
        number("pending", 1)(op)


@pytest.mark.parametrize("change", [waits_for_none, reads_early])
def test_a_break_is_seen(change: Any) -> None:
    pipeline = tcir.named_pipeline("conv-implicit-gemm", stages=4, split_k=1)
    pipeline = pipeline.insert(Break("tc.wgmma_wait", change), after=PASS)
    kernel = tcir.compile(LAPS.text(), pipeline, target=TARGET, validate=True, orders=3)
    failure = kernel.report.first_failure()
    assert failure is not None and failure.name == "break", str(kernel.report)
