"""Linear layers whose weights are int8, int4 or fp8 on a GPU: tcir beside PyTorch, in CUDA graphs.

    python bench/weight_only.py --seconds 120 --json weight_only.json
    python bench/weight_only.py --only 16x4096x4096 --types int8,fp8 --prepare

A row is a layer of m rows, n outputs and k inputs in bf16, whose weights are numbers times scales:
of a row (int8, fp8 as e4m3), or of 128 elements of a row (int4, two to a byte). Each side replays a
graph of as many layers with weights of their own as exceed the L2 cache together. Columns:

cuBLASLt      a layer of bf16 weights, which has two or four times the bytes
PyTorch       its own kernel for such weights: _weight_int4pack_mm; for the others torch.compile
tcir          microseconds of the layer
GB/s, of copy bytes of weights and scales a second; divided by the rate of a device copy of 1 GiB

Exit status: 0, 1 for a result that is off, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from launching import alternately, graphed, milliseconds
from linears import L2_BYTES, Row, sweep

WEIGHTS = ((4096, 4096), (14336, 4096), (4096, 14336))
"""n and k of layers of Llama."""
ROWS = (1, 4, 16, 64, 128)
GROUP = 128
KIND = torch.bfloat16


class Layer(torch.nn.Module):
    """A layer whose weights are `numbers` times `scales`."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor, int4: bool) -> None:
        super().__init__()
        self.register_buffer("numbers", numbers)
        self.register_buffer("scales", scales)
        self.int4 = int4

    def weights(self, kind: torch.dtype) -> torch.Tensor:
        """The weights as numbers of this type."""
        if not self.int4:
            return self.numbers.to(kind) * self.scales.to(kind)
        n, k = self.numbers.shape[0], 2 * self.numbers.shape[1]
        both = torch.stack([self.numbers & 15, self.numbers >> 4], -1).reshape(n, k)
        groups = both.to(kind).reshape(n, k // GROUP, GROUP) - 8
        return (groups * self.scales.to(kind).unsqueeze(-1)).reshape(n, k)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.weights(x.dtype))


class Layers(torch.nn.Module):
    """Layers side by side."""

    def __init__(self, layers: list[Any]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, *xs: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, xs, strict=True)]


def layer(kind: str, n: int, k: int) -> Layer:
    """A layer with random weights."""
    where = {"device": "cuda"}
    if kind == "int4":
        numbers = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, **where)
        return Layer(numbers, (torch.rand(n, k // GROUP, **where) / 64 + 0.001).to(KIND), True)
    scales = (torch.rand(n, 1, **where) / 64 + 0.001).to(KIND)
    if kind == "int8":
        return Layer(torch.randint(-128, 128, (n, k), dtype=torch.int8, **where), scales, False)
    return Layer(torch.randn(n, k, **where).to(torch.float8_e4m3fn), scales, False)


def theirs(layers: Layers) -> tuple[str, Callable[..., Any]]:
    """PyTorch's fastest way for such weights, and its name."""
    first = layers.layers[0]
    if not first.int4:
        torch._dynamo.reset()
        return "torch.compile", torch.compile(layers)
    packed = []
    for each in layers.layers:
        swapped = (each.numbers << 4) | (each.numbers >> 4)  # the even k in the high half
        scales = torch.stack([each.scales.t(), torch.zeros_like(each.scales.t())], -1).contiguous()
        packed.append((torch._convert_weight_to_int4pack(swapped, 8), scales))
    return "_weight_int4pack_mm", lambda *xs: [
        torch._weight_int4pack_mm(x, weights, GROUP, scales)
        for x, (weights, scales) in zip(xs, packed, strict=True)
    ]


def measure(m: int, n: int, k: int, kind: str, prepare: bool) -> dict[str, Any]:
    """Measures one layer on all sides; returns times and errors."""
    import tcir.torch

    layers = Layers([layer(kind, n, k)])
    size = sum(each.numel() * each.itemsize for each in layers.buffers())
    count = max(1, min(32, math.ceil(3 * L2_BYTES / size)))
    layers = Layers([*layers.layers, *(layer(kind, n, k) for _ in range(count - 1))]).eval()
    xs = tuple(torch.randn(m, k, device="cuda", dtype=KIND) for _ in range(count))
    compiled = tcir.torch.compile(layers, xs, verbose=False, freeze=True)
    got = compiled(*xs)[0]
    if prepare:
        return {}
    name, run = theirs(layers)
    found = run(*xs)[0]
    wide = [
        torch.nn.Linear(k, n, bias=False, device="cuda", dtype=KIND) for _ in range(min(count, 8))
    ]
    plain = Layers(wide)
    wanted = torch.nn.functional.linear(xs[0].double(), layers.layers[0].weights(torch.float64))
    error, other = (float((each.double() - wanted).norm() / wanted.norm()) for each in (got, found))
    sides = {
        "cublas_us": (plain, len(wide)),
        "pytorch_us": (run, count),
        "tcir_us": (compiled, count),
    }
    replays = {
        key: graphed(lambda each=each, calls=calls: each(*xs[:calls]))[0]
        for key, (each, calls) in sides.items()
    }
    us = {key: 1000 * each / sides[key][1] for key, each in alternately(replays).items()}
    launches = sum(len(each.launches.launches) for each in compiled.kernels) / count
    return {
        **us, "pytorch": name, "GB/s": size / us["tcir_us"] / 1e3, "error": error,
        "pytorch_error": other, "layers": count, "launches": launches,
    }  # fmt: skip


def copy_rate() -> float:
    """GB/s of a device copy, bytes read and written."""
    source = torch.empty(1 << 29, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * source.numel() / milliseconds(lambda: target.copy_(source)) / 1e6


def row_of(
    m: int, n: int, k: int, name: str, options: argparse.Namespace, copied: float
) -> Row | None:
    """Measures a layer of type `name`; `copied`: GB/s of a copy."""
    row = measure(m, n, k, name, options.prepare)
    if not row:
        return None
    shown = (
        f"{row['launches']:.0f}", f"{row['cublas_us']:.1f}", f"{row['pytorch_us']:.1f}",
        f"{row['tcir_us']:.1f}", f"{row['pytorch_us'] / row['tcir_us']:.2f}",
        f"{row['GB/s']:.0f}", f"{row['GB/s'] / copied:.2f}", f"{row['error']:.1e}",
        f"{row['pytorch_error']:.1e}",
    )  # fmt: skip
    return row, shown, row["error"] > 2 * row["pytorch_error"] + 1e-3


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", action="store_true", help="compile only")
    cases = [(m, n, k) for m in ROWS for n, k in WEIGHTS]
    columns = (
        "launches | cuBLASLt us | PyTorch us | tcir us | of PyTorch | GB/s | of copy | error "
        "| PyTorch's"
    )
    copied = copy_rate() if torch.cuda.is_available() else 0.0
    return sweep(parser, "int8,int4,fp8", cases, columns, partial(row_of, copied=copied))


if __name__ == "__main__":
    sys.exit(main())
