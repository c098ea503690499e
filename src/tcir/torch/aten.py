"""What decompositions of ATen ops share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

aten = torch.ops.aten
Decomposition: TypeAlias = Callable[..., object]
"""Returns NotImplemented for arguments that it leaves to another, or to PyTorch."""
Decompositions: TypeAlias = dict[torch._ops.OperatorBase, Decomposition]
"""By overload."""
Dims: TypeAlias = Sequence[int] | int | None
"""Dimensions of a reduction; None: all."""


def wide(x: torch.Tensor) -> torch.Tensor:
    """A tensor in the type that eager PyTorch computes it in: f16 and bf16 in f32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dims_of(x: torch.Tensor, dim: Dims) -> Sequence[int] | int:
    """The dimensions of a reduction."""
    return list(range(x.dim())) if dim is None else dim
