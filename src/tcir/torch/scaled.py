"""Decompositions of matrix products whose operands are scaled fp8."""

from __future__ import annotations

import torch

from tcir.errors import InputError
from tcir.torch.aten import Decompositions, aten


def _scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> torch.Tensor:
    """Multiplies fp8 matrices with sums in f32, then multiplies by the scales: one per matrix, or
    one per row of `a` and column of `b`. InputError for other scales or a scale of the result."""
    rows, columns = a.shape[0], b.shape[1]
    if not (
        scale_a.numel() == 1 == scale_b.numel()
        or (scale_a.shape, scale_b.shape) == ((rows, 1), (1, columns))
    ):
        raise InputError(
            f"expected one scale each, or scales of [{rows}, 1] and [1, {columns}], got "
            f"{list(scale_a.shape)} and {list(scale_b.shape)}"
        )
    if scale_result is not None:
        raise InputError("expected no scale of the result, got one")
    wide = torch.float32
    result = torch.mm(a.to(wide), b.to(wide)) * scale_a.to(wide) * scale_b.to(wide)
    if bias is not None:
        result = result + bias.to(wide)
    return result.to(out_dtype or a.dtype)


SCALED: Decompositions = {aten._scaled_mm.default: _scaled_mm}
"""The decompositions of this file, by overload."""
