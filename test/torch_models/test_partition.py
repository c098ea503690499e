"""Which ops become regions, and what an error of one costs."""

from __future__ import annotations

import importlib
import importlib.util
import re
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch

import tcir
from tcir.errors import InputError, InvalidIRError
from tcir.progress import left
from tcir.session.apart import Compilers
from tcir.torch import entry, exported, lowering
from tcir.torch.calls import Call
from tcir.torch.choices import CHOICES

from .models import Mlp, Tokens, made


class Layers(torch.nn.Module):
    """Layers alike, with a softmax each."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.softmax(layer(torch.relu(x)), -1)
        return x


def test_a_cut_is_at_the_place_of_the_error_and_at_those_like_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fold that fails behind a softmax: the three parts are two kinds, and no op is asked but
    that at the place."""
    started, texts = lowering._Work._compiled, []

    def broken(self: lowering._Work, text: str, *rest: Any) -> object:
        texts.append(text)
        places = re.findall(r"aten\.relu.* loc\(#(\w+)\)", text)
        if len(places) > 1:
            (line,) = re.findall(rf'#{places[1]} = loc\("aten":(\d+)', text)
            raise tcir.Error(f"aten:{line}:0: expected one softmax, got 2; no way out")
        return started(self, text, *rest)

    monkeypatch.setattr(lowering._Work, "_compiled", broken)
    model, inputs = made(lambda: Layers(3), torch.float16, (48, 64))
    found = lowering.lower(*graph_and_units(model, inputs), "layers", "sm_100a", lambda line: None)
    assert [len(region.nodes) for region in found.regions] == [3, 3, 3]
    assert {region.cut for region in found.regions} == {"expected one softmax, got 2; no way out"}
    assert (found.kinds, found.attempts, len(texts)) == (1, 2, 2)


def test_what_the_importer_refuses_is_found_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of Python in a decomposition."""

    def refused(*_: object) -> object:
        raise tcir.InputError("expected no relu, got one; no way out")

    monkeypatch.setitem(CHOICES, torch.ops.aten.relu.default, refused)
    model, inputs = made(lambda: Layers(2), torch.float16, (48, 64))
    found = lowering.lower(*graph_and_units(model, inputs), "layers", "sm_100a", lambda line: None)
    assert found.kinds == 1 and found.attempts == 2 and len(found.regions) == 2  # which are alike
    assert set(found.left.values()) == {
        "torch-mlir does not import it: expected no relu, got one; no way out"
    }


def test_each_region_has_the_reason_of_its_own_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two regions that are refused for two reasons, of which the first names a place that the
    second does not have."""
    model, inputs = made(lambda: Layers(2), torch.float16, (48, 64))
    graph, units = graph_and_units(model, inputs)
    monkeypatch.setattr(lowering, "_regions", lambda _, some: [[u] for u in some] or [])
    reasons = iter(f"aten:{place}:0: expected less, got {place}" for place in range(9, 0, -1))
    monkeypatch.setattr(lowering._Work, "_text", lambda *_, **__: ("", next(reasons), ()))
    found = lowering.lower(graph, units, "layers", "sm_100a", lambda line: None)
    assert not found.regions and len(set(found.left.values())) == len(units)


class Positions(torch.nn.Module):
    """A table that is made where the input is, and one that is made on a device."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.arange(x.shape[-1], device=x.device, dtype=x.dtype)


def test_a_program_is_imported_wherever_it_makes_its_tensors() -> None:
    """Examples of the importer are on the CPU; a graph traced on a GPU makes tensors there."""
    graph, _ = graph_and_units(*made(Positions, torch.float16, (4, 8)))
    made_there = [node for node in graph.graph.nodes if "device" in node.kwargs]
    assert made_there
    for node in made_there:
        node.update_kwarg("device", torch.device("cuda:0"))
    graph.recompile()
    assert "torch.aten" in exported.torch_text(graph)


def test_what_is_left_to_compile_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate first; then by the rate of what is done."""
    model, inputs = made(Tokens, torch.float16)[0], (torch.arange(24).reshape(2, 12),)
    monkeypatch.setattr(lowering, "PER_OP", 1000.0)
    lines: list[str] = []
    lowering.lower(*graph_and_units(model, inputs), "layers", "sm_100a", lines.append)
    assert lines[0] == "7 ops in 1 region: about 117 minutes (estimated)"
    said, first, second = lines[1:]
    assert said.endswith("without lgamma: 2 regions")
    assert re.fullmatch(r"\d ops: \d+ launches, \d+\.\d s; about \d+ s left", first)
    assert re.fullmatch(r"\d ops: \d+ launches, \d+\.\d s", second)


def test_the_rate_of_what_is_done_is_trusted_little_by_little() -> None:
    assert left(0, 5, 100) == 100
    assert left(0.5, 10, 100) == 10
    assert left(0.125, 10, 100) == 0.875 * (0.5 * 80 + 0.5 * 100)


def graph_and_units(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
) -> tuple[torch.fx.GraphModule, list[exported.Unit]]:
    graph = exported.exported(model, Call.of(inputs, {}), exported.weights_of(model))
    return graph, exported.units(graph.graph)


def test_the_compiler_starts_before_pytorch_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    running = []

    def traced(*_: object) -> None:
        running.append(children._all[0]._process is not None)
        raise InputError("not traced")

    with Compilers(1) as children:
        monkeypatch.setattr(entry, "compilers", lambda: children)
        monkeypatch.setattr(entry, "exported", traced)
        with pytest.raises(InputError, match="not traced"):
            tcir.torch.compile(Mlp().eval(), torch.randn(128, 256))
    assert running == [True]


def test_a_fault_of_a_pass_is_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invalid IR is no mistake of the user's: it is an internal error, at the op it came from."""
    _apart_main = importlib.import_module("tcir.session._apart_main")
    text = exported.torch_text(graph_and_units(*made(lambda: Mlp(64), torch.float16, (48, 64)))[0])
    line = next(
        n for n, each in enumerate(_apart_main.linalg(text).split("\n"), 1) if "erf" in each
    )

    def broken(mlir: str, *_: object, **__: object) -> object:
        raise InvalidIRError(f'pass left invalid IR: error: "<text>":{line}:13: not an op')

    monkeypatch.setattr(_apart_main, "compile_program", broken)
    with pytest.raises(InvalidIRError, match=r"^pass left invalid IR: error: aten:2:0: not an op$"):
        _apart_main.lower(text, pipeline="layers", target="sm_100a")


class Turned(torch.nn.Module):
    """A copy of a transposed matrix, and one of a matrix in another shape."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.t().contiguous(), x.view(-1).clone()


def test_a_copy_in_another_order_is_a_kernel_and_a_plain_copy_is_none() -> None:
    model, inputs = made(Turned, torch.float16, (48, 64))
    _, units = graph_and_units(model, inputs)
    copies = [unit for unit in units if exported.name_of(unit) == "clone"]
    assert [lowering._computes(unit) for unit in copies] == [True, False]
    compiled = tcir.torch.compile(model, inputs)
    assert len(compiled.kernels) == 1, str(compiled.table)
    for mine, theirs in zip(compiled(*inputs), model(*inputs), strict=True):
        assert torch.equal(mine, theirs)
