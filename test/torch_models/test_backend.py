"""torch.compile(backend="tcir"): shapes that change, gradients, modules in training, threads."""

from __future__ import annotations

import copy
import importlib.util
import io
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from tiers import slow_but
from torch import nn

import tcir.torch
from tcir.torch.compiled import Compiled

backend_module = sys.modules["tcir.torch.backend"]  # not the function of its name


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing that another test made dynamic."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Compiled]:
    """What the backend compiled."""
    found: list[Compiled] = []
    compile = backend_module.compiled

    def kept(*args: object) -> Compiled:
        found.append(compile(*args))
        return found[-1]

    monkeypatch.setattr(backend_module, "compiled", kept)
    return found


@pytest.mark.parametrize("dynamic", slow_but([None], [None, True, False]))
def test_batches(dynamic: bool | None, made: list[Compiled]) -> None:
    """A kernel for each batch; the same one for a batch that was there before."""
    model = nn.Linear(16, 8).eval()
    fast = torch.compile(model, backend="tcir", dynamic=dynamic)
    with torch.no_grad():
        for rows in (4, 6, 4, 6, 9):
            x = torch.randn(rows, 16)
            assert torch.allclose(fast(x), model(x), atol=5e-3)
    # the second graph, whose batch is a symbol, is asked first
    assert len(made) == (4 if dynamic is None else 3)
    assert all(len(each.kernels) == 1 for each in made)


def test_more_shapes_than_are_compiled_run_in_pytorch(
    made: list[Compiled], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_module, "MOST_SHAPES", 1)
    fast = torch.compile(lambda x: x * 2, backend="tcir", dynamic=True)
    for rows in (4, 6, 9):
        assert torch.equal(fast(torch.ones(rows, 3)), torch.full((rows, 3), 2.0))
    assert len(made) == 1


def test_an_integer_that_varies(made: list[Compiled]) -> None:
    fast = torch.compile(lambda x, n: x[:n] + n, backend="tcir")
    x = torch.randn(8, 4)
    for n in (2, 3, 5):
        assert torch.equal(fast(x, n), x[:n] + n)
    assert made


def test_gradients_reach_what_another_loss_does_not(made: list[Compiled]) -> None:
    """Of a compiled part of a model beside a penalty on its weights."""
    part, head = nn.Linear(8, 8), nn.Linear(8, 1)
    other = copy.deepcopy(part)
    x = torch.randn(4, 8)
    for layer, function in ((part, torch.compile(part, backend="tcir")), (other, other)):
        loss = head(function(x)).sum() + layer.weight.square().sum()
        loss.backward()
    assert part.weight.grad is not None and other.weight.grad is not None
    assert torch.allclose(part.weight.grad, other.weight.grad, rtol=2e-2, atol=2e-2)
    assert len(made) == 1 and made[0].kernels


def test_a_module_in_training() -> None:
    """Statistics of the batch, running ones written in place; the same after a step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU())
    other = copy.deepcopy(model)
    fast = torch.compile(model, backend="tcir")
    for _ in range(2):
        x = torch.randn(16, 8)
        results = []
        for run, parameters in ((fast, model), (other, other)):
            optimizer = torch.optim.SGD(parameters.parameters(), 0.1)
            results.append(run(x))
            results[-1].square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert torch.allclose(*results, atol=2e-2)
    for mine, theirs in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.allclose(mine.double(), theirs.double(), atol=2e-2)


def test_dropout_in_training() -> None:
    """Random numbers are PyTorch's."""
    fast = torch.compile(nn.Dropout(0.5).train(), backend="tcir")
    kept = fast(torch.ones(64, 64))
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(kept, fast(torch.ones(64, 64)))


def test_writes_in_place() -> None:
    """Of an argument, a buffer, and a view of an argument."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            x[:, 0] = 0
            return x.t() * self.count

    model, other = Counting(), Counting()
    fast = torch.compile(model, backend="tcir")
    for _ in range(2):
        x, y = torch.ones(4, 3), torch.ones(4, 3)
        assert torch.equal(fast(x), other(y)) and torch.equal(x, y)
        assert torch.equal(model.count, other.count)


def test_results_that_are_arguments_and_views() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return x, y, y.t(), y[0]

    x = torch.randn(4, 3)
    same, y, turned, first = torch.compile(function, backend="tcir")(x)
    assert same is x
    y.zero_()
    assert not turned.any() and not first.any()


def test_options_reach_the_compilation(made: list[Compiled]) -> None:
    fast = torch.compile(nn.ReLU(), backend="tcir", options={"target": "sm_90a"})
    x = torch.randn(4, 8)
    assert torch.equal(fast(x), x.relu())
    assert made[0].target == "sm_90a" and made[0].kernels[0].target == "sm_90a"
    default = torch.compile(nn.ReLU(), backend="tcir", mode="default")
    assert torch.equal(default(x), x.relu())


def test_two_threads_compile() -> None:
    models = [nn.Linear(16, n).eval() for n in (8, 16, 24)]
    x = torch.randn(4, 16)
    ready = threading.Barrier(len(models))

    def one(model: nn.Module) -> torch.Tensor:
        ready.wait()
        result = tcir.torch.compile(model, (x,))(x)
        assert isinstance(result, torch.Tensor)
        return result

    with ThreadPoolExecutor(len(models)) as threads:
        found = list(threads.map(one, models))
    for model, result in zip(models, found, strict=True):
        assert torch.allclose(result, model(x), atol=5e-3)


def test_two_threads_call_one() -> None:
    model = nn.Linear(16, 8).eval()
    xs = [torch.randn(4, 16) for _ in range(4)]
    compiled = tcir.torch.compile(model, (xs[0],))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(compiled, xs))
    for x, result in zip(xs, found, strict=True):
        assert torch.allclose(result, model(x), atol=5e-3)


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor, scale: float) -> dict[str, object]:
        y = self.layer(x) * scale
        return {"halves": y.chunk(2, -1), "erfc": torch.special.erfcx(y), "scale": scale}


def test_saved_and_loaded() -> None:
    """Kernels are kept; the weights that a checkpoint brings are read."""
    model, other = Halves().eval(), Halves().eval()
    x = torch.randn(4, 16)
    compiled = tcir.torch.compile(model, (x, 2.0))
    file = io.BytesIO()
    torch.save(compiled, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for each in (loaded, copy.deepcopy(compiled)):
        torch.testing.assert_close(each(x, 2.0), compiled(x, 2.0), rtol=0, atol=0)
        assert [kernel.ptx for kernel in each.kernels] == [k.ptx for k in compiled.kernels]
    loaded.load_state_dict(other.state_dict())
    torch.testing.assert_close(loaded(x, 2.0), other(x, 2.0), rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(compiled(x, 2.0), model(x, 2.0), rtol=2e-2, atol=2e-2)
    assert "left to PyTorch" in str(compiled.table)
