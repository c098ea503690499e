"""Linear layers whose weights a module dequantises itself, as torchao and GPTQ's plain code do."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from tiers import slow

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn

import tcir.torch
from tcir.torch.imports import compared

ROWS, K = 96, 128


class WeightOnly(nn.Module):
    """`wide()` is the dequantised weight, rounded as the forward pass rounds it."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        self.kind = kind
        self.generator = torch.Generator().manual_seed(0)

    def scales(self, *shape: int) -> torch.Tensor:
        return (torch.rand(shape, generator=self.generator) / 100 + 0.001).to(self.kind)

    def numbers(self, low: int, high: int, *shape: int, kind: torch.dtype) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=self.generator, dtype=kind)

    def wide(self) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(nn.functional.linear(x, self.wide()))


class Int8(WeightOnly):
    """int8, a scale for each row, as torchao's `Int8Tensor`."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__(kind)
        self.register_buffer("w", self.numbers(-128, 128, ROWS, K, kind=torch.int8))
        self.register_buffer("s", self.scales(ROWS, 1))

    def wide(self) -> torch.Tensor:
        return self.w.to(self.kind) * self.s


class Int8Groups(WeightOnly):
    """int8 in groups of 32 with zero points, as torchao's `IntxUnpackedToInt8Tensor`."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__(kind)
        self.register_buffer("w", self.numbers(-8, 8, ROWS, K, kind=torch.int8))
        self.register_buffer("s", self.scales(ROWS, K // 32, 1))
        self.register_buffer("z", self.numbers(-8, 8, ROWS, K // 32, 1, kind=torch.int8))

    def wide(self) -> torch.Tensor:
        numbers = self.w.reshape(ROWS, -1, 32).to(torch.float32) - self.z.to(torch.float32)
        return (numbers * self.s).to(self.kind).reshape(ROWS, K)


class Fp8(WeightOnly):
    """f8E4M3FN, an f32 scale for each row, as torchao's `Float8Tensor`."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__(kind)
        w = torch.randn(ROWS, K, generator=self.generator).to(torch.float8_e4m3fn)
        self.register_buffer("w", w)
        self.register_buffer("s", self.scales(ROWS, 1).float())

    def wide(self) -> torch.Tensor:
        return (self.w.to(torch.float32) * self.s).to(self.kind)


class Nibbles(WeightOnly):
    """Two numbers a byte, groups of 64, as int4 is packed in plain PyTorch."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__(kind)
        self.register_buffer("w", self.numbers(0, 256, ROWS, K // 2, kind=torch.uint8))
        self.register_buffer("s", self.scales(ROWS, K // 64, 1))
        self.register_buffer("z", self.numbers(0, 16, ROWS, K // 64, 1, kind=torch.uint8))

    def wide(self) -> torch.Tensor:
        both = torch.stack([self.w & 15, (self.w >> 4) & 15], -1).reshape(ROWS, -1, 64)
        return ((both.to(self.kind) - self.z.to(self.kind)) * self.s).reshape(ROWS, K)


class Words(WeightOnly):
    """Eight numbers in an int32 along k, groups of 128, shifts in a tensor, as GPTQ unpacks."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__(kind)
        w = self.numbers(-(2**31), 2**31, ROWS, K // 8, kind=torch.int32)
        self.register_buffer("w", w)
        self.register_buffer("shifts", torch.arange(0, 32, 4, dtype=torch.int32))
        self.register_buffer("s", self.scales(ROWS, 1))

    def wide(self) -> torch.Tensor:
        numbers = (self.w.unsqueeze(-1) >> self.shifts) & 15
        return ((numbers.reshape(ROWS, K) - 8).to(self.kind)) * self.s


MODULES = (Int8, Int8Groups, Fp8, Nibbles, Words)
KINDS = (torch.bfloat16, torch.float16)
CASES: list[Any] = [(Nibbles, torch.float16, 8), (Words, torch.bfloat16, 8)]
CASES += [
    slow(module, kind, m)
    for module in MODULES
    for kind in KINDS
    for m in (1, 16, 300)
    if (module, kind, m) not in CASES
]


@pytest.mark.parametrize(("module", "kind", "m"), CASES)
def test_one_launch_dequantises_and_multiplies(
    module: type[WeightOnly], kind: torch.dtype, m: int
) -> None:
    layer = module(kind).eval()
    x = torch.randn(m, K, generator=torch.Generator().manual_seed(1)).to(kind)
    compiled = tcir.torch.compile(layer, x)
    (part,) = compiled.table
    assert part.kernel is not None and not part.reason
    assert len(part.kernel.launches.launches) == 1, str(part.kernel.launch_table)
    with torch.no_grad():
        own = layer(x)
        wide = layer.wide().double()
        exact = nn.functional.gelu(nn.functional.linear(x.double(), wide))
    assert not compared(compiled(x), own, exact, 0.0).failure


def test_every_pass_holds() -> None:
    layer, x = Nibbles(torch.bfloat16).eval(), torch.randn(16, K).bfloat16()
    (report,) = tcir.torch.compile(layer, x).validate()
    assert report.verdict == "held", str(report)
    assert "small numbers" not in str(report)
