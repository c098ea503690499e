"""The name `matmul` of pipeline gemm."""

from tcir.pipelines import gemm as gemm
