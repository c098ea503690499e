"""tcir.torch.compile beside eager PyTorch in f64."""

from __future__ import annotations

import copy
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir
import tcir.torch

from .models import Bottleneck, Decode, Mlp, Tokens, made


def errors(model: nn.Module, inputs: tuple[torch.Tensor, ...], results: object) -> list[float]:
    """The largest error of each result against f64, relative to the result's largest element."""
    wide = copy.deepcopy(model).double()
    with torch.no_grad():
        expected = wide(*(x.double() if x.is_floating_point() else x for x in inputs))
    pairs = zip(torch.utils._pytree.tree_leaves(results),
                torch.utils._pytree.tree_leaves(expected), strict=True)  # fmt: skip
    found = []
    for got, right in pairs:
        assert got.shape == right.shape
        found.append(float((got.double() - right).abs().max() / right.abs().max()))
    return found


@pytest.mark.parametrize(
    ("dtype", "bound"),
    [(torch.float16, 2e-3), (torch.bfloat16, 1.5e-2), (torch.float32, 3e-3)],
    ids=["f16", "bf16", "f32 as tf32"],
)
def test_mlp(dtype: torch.dtype, bound: float) -> None:
    model, inputs = made(lambda: Mlp(64), dtype, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    result = compiled(*inputs)
    assert isinstance(result, torch.Tensor) and result.dtype == dtype
    assert max(errors(model, inputs, result)) < bound
    assert str(compiled.table) == "linear, gelu, linear: layers, 2 launches"
    other = (inputs[0].flip(0) + 1,)
    assert max(errors(model, other, compiled(*other))) < bound


def test_weights_are_those_of_the_module() -> None:
    """They are arguments: a change of the module's weights in place is seen, no copy is used."""
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    before = compiled(*inputs)
    with torch.no_grad():
        model.down.bias += 1
    after = compiled(*inputs)
    assert torch.all(after > before) and max(errors(model, inputs, after)) < 2e-3


def test_what_no_pipeline_takes_is_left_to_pytorch() -> None:
    model, _ = made(Tokens, torch.float16)
    tokens = (torch.arange(24).reshape(2, 12) * 4,)
    compiled = tcir.torch.compile(model, tokens)
    assert max(errors(model, tokens, compiled(*tokens))) < 4e-3
    rows = {part.ops: part for part in compiled.table}
    assert rows[("embedding",)].kernel is None and "cf.assert" in rows[("embedding",)].reason
    assert rows[("sort",)].kernel is None and "tm_tensor.sort" in rows[("sort",)].reason
    assert "linear" in ", ".join(op for ops, part in rows.items() if part.kernel for op in ops)
    assert len(compiled.kernels) == 2


class Inverse(nn.Module):
    """1 / x, which torch-mlir's own lowering asserts to be of no zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.reciprocal(x) * 2


def test_reciprocal_of_zero_is_infinity() -> None:
    x = torch.tensor([[0.0, -0.0, 2.0, -4.0]])
    compiled = tcir.torch.compile(Inverse().eval(), (x,))
    assert str(compiled.table) == "reciprocal, mul: layers, 1 launch"
    assert torch.equal(compiled(x), torch.tensor([[torch.inf, -torch.inf, 1.0, -0.5]]))


def test_validation_finds_a_broken_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    assert [report.verdict for report in compiled.validate()] == ["held"]
    from tcir.passes.gemm import dense

    monkeypatch.setattr(dense, "ceil_div", lambda a, b: max(a // b - 1, 1))
    (report,) = compiled.validate()
    assert report.verdict == "different" and report.first_failure().name == "tile-gemm"


def test_not_contiguous_inputs() -> None:
    model, (x,) = made(lambda: Mlp(64), torch.float16, (64, 48))
    inputs = (x.t(),)
    assert max(errors(model, inputs, tcir.torch.compile(model, inputs)(*inputs))) < 2e-3


def test_backend_of_torch_compile() -> None:
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    with torch.no_grad():
        result = torch.compile(model, backend="tcir")(*inputs)
    assert max(errors(model, inputs, result)) < 2e-3


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * 2


@pytest.mark.parametrize(
    ("module", "inputs", "said"),
    [
        (nn.Linear(4, 4), (torch.ones(2, 4),), "got one in training mode"),
        (
            nn.Linear(4, 4).eval(),
            (np.ones((2, 4)),),
            "example input 0: expected a tensor, got",
        ),
        (Broken().eval(), (torch.ones(4),), "expected a module that torch.export takes"),
        (Counting().eval(), (torch.ones(4),), "changes none of its arguments and buffers"),
        (nn.Linear(4, 4).eval(), (torch.ones(2, 5),), "expected a module that torch.export takes"),
    ],
    ids=["training", "numpy", "control flow", "mutation", "shapes"],
)
def test_refusals(module: nn.Module, inputs: tuple, said: str) -> None:
    with pytest.raises(tcir.InputError, match=said):
        tcir.torch.compile(module, inputs)


def test_other_shapes_and_options() -> None:
    model, inputs = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, inputs)
    with pytest.raises(tcir.InputError, match=r"expected tensors \[48, 64\] of float16, .* got"):
        compiled(torch.ones(49, 64).half())
    with pytest.raises(tcir.Error, match="unknown pipeline 'layer'; did you mean 'layers'"):
        tcir.torch.compile(model, inputs, pipeline="layer")
    with pytest.raises(tcir.Error, match="sm_100"):
        tcir.torch.compile(model, inputs, target="sm_1")


def test_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; import tcir.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'tcir[torch]'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "shapes", "bound", "launches"),
    [
        (Mlp, [(128, 256)], 2e-3, 2),
        (Bottleneck, [(2, 256, 28, 28)], 4e-3, 6),
        (Decode, [(8, 1, 256), (8, 4, 255, 64), (8, 4, 255, 64)], 4e-3, 21),
    ],
    ids=["mlp", "bottleneck", "decode"],
)
def test_models(model: type[nn.Module], shapes: list, bound: float, launches: int) -> None:
    """Whole models: nothing is left to PyTorch, and every pass holds."""
    module, inputs = made(model, torch.float16, *shapes)
    compiled = tcir.torch.compile(module, inputs)
    assert max(errors(module, inputs, compiled(*inputs))) < bound
    (part,) = compiled.table
    assert len(part.kernel.launches.launches) == launches
    assert [report.verdict for report in compiled.validate()] == ["held"]
