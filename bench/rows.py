"""Ops bound by memory on a GPU: tcir beside PyTorch, torch.compile and a copy of the same bytes.

    python bench/rows.py                   # all; writes rows.json and rows.md into $OUT, or here
    python bench/rows.py softmax max_pool --types f16,f32 --seconds 300 --jobs 16

Each row is an op on one shape in one element type. Microseconds are those of a call among many in
one CUDA graph. *bytes* are those that the op must read and write; the copy moves as many, so *of
copy* is the share of a copy's bandwidth, also where everything fits into L2. Programs are compiled
in `--jobs` processes while others are measured. `--seconds` ends the run after the row that is
measured then; rows alternate between ops, so that few of each remain. `--compile` only compiles,
for sm_90a and without a GPU, and prints the launches.

Exit status: 0, 1 for an error larger than that of eager PyTorch allows, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import multiprocessing
import os
import pickle
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

Shape = tuple[int, ...]
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
MATRICES: tuple[Shape, ...] = ((8192, 4096), (1024, 768), (64, 50257), (4, 1 << 22))
IMAGES: tuple[Shape, ...] = (
    (32, 64, 112, 112),
    (32, 256, 56, 56),
    (8, 512, 28, 28),
    (32, 2048, 7, 7),
)
ROUNDINGS = {"f16": 5e-4, "bf16": 4e-3, "f32": 1e-6}
"""Errors that a result may have besides 1.5 times eager PyTorch's."""
VOCABULARY = 50257
GRAPH_US = 2000.0
"""Minimum duration of a CUDA graph in microseconds, beside which its launch is negligible."""


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, run: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        """Calls the function."""
        return self.run(*given)


@dataclass(frozen=True)
class Op:
    """An op: its module and inputs for a shape, and the shapes that are measured."""

    make: Callable[[Shape], torch.nn.Module]
    inputs: Callable[[Shape], tuple[torch.Tensor, ...]]
    shapes: tuple[Shape, ...] = MATRICES


def function(run: Callable[..., torch.Tensor]) -> Callable[[Shape], torch.nn.Module]:
    """The same function for every shape."""
    return lambda _: Function(run)


def one(shape: Shape) -> tuple[torch.Tensor, ...]:
    """A matrix of random numbers."""
    return (torch.randn(shape),)


def two(shape: Shape) -> tuple[torch.Tensor, ...]:
    """Two matrices."""
    return torch.randn(shape), torch.randn(shape)


def image(shape: Shape) -> tuple[torch.Tensor, ...]:
    """Images, channels last."""
    return (torch.randn(shape).contiguous(memory_format=torch.channels_last),)


def tokens(shape: Shape) -> tuple[torch.Tensor, ...]:
    """Random token numbers."""
    return (torch.randint(0, VOCABULARY, shape[:1]),)


def joined(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cat((a, b), -1)


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous()


def softmax(x: torch.Tensor) -> torch.Tensor:
    return functional.softmax(x, -1)


def rows(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def columns(x: torch.Tensor) -> torch.Tensor:
    return x.sum(0)


def argmax(x: torch.Tensor) -> torch.Tensor:
    return x.argmax(-1)


def mean(x: torch.Tensor) -> torch.Tensor:
    return x.mean((2, 3))


def depthwise(taps: int, stride: int = 1) -> Callable[[Shape], torch.nn.Module]:
    """A depthwise convolution."""
    return lambda s: torch.nn.Conv2d(s[1], s[1], taps, stride, taps // 2, groups=s[1])


WIDTHS: tuple[Shape, ...] = ((8192, 4096), (1024, 768), (4096, 2048), (16, 4096))
"""Shapes of norms in networks."""
CONVNEXT: tuple[Shape, ...] = ((8, 96, 56, 56), (8, 192, 28, 28), (8, 384, 14, 14), (8, 768, 7, 7))
MOBILENET: tuple[Shape, ...] = (
    (32, 32, 112, 112),
    (32, 144, 56, 56),
    (32, 192, 28, 28),
    (32, 576, 14, 14),
)
"""Images of networks' depthwise convolutions."""
OPS = {
    "add": Op(function(torch.add), two),
    "gelu": Op(lambda _: torch.nn.GELU(), one),
    "transpose": Op(function(transposed), one),
    "concat": Op(function(joined), two),
    "embedding": Op(lambda s: torch.nn.Embedding(VOCABULARY, s[1]), tokens, WIDTHS),
    "softmax": Op(function(softmax), one),
    "layer_norm": Op(lambda s: torch.nn.LayerNorm(s[-1]), one, WIDTHS),
    "rms_norm": Op(lambda s: torch.nn.RMSNorm(s[-1]), one, WIDTHS),
    "group_norm": Op(lambda s: torch.nn.GroupNorm(32, s[1]), lambda s: (torch.randn(s),), IMAGES),
    "sum_rows": Op(function(rows), one),
    "sum_columns": Op(function(columns), one),
    "argmax": Op(function(argmax), one),
    "max_pool": Op(lambda _: torch.nn.MaxPool2d(3, 2, 1), image, IMAGES),
    "mean": Op(function(mean), image, IMAGES),
    "avg_pool": Op(lambda _: torch.nn.AvgPool2d(3, 2, 1), image, IMAGES),
    "depthwise_7x7": Op(depthwise(7), image, CONVNEXT),
    "depthwise_3x3": Op(depthwise(3), image, MOBILENET),
    "depthwise_s2": Op(depthwise(3, 2), image, MOBILENET),
}
Key = tuple[str, Shape, str]


@dataclass
class Row:
    """One measured row: microseconds of a call for each implementation."""

    op: str
    shape: Shape
    type: str
    bytes: int
    launches: int = 0
    us: dict[str, float] = field(default_factory=dict)
    error: float = 0.0
    own: float = 0.0
    failed: str = ""

    def words(self) -> str:
        """The line of a table."""
        if self.failed:
            return f"{self.op:12} {'x'.join(map(str, self.shape)):16} {self.type:5} {self.failed}"
        mine, others = self.us["tcir"], [self.us[each] for each in ("PyTorch", "torch.compile")]
        return (
            f"{self.op:12} {'x'.join(map(str, self.shape)):16} {self.type:5} {self.launches:2} "
            + " ".join(f"{each:9.2f}" for each in self.us.values())
            + f" {self.us['copy'] / mine:8.2f} {min(others) / mine:8.2f} "
            f"{self.bytes / mine / 1e3:7.0f} {self.error:8.1e} {self.own:8.1e}"
        )

    def cells(self) -> str:
        """The line of a page of results."""
        shape = " × ".join(map(str, self.shape))
        if self.failed:
            return f"| {self.op} | {shape} | {self.type} | {self.failed} |" + " |" * 6
        mine, best = self.us["tcir"], min(self.us["PyTorch"], self.us["torch.compile"])
        return (
            f"| {self.op} | {shape} | {self.type} | {self.launches} | "
            + " | ".join(f"{each:.1f}" for each in self.us.values())
            + f" | {self.us['copy'] / mine:.2f} | {best / mine:.2f} |"
        )


PAGE = (
    "| op | shape | type | launches | tcir | PyTorch | torch.compile | copy | of copy | of best |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n"
)
HEAD = (
    f"{'op':12} {'shape':16} {'type':5} {'n':>2} {'tcir us':>9} {'PyTorch':>9} {'compile':>9} "
    f"{'copy':>9} {'of copy':>8} {'of best':>8} {'GB/s':>7} {'error':>8} {'PyTorch':>8}"
)


def made(key: Key, device: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its inputs."""
    name, shape, kind = key
    torch.manual_seed(0)
    with torch.device(device):
        module = OPS[name].make(shape).to(TYPES[kind]).eval()
        given = OPS[name].inputs(shape)
    return module, tuple(x.to(TYPES[kind]) if x.is_floating_point() else x for x in given)


def compiled(key: Key) -> bytes:
    """Compiles the module in a process of its own; returns it pickled, without weights. If there is
    a GPU, torch.compile's kernels are in its cache afterwards."""
    import tcir.torch

    torch.set_num_threads(1)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    module, given = made(key, "meta")
    given = tuple(torch.zeros_like(each, device="cpu") for each in given)
    module = module.to_empty(device="cpu")
    with torch.no_grad():
        ours = tcir.torch.compile(module, given, target="sm_90a", freeze=True, verbose=False)
        ours.module.to("meta")
        pickled = pickle.dumps(ours)
        if torch.cuda.is_available():
            torch._dynamo.reset()
            module = made(key, "meta")[0].to_empty(device="cuda")
            torch.compile(module)(*(x.cuda() for x in given))
            torch.cuda.empty_cache()
    return pickled


def launches_of(ours: Any) -> list[Any]:
    """The launches of all kernels of a compiled module. ValueError if PyTorch runs an op."""
    if left := [part for part in ours.table if part.kernel is None]:
        raise ValueError(f"PyTorch runs {left[0]}")
    return [each for part in ours.table for each in part.kernel.launches.launches]


def microseconds(call: Callable[[], object]) -> float:
    """Median microseconds of a call, among as many as fill a CUDA graph."""

    def graph(count: int) -> torch.cuda.CUDAGraph:
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made):
            for _ in range(count):
                call()
        return made

    def seconds(made: torch.cuda.CUDAGraph) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        made.replay()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e3

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    first = graph(10)
    seconds(first)
    count = max(10, min(400, round(GRAPH_US / max(1.0, seconds(first) / 10))))
    whole = graph(count)
    seconds(whole)
    return statistics.median(seconds(whole) for _ in range(7)) / count


def bytes_of(module: torch.nn.Module, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> int:
    """Bytes that an op must read and write; of an embedding's table only the rows that it reads."""
    weights = list(module.parameters()) if not isinstance(module, torch.nn.Embedding) else [out]
    return sum(each.numel() * each.element_size() for each in (*given, *weights, out))


def measure(key: Key, ours: Any) -> Row:
    """Measures one row on the GPU."""
    module, given = made(key, "cuda")
    eager = module(*given)
    wide = copy.deepcopy(module).double()
    exact = wide(*(x.double() if x.is_floating_point() else x for x in given))
    row = Row(*key, bytes_of(module, given, eager), len(launches_of(ours)))
    ours.module.load_state_dict(module.state_dict(), assign=True)
    ours = ours.cuda()
    row.error, row.own = (error(key, each, exact, given[0]) for each in (ours(*given), eager))
    inductor = torch.compile(module)
    inductor(*given)
    source = torch.empty(row.bytes // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    for who, call in (
        ("tcir", lambda: ours(*given)),
        ("PyTorch", lambda: module(*given)),
        ("torch.compile", lambda: inductor(*given)),
        ("copy", lambda: target.copy_(source)),
    ):
        row.us[who] = microseconds(call)
    return row


def error(key: Key, got: torch.Tensor, exact: torch.Tensor, x: torch.Tensor) -> float:
    """Distance to the result in f64, relative to its norm; for argmax, the number of wrong
    places."""
    if key[0] == "argmax":
        chosen = x.gather(-1, got[:, None]).squeeze(-1)
        return float((chosen != x.amax(-1)).sum())
    return float((got.double() - exact).norm() / exact.norm().clamp_min(1e-30))


def keys(names: list[str], types: list[str]) -> list[Key]:
    """All rows, alternating between ops."""
    return [
        (name, OPS[name].shapes[place], kind)
        for place, kind, name in itertools.product(range(4), types, names)
    ]


def results(wanted: list[Key], jobs: int) -> Iterator[tuple[Key, Any]]:
    """Yields each key with its compiled module, or with the exception, in order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        waiting = [pool.submit(compiled, key) for key in wanted]
        try:
            for key, future in zip(wanted, waiting, strict=True):
                try:
                    found: Any = pickle.loads(future.result())
                except Exception as problem:
                    found = problem
                yield key, found
        finally:
            pool.shutdown(cancel_futures=True)


def told(ours: Any) -> str:
    """Text of launches with their CTAs and threads."""
    found = [f"{each.name}: {prod(each.grid)} x {prod(each.block)}" for each in launches_of(ours)]
    return f"{len(found):2} launches: " + ", ".join(found)


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*OPS, []], metavar="OP")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if not options.compile and not torch.cuda.is_available():
        print("rows: no GPU that PyTorch sees", file=sys.stderr)
        return 2
    started, found, wrong = time.time(), list[Row](), 0
    out = Path(os.environ.get("OUT", ".")) / "rows.json"
    wanted = keys(options.names or list(OPS), options.types.split(","))
    print(HEAD, flush=True)
    with torch.no_grad():
        for key, ours in results(wanted, options.jobs):
            if time.time() - started > options.seconds:
                print(f"{len(wanted) - len(found)} rows are left", flush=True)
                break
            try:
                if isinstance(ours, Exception):
                    raise ours
                if options.compile:
                    print(*key, told(ours), flush=True)
                    continue
                row = measure(key, ours)
            except Exception as problem:
                traceback.print_exception(problem, limit=3)
                row = Row(*key, 0, failed=f"{type(problem).__name__}: {str(problem)[:200]}")
            found.append(row)
            bound = 1.5 * row.own + ROUNDINGS[key[2]]
            wrong |= bool(row.failed) or not row.error <= bound
            print(row.words() + ("" if row.error <= bound else "  WRONG"), flush=True)
            out.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
            page = PAGE + "".join(f"{each.cells()}\n" for each in found)
            out.with_suffix(".md").write_text(page, encoding="utf-8")
            torch._dynamo.reset()
            torch.cuda.empty_cache()
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
