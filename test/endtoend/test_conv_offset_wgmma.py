"""conv-smem-offset for sm_90a: every level equal, and as numpy; breaks seen, refusals clear."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.conv.fold_filter_rows import FoldFilterRows
from tcir.passmanager.remarks import remarks_to

from .cases import CONVS, SAME_3x3
from .conv_epilogue_cases import BLOCK
from .conv_epilogue_cases import CASES as EPILOGUES
from .conv_epilogue_text import FusedConv
from .conv_pair_cases import STEPS, TAILS
from .epilogue_text import TRUNCATE
from .linalg_text import Conv
from .oracle import convolution
from .test_conv_wgmma import beside_numpy
from .test_gemm_wgmma import BREAKS
from .test_matmul_warp_breaks import Break

TARGET, PIPELINE = "sm_90a", "conv-smem-offset"
SMALL = Conv(2, 5, 6, 16, 24, 3, 3, SAME_3x3, out="f16")
STRIDED = Conv(1, 9, 8, 16, 16, 3, 3, SAME_3x3, strides=(2, 2))
MORE = [
    SMALL,
    STRIDED,
    Conv(8, 7, 7, 64, 64, 3, 3, SAME_3x3, element="bf16", out="bf16"),
    Conv(4, 7, 7, 128, 64, 3, 3, SAME_3x3, strides=(2, 2)),
    Conv(2, 14, 14, 64, 64, 3, 3, SAME_3x3, strides=(3, 3)),
    Conv(2, 12, 11, 32, 32, 3, 3, (3, 2, 0, 1), dilations=(2, 1), strides=(1, 2)),
    Conv(1, 14, 15, 32, 72, 3, 3, SAME_3x3, filter="fhwc", element="i8", out="i32"),
    Conv(1, 14, 15, 32, 72, 3, 3, SAME_3x3, filter="fhwc", element="f32"),
    Conv(1, 30, 28, 3, 64, 7, 7, (3, 3, 3, 3), strides=(2, 2)),
]
LAYERS = [*CONVS[:4], Conv(1, 14, 14, 256, 512, 3, 3, SAME_3x3, out="f16")]
"""From PTX only: each level takes minutes."""
CASES = [*MORE, *CONVS[4:], *(each.conv for each in (*TAILS, *STEPS))]


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


@pytest.mark.parametrize("options", [{"n_tile": 24}, {"n_tile": 256}, {"stages": 1}], ids=str)
def test_tiles(options: dict[str, Any]) -> None:
    text = Conv(1, 11, 11, 64, 64, 3, 3, SAME_3x3).text()
    tcir.compile(text, PIPELINE, target=TARGET, validate=True, **options).report.check()


def test_more_tiles_than_sms_are_a_loop() -> None:
    """ResNet-50's first 3x3 layer at batch 8: 203 tiles."""
    conv = Conv(8, 56, 56, 64, 64, 3, 3, SAME_3x3)
    kernel = tcir.compile(conv.text(), PIPELINE, target=TARGET)
    assert kernel.launch_config.grid == (132, 1, 1)
    rng = np.random.default_rng(3)
    x = rng.integers(1, 4, (8, 56, 56, 64)).astype(np.float16)
    w = rng.integers(-3, 0, (3, 3, 64, 64)).astype(np.float16)
    out = np.zeros((8, 56, 56, 64), np.float32)
    outcome = kernel(x, w, out)
    assert out.tobytes() == convolution(conv, x, w).tobytes() and not outcome.findings


def test_padding_between_rows_and_images_is_shared() -> None:
    """Between two rows of outputs is one position, which pads both; so between two images."""
    text = tcir.compile(Conv(2, 5, 6, 16, 16, 3, 3, SAME_3x3).text(), PIPELINE, target=TARGET)
    walk = re.search(r"walk = array<i64: (\d+), (\d+)>", text.ir["tile-conv-smem-offset"])
    assert walk and walk.groups() == ("6", "7")


# --- epilogues -----------------------------------------------------------------------------------

FUSED = {
    "a residual block": BLOCK,
    "a scale of each image": FusedConv(
        Conv(2, 5, 6, 16, 24, 3, 3, SAME_3x3, out="f16"),
        "%t = arith.mulf %s, %c : f32" + TRUNCATE,
        {"c": ("f32", "nk")},
    ),
    "numbers of each position": FusedConv(
        Conv(3, 5, 6, 16, 24, 3, 3, SAME_3x3),
        "%t = arith.addf %s, %c : f32\n linalg.yield %t : f32",
        {"c": ("f32", "pqk")},
    ),
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


# --- breaks and refusals -------------------------------------------------------------------------


def last(name: str, add: int) -> Any:
    """Adds to the last number of an array."""

    def change(op: Any) -> None:
        from tcir._mlir import ir

        *rest, value = ir.DenseI64ArrayAttr(op.attributes[name])
        with op.context:
            op.attributes[name] = ir.DenseI64ArrayAttr.get([*rest, value + add])

    return change


OWN = {
    "a tap from the wrong row on": (
        "tile-conv-smem-offset",
        Break("tc.wgmma_taps", last("rows", -1)),
    ),
    "a walk of other images": ("assign-roles", Break("tc.store_fragment", last("walk", 1))),
}


@pytest.mark.parametrize("name", [*OWN, *BREAKS])
def test_a_break_is_seen(name: str) -> None:
    after, broken = (OWN | BREAKS)[name]
    conv = Conv(2, 5, 6, 256, 16, 3, 3, SAME_3x3)
    pipeline = tcir.named_pipeline(PIPELINE, n_tile=16, stages=2).insert(broken, after=after)
    failure = tcir.compile(
        conv.text(), pipeline, target=TARGET, validate=True, orders=3
    ).report.first_failure()
    assert failure is not None
    assert failure.name in (("break",) if name in OWN else ("break", "assign-roles")), str(failure)


HUGE = Conv(1, 40, 40, 64, 256, 7, 7, (3, 3, 3, 3), strides=(2, 2))


@pytest.mark.parametrize(
    ("conv", "options", "message"),
    [
        (Conv(1, 4, 4, 32, 16, 3, 3, element="f8E4M3FN"), {}, "got f8E4M3FN .*keeps only 13 bits"),
        (Conv(1, 4, 4, 32, 16, 3, 3), {"n_tile": 20}, "in .8, 256., got 20 .*take 16 or 24"),
        (HUGE, {"n_tile": 256}, "a tile whose pixels and filter taps fit .*use a smaller n-tile"),
    ],
    ids=["fp8", "n-tile", "shared memory"],
)
def test_refusals(conv: Conv, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message) as error:
        tcir.compile(conv.text(), PIPELINE, target=TARGET, **options)
    assert "smallest accepted" in str(error.value)


def test_a_stride_that_no_tensor_map_steps_over_is_for_cuda_cores() -> None:
    conv = Conv(1, 30, 30, 32, 16, 3, 3, strides=(1, 9))
    kernel = tcir.compile(conv.text(), PIPELINE, target=TARGET, validate=True)
    assert kernel.report is not None and kernel.report.ok, str(kernel.report)
    assert "wgmma" not in kernel.ptx and "cp.async.bulk.tensor" not in kernel.ptx


def test_filter_rows_at_once_are_refused() -> None:
    """What only conv-implicit-gemm takes; without them it is the last of `MORE`."""
    pipeline = tcir.named_pipeline(PIPELINE).insert(FoldFilterRows(), before="split-launches")
    with pytest.raises(tcir.Error, match="got whole filter rows as one pixel, as the") as error:
        tcir.compile(MORE[-1].text(), pipeline, target=TARGET)
    assert "smallest accepted" in str(error.value)


def test_pixels_of_16_bytes_are_taken_though_rows_of_the_filter_are_windows() -> None:
    assert tcir.compile(Conv(1, 3, 3, 8, 8, 3, 3).text(), PIPELINE, target=TARGET).ptx


def test_a_smaller_tile_of_what_is_refused_is_taken() -> None:
    assert tcir.compile(HUGE.text(), PIPELINE, target=TARGET, n_tile=64).ptx


# --- the choice of pipeline conv -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("conv", "schedule"),
    [
        (Conv(8, 14, 14, 64, 64, 3, 3, SAME_3x3), "conv-smem-offset"),
        (Conv(8, 14, 14, 64, 64, 1, 1), "conv-implicit-gemm"),
    ],
    ids=["3x3", "1x1"],
)
def test_conv_takes_the_schedule_of_fewest_cycles(conv: Conv, schedule: str) -> None:
    said: list[str] = []
    with remarks_to(lambda location, text: said.append(text)):
        kernel = tcir.compile(conv.text(), "conv", target=TARGET)
    (table,) = [text for text in said if text.startswith("chose")]
    first, head, *rows, last = table.splitlines()
    assert first == f"chose {schedule} (modelled, not measured)"
    assert rows[0].startswith(schedule) and len(rows) == (1 if conv.r == 1 else 2)
    cycles = [int(row.split()[-1]) for row in rows]
    assert cycles == sorted(cycles) and head.split()[-1] == "cycles"
    assert "conv-shift-reuse is not considered" in last
    assert ("walk = " in kernel.ir["tile-conv"]) == (schedule == "conv-smem-offset")
