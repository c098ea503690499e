"""cuBLAS as Triton offers it, computed by the CPU: what scripts compare their kernels with."""

from __future__ import annotations

import torch

from tcir.doors.launches import Launches

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""The values of 4-bit floats."""


class CublasLt:
    """In place of `triton._C.libtriton.nvidia.cublas.CublasLt`: A times B transposed, in float32.

    Scales lie as cuBLAS has them: 128 rows by four columns in 512 consecutive bytes.
    """

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
        left, right = (
            _scaled(m.float(), torch.exp2(s.view(torch.uint8).float() - 127))
            for m, s in ((a, a_scale), (b, b_scale))
        )
        out.copy_(left @ right.T)

    def block_scaled_matmul_nvfp4(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor,
        a_scale: torch.Tensor,
        b_scale: torch.Tensor,
    ) -> None:
        """Two elements in a byte, the first in its low bits; a float (E4M3) for 16 elements."""
        left, right = (
            _scaled(E2M1[_nibbles(m)], s.view(torch.float8_e4m3fn).float())
            for m, s in ((a, a_scale), (b, b_scale))
        )
        out.copy_(left @ right.T)


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    return torch.stack([packed & 15, packed >> 4], -1).flatten(1).long()


def _scaled(elements: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    rows, columns = elements.shape
    table = scales.reshape(rows // 128, -1, 32, 4, 4).permute(0, 3, 2, 1, 4).reshape(rows, -1)
    return elements * table.repeat_interleave(columns // table.shape[1], 1)
