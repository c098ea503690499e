"""`tcir.torch.attention` in a training step, beside PyTorch's own gradients in f64."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from tiers import slow
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import tcir
import tcir.torch


class Layer(nn.Module):
    """Projections, attention of grouped heads, and one more projection."""

    def __init__(self, by_kernels: bool) -> None:
        super().__init__()
        self.by_kernels = by_kernels
        self.queries, self.keys, self.values = (
            nn.Linear(32, n, bias=False)
            for n in (64, 32, 32)  # that of keys has no gradient
        )
        self.last = nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            each(x).unflatten(-1, (-1, 16)).transpose(1, 2)
            for each in (self.queries, self.keys, self.values)
        )
        if self.by_kernels:
            mixed = tcir.torch.attention(q, k, v, is_causal=True)
        else:
            mixed = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.last(mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("kind", [torch.float16, slow(torch.bfloat16)])
def test_training_step(kind: torch.dtype) -> None:
    """Gradients of all weights are those of f64, as far as the type has digits."""
    torch.manual_seed(0)
    mine, exact = Layer(by_kernels=True), Layer(by_kernels=False)
    exact.load_state_dict(mine.state_dict())
    mine, exact = mine.to(kind), exact.double()
    exact.load_state_dict(mine.state_dict())
    x = torch.randn(1, 40, 32).to(kind)
    for layer, given in ((mine, x), (exact, x.double())):
        layer(given).square().mean().backward()
    unit = torch.finfo(kind).eps
    for own, right in zip(mine.parameters(), exact.parameters(), strict=True):
        assert own.grad is not None and right.grad is not None
        far = (own.grad.double() - right.grad).abs().max()
        assert far <= 8 * unit * right.grad.abs().max()


def test_refusals() -> None:
    x = torch.zeros(1, 1, 16, 16)
    with pytest.raises(tcir.InputError, match="float16, or all of bfloat16"):
        tcir.torch.attention(x, x, x)
    half = x.half()
    with pytest.raises(tcir.InputError, match="as many rows as keys"):
        tcir.torch.attention(half[:, :, :8], half, half, is_causal=True)
