"""Programs and combinations that the tests sweep."""

from __future__ import annotations

from tcir.cache import versions
from tcir.sweep.space import Combination
from tcir.sweep.work import Job, SweepProgram

GEMM = """\
func.func @product(%a: tensor<128x72xf16>, %b: tensor<72x96xf16>) -> tensor<128x96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x96xf32>) -> tensor<128x96xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x72xf16>, tensor<72x96xf16>)
      outs(%f : tensor<128x96xf32>) -> tensor<128x96xf32>
  return %r : tensor<128x96xf32>
}
"""
PROGRAM = SweepProgram(GEMM, "product.mlir", None, "sm_100a", versions())


def jobs(count: int) -> list[Job]:
    """Jobs with different keys."""
    return [
        Job(f"key{n}", "measure", Combination("gemm", (("stages", str(n)),))) for n in range(count)
    ]
