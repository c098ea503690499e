"""Layers that torchao quantised, beside PyTorch in f64 with the weights that they stand for."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable

import pytest
from tiers import slow_but

if not all(map(importlib.util.find_spec, ("torch", "torchao"))):
    pytest.skip("torch or torchao is not installed", allow_module_level=True)

import torch
import torchao.quantization as ao
from torch import nn
from torchao.prototype.mx_formats import NVFP4WeightOnlyConfig

import tcir
import tcir.torch
from tcir.torch.imports import compared

GROUPS = ao.PerGroup(32)
CONFIGS: dict[str, Callable[[], ao.AOPerModuleConfig]] = {
    "int8": ao.Int8WeightOnlyConfig,
    "int8 groups": lambda: ao.Int8WeightOnlyConfig(granularity=GROUPS),
    "int8 both": ao.Int8DynamicActivationInt8WeightConfig,
    "int4 groups": lambda: ao.IntxWeightOnlyConfig(torch.int4, GROUPS),
    "int4 asymmetric": lambda: ao.IntxWeightOnlyConfig(
        torch.int4, GROUPS, mapping_type=ao.MappingType.ASYMMETRIC
    ),
    "int8 times int4": lambda: ao.Int8DynamicActivationIntxWeightConfig(
        torch.int4, weight_granularity=GROUPS
    ),
    "fp8": ao.Float8WeightOnlyConfig,
}
LAUNCHES = {"int8 both": 8, "int8 times int4": 4}
"""Of two layers; of those with quantised weights alone a product each, which dequantises them."""
KINDS = (torch.bfloat16, torch.float16, torch.float32)


def _perceptron(kind: torch.dtype) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(128, 96), nn.GELU(), nn.Linear(96, 64))
    return module.eval().to(kind), torch.randn(16, 128).to(kind)


def _exact(module: nn.Module) -> nn.Module:
    """The module in f64, with the weights that its quantised ones stand for."""
    wide = copy.deepcopy(module)
    for layer in wide.modules():
        if isinstance(layer, nn.Linear):
            weight = layer.weight.dequantize().double()
            layer.weight = nn.Parameter(weight, requires_grad=False)
    return wide.double()


@pytest.mark.parametrize("name", slow_but(("int8", "int4 groups"), CONFIGS))
@pytest.mark.parametrize("kind", slow_but((torch.bfloat16,), KINDS), ids=str)
def test_quantised_layers(name: str, kind: torch.dtype) -> None:
    module, x = _perceptron(kind)
    ao.quantize_(module, CONFIGS[name]())
    compiled = tcir.torch.compile(module, x)
    (part,) = compiled.table
    assert part.kernel is not None and not part.reason
    assert len(part.kernel.launches.launches) == LAUNCHES.get(name, 2), str(compiled.table)
    with torch.no_grad():
        own, exact = module(x), _exact(module)(x.double())
    more = 2.0**-9 if kind == torch.float32 else 0.0  # its factors are cut to tf32
    found = compared(compiled(x), own, exact, more)
    assert not found.failure
    assert [report.verdict for report in compiled.validate()] == ["held"]


def test_weights_are_read_at_each_call() -> None:
    """The tensors that a quantised weight is made of are arguments of the kernels."""
    module, x = _perceptron(torch.bfloat16)
    ao.quantize_(module, ao.Int8WeightOnlyConfig())
    compiled = tcir.torch.compile(module, x)
    before = compiled(x)
    with torch.no_grad():
        module[2].weight.scale.mul_(2)
        module[2].bias.zero_()
        again = module(x)
    assert torch.equal(compiled(x), again) and not torch.equal(before, again)


def test_torch_compile_takes_them() -> None:
    module, x = _perceptron(torch.bfloat16)
    ao.quantize_(module, ao.Int8WeightOnlyConfig())
    with torch.no_grad():
        assert torch.equal(torch.compile(module, backend="tcir")(x), module(x))


def test_weights_that_do_not_export_are_named() -> None:
    module, x = _perceptron(torch.bfloat16)
    ao.quantize_(module, NVFP4WeightOnlyConfig())
    with pytest.raises(tcir.InputError, match=r"weights of NVFP4Tensor: .*QuantizedLinear"):
        tcir.torch.compile(module, x)
