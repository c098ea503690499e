"""Convolutions whose taps and channels several CTAs share, and a kernel that adds their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir

from .conv_epilogue_text import FusedConv
from .epilogue_text import TRUNCATE
from .linalg_text import Conv
from .oracle import convolution, integers
from .test_matmul_warp_breaks import Break, number

TARGET, PIPELINE = "sm_90a", "conv-implicit-gemm"
QUICK = Conv(1, 5, 7, 64, 24, 3, 3, (1, 1, 1, 1), out="f16")
CASES = [
    (Conv(1, 9, 9, 128, 72, 3, 3, element="bf16", out="bf16"), {"split_k": 6}),
    (Conv(2, 7, 7, 256, 40, 1, 1), {"split_k": 4, "programmatic": True}),
    (Conv(1, 7, 9, 32, 24, 3, 1, filter="fhwc", element="i8", out="i32"), {"split_k": 3}),
    (Conv(1, 7, 9, 32, 42, 3, 1, filter="fhwc", element="f32"), {"split_k": 3}),
    (Conv(1, 12, 18, 8, 16, 7, 2, strides=(2, 2)), {"split_k": 7}),
    (Conv(3, 14, 14, 128, 256, 1, 1, strides=(2, 2)), {"split_k": 2, "n_tile": 64}),
]


@pytest.mark.parametrize(
    ("conv", "options"),
    [
        (QUICK, {"split_k": 3, "programmatic": True}),
        *CASES,
    ],
    ids=str,
)
def test_every_level(conv: Conv, options: dict[str, Any]) -> None:
    kernel = tcir.compile(conv.text(), PIPELINE, target=TARGET, validate=True, orders=2, **options)
    kernel.report.check()
    x_shape, w_shape, _ = conv.shapes
    x, w = integers(x_shape, conv.elements[0], 1), integers(w_shape, conv.elements[1], 2)
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)
    assert [launch.programmatic for launch in kernel.launches.launches[-2:]] == [
        options.get("programmatic", False)
    ] * 2


def test_an_epilogue_follows_the_sum() -> None:
    fused = FusedConv(
        QUICK,
        "%t = arith.addf %s, %b : f32\n%u = arith.extf %r : f16 to f32\n"
        "%v = arith.addf %t, %u : f32" + TRUNCATE.replace("%t", "%v"),
        {"b": ("f32", "k"), "r": ("f16", "npqk")},
    )
    report = tcir.validate(
        fused.linalg(), PIPELINE, target=TARGET, inputs="random", orders=3, split_k=9
    )
    assert report.ok, str(report)


def test_long_sums_of_few_pixels_are_split() -> None:
    """ResNet-50's last 1x1 and 3x3 layers, the second unless its taps share a tile; its first one
    has enough tiles."""
    layers = (
        Conv(8, 7, 7, 2048, 512, 1, 1, out="f16"),
        Conv(8, 7, 7, 512, 512, 3, 3, (1, 1, 1, 1), out="f16"),
        Conv(8, 56, 56, 64, 64, 3, 3, (1, 1, 1, 1), out="f16"),
    )
    for pipeline, second in ((PIPELINE, 2), ("conv", 1), ("layers", 1)):
        counts = [
            len(tcir.compile(each.text(), pipeline, target=TARGET).launches.launches)
            for each in layers
        ]
        assert counts == [2, second, 1], pipeline


# --- breaks and refusals -------------------------------------------------------------------------


def earlier(op: Any) -> None:
    """Parts that begin a step too early."""
    if str(op.attributes["value"]) == "3 : index":
        op.attributes["value"] = ir.IntegerAttr.get(ir.IndexType.get(op.context), 2)


def without_second(op: Any) -> None:
    op.results[0].replace_all_uses_with(op.operands[0])


BREAKS = {
    "parts that are no steps": ("split-conv-k", Break("tc.conv2d", number("k_part", 64))),
    "a part is left out": ("convert-to-simt", Break("arith.addf", without_second)),
    "parts that overlap": ("tile-conv-implicit-gemm", Break("arith.constant", earlier)),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen(name: str) -> None:
    after, broken = BREAKS[name]
    pipeline = tcir.named_pipeline(PIPELINE, split_k=3).insert(broken, after=after)
    try:
        report = tcir.compile(QUICK.text(), pipeline, target=TARGET, validate=True).report
    except tcir.Error as error:
        assert "must divide the 9 steps of 64 channels into equal parts" in str(error)
        return
    failure = report.first_failure()
    assert failure is not None and failure.name == "break", str(report)


@pytest.mark.parametrize(
    ("conv", "target", "options", "message"),
    [
        (QUICK, TARGET, {"split_k": 4}, "split-k=1 or one of 3, 9 .*got 4; leave it out"),
        (Conv(1, 5, 7, 40, 16, 3, 3), TARGET, {"split_k": 3}, "for 40 channels .a step has 64"),
        (QUICK, TARGET, {"split_k": -1}, "at least 1, or 0 to choose, got -1"),
    ],
)
def test_refusals(conv: Conv, target: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message) as error:
        tcir.compile(conv.text(), PIPELINE, target=target, **options)
    assert "smallest accepted" in str(error.value) or "take split-k=1" in str(error.value)
