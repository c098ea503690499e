"""Float weights to NVFP4, and a matrix-vector product with them by a compiled kernel.

    python examples/nvfp4_gemv.py

Quantises with tcir.formats, compiles plain linalg for sm_100a and runs the PTX on the simulated
machine; prints the error against float32, and how much of it is the kernel's.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tcir
from tcir import formats

M, K = 256, 1024
GEMV = f"""
#a = affine_map<(m, k) -> (m, k)>
#sa = affine_map<(m, k) -> (m, k floordiv 16)>
#b = affine_map<(m, k) -> (k)>
#sb = affine_map<(m, k) -> (k floordiv 16)>
#g = affine_map<(m, k) -> ()>
#c = affine_map<(m, k) -> (m)>
func.func @gemv(%a: tensor<{M}x{K}xf4E2M1FN>, %sa: tensor<{M}x{K // 16}xf8E4M3FN>,
    %b: tensor<{K}xf4E2M1FN>, %sb: tensor<{K // 16}xf8E4M3FN>, %ga: tensor<f32>,
    %gb: tensor<f32>, %init: tensor<{M}xf32>) -> tensor<{M}xf32> {{
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%init : tensor<{M}xf32>) -> tensor<{M}xf32>
  %c = linalg.generic {{indexing_maps = [#a, #sa, #b, #sb, #g, #g, #c],
      iterator_types = ["parallel", "reduction"]}}
      ins(%a, %sa, %b, %sb, %ga, %gb : tensor<{M}x{K}xf4E2M1FN>,
        tensor<{M}x{K // 16}xf8E4M3FN>, tensor<{K}xf4E2M1FN>, tensor<{K // 16}xf8E4M3FN>,
        tensor<f32>, tensor<f32>)
      outs(%i : tensor<{M}xf32>) {{
    ^bb0(%x: f4E2M1FN, %p: f8E4M3FN, %y: f4E2M1FN, %q: f8E4M3FN, %u: f32, %v: f32, %sum: f32):
      %x1 = arith.extf %x : f4E2M1FN to f32
      %p1 = arith.extf %p : f8E4M3FN to f32
      %y1 = arith.extf %y : f4E2M1FN to f32
      %q1 = arith.extf %q : f8E4M3FN to f32
      %0 = arith.mulf %x1, %p1 : f32
      %1 = arith.mulf %y1, %q1 : f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.mulf %2, %u : f32
      %4 = arith.mulf %3, %v : f32
      %5 = arith.addf %sum, %4 : f32
      linalg.yield %5 : f32
  }} -> tensor<{M}xf32>
  return %c : tensor<{M}xf32>
}}
"""


def main() -> None:
    """Quantises, multiplies, compares."""
    random = np.random.default_rng(2026)
    weights = random.normal(0, 0.02, (M, K)).astype(np.float32)
    vector = random.normal(0, 1, K).astype(np.float32)
    a, b = formats.quantise(weights, "nvfp4"), formats.quantise(vector, "nvfp4")

    kernel = tcir.compile(GEMV, pipeline="gemv-padded-n")
    result = np.zeros(M, np.float32)
    kernel(
        formats.pack(a.codes, 4),
        a.scales.view(ml_dtypes.float8_e4m3fn),
        formats.pack(b.codes, 4),
        b.scales.view(ml_dtypes.float8_e4m3fn).reshape(-1),
        np.array(a.global_scale, np.float32),
        np.array(b.global_scale, np.float32),
        result,
    )

    exact = weights @ vector
    same = formats.dequantise(a).astype(np.float64) @ formats.dequantise(b).astype(np.float64)
    names = ", ".join(launch.name for launch in kernel.launches.launches)
    print(f"NVFP4 GEMV, {M} x {K}, kernels: {names}")
    print(f"  against float32:                   relative error {relative(result, exact):.4f}")
    print(f"  against the quantised operands:    relative error {relative(result, same):.1e}")


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    """Norm of the difference over the norm of what was expected."""
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


if __name__ == "__main__":
    main()
