"""Decompositions of products that torch-mlir does not lower to linalg, or lowers with an
intermediate rounding."""

from __future__ import annotations

import torch

from tcir.torch.aten import Decompositions, aten, wide


def _addmv(
    x: torch.Tensor, a: torch.Tensor, vector: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    column = vector.unsqueeze(-1)
    return aten.addmm.default(x.unsqueeze(-1), a, column, beta=beta, alpha=alpha).squeeze(-1)


def _addbmm(
    x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """The sum of a batch of products as one product: K runs over all matrices of the batch."""
    left = a.permute(1, 0, 2).reshape(a.shape[1], -1)
    return aten.addmm.default(x, left, b.reshape(-1, b.shape[2]), beta=beta, alpha=alpha)


def _cdist(x: torch.Tensor, y: torch.Tensor, p: float, mode: int | None) -> torch.Tensor:
    """Distances of all pairs of rows, from differences as torch.cdist computes them without
    matrix products."""
    return aten.linalg_vector_norm.default(x.unsqueeze(-2) - y.unsqueeze(-3), p, [-1])


def _bilinear(
    x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> object:
    """Bilinear layer. f16 and bf16: two products, each rounded once, as in PyTorch's kernel. f32:
    left as sums of products of three factors, which no tensor core truncates."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        return NotImplemented
    outs, left, right = weight.shape
    pairs = torch.mm(x.reshape(-1, left), weight.permute(1, 0, 2).reshape(left, -1))
    sums = torch.bmm(pairs.reshape(-1, outs, right), y.reshape(-1, right, 1))
    result = sums.reshape(*x.shape[:-1], outs)
    return result if bias is None else result + bias


def _int8pack_mm(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """A product with rows of int8. Scales multiply the sum, and the result is rounded once, as in
    PyTorch's kernel."""
    sums = torch.mm(wide(x), wide(weight.to(x.dtype)).t())
    return (sums * wide(scales)).to(x.dtype)


PRODUCTS: Decompositions = {
    aten.addmv.default: _addmv,
    aten.addbmm.default: _addbmm,
    aten._weight_int8pack_mm.default: _int8pack_mm,
    aten.bilinear.default: _bilinear,
    aten._cdist_forward.default: _cdist,
}
"""The decompositions of this file, by overload."""
