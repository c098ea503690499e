"""Decompositions of losses for which torch-mlir has no `linalg`; f16 and bf16 are summed in f32."""

from __future__ import annotations

import torch

from tcir.torch.aten import Decomposition, Decompositions, aten, wide

NONE, MEAN = 0, 1
"""ATen's numbers of the reductions; 2 is the sum."""


def _reduced(each: torch.Tensor, reduction: int, kind: torch.dtype) -> torch.Tensor:
    if reduction == NONE:
        return each.to(kind)
    return (each.mean() if reduction == MEAN else each.sum()).to(kind)


def _huber(
    x: torch.Tensor, target: torch.Tensor, reduction: int = MEAN, delta: float = 1.0
) -> torch.Tensor:
    a, b = wide(x), wide(target)
    size = (a - b).abs()
    each = torch.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
    return _reduced(each, reduction, x.dtype)


def _smooth_l1(
    x: torch.Tensor, target: torch.Tensor, reduction: int = MEAN, beta: float = 1.0
) -> torch.Tensor:
    a, b = wide(x), wide(target)
    size = (a - b).abs()
    each = (
        size if not beta else torch.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)
    )
    return _reduced(each, reduction, x.dtype)


def _soft_margin(x: torch.Tensor, target: torch.Tensor, reduction: int = MEAN) -> torch.Tensor:
    a, b = wide(x), wide(target)
    return _reduced(torch.log1p(torch.exp(-b * a)), reduction, x.dtype)


def _apart(op: torch._ops.OpOverload) -> Decomposition:
    """Decomposition of a loss into the loss of each element, then their sum or mean."""
    names = [each.name for each in op._schema.arguments]

    def decomposition(*args: object, **kwargs: object) -> object:
        given = dict(zip(names, args)) | kwargs
        reduction, x = given.get("reduction", MEAN), given["self"]
        if reduction == NONE or not isinstance(reduction, int) or not isinstance(x, torch.Tensor):
            return NotImplemented
        given["reduction"] = NONE
        given = {
            name: wide(each) if isinstance(each, torch.Tensor) else each
            for name, each in given.items()
        }
        return _reduced(op(**given), reduction, x.dtype)

    return decomposition


SUMMED = (
    aten.mse_loss.default, aten.l1_loss.default, aten.kl_div.default,
    aten.binary_cross_entropy.default, aten.binary_cross_entropy_with_logits.default,
)  # fmt: skip
"""Losses that torch-mlir sums in f32, one element after the other."""
LOSSES: Decompositions = {
    **{op: _apart(op) for op in SUMMED},
    aten.huber_loss.default: _huber,
    aten.smooth_l1_loss.default: _smooth_l1,
    aten.soft_margin_loss.default: _soft_margin,
}
"""The decompositions of this file, by overload."""
