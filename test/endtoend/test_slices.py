"""Slices that are read and written by constants, of as many dimensions or fewer, on CUDA cores."""

# ruff: noqa: E501  (lines of MLIR)

from __future__ import annotations

import numpy as np

import tcir

TEXT = """
func.func @f(%x: tensor<4x3x12xf32>, %y: tensor<2x7xf32>) -> (tensor<5x3xf32>, tensor<4x3x12xf32>) {
  %r = tensor.extract_slice %x[1, 0, 1] [1, 3, 5] [1, 1, 2] : tensor<4x3x12xf32> to tensor<3x5xf32>
  %e = tensor.empty() : tensor<5x3xf32>
  %t = linalg.transpose ins(%r : tensor<3x5xf32>) outs(%e : tensor<5x3xf32>) permutation = [1, 0]
  %n = arith.negf %t : tensor<5x3xf32>
  %c = tensor.extract_slice %y[1, 0] [1, 7] [1, 1] : tensor<2x7xf32> to tensor<7xf32>
  %s = tensor.extract_slice %c[1] [3] [2] : tensor<7xf32> to tensor<3xf32>
  %m = arith.negf %x : tensor<4x3x12xf32>
  %z = tensor.insert_slice %s into %m[2, 0, 11] [1, 3, 1] [1, 1, 1] : tensor<3xf32> into tensor<4x3x12xf32>
  return %n, %z : tensor<5x3xf32>, tensor<4x3x12xf32>
}
"""


def test_slices() -> None:
    kernel = tcir.compile(TEXT, "layers", validate=True)
    assert kernel.report.verdict == "held"
    draw = np.random.default_rng(0)
    x, y = (draw.standard_normal(shape).astype(np.float32) for shape in ((4, 3, 12), (2, 7)))
    row, whole = np.zeros((5, 3), np.float32), np.zeros((4, 3, 12), np.float32)
    kernel(x, y, row, whole)
    np.testing.assert_array_equal(row, -x[1, :, 1:11:2].T)
    expected = -x
    expected[2, :, 11] = y[1, 1:7:2]
    np.testing.assert_array_equal(whole, expected)
