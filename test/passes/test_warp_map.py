"""The warp map of a kernel: another order of warps compiles, executes equal, and bad ones fail."""

from __future__ import annotations

import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, string
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import EPILOGUE, MMA, PRODUCER, WARP_MAPS, Role, WarpMap
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


def test_an_unknown_map_is_an_error_that_names_the_known() -> None:
    with pytest.raises(
        tcir.PassError, match=r"tc\.warp_map to be one of tcgen05, got epilogue-last"
    ):
        tcir.compile(MATMUL, "matmul")


@pytest.mark.parametrize(
    ("epilogue", "message"),
    [
        ((1, 2, 3, 4), "one role per warp"),
        ((2, 3, 4, 5), "multiple of four"),
    ],
)
def test_a_map_that_hardware_cannot_run_is_no_map(epilogue: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WarpMap((Role(MMA, (1,), "one"), Role(EPILOGUE, epilogue, "warp")), allocates=MMA)
