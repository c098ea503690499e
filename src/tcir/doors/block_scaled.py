"""Block-scaled products as cuBLAS computes them, by torch on the CPU. Scripts use them as
references.

Scales have cuBLAS's layout: 128 rows by four columns in 512 consecutive bytes.
"""

from __future__ import annotations

import torch

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""The values of 4-bit floats."""


def nvfp4(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Dequantises rows of nvfp4: two elements per byte, the first in the low half, and one scale (a
    float, E4M3) per 16 elements.
    """
    packed = packed.view(torch.uint8)
    elements = E2M1[torch.stack([packed & 15, packed >> 4], -1).flatten(1).long()]
    return _scaled(elements, scales.view(torch.float8_e4m3fn).float(), 16)


def mxfp8(elements: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Dequantises rows of mxfp8: one scale (a power of two, E8M0) per 32 elements."""
    return _scaled(elements.float(), torch.exp2(scales.view(torch.uint8).float() - 127), 32)


def scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """`torch._scaled_mm` with a scale for each block, computed in float32; torch itself supports it
    only on GPUs.

    a: (m, k). b: (k, n), column-major. `scale_result` and `use_fast_accum` have no effect here.
    """
    values = nvfp4 if a.dtype == torch.float4_e2m1fn_x2 else mxfp8
    product = values(a, scale_a) @ values(b.t(), scale_b).t()
    return (product if bias is None else product + bias.float()).to(out_dtype or torch.bfloat16)


def block_scales(scales: object) -> bool:
    """Whether the scales are per block. If they are float32, they are per row or per tensor
    instead.
    """
    kinds = (torch.float8_e8m0fnu, torch.float8_e4m3fn)
    return isinstance(scales, torch.Tensor) and scales.dtype in kinds


def _scaled(elements: torch.Tensor, scales: torch.Tensor, block: int) -> torch.Tensor:
    rows, columns = elements.shape
    tiles = -(-rows // 128)
    table = scales.reshape(tiles, -1, 32, 4, 4).permute(0, 3, 2, 1, 4).reshape(tiles * 128, -1)
    return elements * table.repeat_interleave(block, 1)[:rows, :columns]
