"""Kernels for sm_90a whose fragments TMA stores: every level equal, tails clipped, breaks seen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import tcir

from .breaking import PtxCheck, pick
from .cases import SAME_3x3
from .conv_epilogue_cases import CASES as EPILOGUES
from .conv_epilogue_text import FusedConv
from .epilogue_text import TRUNCATE, Fused
from .linalg_text import Conv
from .product_text import program
from .test_gemm_wgmma_deferred import BESIDE, E4M3, NARROW, TILES
from .test_matmul_warp_breaks import Break, number

TARGET = "sm_90a"
BIAS = Fused("%t = arith.addf %s, %bias : f32" + TRUNCATE, {"bias": ("f32", "n")}, m=40, n=48, k=24)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "tails of rows and columns": (program(150, 72, 24, "f16", out="f16"), {"n_tile": 48}),
    "f32": (program(150, 72, 24, "f16"), {"n_tile": 64}),
    "f32 of one atom's columns": (program(72, 40, 24, "f16"), {"n_tile": 8}),
    "f16 of one atom's columns": (program(72, 40, 24, "f16", out="f16"), {"n_tile": 24}),
    "bf16, a batch": (program(72, 24, 16, "bf16", batch=2, out="bf16"), {}),
    "i32": (program(40, 32, 32, "i8", "mk", "nk"), {}),
    "tf32": (program(136, 72, 104, "f32", "mk", "nk"), {}),
    "a fused epilogue": (BIAS.linalg(), {}),
    "numbers of a byte": (
        Fused("%t = arith.truncf %s : f32 to f8E4M3FN\n linalg.yield %t : f8E4M3FN",
              m=72, n=48, k=24, out="f8E4M3FN").linalg(), {},
    ),
    "bytes in one atom's swizzle": (
        Fused("%t = arith.fptosi %s : f32 to i8\n linalg.yield %t : i8",
              m=72, n=48, k=24, out="i8").linalg(), {"n_tile": 16},
    ),
    "parts of K": (program(72, 48, 256, "f16", out="f16"), {"split_k": 2}),
    "several tiles of a CTA": (
        program(264, 48, 64, "f16", out="f16"), {"n_tile": 16, "persistent": True, "ctas": 2},
    ),
    "two buffers, under the next tile's products": (program(136, 120, 384, "f16", out="f16"), {
        **TILES, "n_tile": 128, "store_stages": 2}),
    "an epilogue that reads, under the next tile's products": (BESIDE.linalg(), NARROW),
    "partial sums": (program(72, 56, 384, E4M3, "mk", "nk", out="bf16"), NARROW),
    "partial sums side by side": (program(136, 520, 512, E4M3, "mk", "nk", out="bf16"), {
        "persistent": True, "ctas": 2, "n_tile": 256, "stages": 2}),
    "a cluster": (program(264, 200, 328, "f16", out="f16"), {"cluster": "2x1", "stages": 2}),
    "programmatic": (program(72, 48, 64, "f16", out="f16"), {"programmatic": True}),
}  # fmt: skip
CONVS = (
    Conv(1, 6, 7, 16, 40, 3, 3, SAME_3x3, out="f16"),
    Conv(2, 14, 14, 64, 128, 1, 1, out="bf16", element="bf16"),
    Conv(3, 20, 20, 24, 64, 3, 3, SAME_3x3, out="f16"),
)


@pytest.mark.parametrize("name", CASES)
def test_every_level(name: str, orders: int) -> None:
    text, options = CASES[name]
    kernel = tcir.compile(
        text, "gemm", target=TARGET, store="tma", validate=True, orders=min(orders, 4), seed=3,
        **options,
    )  # fmt: skip
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}, kernel.report
    assert not [f for line in kernel.report.passes for f in line.findings]
    assert "st.global" not in kernel.ptx or "split_k" in options
    assert "cp.async.bulk.tensor" in kernel.ptx and "wgmma" in kernel.ptx


@pytest.mark.parametrize("conv", CONVS, ids=lambda conv: conv.name)
@pytest.mark.parametrize("options", [{}, {"persistent": True, "ctas": 2}])
def test_every_level_of_a_convolution(conv: Conv, options: dict[str, Any]) -> None:
    kernel = tcir.compile(
        conv.text(), "conv-implicit-gemm", target=TARGET, store="tma", validate=True, orders=2,
        **options,
    )  # fmt: skip
    kernel.report.check()
    assert "st.global" not in kernel.ptx and "stmatrix" in kernel.ptx


def channels_last(name: str) -> FusedConv:
    """A case with the filter that wgmma needs for elements of a byte."""
    fused, _ = EPILOGUES[name]
    return replace(fused, conv=replace(fused.conv, filter="fhwc"))


FUSED = {
    **{name: EPILOGUES[name][0] for name in (
        "bf16 as torch has it, stride 2", "tf32, added to an argument",
        "sums that start from the bias", "dilation 2", "stride 1 by 2, two tiles of channels",
        "3 channels, repacked", "a 1 x 1 projection, stride 2",
    )},
    **{name: channels_last(name) for name in (
        "i8, a bias of i32, dequantised by channel", "u8, i32 added", "f8E4M3FN, clamped",
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_the_epilogues_of_convolutions(name: str) -> None:
    tcir.compile(
        FUSED[name].linalg(), "conv-implicit-gemm", target=TARGET, store="tma", validate=True
    ).report.check()


def test_bytes_outside_the_output_are_not_stored() -> None:
    text = program(150, 72, 24, "f16")
    report = tcir.validate(text, "gemm", orders=1, n_tile=48, target=TARGET, store="tma")
    line = next(line for line in report.passes if line.name == "tile-gemm")
    assert line.counters["shared_to_global"] == 150 * 72 * 4


def test_rows_that_no_tensor_map_has() -> None:
    with pytest.raises(tcir.PassError, match="store=tma, got 17 x 4 = 68"):
        tcir.compile(program(40, 17, 24, "f16"), "gemm", target=TARGET, store="tma")


def test_rows_that_no_box_has() -> None:
    text, _ = CASES["numbers of a byte"]
    with pytest.raises(tcir.PassError, match=r"store=tma, got 8 x 1 = 8 .*take n-tile=16"):
        tcir.compile(text, "gemm", target=TARGET, store="tma", n_tile=8)


def test_buffers_that_do_not_divide_a_tile() -> None:
    with pytest.raises(tcir.PassError, match=r"one of 1, 2, got 3: .* take store-stages=2"):
        tcir.compile(
            program(40, 128, 64, "f16", out="f16"),
            "gemm",
            target=TARGET,
            store="tma",
            n_tile=128,
            store_stages=3,
        )


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = program(72, 128, 64, "f16", out="f16")
OPTIONS = {"n_tile": 128, "store": "tma", "target": TARGET}


@cache
def checked(stages: int) -> PtxCheck:
    """A kernel that stores two tiles of columns."""
    return PtxCheck(PROGRAM, tcir.compile(PROGRAM, "gemm", store_stages=stages, **OPTIONS))


PTX_BREAKS: dict[str, tuple[int, str, str, tuple[str, ...]]] = {
    "no fence before the store": (1, r"fence\.proxy\.async[^;]*;", "", ("hazard: missing-proxy",)),
    "no wait before the buffer is written again": (
        1, r"cp\.async\.bulk\.wait_group\.read\s+0;", "", ("hazard: race",),
    ),
    "a wait for one group too few": (
        1, r"(cp\.async\.bulk\.wait_group\.read\s+)0;", r"\g<1>1;", ("hazard: race",),
    ),
    "no barrier of the warp before the store": (1, r"bar\.warp\.sync[^;]*;", "", ("hazard: race",)),
    "rows in another swizzle": (1, r"shr\.u32(\s+%r\d+, %r\d+), 3;", r"shr.u32\1, 4;", (
        "difference", "hazard")),
    "a matrix to the right of its place": (
        2, r"(\.x4\.shared\.b16 \[%r\d+\], \{%r\d+), (%r\d+), (%r\d+)", r"\1, \3, \2",
        ("difference",),
    ),
}  # fmt: skip
PLACE = {
    "no wait before the buffer is written again": 1,
    "a wait for one group too few": 1,
    "no barrier of the warp before the store": 1,
}
"""Which match is changed, if not the first."""


@pytest.mark.parametrize("what", PTX_BREAKS)
def test_a_break_of_the_ptx(what: str) -> None:
    stages, pattern, replacement, by = PTX_BREAKS[what]
    check = checked(stages)
    caught = check.run(check.edit(pattern, replacement, PLACE.get(what, 0)), orders=4)
    assert caught, "nothing noticed the break"
    assert caught.by.startswith(by), caught.text


@pytest.mark.parametrize("stages", [1, 2])
def test_the_unbroken_ptx(stages: int) -> None:
    check = checked(stages)
    assert not check.run(check.kernel.ptx, orders=4)


def erase(op: Any) -> None:
    op.erase()


def second_in_the_other_buffer(module: Any) -> None:
    number("slot", 1)(pick(module, "tc.store_fragment_staged", 1))


TWO_FRAGMENTS = (program(72, 256, 128, E4M3, "mk", "nk", out="bf16"), {"n_tile": 256})
BREAKS = {
    "the buffer that TMA still reads": (
        Break("builtin.module", second_in_the_other_buffer), *TWO_FRAGMENTS,
    ),
    "no wait at the end": (
        Break("tc.bulk_wait", erase), program(72, 128, 64, "f16", out="f16"), {"n_tile": 128},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BREAKS)
def test_a_break_where_roles_are_apart(what: str) -> None:
    """A fragment may begin with any buffer, but the next one not with the buffer stored last."""
    broken, text, options = BREAKS[what]
    pipeline = tcir.named_pipeline("gemm", store="tma", store_stages=2, **options)
    pipeline = pipeline.insert(broken, after="assign-roles")
    report = tcir.compile(text, pipeline, target=TARGET, validate=True, orders=4).report
    failure = report.first_failure()
    assert report["break"].findings or (failure is not None and failure.name == "break")
