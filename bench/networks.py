"""Whole networks on a GPU: tcir beside eager PyTorch and torch.compile, in one process.

    python bench/networks.py all --seconds 500 --json networks.json
    python bench/networks.py gpt2_b8s512 --prepare         # compiles only: fills the caches
    python bench/networks.py --page networks.json          # the table of a results page

Needs torchvision and transformers. f16, random weights, PyTorch's defaults (cuDNN's autotuner is
on). A time is the median of five rows of 30 calls, plain and replayed from a CUDA graph; with
--runs, the median of as many such times of each graph, in alternation. tcir's weights are frozen,
and its graph is that of graph=True, whose calls copy the results out.
--autotune also measures torch.compile's mode max-autotune, and --beside tcir by another pipeline,
such as "layers{attention=false}", in a graph of the same run. After --prepare, seconds to compile
are those with filled caches. Columns:

of, least, most  torch.compile's time in a graph divided by tcir's: of the medians, of single runs
launches, once   of tcir at each call; those that read only weights
host us          until a plain call of tcir returns, divided by its launches
MB moved         what tcir's launches read and write, each buffer of a launch once
MB               tcir's workspaces and repacked weights; what torch.compile allocates during a call

Exit status: 0, 1 for an error, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from launching import graphed, host_us, milliseconds

Network = tuple[torch.nn.Module, torch.Tensor]
Row = dict[str, Any]
COLUMNS = (
    ("eager", "eager_ms"), ("its graph", "eager_graph_ms"),
    ("torch.compile", "inductor_ms"), ("its graph", "inductor_graph_ms"),
    ("tcir", "tcir_ms"), ("its graph", "tcir_graph_ms"),
    ("max-autotune", "autotuned_graph_ms"),
    ("other pipeline", "beside_graph_ms"), ("launches", "beside_launches"),
    ("MB moved", "beside_moved_mb"), ("of", "of_inductor"), ("least", "of_least"),
    ("most", "of_most"), ("launches", "launches"), ("once", "once"),
    ("host us", "host_us_a_launch"), ("MB moved", "moved_mb"), ("MB", "tcir_mb"),
    ("torch.compile's", "inductor_mb"),
    ("compile s", "tcir_compile_s"), ("torch.compile's", "inductor_compile_s"), ("error", "error"),
)  # fmt: skip


class Embedded(torch.nn.Module):
    """A model of transformers that takes embeddings."""

    def __init__(self, model: torch.nn.Module, **options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.model(inputs_embeds=x, **self.options).last_hidden_state
        assert isinstance(found, torch.Tensor)
        return found


def image(name: str, batch: int) -> Network:
    import torchvision.models as zoo

    model = getattr(zoo, name)().to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, 224, 224).contiguous(memory_format=torch.channels_last)
    for each in model.modules():
        if isinstance(each, torch.nn.BatchNorm2d):
            each.momentum = None  # statistics are those of this batch
    model.train()(x)
    return model, x


def bert(layers: int, batch: int, length: int) -> Network:
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(num_hidden_layers=layers))
    return Embedded(model), torch.randn(batch, length, 768)


def gpt2(batch: int, length: int) -> Network:
    from transformers import GPT2Config, GPT2Model

    return Embedded(GPT2Model(GPT2Config()), use_cache=False), torch.randn(batch, length, 768)


def llama(layers: int, width: int, inner: int, heads: int, groups: int, length: int) -> Network:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
    )
    return Embedded(LlamaModel(config), use_cache=False), torch.randn(1, length, width)


def mlp(rows: int) -> Network:
    layers = torch.nn.Linear(4096, 16384), torch.nn.GELU(), torch.nn.Linear(16384, 4096)
    return torch.nn.Sequential(*layers), torch.randn(rows, 4096)


NETWORKS: dict[str, Callable[[], Network]] = {
    "mlp_4096": lambda: mlp(4096),
    "mlp_16": lambda: mlp(16),
    "resnet18_b32": lambda: image("resnet18", 32),
    "resnet50_b1": lambda: image("resnet50", 1),
    "resnet50_b8": lambda: image("resnet50", 8),
    "resnet50_b32": lambda: image("resnet50", 32),
    "mobilenet_v2_b32": lambda: image("mobilenet_v2", 32),
    "convnext_tiny_b8": lambda: image("convnext_tiny", 8),
    "vit_b16_b8": lambda: image("vit_b_16", 8),
    "bert4_b8s128": lambda: bert(4, 8, 128),
    "bert_base_b8s128": lambda: bert(12, 8, 128),
    "gpt2_b8s512": lambda: gpt2(8, 512),
    "llama_4x2048_b1s512": lambda: llama(4, 2048, 5632, 16, 4, 512),
    "llama_4x4096_b1s2048": lambda: llama(4, 4096, 14336, 32, 8, 2048),
}


def compiled(model: torch.nn.Module, x: torch.Tensor, pipeline: str) -> tuple[Any, Row]:
    """tcir's program after its first call, with its launches, bytes, result and seconds."""
    import tcir.torch
    from tcir.torch.compiled import KernelModule

    started = time.time()
    ours = tcir.torch.compile(model, (x,), pipeline=pipeline, verbose=False, freeze=True)
    got = ours(x)
    torch.cuda.synchronize()
    seconds = time.time() - started
    parts = [each for each in ours.graph.modules() if isinstance(each, KernelModule)]
    found = [each.prepared for part in parts for each in part.launcher._ready.values()]
    ready = [each for each in found if each is not None]
    return ours, {
        "got": got,
        "compile_s": seconds,
        "parts": len(parts),
        "moved_mb": sum(sum(part.kernel.launch_table.total) for part in parts) / 1e6,
        "mb": sum(each.arena_bytes + each.kept_bytes for each in ready) / 1e6,
        "launches": sum(len(each._each._steps) for each in ready),
        "once": sum(len(each._once._steps) for each in ready if each._once),
    }


def in_f16(name: str, device: str) -> Network:
    """A network for evaluation, and its input, on a device."""
    torch.manual_seed(0)
    with torch.device(device):
        model, x = NETWORKS[name]()
    for each in model.parameters():
        if not each.any():  # a classifier that begins with zeros would hide errors
            torch.nn.init.normal_(each, std=0.02)
    return model.half().eval(), x.half()


def measure(name: str, options: argparse.Namespace, row: Row) -> None:
    """Measures a network into `row`, which keeps what was measured when an error ends it."""
    torch._dynamo.reset()
    model, x = in_f16(name, "cuda")
    wanted = model(x)
    ours, found = compiled(model, x, options.pipeline)
    row["tcir_compile_s"], row["tcir_mb"] = found["compile_s"], found["mb"]
    row["error"] = error(found["got"], wanted)
    row |= {key: found[key] for key in ("parts", "moved_mb", "launches", "once")}
    if options.beside:
        beside, found = compiled(model, x, options.beside)
        row["beside_error"] = error(found["got"], wanted)
        row |= {f"beside_{key}": found[key] for key in ("moved_mb", "launches", "once")}
    started = time.time()
    other = torch.compile(model)
    other(x)
    torch.cuda.synchronize()
    row["inductor_compile_s"] = time.time() - started
    if options.prepare:
        return
    calls = {"eager": model, "inductor": other, "tcir": ours}
    row["inductor_mb"] = peak_mb(lambda: other(x))
    row["host_us_a_launch"] = host_us(lambda: ours(x)) / row["launches"]
    for key, call in calls.items():
        row[f"{key}_ms"] = milliseconds(lambda call=call: call(x))
    if name in options.autotune:
        torch._dynamo.reset()
        calls["autotuned"] = torch.compile(model, mode="max-autotune-no-cudagraphs")
        calls["autotuned"](x)
    row["kernels"] = kernels(lambda: ours(x))
    row["inductor_kernels"] = kernels(lambda: other(x))
    replays = {key: graphed(lambda call=call: call(x))[0] for key, call in calls.items()}
    replays["tcir"] = in_graph(ours, x)
    if options.beside:
        replays["beside"] = in_graph(beside, x)
    runs = [
        {key: milliseconds(replay) for key, replay in replays.items()} for _ in range(options.runs)
    ]
    for key in replays:
        row[f"{key}_graph_ms"] = statistics.median(run[key] for run in runs)
    row["of_inductor"] = row["inductor_graph_ms"] / row["tcir_graph_ms"]
    of = [run["inductor"] / run["tcir"] for run in runs]
    row["of_least"], row["of_most"] = min(of), max(of)


def in_graph(module: Any, x: torch.Tensor) -> Callable[[], Any]:
    """Calls of a compiled module as with graph=True."""
    from tcir.torch.compiled import pays
    from tcir.torch.graphs import Graphs

    module._graphs = Graphs(True) if pays(module.graph) else None
    return lambda: module(x)


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Norm of the difference by that of the wanted result."""
    return float((got.double() - wanted.double()).norm() / wanted.double().norm())


def peak_mb(call: Callable[[], Any]) -> float:
    """Memory that a call allocates, its results included, in MB."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


def kernels(call: Callable[[], Any]) -> list[tuple[str, int, float]]:
    """Name, launches and microseconds of each kernel of a call, longest first."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        call()
        torch.cuda.synchronize()
    rows = [(e.key[:100], e.count, e.device_time_total) for e in found.key_averages()]
    return sorted(rows, key=lambda each: -each[2])


def page(rows: dict[str, Row]) -> Iterable[str]:
    """The table of a results page, in Markdown."""
    yield "| network | " + " | ".join(words for words, _ in COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 1) + "|"
    for name, row in rows.items():
        shown = [f"{row[key]:.3g}" if key in row else "–" for _, key in COLUMNS]
        yield f"| {name} | " + " | ".join(shown) + " |"
    ratios = [row["of_inductor"] for row in rows.values() if "of_inductor" in row]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield f"\nGeometric mean of {len(ratios)} networks: {mean:.3f} of torch.compile in a graph."


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*NETWORKS, "all", []], metavar="NETWORK")
    parser.add_argument("--pipeline", default="layers")
    parser.add_argument("--beside", default="", metavar="PIPELINE", help="another one, in a graph")
    parser.add_argument("--runs", type=int, default=1, help="times of each graph")
    parser.add_argument("--autotune", default="", help="names of networks, with commas between")
    parser.add_argument("--prepare", action="store_true", help="compile only")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no network after these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the table of these rows")
    options = parser.parse_args()
    options.autotune = options.autotune.split(",")
    if options.page:
        print("\n".join(page(json.loads(options.page.read_text()))))
        return 0
    if not torch.cuda.is_available():
        print("networks: no GPU that PyTorch sees", file=sys.stderr)
        return 2
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    started, failed = time.time(), 0
    rows: dict[str, Row] = {}
    with torch.no_grad():
        for name in NETWORKS if "all" in options.names else options.names:
            if time.time() - started > options.seconds:
                print(f"{name}: not measured, the time is up", flush=True)
                continue
            row = rows[name] = {}
            try:
                measure(name, options, row)
            except Exception as problem:
                failed, row["failed"] = 1, repr(problem)[:500]
                traceback.print_exc()
            shown = {key: value for key, value in row.items() if not isinstance(value, list)}
            print(name, shown, flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
            torch.cuda.empty_cache()
    print("\n".join(page(rows)))
    return failed


if __name__ == "__main__":
    sys.exit(main())
