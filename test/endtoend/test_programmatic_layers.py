"""Launches of one program that start before the previous ones have ended, by pipeline layers."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.kernel import Kernel

from .breaking import erase, run_broken

PIPELINE = "layers"


def layers(m: int, k: int, n: int) -> str:
    """relu(x · vᵀ) · wᵀ in f16."""
    x, v, w = f"tensor<{m}x{k}xf16>", f"tensor<{k}x{k}xf16>", f"tensor<{n}x{k}xf16>"

    def product(a: str, b: str, rows: int, columns: int, name: str) -> str:
        sums, out = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}x{columns}xf16>"
        return f"""
  %{name}e = tensor.empty() : {sums}
  %{name}z = linalg.fill ins(%zero : f32) outs(%{name}e : {sums}) -> {sums}
  %{name}s = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({a}, {b} : tensor<{rows}x{k}xf16>, tensor<{columns}x{k}xf16>) outs(%{name}z : {sums}) {{
  ^bb0(%p: f16, %q: f16, %s: f32):
    %u = arith.extf %p : f16 to f32
    %y = arith.extf %q : f16 to f32
    %t = arith.mulf %u, %y : f32
    %o = arith.addf %s, %t : f32
    linalg.yield %o : f32
  }} -> {sums}
  %{name}o = tensor.empty() : {out}
  %{name} = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}}
      ins(%{name}s : {sums}) outs(%{name}o : {out}) {{
  ^bb0(%s: f32, %o: f16):
    %t = arith.maximumf %s, %zero : f32
    %r = arith.truncf %t : f32 to f16
    linalg.yield %r : f16
  }} -> {out}"""

    return f"""
func.func @main(%x: {x}, %v: {v}, %w: {w}) -> tensor<{m}x{n}xf16> {{
  %zero = arith.constant 0.0 : f32
  {product("%x", "%v", m, k, "h")}
  {product("%h", "%w", m, n, "r")}
  return %r : tensor<{m}x{n}xf16>
}}"""


@pytest.mark.parametrize(
    ("m", "n", "target"), [(8, 96, "sm_90a"), (64, 64, "sm_90a"), (64, 64, "sm_100a")]
)
def test_every_level(m: int, n: int, target: str) -> None:
    """All launches may start early, and all wait."""
    report = tcir.validate(layers(m, 128, n), PIPELINE, target=target)
    assert report.verdict == "held", report
    kernel = tcir.compile(layers(m, 128, n), PIPELINE, target=target)
    launches = kernel.launches.launches
    assert len(launches) == 2 and all(each.programmatic for each in launches)
    assert kernel.ptx.count("griddepcontrol.wait") >= 2


EXP = """func.func @main(%x: tensor<8x128xf16>) -> tensor<8x128xf16> {
  %y = math.exp %x : tensor<8x128xf16>
  return %y : tensor<8x128xf16>
}"""
REPACKED = """func.func @main(%x: tensor<1x8x8x3xf16>) -> tensor<1x8x8x8xf16> {
  %y = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>}
      : (tensor<1x8x8x3xf16>) -> tensor<1x8x8x8xf16>
  return %y : tensor<1x8x8x8xf16>
}"""
LINEAR = """func.func @main(%x: tensor<4x32x64xf16>, %w: tensor<64x256xf16>)
    -> tensor<4x32x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x256xf32>) -> tensor<4x32x256xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
      affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x32x64xf16>, tensor<64x256xf16>) outs(%z : tensor<4x32x256xf32>) {
  ^bb0(%p: f16, %q: f16, %s: f32):
    %u = arith.extf %p : f16 to f32
    %v = arith.extf %q : f16 to f32
    %t = arith.mulf %u, %v : f32
    %o = arith.addf %s, %t : f32
    linalg.yield %o : f32
  } -> tensor<4x32x256xf32>
  return %y : tensor<4x32x256xf32>
}"""
RESHAPED = """func.func @main(%x: tensor<128x64xf16>, %w: tensor<64x256xf16>)
    -> tensor<4x32x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<128x64xf16>, tensor<64x256xf16>)
      outs(%z : tensor<128x256xf32>) -> tensor<128x256xf32>
  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [4, 32, 256]
      : tensor<128x256xf32> into tensor<4x32x256xf32>
  return %r : tensor<4x32x256xf32>
}"""


def one_product() -> str:
    """The first of the two."""
    text = layers(8, 128, 96)
    text = text[: text.index("%re =")] + "return %h : tensor<8x128xf16>\n}"
    return text.replace("-> tensor<8x96xf16>", "-> tensor<8x128xf16>")


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(one_product(), id="few rows"),
        pytest.param(EXP, id="on CUDA cores"),  # outlined by split-layers
        pytest.param(REPACKED, id="repacked"),
        pytest.param(LINEAR, id="batch"),  # collapse-batch
        pytest.param(RESHAPED, id="reshaped"),  # split-launches
    ],
)
def test_a_lone_launch_is_not_programmatic(text: str, target: str) -> None:
    """Whichever pass made its function."""
    kernel = tcir.compile(text, PIPELINE, target=target)
    (launch,) = kernel.launches.launches
    assert not launch.programmatic and "griddepcontrol" not in kernel.ptx


def second(kernel: Kernel, unfinished: str, lockstep: bool = True) -> tcir.RunReport:
    """Executes the second launch while earlier ones may still write one of its buffers, or half of
    it."""
    x, w, out = (np.ones(shape, np.float16) for shape in ((8, 128), (96, 128), (8, 96)))
    places = {"x": x, "half of w": w[:48]}
    launch = kernel.launches.launches[1]
    return tcir.run_ptx(
        kernel.ptx, entry=launch.name, grid=launch.grid, block=launch.block, args=[x, w, out],
        dynamic_smem=launch.dynamic_smem, programmatic=[places[unfinished]], lockstep=lockstep,
    )  # fmt: skip


def test_lockstep() -> None:
    """CTAs follow a leader that waits, unless bytes of a buffer decide what has to wait."""
    kernel = tcir.compile(layers(8, 128, 96), PIPELINE, target="sm_90a")
    alone = second(kernel, "x", lockstep=False)
    for unfinished, follow in (("x", True), ("half of w", False)):
        report = second(kernel, unfinished)
        assert not report.findings and (report.lockstep > 0) == follow
        assert report.counters == alone.counters


def test_followers_are_not_wider_than_their_leader() -> None:
    """Each CTA's first load of an unfinished buffer has to wait, in lockstep, too."""
    kernel = tcir.compile(layers(8, 128, 96), PIPELINE, target="sm_90a")
    broken = replace_second_wait(kernel.ptx)
    launch = kernel.launches.launches[1]
    x, w, out = (np.ones(shape, np.float16) for shape in ((8, 128), (96, 128), (8, 96)))
    for unfinished, found in ((x, {"race"}), (out[4:], {"race"}), (np.ones(8), set())):
        for lockstep in (True, False):
            report = tcir.run_ptx(
                broken, entry=launch.name, grid=launch.grid, block=launch.block, args=[x, w, out],
                dynamic_smem=launch.dynamic_smem, programmatic=[unfinished], lockstep=lockstep,
            )  # fmt: skip
            assert {each.code for each in report.findings} == found


def replace_second_wait(ptx: str) -> str:
    """PTX whose second kernel does not wait."""
    first, second_ = ptx.split(".visible .entry main_1_", 1)
    assert "griddepcontrol.wait;" in second_
    return f"{first}.visible .entry main_1_" + second_.replace("griddepcontrol.wait;", "")


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_missing_wait_is_caught(target: str) -> None:
    """Of a kernel for CUDA cores, and of a role of one for tensor cores."""
    few = target == "sm_90a"
    op, at = (
        ("nvvm.griddepcontrol", "convert-to-simt")
        if few
        else ("tc.grid_wait", "programmatic-launch")
    )
    text = layers(8 if few else 64, 128, 96)
    caught = run_broken(text, tcir.named_pipeline(PIPELINE), at, erase(op), target=target)
    assert (caught.at, caught.by) == (at, "hazard: race"), caught
