"""cuBLAS with the interface that Triton gives it, computed on the CPU; scripts compare their
kernels with it.
"""

from __future__ import annotations

import torch

from tcir.doors.block_scaled import mxfp8, nvfp4
from tcir.doors.launches import Launches


class CublasLt:
    """Replacement for `triton._C.libtriton.nvidia.cublas.CublasLt`; it computes A times the
    transpose of B.
    """

    def __init__(self, launches: Launches, workspace: torch.Tensor) -> None:
        """Takes cuBLAS's arguments; the workspace is not used."""
        launches.say("cuBLAS: computed by torch on the CPU")

    def matmul(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Multiplies matrices without scales."""
        out.copy_(a.float() @ b.float().T)

    def block_scaled_matmul_mxfp8(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
    ) -> None:
        """Multiplies matrices with one scale, a power of two (E8M0), per 32 elements."""
        out.copy_(mxfp8(a, a_scale) @ mxfp8(b, b_scale).T)

    def block_scaled_matmul_nvfp4(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
    ) -> None:
        """Multiplies matrices with two elements per byte (the first in the low bits) and one scale,
        a float (E4M3), per 16 elements.
        """
        out.copy_(nvfp4(a, a_scale) @ nvfp4(b, b_scale).T)
