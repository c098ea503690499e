"""Programs of any batch: a kernel for each size, chosen by the shapes of the arguments."""

from __future__ import annotations

import numpy as np
import pytest

import tcir

LINEAR = """
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @linear(%x: tensor<?x32xf16>, %w: tensor<48x32xf16>, %b: tensor<48xf32>)
    -> tensor<?x48xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x32xf16>
  %we = tensor.empty() : tensor<32x48xf16>
  %t = linalg.transpose ins(%w : tensor<48x32xf16>) outs(%we : tensor<32x48xf16>)
      permutation = [1, 0]
  %e = tensor.empty(%n) : tensor<?x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  %c = linalg.matmul ins(%x, %t : tensor<?x32xf16>, tensor<32x48xf16>)
      outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
  %o = tensor.empty(%n) : tensor<?x48xf16>
  %y = linalg.generic {
      indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%c, %b : tensor<?x48xf32>, tensor<48xf32>) outs(%o : tensor<?x48xf16>) {
  ^bb0(%s: f32, %s1: f32, %q: f16):
    %a = arith.addf %s, %s1 : f32
    %r = arith.maximumf %a, %zero : f32
    %h = arith.truncf %r : f32 to f16
    linalg.yield %h : f16
  } -> tensor<?x48xf16>
  return %y : tensor<?x48xf16>
}
"""


def test_each_size_has_its_kernel() -> None:
    linear = tcir.specialise(LINEAR, "gemm", batch=[40, 3])
    assert list(linear.kernels) == [3, 40] and linear.dims == ((0, 0),)
    generator = np.random.default_rng(0)
    w = generator.integers(-3, 4, (48, 32)).astype(np.float16)
    b = generator.integers(-9, 10, 48).astype(np.float32)
    for rows in (3, 40):
        x = generator.integers(-3, 4, (rows, 32)).astype(np.float16)
        out = np.full((rows, 48), 7, np.float16)
        linear(x, w, b, out)
        assert (out == np.maximum(x.astype(float) @ w.T.astype(float) + b, 0)).all()
    x, out = np.zeros((5, 32), np.float16), np.zeros((5, 48), np.float16)
    with pytest.raises(
        tcir.LaunchError, match=r"the batch must be one of 3, 40 .*got 5 in argument 0"
    ):
        linear(x, w, b, out)


def test_executed_after_every_pass() -> None:
    kernel = tcir.specialise(LINEAR, "gemm", batch=[3], validate=True).kernels[3]
    assert kernel.report.ok
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}


def test_nothing_is_dynamic() -> None:
    text = LINEAR.replace("?", "8").replace("tensor.empty(%n)", "tensor.empty()")
    with pytest.raises(tcir.InputError, match="expected an argument with a dynamic dimension"):
        tcir.specialise(text, "gemm", batch=[8])


def test_errors_name_the_line() -> None:
    text = LINEAR.replace("arith.maximumf %a, %zero", "math.cbrt %a")
    with pytest.raises(tcir.PassError, match="<text>:"):
        tcir.specialise(text, "gemm", batch=[8])
