"""Modules on the device of their tensors: kernels of its target, launched there."""

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
from tcir.torch.tensors import target_of

from .models import Bottleneck, Mlp, made

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch sees")


def test_target_of_the_cpu_and_of_no_device_of_ours() -> None:
    assert target_of([torch.zeros(2)]) == target_of([]) == "sm_100a"
    with pytest.raises(tcir.InputError, match=r"on a GPU of sm_80.*got tensors on meta"):
        target_of([torch.zeros(2, device="meta")])


def test_tensors_of_two_devices_are_refused() -> None:
    model, (x,) = made(lambda: Mlp(64), torch.float16, (48, 64))
    compiled = tcir.torch.compile(model, (x,))
    with pytest.raises(tcir.InputError, match=r"tensors on one device, got .*meta"):
        compiled(x.to("meta"))


@pytest.mark.parametrize(("name", "major"), [("sm_90a", 9), ("sm_100a", 10)])
def test_target_of_a_gpu(monkeypatch: pytest.MonkeyPatch, name: str, major: int) -> None:
    class Tensor:
        device = torch.device("cuda:0")

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (major, 0))
    assert target_of([Tensor()]) == name
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (12, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "another GPU")
    with pytest.raises(tcir.InputError, match=r"got tensors on another GPU \(sm_120\)"):
        target_of([Tensor()])


def error(got: object, model: nn.Module, x: torch.Tensor) -> float:
    """Relative to the largest element of the result in f64."""
    right = copy.deepcopy(model).double()(x.double()).detach()
    assert isinstance(got, torch.Tensor) and got.device == x.device
    return float((got.detach().double() - right).abs().max() / right.abs().max())


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["mlp", "block"])
def test_compiled_module(kind: str) -> None:
    """Launched after `.to`; on another stream; in a CUDA graph; with changed weights."""
    if kind == "mlp":
        model, (x,) = made(lambda: Mlp(256), torch.float16, (128, 256))
    else:
        model, (x,) = made(Bottleneck, torch.float16, (2, 256, 28, 28))
    target = target_of([x.cuda()])
    compiled = tcir.torch.compile(model, (x,), target=target).to("cuda")
    x = x.cuda()
    assert error(compiled(x), model, x) < 2e-3
    with torch.cuda.stream(torch.cuda.Stream()):
        aside = compiled(x)
    torch.cuda.synchronize()
    assert torch.equal(aside, compiled(x))
    graph = torch.cuda.CUDAGraph()
    given = x.clone()
    with torch.cuda.graph(graph):
        result = compiled(given)
    given.copy_(x.flip(0))
    graph.replay()
    assert torch.equal(result, compiled(x.flip(0)))
    with torch.no_grad():
        next(model.parameters()).mul_(0.5)
    graph.replay()
    assert error(result, model, x.flip(0)) < 2e-3


@needs_gpu
@pytest.mark.gpu
def test_compiled_for_the_gpu_of_its_inputs() -> None:
    model, (x,) = made(lambda: Mlp(256), torch.float16, (128, 256))
    model, x = model.cuda(), x.cuda()
    compiled = tcir.torch.compile(model, (x,))
    assert compiled.target == target_of([x]) and "2 launches" in str(compiled.table)
    assert error(compiled(x), model, x) < 2e-3


@needs_gpu
@pytest.mark.gpu
def test_layer_and_op() -> None:
    layer = tcir.torch.Linear(256, 512, activation="relu", dtype=torch.bfloat16).eval().cuda()
    x = torch.randn(128, 256, device="cuda", dtype=torch.bfloat16)
    right = torch.relu(x.double() @ layer.weight.double().t() + layer.bias.double()).detach()
    for got in (layer(x), torch.ops.tcir.linear(x, layer.weight, layer.bias, "relu")):
        assert float((got.detach().double() - right).abs().max() / right.abs().max()) < 1.5e-2


@pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0),
    reason="no GPU of compute capability 9.0 that PyTorch sees",
)
@pytest.mark.gpu
def test_emulated_module() -> None:
    """Bits of the simulated machine; an NVFP4 layer, whose op chooses its target when it is called;
    in a CUDA graph."""
    torch.manual_seed(0)
    layer = tcir.torch.QuantizedLinear.from_linear(nn.Linear(256, 128).half())
    model, x = (
        nn.Sequential(nn.Linear(128, 256).half(), layer, nn.ReLU()).eval(),
        torch.randn(96, 128),
    )
    compiled = tcir.torch.compile(model, (x.half(),), emulate=True)
    simulated = compiled(x.half())
    compiled, given = compiled.to("cuda"), x.half().cuda()
    assert torch.equal(compiled(given).cpu(), simulated)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(given)
    given.zero_()
    graph.replay()
    assert torch.equal(result.cpu(), compiled(given).cpu())
    assert not torch.equal(result.cpu(), simulated)


@needs_gpu
@pytest.mark.gpu
def test_another_target_than_the_gpu_s() -> None:
    model, (x,) = made(lambda: Mlp(256), torch.float16, (128, 256))
    other = "sm_100a" if target_of([x.cuda()]) != "sm_100a" else "sm_90a"
    compiled = tcir.torch.compile(model, (x,), target=other).to("cuda")
    with pytest.raises(tcir.Error, match=other.removesuffix("a")):
        compiled(x.cuda())
