"""Biases loaded before the products of a tile: every level equal, breaks seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tcir
from tcir.passes.conv import wgmma
from tcir.passes.kernels.product import Tile
from tcir.target import TARGETS

from .cases import SAME_3x3
from .conv_epilogue_text import FusedConv
from .epilogue_text import TRUNCATE
from .linalg_text import Conv
from .test_gemm_wgmma_deferred import Count
from .test_matmul_warp_breaks import Break

TARGET, PIPELINE, PASS = "sm_90a", "conv-implicit-gemm", "fetch-ahead"
FUSED = FusedConv(
    Conv(1, 5, 7, 64, 72, 1, 1, out="f16"),
    """
    %wide = arith.extf %scale : f16 to f32
    %u = arith.mulf %s, %wide : f32
    %v = arith.addf %u, %bias : f32
    %r0 = arith.constant 0.0 : f32
    %t = arith.maximumf %v, %r0 : f32
"""
    + TRUNCATE,
    {"scale": ("f16", "k"), "bias": ("f32", "k")},
)
"""Folded normalisation and relu; a tile with tails of pixels and channels."""


@pytest.mark.parametrize("programmatic", [False, True])
def test_every_level(programmatic: bool) -> None:
    report = tcir.validate(
        FUSED.linalg(), PIPELINE, target=TARGET, inputs="random", orders=2, n_tile=32,
        programmatic=programmatic,
    )  # fmt: skip
    assert report.ok, str(report)


@pytest.fixture
def tile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes convolutions take a tile, on one SM."""

    def take(rows: int, columns: int, per_sm: int) -> None:
        chosen = Tile(rows, columns, per_sm)
        monkeypatch.setattr(wgmma, "fastest_tile", lambda *_: chosen)
        target = replace(TARGETS[TARGET], sms=1)
        monkeypatch.setattr(wgmma, "TARGETS", {**TARGETS, TARGET: target})

    return take


@pytest.mark.parametrize(("rows", "columns"), [(192, 64), (64, 128), (128, 64)])
def test_of_two_ctas_on_an_sm(rows: int, columns: int, tile: Any) -> None:
    tile(rows, columns, 2)
    fused = replace(FUSED, conv=Conv(1, 13, 17, 16, 64, 3, 3, SAME_3x3, out="f16"))
    report = tcir.validate(fused.linalg(), PIPELINE, target=TARGET, inputs="random")
    assert report.ok, str(report)


@pytest.mark.parametrize(("shape", "fetches"), [((128, 64, 1), 2), ((128, 256, 1), 1)])
def test_registers_have_room(shape: tuple[int, int, int], fetches: int, tile: Any) -> None:
    """Of 224, all but 24: beside 128 of sums 32 for 256 scales, not 64 for biases, too."""
    tile(*shape)
    count = Count()
    pipeline = tcir.named_pipeline(PIPELINE, split_k=1).insert(count, after=PASS)
    wide = replace(FUSED, conv=replace(FUSED.conv, k=256))
    tcir.compile(wide.linalg(), pipeline, target=TARGET)
    assert count.found[0]["tc.fetch_fragment"] == fetches


def of_rows(op: Any) -> None:
    """The biases of other channels."""
    op.operation.operands[2] = op.operation.operands[1]


def test_a_break_is_seen() -> None:
    pipeline = tcir.named_pipeline(PIPELINE, n_tile=32)
    pipeline = pipeline.insert(Break("tc.fetch_fragment", of_rows), after=PASS)
    kernel = tcir.compile(FUSED.linalg(), pipeline, target=TARGET, validate=True)
    failure = kernel.report.first_failure()
    assert failure is not None and failure.name == "break", str(kernel.report)
