"""Convolutions in tiles of 192 pixels, of three warpgroups; several tiles a CTA, stored while the
next one is multiplied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.conv import wgmma
from tcir.passes.kernels.product import Tile
from tcir.target import TARGETS

from .cases import SAME_3x3
from .conv_epilogue_text import FusedConv
from .epilogue_text import TRUNCATE
from .linalg_text import Conv
from .oracle import convolution, operands
from .test_gemm_wgmma import BREAKS
from .test_gemm_wgmma_deferred import Count, unconditional
from .test_matmul_warp_breaks import Break

TARGET, PIPELINE = "sm_90a", "conv-implicit-gemm"
ALONE = Conv(1, 13, 17, 72, 24, 3, 1, out="f16")
"""187 pixels, a tile with a tail."""
SEVERAL = Conv(1, 13, 17, 192, 64, 1, 1, out="f16")
"""221 pixels: two tiles of one CTA, three steps each."""
MORE = [
    Conv(2, 14, 15, 64, 40, 3, 3, SAME_3x3, element="bf16", out="bf16"),
    Conv(1, 14, 15, 32, 72, 3, 3, SAME_3x3, filter="fhwc", element="i8", out="i32"),
    Conv(1, 14, 15, 32, 72, 3, 3, SAME_3x3, filter="fhwc", element="f32"),
]


@pytest.fixture
def tile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes convolutions take a tile, on so many SMs."""

    def take(columns: int, sms: int = 132) -> None:
        chosen = Tile(192, columns)
        monkeypatch.setattr(wgmma, "fastest_tile", lambda *_: chosen)
        target = replace(TARGETS[TARGET], sms=sms)
        monkeypatch.setattr(wgmma, "TARGETS", {**TARGETS, TARGET: target})

    return take


def beside_numpy(kernel: tcir.Kernel, conv: Conv) -> None:
    x, w = operands(conv)
    want = convolution(conv, x, w)
    out = np.zeros_like(want)
    outcome = kernel(x, w, out)
    assert out.tobytes() == want.tobytes() and not outcome.findings, str(outcome)


@pytest.mark.parametrize("conv", [ALONE, *MORE], ids=str)
def test_every_level(conv: Conv, tile: Any) -> None:
    tile(24)
    kernel = tcir.compile(conv.text(), PIPELINE, target=TARGET, validate=True, orders=2, split_k=1)
    kernel.report.check()
    assert kernel.launch_config.block == (416, 1, 1)
    beside_numpy(kernel, conv)


@pytest.mark.parametrize("programmatic", [False, True])
def test_stores_are_deferred(programmatic: bool, tile: Any) -> None:
    tile(64, sms=1)
    kernel = tcir.compile(
        SEVERAL.text(), PIPELINE, target=TARGET, validate=True, orders=2, stages=2,
        programmatic=programmatic,
    )  # fmt: skip
    kernel.report.check()
    assert kernel.launch_config.grid == (1, 1, 1) and "setmaxnreg" not in kernel.ptx
    beside_numpy(kernel, SEVERAL)


@pytest.mark.parametrize(("columns", "parts"), [(128, 4), (192, 0)])
def test_stores_are_deferred_where_registers_suffice(columns: int, parts: int, tile: Any) -> None:
    """Of 120 registers of a thread 64 hold sums of 128 columns, and 32 what waits; of 192 columns
    96 and 48."""
    tile(columns, sms=1)
    count = Count()
    pipeline = tcir.named_pipeline(PIPELINE).insert(count, after="defer-stores")
    conv = Conv(1, 13, 17, 512, columns, 1, 1, out="f16")
    tcir.compile(conv.text(), pipeline, target=TARGET)
    assert count.found[0]["tc.fragment_part"] == parts


def with_residual(conv: Conv) -> str:
    """Its text with a bias and a residual, of which each tile has a view of its own."""
    return FusedConv(
        conv,
        "%t = arith.addf %s, %b : f32\n%u = arith.extf %r : f16 to f32\n"
        "%v = arith.addf %t, %u : f32" + TRUNCATE.replace("%t", "%v"),
        {"b": ("f32", "k"), "r": ("f16", "npqk")},
    ).linalg()


def test_stores_with_an_epilogue_are_deferred(tile: Any) -> None:
    tile(64, sms=1)
    text = with_residual(SEVERAL)
    report = tcir.validate(text, PIPELINE, target=TARGET, inputs="random", orders=3)
    assert report.ok, str(report)


@pytest.mark.parametrize(("channels", "fetches"), [(192, 0), (448, 4)])
def test_a_residual_is_fetched_where_k_has_steps_for_it(
    channels: int, fetches: int, tile: Any
) -> None:
    """Two parts of bias and residual, in two steps behind the two that store."""
    tile(64, sms=1)
    count = Count()
    pipeline = tcir.named_pipeline(PIPELINE).insert(count, after="defer-stores")
    text = with_residual(replace(SEVERAL, c=channels))
    tcir.compile(text, pipeline, target=TARGET)
    assert count.found[0]["tc.fetch_fragment"] == fetches


def test_resnet_has_as_many_tiles_as_sms() -> None:
    """6272 pixels and 512 channels at batch 32 are 33 x 4 tiles; at batch 1 they are smaller."""
    for batch, rows, grid in ((32, 192, (33, 4, 1)), (1, 64, None)):
        conv = Conv(batch, 14, 14, 1024, 512, 1, 1, out="f16")
        launch = tcir.compile(conv.text(), "conv", target=TARGET).launches.launches[0]
        assert launch.block[0] == 32 * (rows // 16 + 1)
        assert grid is None or launch.grid == grid


# --- breaks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen(name: str, tile: Any) -> None:
    tile(24)
    after, broken = BREAKS[name]
    pipeline = tcir.named_pipeline(PIPELINE, stages=2).insert(broken, after=after)
    kernel = tcir.compile(ALONE.text(), pipeline, target=TARGET, validate=True, orders=3)
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    assert failure.name in ("break", "assign-roles"), str(failure)


def test_a_break_of_deferred_stores_is_seen(tile: Any) -> None:
    """Zeros are stored before the first tile."""
    tile(64, sms=1)
    pipeline = tcir.named_pipeline(PIPELINE, stages=2)
    pipeline = pipeline.insert(Break("scf.if", unconditional), after="defer-stores")
    kernel = tcir.compile(SEVERAL.text(), pipeline, target=TARGET, validate=True)
    failure = kernel.report.first_failure()
    assert failure is not None and failure.name == "break", str(kernel.report)
