"""The warp map of a kernel: another order of warps compiles, executes equal, and bad ones fail."""

from __future__ import annotations

import re
from contextlib import nullcontext

import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, string
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import (
    EPILOGUE,
    MMA,
    PRODUCER,
    TCGEN05,
    TCGEN05_EPILOGUE8,
    WARP_MAPS,
    Role,
    WarpMap,
)
from tcir.passmanager.pipeline import named_pipeline

EPILOGUE_LAST = WarpMap(
    (
        Role(MMA, (0,), "one"),
        Role(PRODUCER, (1,), "one"),
        Role(EPILOGUE, (4, 5, 6, 7), "warp"),
    ),
    allocates=PRODUCER,
)
"""Another order: warps 2 and 3 have no role."""
NAME = "epilogue-last"
MATMUL = """
func.func @f(%a: tensor<130x72xf16>, %b: tensor<72x40xf16>, %out: tensor<130x40xf32>)
    -> tensor<130x40xf32> attributes {tc.warp_map = "epilogue-last"} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<130x40xf32>) -> tensor<130x40xf32>
  %c = linalg.matmul ins(%a, %b : tensor<130x72xf16>, tensor<72x40xf16>)
      outs(%init : tensor<130x40xf32>) -> tensor<130x40xf32>
  return %c : tensor<130x40xf32>
}
"""
CONV = """
func.func @f(%x: tensor<1x6x7x8xf16>, %w: tensor<3x3x8x16xf16>, %out: tensor<1x4x5x16xf32>)
    -> tensor<1x4x5x16xf32> attributes {tc.warp_map = "epilogue-last"} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<1x4x5x16xf32>) -> tensor<1x4x5x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x6x7x8xf16>, tensor<3x3x8x16xf16>)
      outs(%init : tensor<1x4x5x16xf32>) -> tensor<1x4x5x16xf32>
  return %y : tensor<1x4x5x16xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "pipeline", "options"),
    [
        (MATMUL, "matmul", {}),
        # Masks of lanes: the epilogue's threads write them before the main loop.
        (CONV, "conv-shift-reuse", {"tiling": "linear"}),
    ],
    ids=["matmul", "conv-linear"],
)
def test_another_map_executes_equal_down_to_ptx(
    text: str, pipeline: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WARP_MAPS, NAME, EPILOGUE_LAST)
    kernel = tcir.compile(text, pipeline, validate=True, **options)
    assert kernel.report.verdict == "held", str(kernel.report)
    assert kernel.report.passes[-1].level == "ptx"
    assert ".reqntid 256" in kernel.ptx


def test_planning_and_roles_read_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WARP_MAPS, NAME, EPILOGUE_LAST)
    with ir.Context(), ir.Location.unknown():
        tc.load()
        module = ir.Module.parse(MATMUL)
        for step in named_pipeline("matmul").passes:
            step.run(module)
            if step.name == "assign-roles":
                break
        ops = [op for top in module.body.operations for op in walk(top)]
        roles = [
            (string(op, "kind"), tuple(integers(op, "warps")))
            for op in ops
            if isinstance(op, tc.RoleOp)
        ]
        allocating = {
            integer(op, "warp")
            for op in ops
            if isinstance(op, tc.TmemAllocOp | tc.TmemRelinquishOp | tc.TmemDeallocOp)
        }
    assert roles == [(role.kind, role.warps) for role in EPILOGUE_LAST.roles]
    assert allocating == {1}


def in_map(text: str, name: str) -> str:
    return text.replace(NAME, name)


@pytest.mark.parametrize("n", [16, 80], ids=lambda n: f"{n} columns")
def test_two_epilogue_warpgroups_split_the_columns(n: int) -> None:
    # 16: all to the first; 80: 48 and 32.
    text = MATMUL.replace("40x", f"{n}x").replace("x40", f"x{n}")
    four = tcir.compile(in_map(text, TCGEN05), "matmul", validate=True, orders=2)
    eight = tcir.compile(in_map(text, TCGEN05_EPILOGUE8), "matmul", validate=True, orders=2)
    for kernel, threads in ((four, 192), (eight, 384)):
        assert kernel.report.verdict == "held", str(kernel.report)
        assert kernel.report.passes[-1].level == "ptx"
        assert f".reqntid {threads}" in kernel.ptx
    for counter in ("tmem_load", "global_store"):
        assert len({k.report.passes[-1].counters[counter] for k in (four, eight)}) == 1, counter


def test_warpgroups_share_registers_out() -> None:
    text = in_map(MATMUL, TCGEN05_EPILOGUE8)
    assert "setmaxnreg" not in tcir.compile(in_map(MATMUL, TCGEN05), "matmul").ptx
    kernel = tcir.compile(text, "matmul")
    assert ".maxnreg 168" in kernel.ptx
    counts = re.findall(r"setmaxnreg\.(\w+)\.sync\.aligned\.u32\s+(\d+);", kernel.ptx)
    assert counts == [("inc", "208"), ("dec", "80")]
    assert kernel.cubin  # an error if ptxas drops one


@pytest.mark.parametrize(
    ("producer", "mma", "epilogue", "message"),
    [
        (40, 40, 232, ""),
        (80, None, 208, r"registers of mma to be a multiple of 8 in \[24, 256\], got None"),
        (80, 84, 208, r"registers of mma to be .*, got 84"),
        (80, 96, 208, "one share per warpgroup"),
        (96, 96, 208, r"at most 504 registers together, got \(208, 208, 96\), 512"),
    ],
)
def test_shares_that_hardware_cannot_give(
    producer: int, mma: int | None, epilogue: int, message: str
) -> None:
    roles = (
        Role(PRODUCER, (8,), "one", producer),
        Role(MMA, (9,), "one", mma),
        Role(EPILOGUE, tuple(range(8)), "warp", epilogue),
    )
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        assert WarpMap(roles, allocates=MMA).warps == 12


def test_work_of_one_warpgroup_is_an_error_with_two() -> None:
    with pytest.raises(
        tcir.PassError,
        match=r"tc\.write_lane_mask in a loop over columns, which the 8 warps of epilogue split, "
        r".* each of their 2 warpgroups would execute it; take a warp map with 4 warps",
    ):
        tcir.compile(in_map(CONV, TCGEN05_EPILOGUE8), "conv-shift-reuse", tiling="linear")


def test_an_unknown_map_is_an_error_that_names_the_known() -> None:
    with pytest.raises(
        tcir.PassError,
        match=r"tc\.warp_map to be one of tcgen05, tcgen05-epilogue-load, wgmma, wgmma-promoted, "
        "wgmma-attention, "
        "wgmma-one, wgmma-computed, wgmma-three, tcgen05-epilogue8, tcgen05-epilogue12, "
        "tcgen05-attention, got "
        "epilogue-last",
    ):
        tcir.compile(MATMUL, "matmul")


@pytest.mark.parametrize(
    ("epilogue", "message"),
    [
        ((1, 2, 3, 4), "one role per warp"),
        ((2, 3, 4, 5), "whole warpgroups"),
        ((4, 5, 6, 7, 8, 9), "whole warpgroups"),
    ],
)
def test_a_map_that_hardware_cannot_run_is_no_map(epilogue: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WarpMap((Role(MMA, (1,), "one"), Role(EPILOGUE, epilogue, "warp")), allocates=MMA)
