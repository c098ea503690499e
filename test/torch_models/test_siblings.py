"""Projections of one tensor with frozen weights are one product, against f64."""

from __future__ import annotations

import copy
import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir.torch
from tcir.program.frozen import split
from tcir.torch.compiled import KernelModule

HEADS, GROUPS, WIDTH = 4, 2, 64


class Attention(nn.Module):
    """Attention with fewer heads of keys and values than of queries."""

    def __init__(self) -> None:
        super().__init__()
        inner = WIDTH * GROUPS // HEADS
        self.queries = nn.Linear(WIDTH, WIDTH)
        self.keys, self.values = nn.Linear(WIDTH, inner), nn.Linear(WIDTH, inner)
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        layers = ((self.queries, HEADS), (self.keys, GROUPS), (self.values, GROUPS))
        heads = [layer(x).unflatten(-1, (n, -1)).transpose(1, 2) for layer, n in layers]
        y = nn.functional.scaled_dot_product_attention(*heads, enable_gqa=True)
        result = self.last(y.transpose(1, 2).flatten(2))
        assert isinstance(result, torch.Tensor)
        return result


def test_queries_keys_and_values_are_one_product() -> None:
    torch.manual_seed(0)
    model = Attention().half().eval().requires_grad_(False)
    x = torch.randn(2, 24, WIDTH).half()
    compiled = tcir.torch.compile(model, (x,), target="sm_90a", verbose=False)
    (part,) = (each for each in compiled.graph.modules() if isinstance(each, KernelModule))
    signature = part.kernel.signature
    callers = len(signature.inputs) + len(signature.outputs)
    launches = split(part.kernel.launches, callers, part.launcher.weights)
    assert [each.name.split("_")[-1] for each in launches.each] == ["matmul", "attention", "matmul"]
    assert len(launches.once) == 2
    wanted = copy.deepcopy(model).double()(x.double())
    assert (compiled(x).double() - wanted).norm() < 1e-3 * wanted.norm()
