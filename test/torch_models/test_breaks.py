"""Mistakes planted in the door: each is said by `validate`, or by a comparison with the module."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from edited import edit
from tiers import slow
from torch import nn

import tcir
import tcir.torch
from tcir.session.apart import compilers
from tcir.torch.calls import Call
from tcir.torch.exported import exported, torch_text
from tcir.torch.imports import checked
from tcir.validation.report import Line

from .breaks import CALLED, IMPORTED, Break


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def imported(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> Line:
    """The first line of `validate`."""
    graph = exported(Function(function).eval(), Call.of(inputs, {}), {})
    return checked(graph, compilers().linalg(torch_text(graph)))


def compiled(function: Callable[..., Any] | nn.Module, *args: Any, **kwargs: Any) -> Any:
    module = function if isinstance(function, nn.Module) else Function(function)
    return tcir.torch.compile(module.eval(), args, kwargs, pipeline="simt-elementwise")


def same(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Fails where a result is another one, of another type or strides than the function's."""
    check = {"rtol": 0, "atol": 0, "equal_nan": True, "check_stride": True}
    mine = compiled(function, *args, **kwargs)(*args, **kwargs)
    torch.testing.assert_close(mine, function(*args, **kwargs), **check)


def refuses(call: Callable[[], object], said: str) -> None:
    with pytest.raises(tcir.Error, match=said):
        call()


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.full((4,), n)) for n in (1.0, 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.a + self.b


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * 2


X = torch.arange(12.0).reshape(3, 4)


def _index() -> None:
    def put(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, (i,), v)

    same(put, X, torch.tensor([-1, 0]), torch.ones(2, 4))


def _outside() -> None:
    function = compiled(lambda x, i, v: x.index_copy(0, i, v), X, torch.tensor([0]), X[:1])
    refuses(lambda: function(X, torch.tensor([7]), X[:1]), "trap")


def _keywords() -> None:
    function = compiled(lambda a, b: a - b, a=X, b=X * 3)
    assert torch.equal(function(b=X * 3, a=X), X * -2)


def _aliases() -> None:
    y, turned = compiled(lambda x: ((y := x + 1), y.t()), X)(X)
    y.zero_()
    assert not turned.any()


def _weights() -> None:
    module = Weights()
    function = compiled(module, X)
    with torch.no_grad():
        module.a += 3
    module.b = nn.Parameter(torch.full((4,), 7.0))
    assert torch.equal(function(X), module(X))


def _state() -> None:
    module, other = Weights(), Weights()
    with torch.no_grad():
        other.a += 1
    function = compiled(module, X)
    assert list(function.state_dict()) == ["a", "b"]
    function.load_state_dict(other.state_dict())
    assert torch.equal(function(X), other(X))


def _linear() -> None:
    w, b = torch.randn(8, 4).half(), torch.ones(8).half()
    op = Function(lambda x: torch.ops.tcir.linear(x, w, b)).eval()
    mine = tcir.torch.compile(op, X.half())(X.half())
    torch.testing.assert_close(mine, torch.nn.functional.linear(X.half(), w, b))


def _training() -> None:
    refuses(lambda: tcir.torch.compile(nn.ReLU().train(), X), "training mode")


def _batches() -> None:
    torch._dynamo.reset()
    fast = torch.compile(lambda x: x * 2, backend="tcir", dynamic=True)
    for rows in (2, 3):
        assert torch.equal(fast(X[:rows]), X[:rows] * 2)


def _integers() -> None:
    torch._dynamo.reset()
    fast = torch.compile(lambda x, n: x * n, backend="tcir", dynamic=True)
    for number in (5, 7):
        assert torch.equal(fast(X, number), X * number)


def _validate() -> None:
    with pytest.MonkeyPatch.context() as patch:
        broken = IMPORTED[0]
        edit(patch, broken.place, broken.old, broken.new)
        assert isinstance(broken.tried, type(lambda: 0))
        assert imported(broken.tried, broken.inputs).verdict == "different"


CHECKS: dict[str, Callable[[], None]] = {
    "nan": lambda: same(torch.maximum, torch.full_like(X, torch.nan), X),
    "index": _index,
    "outside": _outside,
    "strides": lambda: same(lambda x: (x[:, :1] * 2).expand(-1, 8), X),
    "results": lambda: same(lambda x: (x + 1, x * 2), X),
    "arguments": lambda: same(lambda x, y: x - y, X, X * 3),
    "keywords": _keywords,
    "aliases": _aliases,
    "strided": lambda: same(lambda x: x + 1, X[:, ::2]),
    "bf16": lambda: same(lambda x: x + 1, X.bfloat16()),
    "weights": _weights,
    "state": _state,
    "shapes": lambda: refuses(lambda: compiled(lambda x: x + 1, X)(X[:2]), r"got \[2, 4\]"),
    "numbers": lambda: refuses(lambda: compiled(lambda x, n: x * n, X, 2)(X, 3), "got 3"),
    "structures": lambda: refuses(
        lambda: compiled(lambda x: x[0] + 1, [X])((X,)), "expected arguments like the example's"
    ),
    "linear": _linear,
    "training": _training,
    "writes": lambda: refuses(lambda: compiled(Counting(), X), "must not modify its arguments"),
    "batches": _batches,
    "integers": _integers,
    "validate": _validate,
}
"""By name; each holds, and fails where the door is broken."""


def cases(breaks: list[Break]) -> list[Any]:
    return [each if each.quick else slow(each) for each in breaks]


@pytest.mark.parametrize("broken", cases(IMPORTED), ids=lambda each: each.what)
def test_validate_says_it(broken: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(broken.tried)
    assert imported(broken.tried, broken.inputs).verdict == "within bound"
    edit(monkeypatch, broken.place, broken.old, broken.new)
    line = imported(broken.tried, broken.inputs)
    assert line.verdict == "different" and "result " in line.compared, line.compared


@pytest.mark.parametrize("broken", cases(CALLED), ids=lambda each: each.what)
def test_a_call_says_it(broken: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(broken.tried, str)
    edit(monkeypatch, broken.place, broken.old, broken.new)
    with pytest.raises((AssertionError, pytest.fail.Exception, tcir.Error, RuntimeError)):
        CHECKS[broken.tried]()


@pytest.mark.parametrize(
    "name", [each if each in ("strides", "weights") else slow(each) for each in CHECKS]
)
def test_the_check_holds(name: str) -> None:
    CHECKS[name]()
