"""The trace of a region, before its import: ATen ops without writes, which compute what the region
does. The oracle is eager PyTorch, in f64."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from tcir.torch import exported as module_of_trace
from tcir.torch.calls import Call
from tcir.torch.decompositions import decompositions
from tcir.torch.exported import PLACE, exported, torch_text, weights_of

aten = torch.ops.aten
Function = Callable[..., Any]


class Region(nn.Module):
    """A function as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Calls it."""
        return self.function(*tensors)


def region(module: nn.Module, tensors: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    """A module as one region, whose arguments are the tensors and the weights."""
    return exported(module.eval(), Call.of(tuple(tensors), {}), weights_of(module))


def as_written(function: Function, tensors: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    """A region with the ops in place that a function has."""
    found = make_fx(function, tracing_mode="fake")(*tensors)
    assert isinstance(found, torch.fx.GraphModule)
    return found


def trace(part: torch.fx.GraphModule, patch: pytest.MonkeyPatch) -> torch.fx.GraphModule:
    """What is imported of a region."""
    graphs: list[torch.fx.Graph] = []

    def kept(graph: torch.fx.Graph) -> str:
        graphs.append(graph)
        return ""

    with patch.context() as inside:
        inside.setattr(module_of_trace, "_imported", kept)
        torch_text(part)
    (graph,) = graphs
    assert all(node.users for node in graph.nodes if node.op == "call_function")
    assert graph.owning_module is not None
    return torch.fx.GraphModule(graph.owning_module, graph)


def targets(graph: torch.fx.GraphModule) -> set[object]:
    return {node.target for node in graph.graph.nodes if node.op == "call_function"}


def check(
    part: torch.fx.GraphModule,
    tensors: Sequence[torch.Tensor],
    patch: pytest.MonkeyPatch,
    wanted: Sequence[torch.Tensor],
    room: float = 1e-12,
) -> torch.fx.GraphModule:
    """Compares the trace's results with those of eager PyTorch, writes included; returns it."""
    made = trace(part, patch)
    before = [each.clone() for each in tensors]
    written = [n.target for n in made.graph.nodes if getattr(n.target, "_schema", None)
               and n.target._schema.is_mutable]  # fmt: skip
    assert not written
    found = tree_leaves(made(*tensors))
    assert all(torch.equal(a, b) for a, b in zip(before, tensors))
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted):
        assert got.shape == want.shape
        assert torch.allclose(got.double(), want.double(), rtol=room, atol=room, equal_nan=True)
    return made


def run(
    function: Function | nn.Module,
    tensors: Sequence[torch.Tensor],
    patch: pytest.MonkeyPatch,
    room: float = 1e-12,
) -> torch.fx.GraphModule:
    """Checks a module, or a function as one."""
    module = function if isinstance(function, nn.Module) else Region(function)
    wanted = tree_leaves(module(*(each.clone() for each in tensors)))
    given = (*tensors, *(each.detach() for each in weights_of(module).values()))
    return check(region(module, tensors), given, patch, wanted, room)


def numbers(*shape: int, kind: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.manual_seed(sum(shape))).to(
        kind
    )


# --- ops in place --------------------------------------------------------------------------------


def add_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.add_(1)
    return y * x


def copy_into_a_slice(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[1:3].copy_(z[:2])
    return y


def write_through_a_view(x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.clone()
    column = y.t()[0]
    column.mul_(z[:, 1])
    return y, column + 1


def write_after_a_read(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    before = y * 2
    y.zero_()
    return before + y


IN_PLACE: dict[str, tuple[Function, int]] = {
    "add_": (add_in_place, 1),
    "copy_ into a slice": (copy_into_a_slice, 2),
    "through a view": (write_through_a_view, 2),
    "after a read": (write_after_a_read, 1),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_ops_in_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a module, which torch.export makes functional, and in a region that has them still."""
    function, count = IN_PLACE[name]
    tensors = [numbers(4, 5), numbers(4, 5) + 1][:count]
    run(function, tensors, monkeypatch)
    part = as_written(function, tensors)
    assert any(target._schema.is_mutable for target in targets(part))  # type: ignore[attr-defined]
    check(part, tensors, monkeypatch, tree_leaves(function(*tensors)))


def with_table(patch: pytest.MonkeyPatch, table: dict[Any, Function]) -> None:
    patch.setattr(module_of_trace, "decompositions", lambda: decompositions() | table)


def test_a_decomposition_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not functional: PyTorch applies it below the tracer that replaces writes."""

    def relu(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        y[:2].copy_(x[:2])
        y[2:] = x[2:]
        return y.mul_(y > 0)

    with_table(monkeypatch, {aten.relu.default: relu})
    made = run(lambda x: torch.relu(x) + x, [numbers(4, 5)], monkeypatch)
    assert aten.relu.default not in targets(made)


# --- decompositions that leave an op -------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "op"),
    [
        pytest.param(torch.erf, aten.erf.default, id="an op of a kernel"),
        pytest.param(lambda x: functional.pad(x, (1, 2)), aten.pad.default, id="a composite op"),
    ],
)
def test_not_implemented(function: Function, op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The op does what it does without the decomposition; one that takes the op replaces it."""
    x = numbers(4, 5)
    monkeypatch.setattr(module_of_trace, "either", lambda ours, _: ours)
    asked: list[object] = []

    def left(*args: Any, **kwargs: Any) -> object:
        asked.append(args)
        return NotImplemented

    with_table(monkeypatch, {op: left})
    run(function, [x], monkeypatch)
    assert asked
    with_table(monkeypatch, {op: lambda x, *_: aten.neg.default(x)})
    made = trace(region(Region(function), [x]), monkeypatch)
    assert targets(made) == {aten.neg.default}


def test_torch_mlirs_decomposition_is_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ours leaves an op that torch-mlir decomposes."""
    x = numbers(4, 5)
    with_table(monkeypatch, {aten.tanh_backward.default: lambda *_: NotImplemented})
    made = run(aten.tanh_backward.default, [x, x], monkeypatch)
    assert aten.tanh_backward.default not in targets(made)


# --- constants -----------------------------------------------------------------------------------


class Constants(nn.Module):
    """Tensors of a module that are no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.table = numbers(5)
        self.register_buffer("kept", numbers(5) + 1, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Adds and multiplies them, and one that it makes."""
        made = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
        return (x + self.table) * self.kept + made * torch.arange(5)


def test_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    made = run(Constants(), [numbers(4, 5)], monkeypatch)
    kept = [node for node in made.graph.nodes if node.op == "get_attr"]
    assert len(kept) == 2  # the table, and the list of numbers


# --- types ---------------------------------------------------------------------------------------

f16, bf16, f32 = torch.float16, torch.bfloat16, torch.float32


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        pytest.param(lambda a, b: a + b, (f16, f32), id="f16 and f32"),
        pytest.param(lambda a, b: a * b, (f16, bf16), id="f16 and bf16"),
        pytest.param(lambda a: a * 2.5 + 1, (f16,), id="f16 and numbers"),
        pytest.param(lambda a: a.int() / 2, (f32,), id="a quotient of integers"),
        pytest.param(lambda a: (a > 0).sum() + 1, (f16,), id="a sum of booleans"),
        pytest.param(lambda a: a.sum(-1), (f16,), id="a sum"),
        pytest.param(lambda a: functional.softmax(a, -1, dtype=f32), (f16,), id="a softmax in f32"),
        pytest.param(lambda a, b: torch.where(a > 0, a, b), (f16, f32), id="a choice"),
    ],
)
def test_types(function: Function, kinds: Sequence[torch.dtype], monkeypatch: Any) -> None:
    """A result has the type that eager PyTorch gives it."""
    tensors = [numbers(4, 5, kind=kind) for kind in kinds]
    wanted = function(*(each.double() for each in tensors))
    made = check(region(Region(function), tensors), tensors, monkeypatch, [wanted], 2e-3)
    (result,) = tree_leaves(made(*tensors))
    assert result.dtype == function(*tensors).dtype


@pytest.mark.parametrize("kind", [f16, bf16])
def test_a_bias_keeps_its_type(kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The region reads weights as they are in memory: only the product's sum is wider."""
    module = nn.Linear(5, 3).to(kind)
    x = numbers(4, 5, kind=kind)
    made = run(module, [x], monkeypatch, 2.0**-7)
    places = [node for node in made.graph.nodes if node.op == "placeholder"]
    assert [node.meta["val"].dtype for node in places] == [kind] * 3
    (result,) = made.graph.output_node().all_input_nodes
    assert result.meta["val"].dtype == kind


# --- views, and results that are arguments -------------------------------------------------------

VIEWS: dict[str, Function] = {
    "a view": lambda x, z: x.t()[1:],
    "an argument": lambda x, z: (x, z + x),
    "one result twice": lambda x, z: (x + z,) * 2,
    "a view and what it is of": lambda x, z: (x, x[:, ::2], x.reshape(-1)),
    "no argument": lambda x, z: torch.ones(3, dtype=torch.float64) * 2,
    "an argument that nothing reads": lambda x, z: z * z,
    "equal ops": lambda x, z: x.t() @ z + (x.t() @ z) * 2,
    "a result of several": lambda x, z: x.topk(2, -1)[1] + x.max(-1)[1][:, None],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_and_arguments(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [numbers(4, 5), numbers(4, 5) + 1]
    made = run(VIEWS[name], tensors, monkeypatch)
    places = [node for node in made.graph.nodes if node.op == "placeholder"]
    assert len(places) == 2
    if name == "equal ops":
        products = [node for node in made.graph.nodes if node.target is aten.mm.default]
        assert len(products) == 1


@pytest.mark.parametrize("strides", [(1, 4), (10, 2), (0, 1)], ids=str)
def test_strides_of_arguments(strides: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A result has them where eager PyTorch keeps them."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x.reshape(-1) * x.t().reshape(-1)

    x = numbers(64).as_strided((4, 5), strides)
    made = check(as_written(function, [x]), [x], monkeypatch, function(x))
    first, _ = made.graph.output_node().all_input_nodes
    assert first.meta["val"].stride() == function(x)[0].stride()


def test_locations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each op is at the place of the region's op that it was made of."""
    part = region(Region(lambda x: torch.softmax(torch.erf(x), -1) + 1), [numbers(4, 5)])
    ops = [node for node in part.graph.nodes if node.op == "call_function"]
    (number,) = [n for n, node in enumerate(ops, 1) if node.target is aten.erf.default]
    made = trace(part, monkeypatch)
    lines = {}
    for node in made.graph.nodes:
        if node.op == "call_function":
            found = PLACE.search(node.meta["stack_trace"])
            assert found is not None
            lines.setdefault(int(found[1]), []).append(node.target)
    assert lines[number] == [aten.erf.default]
    assert len(lines) > 1 and set(lines) <= set(range(1, len(ops) + 1))


# --- random regions ------------------------------------------------------------------------------

STEPS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "add_": lambda x, n: x.clone().add_(n),
    "row": lambda x, n: write(x, n, lambda y: y.select(0, n % y.shape[0]).mul_(2)),
    "slice": lambda x, n: write(x, n, lambda y: y.narrow(-1, 0, 1 + n % y.shape[-1]).fill_(n)),
    "turn": lambda x, n: x.transpose(0, -1),
    "flat": lambda x, n: x.reshape(1, -1),
    "sum": lambda x, n: x.sum(n % x.dim(), keepdim=True),
    "max": lambda x, n: x.amax(n % x.dim(), keepdim=True) + x,
    "norm": lambda x, n: functional.layer_norm(x, x.shape[-1:]),
    "softmax": lambda x, n: torch.softmax(x, n % x.dim()),
    "gelu": lambda x, n: functional.gelu(x),
    "pad": lambda x, n: functional.pad(x, (n % 3, 1)),
    "flip": lambda x, n: x.flip(n % x.dim()),
    "roll": lambda x, n: x.roll(n, -1),
    "where": lambda x, n: torch.where(x > 0, x, n),
    "var": lambda x, n: x.var(n % x.dim(), unbiased=False, keepdim=True) + x,
}


def write(x: torch.Tensor, n: int, what: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A copy of which a view was written."""
    y = x.clone()
    what(y)
    return y + n


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    steps=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 7)), max_size=4),
)
@settings(max_examples=10)
def test_random_regions(shape: list[int], steps: list[tuple[str, int]]) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = [x]
        for name, number in steps:
            made.append(STEPS[name](made[-1], number))
        return made[-1] * 2, made[len(made) // 2]

    x = numbers(*shape)
    with pytest.MonkeyPatch.context() as patch:
        check(as_written(function, [x]), [x], patch, function(x), 1e-11)
