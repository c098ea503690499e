"""Whole networks: none fails, kernels have their contractions, and errors are PyTorch's."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

import pytest
from tiers import slow

if not all(map(importlib.util.find_spec, ("torch", "transformers", "diffusers"))):
    pytest.skip("torch, transformers or diffusers is not installed", allow_module_level=True)

import torch

from tcir.tools.dev.networks import page, rows
from tcir.tools.dev.networks.measured import Tf32, measure
from tcir.tools.dev.networks.network import LEAST, Network
from tcir.tools.dev.networks.table import NETWORKS
from tcir.torch import lowering

QUICK = (
    "MLP", "int8 weights", "Graph network", "Mixture of experts", "nn.TransformerEncoderLayer",
    "UNet", "LSTM", "GRU", "ViT", "Albert", "Bert", "MLP-Mixer",
)  # fmt: skip
EACH = [
    (network.name, kind)
    if kind == torch.float16 and network.name in QUICK
    else slow(network.name, kind)
    for network in NETWORKS.values()
    for kind in network.types
]


@pytest.mark.parametrize(("name", "kind"), EACH)
def test_network(name: str, kind: torch.dtype) -> None:
    found = measure(NETWORKS[name], kind)
    assert not found.failures
    assert found.share >= LEAST, found.left


def test_no_network_of_the_page_failed() -> None:
    found = rows.merged(page.TARGET)
    assert len(found) > 50 and set(found) <= set(page.wanted(list(NETWORKS)))
    assert not rows.failures(found)
    written, made = page.TARGET.read_text(encoding="utf-8"), page.document(found)
    assert written.split("\n", 5)[5] == made.split("\n", 5)[5]  # PyTorch's version is above


MLP, OTHER = ("MLP", "f16"), ("Bert, eager attention", "bf16")


def _line(key: tuple[str, str], share: str = "100.0%", error: str = "1e-3 / 1e-3") -> str:
    return f"| {key[0]} | {key[1]} | 3 | 1 | 0 | 1 | 2 | {share} | 7 | 1 | 556 | {error} |"


def test_rows_of_several_files_are_merged(tmp_path: Path) -> None:
    """A later row replaces an earlier one, and what that said is left to PyTorch."""
    first, second, written = (tmp_path / name for name in ("first", "second", "page.md"))
    first.write_text(f"{_line(MLP)}\n- **MLP** (f16): relu: a reason\n{_line(OTHER)}\n")
    second.write_text(f"{_line(MLP, error='2e-3 / 2e-3')}\n")
    assert page.main(["--merge", str(first), str(second), "--write", str(written)]) == 0
    assert rows.merged(written) == {
        MLP: [_line(MLP, error="2e-3 / 2e-3")],
        OTHER: [_line(OTHER)],
    }
    assert page.main(["--merge", str(first), "--write", str(written)]) == 0
    assert "- **MLP** (f16): relu: a reason\n" in written.read_text(encoding="utf-8")


def test_a_network_that_fails_or_dies_has_a_row_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, command = tmp_path / "rows", ["--only", "MLP,Bert, eager attention", "--types", "f16"]
    fake = tmp_path / "python"
    other = (OTHER[0], "f16")
    fake.write_text(f"#!/bin/sh\n[ $3 = MLP ] && kill -9 $$\necho '{_line(other)}'\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    assert page.main([*command, "--jobs", "2", "--rows", str(found)]) == 1
    assert rows.merged(found) == {
        MLP: rows.failed(*MLP, "its process ended with status -9"),
        other: [_line(other)],
    }


def test_too_small_a_share_fails() -> None:
    assert rows.failures({MLP: [_line(MLP, share="97.9%")]})
    assert not rows.failures({MLP: [_line(MLP, share="98.0%")]})


def test_names_with_commas() -> None:
    assert page.named("Bert, eager attention,Bert,GPT2") == [
        "Bert, eager attention",
        "Bert",
        "GPT2",
    ]
    with pytest.raises(argparse.ArgumentTypeError, match="got 'Bertha'; there are Bert;"):
        page.named("MLP,Bertha")


class Two(torch.nn.Module):
    """A product, what no pipeline takes, and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.lgamma(torch.relu(self.first(x)) + 1)) + 1


TWO = Network("two", Two, lambda: {"x": torch.randn(32, 64)})


def test_one_kind_of_op_that_is_refused() -> None:
    """One attempt says that there is one, and no other op is cut off."""
    found = measure(TWO, torch.float16)
    assert not found.failures and found.share == 1
    assert found.regions == 2 and found.attempts == 3 and found.kinds == 1
    assert list(found.left.values()) == [["lgamma"]]


def test_a_wrong_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of another network: the check does not hold whatever comes."""
    text = lowering.torch_text
    monkeypatch.setattr(
        lowering, "torch_text", lambda *part: text(*part).replace("aten.relu", "aten.neg")
    )
    assert measure(TWO, torch.float16).failures


def test_tf32_is_what_pytorch_is_compared_with() -> None:
    x, y = torch.full((1, 8), 1 + 2.0**-12), torch.eye(8)
    with Tf32():
        assert torch.equal(x @ y, torch.ones(1, 8))
        assert torch.equal(x + 0, x)
