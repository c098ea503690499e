"""Windows of images on CUDA cores: several pixels of several channels a thread."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tcir
from tcir.passes.simt import elementwise

from .breaking import Edit, change_text, run_broken


def depthwise(c: int, width: int, taps: int, stride: int, padding: int) -> str:
    """A depthwise convolution of f16, channels last, summed in f32."""
    padded = width + 2 * padding
    q = (padded - taps) // stride + 1
    x, p, w = f"2x{width}x{width}x{c}", f"2x{padded}x{padded}x{c}", f"{taps}x{taps}x{c}"
    out = f"2x{q}x{q}x{c}"
    return f"""
func.func @main(%x: tensor<{x}xf16>, %w: tensor<{w}xf16>) -> tensor<{out}xf16> {{
  %none = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, {padding}, {padding}, 0] high[0, {padding}, {padding}, 0] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %none : f16
  }} : tensor<{x}xf16> to tensor<{p}xf16>
  %zeros = arith.constant dense<0.0> : tensor<{out}xf32>
  %s = linalg.generic {{indexing_maps = [
      affine_map<(n, p, q, c, r, s) -> (n, p * {stride} + r, q * {stride} + s, c)>,
      affine_map<(n, p, q, c, r, s) -> (r, s, c)>,
      affine_map<(n, p, q, c, r, s) -> (n, p, q, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}}
      ins(%p, %w : tensor<{p}xf16>, tensor<{w}xf16>) outs(%zeros : tensor<{out}xf32>) {{
  ^bb0(%a: f16, %b: f16, %t: f32):
    %u = arith.extf %a : f16 to f32
    %v = arith.extf %b : f16 to f32
    %m = arith.mulf %u, %v : f32
    %n = arith.addf %t, %m : f32
    linalg.yield %n : f32
  }} -> tensor<{out}xf32>
  %r = arith.truncf %s : tensor<{out}xf32> to tensor<{out}xf16>
  return %r : tensor<{out}xf16>
}}
"""


def expected(
    x: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    w: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    stride: int,
    padding: int,
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The convolution, in f64."""
    sides = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    padded = np.pad(x, sides)
    q = (padded.shape[1] - w.shape[0]) // stride + 1
    end = stride * (q - 1) + 1
    return sum(
        padded[:, r : r + end : stride, s : s + end : stride] * w[r, s]
        for r, s in product(range(w.shape[0]), range(w.shape[1]))
    )


SIZES = [
    (16, 7, 3, 1, 1), (8, 14, 3, 2, 1), (24, 8, 5, 1, 2), (8, 7, 7, 1, 3), (10, 6, 3, 1, 0),
    (3, 9, 3, 2, 1), (16, 16, 2, 2, 0),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _any_size_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of small images have the schedule of large ones."""
    monkeypatch.setattr(elementwise, "ENOUGH", 4)
    monkeypatch.setattr(elementwise, "MANY", 1)


@pytest.mark.parametrize(("c", "width", "taps", "stride", "padding"), SIZES)
def test_against_numpy(c: int, width: int, taps: int, stride: int, padding: int) -> None:
    """Pixels in runs of 7, 4, 2 and 1; channels of 8, 2 and 1."""
    generator = np.random.default_rng(c)
    x = generator.standard_normal((2, width, width, c)).astype(np.float16)
    w = generator.standard_normal((taps, taps, c)).astype(np.float16)
    kernel = tcir.compile(depthwise(c, width, taps, stride, padding), "layers", target="sm_90a")
    want = expected(x.astype(np.float64), w.astype(np.float64), stride, padding)
    out = np.zeros(want.shape, np.float16)
    report = kernel(x, w, out)
    assert not report.findings
    size = expected(np.abs(x.astype(np.float64)), np.abs(w.astype(np.float64)), stride, padding)
    room = 2.0**-11 * np.abs(want) + taps * taps * 2.0**-24 * size + 2.0**-25
    assert (np.abs(out.astype(np.float64) - want) <= room).all()


@pytest.mark.parametrize(("c", "width", "taps", "stride", "padding"), SIZES)
def test_every_level(c: int, width: int, taps: int, stride: int, padding: int) -> None:
    """Few taps are summed in the reference's order, bit for bit; what follows keeps the bits."""
    program = depthwise(c, width, taps, stride, padding)
    report = tcir.validate(program, "layers", target="sm_90a", inputs="random")
    assert report.ok, str(report)
    if taps * taps <= 16:
        assert {line.verdict for line in report.passes} <= {"reference", "equal"}, str(report)
    for line in report.passes:
        kept = "bit for bit as before the pass" in line.compared
        assert line.verdict != "within bound" or kept or line.name == "convert-to-simt", str(report)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(change_text(r"%c7_i32 = arith.constant 7", "%c7_i32 = arith.constant 6"),
                     id="the first pixel"),
        pytest.param(change_text(r"(llvm.load .*\n +%\d+ = )arith.andi (%\d+), %\d+ : i32",
                                 r"\1arith.ori \2, \2 : i32"), id="padding"),
    ],
)  # fmt: skip
def test_breaks(edit: Edit) -> None:
    """Caught at the pass that made them."""
    caught = run_broken(
        depthwise(8, 6, 2, 1, 1), tcir.named_pipeline("layers"), "convert-to-simt", edit, orders=1
    )
    assert caught and caught.at == "convert-to-simt", caught
