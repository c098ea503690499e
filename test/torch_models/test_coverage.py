"""Scaled fp8 products, recurrences, experts and shapes of data, beside PyTorch in f64."""

from __future__ import annotations

import copy
import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir
import tcir.torch
from tcir.torch.imports import compared
from tcir.torch.scaled import SCALED

pytestmark = pytest.mark.slow


class Scaled(nn.Module):
    def forward(
        self, a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
    ) -> torch.Tensor:
        return torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)


@pytest.mark.parametrize("shapes", [((), ()), ((16, 1), (1, 32))], ids=["matrices", "rows"])
def test_scaled_mm(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(n, 64).to(torch.float8_e4m3fn) for n in (16, 32))
    scales = [torch.rand(shape) + 0.5 for shape in shapes]
    given = (a, b.t(), *scales)
    compiled = tcir.torch.compile(Scaled().eval(), given)
    assert str(compiled.table) == "permute, _scaled_mm: layers, 1 launch"
    exact = a.double() @ b.t().double() * scales[0].double() * scales[1].double()
    errors = [(each.double() - exact).abs().max() for each in (compiled(*given), Scaled()(*given))]
    assert errors[0] <= 1.5 * errors[1]
    assert [report.verdict for report in compiled.validate()] == ["held"]


def test_other_scales_are_left_to_pytorch() -> None:
    scaled_mm = SCALED[torch.ops.aten._scaled_mm.default]
    a, b = torch.zeros(16, 64), torch.zeros(64, 32)
    with pytest.raises(tcir.Error, match=r"scales of \[16, 1\] and \[1, 32\], got \[16, 2\]"):
        scaled_mm(a, b, torch.ones(16, 2), torch.ones(2, 32))


class Packed(nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        return torch._weight_int8pack_mm(x, weight, scales)


def test_weight_int8pack_mm() -> None:
    torch.manual_seed(0)
    x, scales = torch.randn(16, 64).bfloat16(), (torch.rand(32) + 0.5).bfloat16()
    weight = torch.randint(-128, 128, (32, 64), dtype=torch.int8)
    compiled = tcir.torch.compile(Packed().eval(), (x, weight, scales))
    assert str(compiled.table) == "_weight_int8pack_mm: layers, 1 launch"
    exact = x.double() @ weight.double().t() * scales.double()
    given = (x, weight, scales)
    assert not compared(compiled(*given), Packed()(*given), exact).failure
    assert [report.verdict for report in compiled.validate()] == ["held"]


class Rounded(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        zeros = torch.zeros(8, dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(x, scale, zeros, 0, -128, 127)


def test_a_reference_that_pytorch_has_not_in_f64_is_incomplete() -> None:
    """The first line of `validate` says so, and nothing else fails."""
    x, scale = torch.randn(8, 32), torch.rand(8) + 0.1
    compiled = tcir.torch.compile(Rounded().eval(), (x, scale))
    assert torch.equal(compiled(x, scale), Rounded()(x, scale))
    (report,) = compiled.validate()
    assert report.passes[0].incomplete == [
        "eager PyTorch in f64: Scale must be Float or BFloat16, found Double"
    ]
    assert report.passes[1].incomplete == [
        "eager PyTorch: Scale must be Float or BFloat16, found Double"
    ]


class Experts(nn.Module):
    """Each expert takes the rows that chose it: their number depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 2)
        self.experts = nn.Parameter(torch.randn(2, 16, 16) / 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = self.router(x).argmax(-1)
        result = torch.zeros_like(x)
        for number in range(2):
            (rows,) = torch.where(chosen == number)
            made = nn.functional.silu(nn.functional.linear(x[rows], self.experts[number]))
            result = result.index_add(0, rows, made)
        return result


def test_shapes_of_data_are_left_to_pytorch() -> None:
    torch.manual_seed(0)
    model, x = Experts().half().eval(), torch.randn(6, 16).half()
    compiled = tcir.torch.compile(model, (x,))
    text = str(compiled.table)
    assert "linear" in text and "got one that depends on elements of a tensor" in text, text
    exact = copy.deepcopy(model).double()(x.double())
    torch.testing.assert_close(compiled(x).double(), exact, rtol=0, atol=4e-3)


def test_lstm() -> None:
    torch.manual_seed(0)
    model, x = nn.LSTM(16, 32, batch_first=True).half().eval(), torch.randn(2, 2, 16).half()
    compiled = tcir.torch.compile(model, (x,))
    assert "left to PyTorch" not in str(compiled.table)
    exact = copy.deepcopy(model).double()(x.double())
    torch.testing.assert_close(compiled(x)[0].double(), exact[0], rtol=0, atol=1e-3)
    assert [report.verdict for report in compiled.validate()] == ["held"]
