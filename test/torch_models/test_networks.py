"""Whole networks: none fails, kernels have their contractions, and errors are PyTorch's."""

from __future__ import annotations

import importlib.util

import pytest
from tiers import slow

if not all(map(importlib.util.find_spec, ("torch", "transformers", "diffusers"))):
    pytest.skip("torch, transformers or diffusers is not installed", allow_module_level=True)

import torch

from tcir.tools.dev.networks import page
from tcir.tools.dev.networks.measured import Tf32, measure
from tcir.tools.dev.networks.network import Network
from tcir.tools.dev.networks.table import NETWORKS
from tcir.torch import lowering

QUICK = (
    "MLP", "int8 weights", "Graph network", "Mixture of experts", "nn.TransformerEncoderLayer",
    "UNet", "LSTM", "GRU", "ViT", "Albert", "Bert", "MLP-Mixer",
)  # fmt: skip
EACH = [
    (network.name, kind) if kind == torch.float16 and network.name in QUICK
    else slow(network.name, kind)
    for network in NETWORKS.values() for kind in network.types
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), EACH)
def test_network(name: str, kind: torch.dtype) -> None:
    found = measure(NETWORKS[name], kind)
    assert not found.failures
    assert found.share >= NETWORKS[name].least, found.left


def test_no_network_of_the_page_failed() -> None:
    lines = page.rows(page.TARGET)
    rows = {key for key in lines if key.startswith("| ") and key not in ("| network | type",)}
    known = {f"| {each.name} | {kind}" for each in NETWORKS.values() for kind in page.NAMES}
    assert len(rows) > 50 and rows <= known
    assert not any(page.FAILED in line for line in lines.values())
    assert (
        page.TARGET.read_text(encoding="utf-8").split("\n", 5)[5]
        == (page.document(lines).split("\n", 5)[5])
    )


class Two(torch.nn.Module):
    """A product, what no pipeline takes, and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.cummax(torch.relu(self.first(x)), -1)[0]) + 1


TWO = Network("two", Two, lambda: {"x": torch.randn(32, 64)})


def test_one_kind_of_op_that_is_refused() -> None:
    """One attempt says that there is one, and no other op is cut off."""
    found = measure(TWO, torch.float16)
    assert not found.failures and found.share == 1
    assert found.regions == 2 and found.attempts == 3
    assert list(found.left.values()) == [["cummax"]]


def test_a_wrong_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of another network: the check does not hold whatever comes."""
    text = lowering.torch_text
    monkeypatch.setattr(
        lowering, "torch_text", lambda part: text(part).replace("aten.relu", "aten.neg")
    )
    assert measure(TWO, torch.float16).failures


def test_tf32_is_what_pytorch_is_compared_with() -> None:
    x, y = torch.full((1, 8), 1 + 2.0**-12), torch.eye(8)
    with Tf32():
        assert torch.equal(x @ y, torch.ones(1, 8))
        assert torch.equal(x + 0, x)
