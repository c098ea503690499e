"""Helpers that the decompositions of ATen ops share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

aten = torch.ops.aten
Decomposition: TypeAlias = Callable[..., object]
"""Computes an op by other ops. Returns NotImplemented to leave it to another decomposition or to
PyTorch."""
Decompositions: TypeAlias = dict[torch._ops.OperatorBase, Decomposition]
"""Decompositions by overload."""
Dims: TypeAlias = Sequence[int] | int | None
"""Dimensions of a reduction; None: all."""


def wide(x: torch.Tensor) -> torch.Tensor:
    """Converts a tensor to the type in which eager PyTorch computes: f32 for f16 and bf16."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dims_of(x: torch.Tensor, dim: Dims) -> Sequence[int] | int:
    """Dimensions of a reduction; all dimensions if `dim` is None."""
    return list(range(x.dim())) if dim is None else dim
