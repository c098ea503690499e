"""conv-implicit-gemm for sm_90a: every level equal, and as numpy; breaks seen, refusals clear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir

from .cases import CONVS, SAME_3x3
from .conv_epilogue_cases import BLOCK
from .conv_epilogue_cases import CASES as EPILOGUES
from .conv_epilogue_text import FusedConv
from .conv_pair_cases import STEPS, TAILS
from .epilogue_text import TRUNCATE
from .linalg_text import Conv
from .oracle import convolution, operands
from .test_gemm_wgmma import BREAKS

TARGET, PIPELINE = "sm_90a", "conv-implicit-gemm"
MORE = [
    Conv(1, 14, 14, 256, 512, 3, 3, SAME_3x3, out="f16"),
    Conv(8, 14, 14, 64, 256, 1, 1, out="bf16", element="bf16"),
    Conv(1, 14, 15, 32, 72, 3, 3, SAME_3x3, filter="fhwc", element="i8", out="i32"),
    Conv(1, 14, 15, 32, 72, 3, 3, SAME_3x3, filter="fhwc", element="f32"),
]
PROMOTED = [
    Conv(1, 7, 7, 160, 24, 3, 3, SAME_3x3, filter="fhwc", element="f8E4M3FN", out="f16"),
    Conv(1, 12, 12, 256, 256, 1, 1, filter="fhwc", element="f8E5M2"),
]
LAYERS = [*CONVS[:4], MORE[0]]
"""From PTX only: each level takes minutes."""
CASES = [*CONVS[4:], *(each.conv for each in (*TAILS, *STEPS)), *MORE[1:]]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("conv", CASES, ids=lambda conv: conv.name)
def test_every_level(conv: Conv, orders: int) -> None:
    """Every level, and the PTX beside numpy."""
    kernel = tcir.compile(conv.text(), PIPELINE, target=TARGET, validate=True, orders=2)
    kernel.report.check()
    beside_numpy(kernel, conv, orders)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("conv", LAYERS, ids=lambda conv: conv.name)
def test_layers(conv: Conv) -> None:
    beside_numpy(tcir.compile(conv.text(), PIPELINE, target=TARGET), conv, 2)


@pytest.mark.parametrize("conv", PROMOTED, ids=lambda conv: conv.name)
def test_sums_of_fp8_are_promoted(conv: Conv) -> None:
    """A step's products are added to the sums before in f32: add in registers after each group."""
    kernel = tcir.compile(conv.text(), PIPELINE, target=TARGET, validate=True)
    kernel.report.check()
    beside_numpy(kernel, conv, 2)
    assert "setmaxnreg" in kernel.ptx


def beside_numpy(kernel: tcir.Kernel, conv: Conv, orders: int) -> None:
    x, w = operands(conv)
    want = convolution(conv, x, w)
    for order in (None, *range(1, orders)):
        out = np.zeros_like(want)
        outcome = kernel(x, w, out, order_seed=order)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (order, str(outcome))
    assert ".im2col" in kernel.ptx and "wgmma.mma_async" in kernel.ptx


@pytest.mark.parametrize("options", [{"n_tile": 24}, {"n_tile": 256, "stages": 2}], ids=str)
def test_tiles(options: dict[str, Any]) -> None:
    text = CONVS[11].text()
    tcir.compile(text, PIPELINE, target=TARGET, validate=True, **options).report.check()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("conv", "ctas"),
    [
        (Conv(12, 56, 56, 64, 64, 3, 3, SAME_3x3), 196),
        (Conv(2, 96, 184, 16, 128, 1, 1, out="f16"), 2 * 132),  # 552 tiles
        (Conv(1, 96, 184, 16, 256, 1, 1, out="f16"), 2 * 132),  # 276 tiles
    ],
    ids=str,
)
def test_more_tiles_than_sms_are_two_ctas_each_and_a_loop(conv: Conv, ctas: int) -> None:
    kernel = tcir.compile(conv.text(), PIPELINE, target=TARGET)
    assert kernel.launch_config.grid[0] == ctas and ".minnctapersm 2" in kernel.ptx
    assert 2 * (kernel.launch_config.dynamic_smem + 1024) <= 228 << 10
    rng = np.random.default_rng(3)
    x_shape, w_shape, _ = conv.shapes
    x = rng.integers(1, 4, x_shape).astype(np.float16)
    w = rng.integers(-3, 0, w_shape).astype(np.float16)
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings


# --- epilogues -----------------------------------------------------------------------------------

FUSED = {
    "a residual block": BLOCK,
    **{name: EPILOGUES[name][0] for name in (
        "bf16 as torch has it, stride 2", "tf32, added to an argument",
        "sums that start from the bias",
    )},
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    FUSED,
)
def test_epilogues(name: str) -> None:
    text = FUSED[name].linalg()
    kernel = tcir.compile(text, PIPELINE, target=TARGET, validate=True, orders=2)
    kernel.report.check()
    assert len(kernel.launches.launches) == 1


@pytest.mark.parametrize("name", ["conv_1x1", "conv_bn"])
def test_layers_of_importers(name: str) -> None:
    """`layers` lowers convolutions for sm_90a; conv_bn has a bias of [1, C, 1, 1]."""
    text = (Path(__file__).parent / "layers" / f"{name}.mlir").read_text()
    tcir.compile(text, "layers", target=TARGET, validate=True).report.check()


def test_a_scale_of_each_image_is_refused() -> None:
    fused = FusedConv(
        Conv(2, 5, 6, 16, 24, 3, 3, SAME_3x3, out="f16"),
        "%t = arith.mulf %s, %c : f32" + TRUNCATE,
        {"c": ("f32", "nk")},
    )
    with pytest.raises(tcir.Error, match=r"got dimensions \[0, 3\] of NHWC.*broadcast") as error:
        tcir.compile(fused.linalg(), PIPELINE, target=TARGET)
    assert "smallest accepted" in str(error.value)


# --- breaks and refusals -------------------------------------------------------------------------


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen(name: str) -> None:
    after, broken = BREAKS[name]
    pipeline = tcir.named_pipeline(PIPELINE, stages=2).insert(broken, after=after)
    conv = Conv(1, 8, 18, 128, 16, 3, 1)
    failure = tcir.compile(
        conv.text(), pipeline, target=TARGET, validate=True, orders=3
    ).report.first_failure()
    assert failure is not None
    assert failure.name in ("break", "assign-roles"), str(failure)


@pytest.mark.parametrize(
    ("conv", "options", "message"),
    [
        (Conv(1, 4, 4, 32, 16, 1, 1), {"n_tile": 20}, "in .8, 256., got 20 .*take 16 or 24"),
        (Conv(1, 4, 4, 32, 32, 1, 1), {"cta_group": 2}, "cta-group=1 for sm_90a, got 2"),
    ],
)
def test_refusals(conv: Conv, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message) as error:
        tcir.compile(conv.text(), PIPELINE, target=TARGET, **options)
    assert "smallest accepted" in str(error.value)
