"""1,000 calls of tcir.torch that mean harm: each ends well, with `tcir.Error`, or in PyTorch.

Modules, example inputs, options and tensors of a call are drawn from a seed; so are the arguments
of the two ops and of the two layers.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir
import tcir.torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from hostile_values import Draw, value

COUNT, QUICK = 1000, 60
KINDS = [torch.float16, torch.float16, torch.float16, torch.bfloat16, torch.float32, torch.float64,
         torch.int8, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn]  # fmt: skip
SIZES = [0, 1, 8, 16, 16, 17, 32, 32, 64]


class Odd(nn.Module):
    """Returns what it was made with."""

    def __init__(self, what: Any) -> None:
        super().__init__()
        self.what = what

    def forward(self, *inputs: Any) -> Any:
        return self.what(*inputs) if callable(self.what) else self.what


def tensor(draw: Draw, shape: list[int] | None = None) -> Any:
    """A tensor of any shape, type and layout; sometimes none."""
    if draw.random() < 0.1:
        return value(draw)
    if shape is None or draw.random() < 0.2:
        shape = [draw.choice(SIZES) for _ in range(draw.choice([0, 1, 2, 2, 2, 3, 4]))]
    kind = draw.choice(KINDS) if draw.random() < 0.3 else torch.float16
    made = torch.ones(shape).to(kind)
    match draw.randrange(16):
        case 0 if made.ndim:
            return made.transpose(0, -1)
        case 1:
            return torch.empty(shape, dtype=kind, device="meta")
        case 2 if made.ndim:
            return torch.ones((), dtype=kind).expand([2**31, *shape[1:]])
        case 3 if kind.is_floating_point and kind.itemsize > 1:
            return made.requires_grad_()
        case 4 if made.ndim == 2 and kind == torch.float32:
            return made.to_sparse()
        case 5 if kind.is_floating_point and kind.itemsize > 1:
            return torch.full(shape, draw.choice([float("nan"), float("inf"), -0.0]), dtype=kind)
        case 6 if made.ndim:
            return made[:-1]
        case 7:
            return nn.Parameter(made, requires_grad=False)
    return made


def module(draw: Draw) -> tuple[Any, list[Any]]:
    """A module of 16 to 32 features or channels and inputs for it."""
    x, image = torch.ones(16, 16).half(), torch.ones(1, 16, 8, 8).half()
    linear = nn.Linear(16, 32, bias=draw.random() < 0.5)
    conv = nn.Conv2d(16, 16, draw.choice([1, 3]), stride=draw.choice([1, 2, 9]),
                     padding=draw.choice([0, 1]), groups=draw.choice([1, 2, 16]))  # fmt: skip
    made, given = draw.choice([
        (linear, [x]), (nn.Sequential(linear, nn.ReLU()), [x]), (conv, [image]),
        (nn.Embedding(8, 16), [torch.ones(4, dtype=torch.long)]), (nn.LSTM(16, 16), [x]),
        (tcir.torch.Linear(16, 32, activation="gelu"), [x]), (nn.Identity(), [x]),
        (tcir.torch.QuantizedLinear(32, 16, format=draw.choice(["nvfp4", "mxfp8_e4m3"])),
         [torch.ones(16, 32).half()]),
        (nn.Dropout(0.5), [x]), (nn.BatchNorm2d(16), [image]), (nn.Module(), [x]),
        (Odd(draw.choice([torch.sort, torch.topk, torch.svd, lambda a: a.item(), lambda *_: {},
                          lambda a: (a, None), lambda a: a.numpy(), 3, None,
                          lambda a: a if a.sum() > 0 else -a, lambda a: a.add_(1)])), [x]),
    ])  # fmt: skip
    if not isinstance(made, tcir.torch.QuantizedLinear):
        made = made.to(draw.choice([torch.float16, torch.float16, torch.float64, torch.bfloat16]))
    return (made if draw.random() < 0.05 else made.eval()), given


def compiles(draw: Draw) -> Callable[[], object]:
    """`tcir.torch.compile`, and a call of what it gives."""
    made, given = module(draw)
    more: dict[str, Any] = {}
    for _ in range(draw.choice([0, 1, 1, 2])):
        match draw.randrange(5):
            case 0:
                made = value(draw)
            case 1:
                given = [tensor(draw) for _ in range(draw.choice([0, 1, 2]))]
            case 2:
                more[draw.choice(["pipeline", "target"])] = value(draw)
            case 3:
                more["pipeline"] = draw.choice(["gemm", "conv", "layers{stages=-1}", "matmul-warp"])
            case _:
                more["target"] = draw.choice(["sm_90a", "sm_90", "sm_80"])
    later = [tensor(draw) for _ in given] if draw.random() < 0.3 else given

    def work() -> object:
        return tcir.torch.compile(made, given, **more)(*later)

    return work


def ops(draw: Draw) -> Callable[[], object]:
    """The two ops."""
    x, weight = tensor(draw, [16, 32]), tensor(draw, [16, 32])
    if draw.random() < 0.5:
        bias = draw.choice([None, None, tensor(draw, [16])])
        name = draw.choice(["none", "relu", value(draw)])
        return lambda: torch.ops.tcir.linear(x, weight, bias, name)
    layer = tcir.torch.QuantizedLinear(32, 16)
    given = [x, layer.weight, layer.weight_scale, layer.alpha, layer.norm, None, "nvfp4", "none"]
    for _ in range(draw.choice([0, 1, 2])):
        given[draw.randrange(1, 8)] = tensor(draw)
    return lambda: torch.ops.tcir.quantized_linear(*given)


def layers(draw: Draw) -> Callable[[], object]:
    """The two layers."""
    x = tensor(draw, [16, 32])
    sizes = [draw.choice([16, 32, 0, -1, 17, value(draw)]), draw.choice([16, 32, 1, value(draw)])]
    more = {
        name: value(draw)
        for name in draw.sample(["activation", "format", "dtype", "bias"], draw.choice([0, 1, 2]))
    }
    match draw.randrange(3):
        case 0:
            more.pop("format", None)
            return lambda: tcir.torch.Linear(*sizes, **more)(x)
        case 1:
            return lambda: tcir.torch.QuantizedLinear(*sizes, **more)(x)
    source = draw.choice([nn.Linear(32, 16), nn.Linear(32, 16).half(), nn.Linear(17, 8),
                          nn.Conv2d(1, 1, 1), value(draw)])  # fmt: skip
    more = {n: value(draw) for n in draw.sample(["activation", "input_amax"], draw.choice([0, 1]))}
    form = draw.choice(["nvfp4", "mxfp4", "mxfp8_e5m2", value(draw)])
    return lambda: tcir.torch.QuantizedLinear.from_linear(source, form, **more)(x)


def wrong(seed: int) -> str:
    """What is wrong with the way that a call ended; "" if nothing is."""
    draw = random.Random(seed)
    work = draw.choice([compiles, ops, layers])(draw)
    begun, said = time.process_time(), ""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            work()
    except tcir.Error as error:
        text = str(error)
        said = "" if text.strip() and "internal" not in text else f"says {text[:200]!r}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if "/tcir/" in last.filename and "DefaultCPUAllocator" not in str(error):
            said = f"{type(error).__name__}: {str(error)[:200]} ({last.filename}:{last.lineno})"
    spent = time.process_time() - begun
    return said or (f"{spent:.0f} s" if spent > 60 else "")


def _all_of(seeds: range) -> list[str]:
    found = [(seed, wrong(seed)) for seed in seeds]
    return [f"seed {seed}: {what}" for seed, what in found if what]


def test_some_calls() -> None:
    found = _all_of(range(QUICK))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(QUICK, COUNT, 94))
def test_calls(first: int) -> None:
    found = _all_of(range(first, first + 94))
    assert not found, "\n".join(found)
