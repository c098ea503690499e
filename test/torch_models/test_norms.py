"""Norms through the PyTorch door: one launch each, against f64."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir.torch
from tcir.torch import sums

NORMS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "layer": (lambda: nn.LayerNorm(96), (5, 96)),
    "rms": (lambda: nn.RMSNorm(96), (5, 96)),
    "group": (lambda: nn.GroupNorm(4, 8), (2, 8, 6, 6)),
    "group, plain": (lambda: nn.GroupNorm(2, 6, affine=False), (3, 6, 11)),
}


def errors(name: str, kind: torch.dtype) -> tuple[tcir.torch.Compiled, float, float]:
    """The compiled norm, its error against f64 and eager PyTorch's, relative to the largest
    result."""
    torch.manual_seed(0)
    make, shape = NORMS[name]
    model = make().eval()
    for each in model.parameters():
        nn.init.normal_(each)
    model, x = model.to(kind).requires_grad_(False), (torch.randn(shape) + 3).to(kind)
    ours = tcir.torch.compile(model, (x,), target="sm_90a")
    mine, own = ours(x), model(x)
    exact = model.double()(x.double())
    scale = exact.abs().max()
    return ours, *(float((each.double() - exact).abs().max() / scale) for each in (mine, own))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", NORMS)
def test_one_launch(name: str, kind: torch.dtype) -> None:
    ours, error, own = errors(name, kind)
    (kernel,) = ours.kernels
    assert len(kernel.launches.launches) == 1, str(ours.table)
    assert error <= 1.5 * own + torch.finfo(kind).eps, (error, own)
    assert kind == torch.float32 or "f64" not in kernel.ptx, "PyTorch sums f16 and bf16 in f32"


def test_a_group_without_a_channel_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments of one channel instead of the group's."""
    right = sums._normalised
    monkeypatch.setattr(sums, "_normalised", lambda x, dims, eps: right(x, dims[1:], eps))
    _, error, own = errors("group", torch.float16)
    assert error > 10 * own
