"""Decompositions of convolutions that torch-mlir does not lower, and of negative padding."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tcir.torch.aten import Decompositions, aten


def _transposed(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    *rest: Sequence[int] | int,
) -> object:
    """A transposed depthwise convolution, as a convolution of pixels with zeros between them.

    rest: whether the convolution is transposed, its output padding, its groups
    """
    transposed, output_padding, groups = rest
    assert isinstance(output_padding, Sequence)
    if not transposed or groups == 1 or not groups == x.shape[1] == weight.shape[0]:
        return NotImplemented
    if weight.shape[1] != 1:
        return NotImplemented
    rank = len(stride)
    dims = range(2, 2 + rank)
    edges: list[int] = []
    for dim, step, pad, spread, more in zip(dims, stride, padding, dilation, output_padding):
        x = _spread(x, dim, step)
        around = spread * (weight.shape[dim] - 1) - pad
        edges = [around, around + more, *edges]
    x = aten.constant_pad_nd.default(x, edges)
    none = [0] * rank
    return aten.convolution.default(
        x, weight.flip(list(dims)), bias, [1] * rank, none, dilation, False, none, groups
    )


def _spread(x: torch.Tensor, dim: int, step: int) -> torch.Tensor:
    """`x` with step - 1 zeros between its elements along a dimension."""
    if step == 1:
        return x
    count = x.shape[dim]
    after = [0, 0] * (x.dim() - dim - 1)
    wide = aten.constant_pad_nd.default(x.unsqueeze(dim + 1), [*after, 0, step - 1])
    return wide.flatten(dim, dim + 1).narrow(dim, 0, count * step - (step - 1))


def _conv_transpose(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Sequence[int] | int = 1,
    padding: Sequence[int] | int = 0,
    output_padding: Sequence[int] | int = 0,
    groups: int = 1,
    dilation: Sequence[int] | int = 1,
) -> object:
    if x.dim() != weight.dim():  # without a batch
        return NotImplemented
    rank = weight.dim() - 2
    stride, padding, output_padding, dilation = (
        _each(given, rank) for given in (stride, padding, output_padding, dilation)
    )
    return _transposed(x, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _each(given: Sequence[int] | int, rank: int) -> list[int]:
    """One number per dimension; a single number applies to all `rank` dimensions."""
    numbers = [given] if isinstance(given, int) else list(given)
    return numbers * rank if len(numbers) == 1 else numbers


def _constant_pad(x: torch.Tensor, pad: Sequence[int], value: float = 0) -> object:
    """Pads with a constant; negative padding, which removes elements, is a slice."""
    if not pad or min(pad) >= 0:
        return NotImplemented
    for number in range(0, len(pad), 2):
        dim = x.dim() - 1 - number // 2
        low, high = (max(-each, 0) for each in pad[number : number + 2])
        x = x.narrow(dim, low, x.shape[dim] - low - high)
    return aten.constant_pad_nd.default(x, [max(each, 0) for each in pad], value)


CONVOLUTIONS: Decompositions = {
    aten.convolution.default: _transposed,
    aten.conv_transpose1d.default: _conv_transpose,
    aten.conv_transpose2d.input: _conv_transpose,
    aten.constant_pad_nd.default: _constant_pad,
}
"""The decompositions of this file, by overload."""
