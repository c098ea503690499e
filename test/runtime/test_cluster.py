"""Clusters, from ``tc.cluster`` of a kernel to the launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import tcir
from tcir._mlir import ir
from tcir.passmanager.pipeline import Pass, Pipeline, as_pipeline

TEXT = """
func.func @matmul(%a: tensor<256x64xf16>, %b: tensor<64x256xf16>) -> tensor<256x256xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %out = linalg.matmul ins(%a, %b : tensor<256x64xf16>, tensor<64x256xf16>)
      outs(%init : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %out : tensor<256x256xf32>
}
"""


@dataclass(frozen=True)
class SetCluster(Pass):
    """Says that CTAs form clusters; each still works for itself."""

    name: ClassVar[str] = "set-cluster"
    x: int = 2

    def run(self, module: Any) -> None:
        for op in module.body.operations:
            if "tc.kernel" in op.attributes:
                op.attributes["tc.cluster"] = ir.DenseI64ArrayAttr.get([self.x, 1, 1])


def pipeline(x: int) -> Pipeline:
    passes = list(as_pipeline("matmul", n_tile=128).passes)
    at = next(n for n, item in enumerate(passes) if item.name == "tile-gemm")
    return Pipeline([*passes[: at + 1], SetCluster(x), *passes[at + 1 :]])


def test_every_level_runs_in_clusters() -> None:
    kernel = tcir.compile(TEXT, pipeline(2), validate=True)
    assert kernel.report.ok, str(kernel.report)
    assert kernel.launch_config.grid == (2, 2, 1)
    assert kernel.launch_config.cluster == (2, 1, 1)
    assert ".reqnctapercluster 2" in kernel.ptx.replace("\t", " ")
    assert kernel.cubin
    plain = tcir.compile(TEXT, "matmul", n_tile=128)
    assert plain.launch_config.cluster == (1, 1, 1) and "cluster 2" not in plain.ptx


def test_a_cluster_that_does_not_divide_the_grid() -> None:
    report = tcir.compile(TEXT, pipeline(4), validate=True).report
    assert not report.ok
    assert "grid.x: expected a multiple of the cluster's 4, got 2" in str(report)
