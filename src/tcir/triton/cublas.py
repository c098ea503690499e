"""cuBLAS as Triton offers it, computed by the CPU: what scripts compare their kernels with."""

from __future__ import annotations

import torch

from tcir.doors.block_scaled import mxfp8, nvfp4
from tcir.doors.launches import Launches


class CublasLt:
    """In place of `triton._C.libtriton.nvidia.cublas.CublasLt`: A times B transposed."""

    def __init__(self, launches: Launches, workspace: torch.Tensor) -> None:
        """The workspace is not used."""
        launches.say("cuBLAS: computed by torch on the CPU")

    def matmul(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Without scales."""
        out.copy_(a.float() @ b.float().T)

    def block_scaled_matmul_mxfp8(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
    ) -> None:
        """A power of two (E8M0) for 32 elements."""
        out.copy_(mxfp8(a, a_scale) @ mxfp8(b, b_scale).T)

    def block_scaled_matmul_nvfp4(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
    ) -> None:
        """Two elements in a byte, the first in its low bits; a float (E4M3) for 16 elements."""
        out.copy_(nvfp4(a, a_scale) @ nvfp4(b, b_scale).T)
