"""torch.ops.tcir.linear and tcir.torch.Linear beside PyTorch in f64."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn
from torch.nn import functional as F

import tcir
import tcir.torch
from tcir.torch.linear import _compiled

from .models import made


def error(got: torch.Tensor, right: torch.Tensor) -> float:
    assert got.shape == right.shape
    return float((got.double() - right).abs().max() / right.abs().max())


@pytest.mark.parametrize(
    ("activation", "right"),
    [("none", lambda x: x), ("silu", F.silu)],
    ids=["none", "silu"],
)
def test_op(activation: str, right: nn.Module) -> None:
    torch.manual_seed(1)
    x, weight, bias = (torch.randn(s).half() for s in ((3, 20, 64), (72, 64), (72,)))
    got = torch.ops.tcir.linear(x, weight, bias, activation)
    assert got.dtype == torch.float16
    expected = right(F.linear(x.double(), weight.double(), bias.double()))
    assert error(got, expected) < 2e-3


def test_one_kernel_for_a_shape() -> None:
    torch.manual_seed(2)
    layer = tcir.torch.Linear(64, 40, bias=False, dtype=torch.bfloat16).eval()
    before = _compiled.cache_info().misses
    for factor in (1, 3):
        x = torch.randn(24, 64).bfloat16() * factor
        assert error(layer(x).detach(), F.linear(x.double(), layer.weight.detach().double())) < 1e-2
    assert _compiled.cache_info().misses == before + 1


class Two(nn.Module):
    """tcir's layer in front of PyTorch's."""

    def __init__(self) -> None:
        super().__init__()
        self.first = tcir.torch.Linear(64, 96, activation="relu")
        self.second = nn.Linear(96, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def test_module_with_the_layer_is_lowered_as_one() -> None:
    """Its op is not left to PyTorch: compile fuses the activation as PyTorch's own."""
    module, (x,) = made(Two, torch.float16, (48, 64))
    compiled = tcir.torch.compile(module, (x,))
    assert str(compiled.table) == "linear, relu, linear: layers, 2 launches"
    plain = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32)).double()
    plain[0].load_state_dict(module.first.state_dict())
    plain[2].load_state_dict(module.second.state_dict())
    assert error(compiled(x), plain(x.double()).detach()) < 2e-3


def test_op_is_well_registered() -> None:
    """Shapes of the fake op, no mutation, no aliasing: PyTorch's own check."""
    x, weight = torch.randn(16, 64).half(), torch.randn(24, 64).half()
    torch.ops.tcir.linear(x, weight)  # compiles: torch.export does not run under the check's mode
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.tcir.linear, (x, weight), test_utils=checks)


@pytest.mark.parametrize(
    ("shapes", "kind", "activation", "said"),
    [
        ([(8, 64), (64, 32)], torch.float16, "none", r"weight of \[N, K\]"),
        ([(8, 64), (32, 64), (64,)], torch.float16, "none", r"bias: expected \[32\].* got \[64\]"),
        ([(8, 64), (32, 64)], torch.float64, "none", "got float64, float64"),
        ([(8, 64), (32, 64)], torch.float16, "swish", "activation: expected none, relu"),
        ([(64,), (32, 64)], torch.float16, "none", r"x of \[\.\.\., K\]"),
    ],
    ids=["weight layout", "bias", "f64", "activation", "vector"],
)
def test_refusals(shapes: list, kind: torch.dtype, activation: str, said: str) -> None:
    x, weight, *bias = (torch.ones(shape, dtype=kind) for shape in shapes)
    with pytest.raises(tcir.InputError, match=said):
        torch.ops.tcir.linear(x, weight, *(bias or [None]), activation)
