"""Arguments and results with another order in memory: kernels have that memory, without copies."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir.torch
from tcir.torch import layouts
from tcir.torch.compiled import KernelModule

LAST = torch.channels_last


def whole(*shape: int) -> torch.Tensor:
    """Small whole numbers: every sum is exact."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-2, 3, shape, generator=generator).half()


class Images(nn.Module):
    """Images from a convolution to another, pooled between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.pool, self.second = nn.MaxPool2d(3, 2, 1), nn.Conv2d(16, 32, 1, bias=False)
        for each in (self.first, self.second):
            each.weight = nn.Parameter(whole(*each.weight.shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.second(self.pool(torch.relu(self.first(x))))
        assert isinstance(found, torch.Tensor)
        return found


def compiled(freeze: bool) -> tuple[tcir.torch.Compiled, nn.Module, torch.Tensor]:
    model = Images().eval().requires_grad_(False).to(memory_format=LAST)
    x = whole(2, 8, 12, 12).contiguous(memory_format=LAST)
    return tcir.torch.compile(model, (x,), target="sm_90a", freeze=freeze), model, x


@pytest.mark.parametrize(("freeze", "launches"), [(False, 3), (True, 4)])
def test_channels_last(freeze: bool, launches: int) -> None:
    """No launch repacks images; a frozen filter is repacked once."""
    ours, model, x = compiled(freeze)
    (kernel,) = ours.kernels
    names = [each.name for each in kernel.launches.launches]
    assert len(names) == launches, names
    (part,) = [each for each in ours.graph.modules() if isinstance(each, KernelModule)]
    assert part._as_traced, "the result would be copied"
    assert tuple(kernel.signature.inputs[0].shape) == (2, 12, 12, 8)
    for given in (x, x.contiguous()):  # an argument of another order is copied
        result, expected = ours(given), model(given)
        assert torch.equal(result, expected)
        assert result.is_contiguous(memory_format=LAST)


class Product(nn.Module):
    """A product whose first factor is given transposed, and its argument."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x @ y, x


def test_a_transposed_factor_is_no_copy_and_a_returned_argument_is_itself() -> None:
    x, y = whole(64, 48).t(), whole(64, 32)
    ours = tcir.torch.compile(Product().eval(), (x, y), target="sm_90a")
    (kernel,) = ours.kernels
    assert len(kernel.launches.launches) == 1
    assert tuple(kernel.signature.inputs[0].shape) == (64, 48)
    product, same = ours(x, y)
    assert torch.equal(product, x @ y)
    assert same.data_ptr() == x.data_ptr()


def test_memory_with_gaps_is_left_as_it_is() -> None:
    x, y = whole(48, 128)[:, ::2], whole(64, 32)
    ours = tcir.torch.compile(Product().eval(), (x, y), target="sm_90a")
    assert tuple(ours.kernels[0].signature.inputs[0].shape) == (48, 64)
    assert torch.equal(ours(x, y)[0], x @ y)


def test_a_way_back_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = whole(64, 64).t(), whole(64, 32)
    monkeypatch.setattr(layouts, "_inverse", lambda order: [0, 1])
    ours = tcir.torch.compile(Product().eval(), (x, y), target="sm_90a")
    assert torch.equal(ours(x, y)[0], x.t() @ y) and not torch.equal(x.t() @ y, x @ y)
