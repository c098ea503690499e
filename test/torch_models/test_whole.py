"""`validate` compares the imported programs with the user's own module: mistakes before the first
state that is executed are found."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from edited import edit
from torch import nn

import tcir.torch
from tcir.torch import entry, whole
from tcir.torch.compiled import Compiled
from tcir.torch.imports import checked
from tcir.validation.report import Line


class Layer(nn.Module):
    """A residual layer as PyTorch makes it: factors are 1, means and summands 0, variances 1."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.norm(self.conv(x)))


class Rows(nn.Module):
    """A linear layer of transposed rows, whose rows the door multiplies as they are stored."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.transpose(0, 1))


def network(layers: int) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(*(Layer() for _ in range(layers)), nn.AdaptiveAvgPool2d(1))
    return model.half().eval().requires_grad_(False), torch.randn(1, 16, 8, 8).half()


def compiled(model: nn.Module, *inputs: Any) -> Compiled:
    return tcir.torch.compile(model, inputs, target="sm_90a", verbose=False)


def lines(module: Compiled) -> tuple[Line, list[Line]]:
    """The line of the module, and those of its parts' imports."""
    named = module._named()
    line, executed = module._whole(named, 0)
    assert line is not None
    return line, [
        checked(part.graph, part.mlir, 0, executed.get(name, ()))
        for name, part in named.items()
        if part.graph is not None
    ]


def test_a_network_holds() -> None:
    module, (part,) = lines(compiled(*network(3)))
    assert module.verdict == part.verdict == "within bound"
    assert all(each in part.compared for each in whole.DRAWS)


NORM = "tcir.torch.decompositions:_batch_norm"
MISTAKES = {
    "the mean is added": (3, NORM, "-wide(mean)", "wide(mean)"),
    "the weight is left out": (3, NORM, "factor * wide(weight)", "factor"),
    "the bias is left out": (3, NORM, "summand + wide(bias)", "summand"),
    "the summand lacks the factor": (3, NORM, "-wide(mean) * factor", "-wide(mean)"),
    "no root": (3, NORM, "torch.rsqrt(wide(var) + eps)", "1 / (wide(var) + eps)"),
    "eps is left out": (1, NORM, "wide(var) + eps", "wide(var)"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_wrong_decomposition(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layers, *change = MISTAKES[what]
    edit(monkeypatch, *change)
    module, parts = lines(compiled(*network(layers)))
    assert "different" in (module.verdict, *(each.verdict for each in parts))
    assert what.startswith("eps") or module.verdict == "different", module.compared


@pytest.mark.parametrize("name", ["keep_aliases", "keep_rows", "keep_layouts"])
def test_a_wrong_rewriting_before_the_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are compared with what is left of the module, so only its own line finds this."""

    real = getattr(entry, name)

    def wrong(graph: torch.fx.GraphModule, *rest: Any) -> None:
        real(graph, *rest)
        for node in graph.graph.nodes:
            if node.target is torch.ops.aten.relu.default:
                node.target = torch.ops.aten.neg.default
        graph.recompile()

    monkeypatch.setattr(entry, name, wrong)
    module, parts = lines(compiled(*network(1)))
    assert module.verdict == "different" and "result 0 of inputs of the module" in module.compared
    assert all(each.verdict == "within bound" for each in parts)


def test_rows_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Rows().half().eval().requires_grad_(False), torch.randn(2, 2, 16).half()
    assert lines(compiled(model, x))[0].verdict == "within bound"
    edit(monkeypatch, "tcir.torch.rows:_multiplied", "first.index(d) for d in order[:rows]",
         "n for n in range(rows)")  # fmt: skip
    module, parts = lines(compiled(model, x))
    assert module.verdict == "different"
    assert all(each.verdict == "within bound" for each in parts)


def test_what_has_no_reference_is_incomplete() -> None:
    class Random(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.rand_like(x) + x * 2

    class Narrow(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.dtype == torch.float64:
                raise TypeError("no numbers of 64 bits")
            return x * 2

    class Root(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sqrt(-x * x - 1)

    x = torch.randn(4, 64)
    for module, words in (
        (Random(), "results of two runs differ"),
        (Narrow(), "in f64: no numbers of 64 bits"),
        (Root(), "no finite element for any of the inputs"),
    ):
        line, _ = lines(compiled(module.eval(), x))
        assert line.verdict == "incomplete" and words in line.incomplete[0], line.incomplete
