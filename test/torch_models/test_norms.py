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
from tcir.program.frozen import split
from tcir.torch import sums
from tcir.torch.compiled import KernelModule
from tcir.torch.imports import checked

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


class _Images(nn.Module):
    """A convolution, its batch norm with statistics of its own, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32)
        nn.init.normal_(self.norm.running_mean)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x)) + r)


@pytest.mark.parametrize("freeze", [True, False])
def test_a_batch_norms_vectors_are_computed_once(freeze: bool) -> None:
    torch.manual_seed(0)
    model = _Images().half().eval().requires_grad_(False).to(memory_format=torch.channels_last)
    x, r = (
        torch.randn(2, n, 6, 6).half().contiguous(memory_format=torch.channels_last)
        for n in (16, 32)
    )
    ours = tcir.torch.compile(model, (x, r), target="sm_90a", freeze=freeze)
    (part,) = (each for each in ours.graph.modules() if isinstance(each, KernelModule))
    kernel, frozen = part.kernel, part.launcher.weights if freeze else ()
    parts = split(kernel.launches, len(kernel.signature.inputs) + 1, frozen)
    assert (len(parts.once), len(parts.each)) == ((2, 1) if freeze else (0, 1))
    last = kernel.launch_table.rows[-1].work
    assert ("rsqrt" in last.fused) == (not freeze), last
    mine, own = ours(x, r).double(), model(x, r).double()
    exact = model.double()(x.double(), r.double())
    error, eager = ((each - exact).norm() / exact.norm() for each in (mine, own))
    assert error <= 1.2 * eager, (error, eager)
    (row,) = ours.table
    assert row.graph is not None
    assert checked(row.graph, row.mlir).verdict != "different"


def test_a_group_without_a_channel_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments of one channel instead of the group's."""
    right = sums._normalised
    monkeypatch.setattr(sums, "_normalised", lambda x, dims, eps: right(x, dims[1:], eps))
    _, error, own = errors("group", torch.float16)
    assert error > 10 * own
