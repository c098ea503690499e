"""Linear layers of networks on a GPU: tcir beside PyTorch (cuBLASLt) and torch.compile in CUDA
graphs.

    python bench/linears.py --seconds 300 --json linears.json
    python bench/linears.py --only 1x4096x4096,16x14336x4096 --types f16

A row is a layer of m rows, n outputs and k inputs with a bias. Each side replays a graph of as many
layers with weights of their own as exceed the L2 cache together, so that weights come from memory.
"of" is PyTorch's time divided by tcir's; GB/s counts weights, inputs and results once. Layers are
compiled in `--jobs` processes while others are measured.

Exit status: 0, 1 for a result that is off, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import torch
from launching import alternately, graphed

WEIGHTS = (
    (768, 768), (2304, 768), (3072, 768), (768, 3072), (50257, 768), (4096, 4096), (6144, 4096),
    (14336, 4096), (4096, 14336), (11008, 4096),
)  # fmt: skip
"""n and k of layers of BERT, ViT, GPT-2 and Llama."""
ROWS = (1, 4, 16, 64, 256, 1024)
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
L2_BYTES = 60 << 20
Row: TypeAlias = tuple[dict[str, Any], Sequence[str], bool]
"""Numbers of a layer, the cells of its row, and whether its result is off."""


def cases() -> list[tuple[int, int, int]]:
    """Returns m, n and k of each case."""
    return [(m, n, k) for m in ROWS for n, k in WEIGHTS if m * n < 1 << 25]


class Layers(torch.nn.Module):
    """Layers side by side, each with an input of its own."""

    def __init__(self, layers: list[torch.nn.Linear]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, *xs: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, xs, strict=True)]


def count_of(n: int, k: int, kind: torch.dtype) -> int:
    """Layers whose weights exceed the L2 cache together."""
    return max(1, min(32, math.ceil(3 * L2_BYTES / (n * k * kind.itemsize))))


def compiled(m: int, n: int, k: int, name: str, pipeline: str) -> bytes:
    """Compiles the layers of a case, pickled without weights."""
    import tcir.torch

    torch.set_num_threads(1)
    kind = TYPES[name]
    count = count_of(n, k, kind)
    layers = Layers([torch.nn.Linear(k, n, device="meta", dtype=kind) for _ in range(count)])
    xs = tuple(torch.zeros(m, k, dtype=kind) for _ in range(count))
    with torch.no_grad():
        options = {"pipeline": pipeline, "target": "sm_90a", "verbose": False, "freeze": True}
        ours = tcir.torch.compile(layers.to_empty(device="cpu").eval(), xs, **options)
    ours.module.to("meta")
    return pickle.dumps(ours)


class Ahead:
    """Compiles all cases of a run in processes, from the first that is wanted on."""

    def __init__(self) -> None:
        self.futures: dict[tuple[int, int, int, str], Future[bytes]] = {}

    def get(self, options: argparse.Namespace, wanted: tuple[int, int, int, str]) -> Any:
        """The compiled layers of a case."""
        if not self.futures:
            only = [tuple(map(int, each.split("x"))) for each in options.only.split(",") if each]
            pool = ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn"))
            for (m, n, k), name in product(only or cases(), options.types.split(",")):
                made = pool.submit(compiled, m, n, k, name, options.pipeline)
                self.futures[m, n, k, name] = made
            pool.shutdown(wait=False)
        return pickle.loads(self.futures[wanted].result())


AHEAD = Ahead()


def measure(m: int, n: int, k: int, kind: torch.dtype, ours: Any) -> dict[str, Any]:
    """Measures one layer on all sides; returns times and tcir's error."""
    count = count_of(n, k, kind)
    layers = Layers([torch.nn.Linear(k, n, device="cuda", dtype=kind) for _ in range(count)])
    layers.eval()
    xs = tuple(torch.randn(m, k, device="cuda", dtype=kind) for _ in range(count))
    ours.module.load_state_dict(layers.state_dict(), assign=True)
    ours = ours.cuda()
    torch._dynamo.reset()
    linear = torch.compile(lambda *of: torch.nn.functional.linear(*of), dynamic=False)

    def inductor(*given: torch.Tensor) -> list[torch.Tensor]:
        return [linear(x, e.weight, e.bias) for x, e in zip(given, layers.layers, strict=True)]

    got, theirs = ours(*xs)[0], layers(*xs)[0]
    first = layers.layers[0]
    wanted = torch.nn.functional.linear(xs[0].double(), first.weight.double(), first.bias.double())
    scale = wanted.abs().max()
    error, eager = (float((each.double() - wanted).abs().max() / scale) for each in (got, theirs))
    sides = {"pytorch_us": layers, "inductor_us": inductor, "tcir_us": ours}
    replays = {key: graphed(lambda run=run: run(*xs))[0] for key, run in sides.items()}
    us = {key: 1000 * each / count for key, each in alternately(replays).items()}
    moved = (n * k + m * k + m * n) * kind.itemsize
    return {
        **us, "of": us["pytorch_us"] / us["tcir_us"], "GB/s": moved / us["tcir_us"] / 1e3,
        "error": error, "pytorch_error": eager, "layers": count,
    }  # fmt: skip


def row_of(m: int, n: int, k: int, name: str, options: argparse.Namespace) -> Row:
    """Measures a layer of type `name`."""
    row = measure(m, n, k, TYPES[name], AHEAD.get(options, (m, n, k, name)))
    shown = (
        f"{row['pytorch_us']:.1f}", f"{row['inductor_us']:.1f}", f"{row['tcir_us']:.1f}",
        f"{row['of']:.2f}",
        f"{row['GB/s']:.0f}", f"{row['error']:.1e}", f"{row['pytorch_error']:.1e}",
    )  # fmt: skip
    return row, shown, row["error"] > 4 * row["pytorch_error"] + 1e-3


def sweep(
    parser: argparse.ArgumentParser,
    kinds: str,
    cases: Sequence[tuple[int, int, int]],
    columns: str,
    measured: Callable[[int, int, int, str, argparse.Namespace], Row | None],
) -> int:
    """Measures layers of `cases`, m, n and k, and of the types `kinds` as the command line chooses;
    prints and writes their rows, under the names of `columns`. Returns the exit status."""
    parser.add_argument("--only", default="", metavar="MxNxK,…")
    parser.add_argument("--types", default=kinds)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no layer after these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU that PyTorch sees", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    only = [tuple(map(int, each.split("x"))) for each in options.only.split(",") if each]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"| m × n × k | type | {columns} |\n|{'---|' * (3 + columns.count('|'))}", flush=True)
    started, wrong, rows = time.time(), False, {}
    for (m, n, k), name in product(only or cases, options.types.split(",")):
        if time.time() - started > options.seconds:
            print(f"{m} × {n} × {k} {name}: not measured, the time is up")
            continue
        try:
            with torch.no_grad():
                found = measured(m, n, k, name, options)
        except Exception:
            traceback.print_exc()
            wrong = True
            continue
        if found is None:
            continue
        row, shown, off = found
        rows[f"{m}x{n}x{k} {name}"] = row
        wrong |= off
        print(f"| {m} × {n} × {k} | {name} | {' | '.join(shown)} |", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
        torch.cuda.empty_cache()
    return int(wrong)


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", default="layers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    columns = "PyTorch us | torch.compile us | tcir us | of | GB/s | error | PyTorch's"
    return sweep(parser, ",".join(TYPES), cases(), columns, row_of)


if __name__ == "__main__":
    sys.exit(main())
