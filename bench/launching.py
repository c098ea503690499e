"""Host time of a compiled network's launches on a GPU: plain calls, CUDA graphs, memory.

    python bench/launching.py resnet50_b8 bert4 mlp_16     # needs torchvision, transformers

For each network: launches, host microseconds of a call and of a launch, milliseconds of a call, as
plain calls and with graph=True, beside eager PyTorch and PyTorch's own CUDA graphs of both, in the
same process; and whether all give the same bits. `--loads` and `--compiles` repeat loading, or
compiling, and a call, and print the memory of the device at the beginning and at the end.

Exit status: 0, 1 for other bits or an error, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import pickle
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

Call = Callable[[], Any]
CALLS = 30


def networks() -> dict[str, Callable[[], tuple[torch.nn.Module, torch.Tensor]]]:
    """Networks in f16 with random weights, and an input."""

    def image(name: str, batch: int) -> tuple[torch.nn.Module, torch.Tensor]:
        import torchvision.models as zoo

        model = getattr(zoo, name)().to(memory_format=torch.channels_last)
        x = torch.randn(batch, 3, 224, 224)
        return model, x.contiguous(memory_format=torch.channels_last)

    def bert(layers: int) -> tuple[torch.nn.Module, torch.Tensor]:
        from transformers import BertConfig, BertModel

        class Embedded(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = BertModel(BertConfig(num_hidden_layers=layers))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                found = self.model(inputs_embeds=x).last_hidden_state
                assert isinstance(found, torch.Tensor)
                return found

        return Embedded(), torch.randn(8, 128, 768)

    def mlp(rows: int) -> tuple[torch.nn.Module, torch.Tensor]:
        layers = torch.nn.Linear(4096, 16384), torch.nn.GELU(), torch.nn.Linear(16384, 4096)
        return torch.nn.Sequential(*layers), torch.randn(rows, 4096)

    return {
        "resnet18_b8": lambda: image("resnet18", 8),
        "resnet50_b1": lambda: image("resnet50", 1),
        "resnet50_b8": lambda: image("resnet50", 8),
        "resnet50_b32": lambda: image("resnet50", 32),
        "bert4": lambda: bert(4),
        "mlp_16": lambda: mlp(16),
    }


def host_us(call: Call) -> float:
    """Median microseconds until a call returns, for calls that begin with an idle GPU."""
    times = []
    for _ in range(CALLS):
        torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    torch.cuda.synchronize()
    return statistics.median(times) * 1e6


def milliseconds(call: Call) -> float:
    """Median milliseconds of a call, measured by events over many."""
    for _ in range(5):
        call()
    found = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        for _ in range(CALLS):
            call()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) / CALLS)
    return statistics.median(found)


def alternately(calls: Mapping[str, Call], rounds: int = 3) -> dict[str, float]:
    """Median milliseconds of each call, measured in alternation: the clock of a GPU that has just
    begun to work differs from that of one that is hot."""
    found = [{name: milliseconds(call) for name, call in calls.items()} for _ in range(rounds)]
    return {name: statistics.median(each[name] for each in found) for name in calls}


def graphed(call: Call) -> tuple[Call, Any]:
    """PyTorch's own CUDA graph of a call, and its results."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph.replay, results


def used() -> str:
    """Memory in MB: used on the device, reserved by PyTorch, and allocated by it."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    numbers = total - free, torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
    return "device {:.1f}, reserved {:.1f}, allocated {:.1f} MB".format(
        *(number / 1e6 for number in numbers)
    )


class Variants:
    """A compiled module whose options are changed between measurements."""

    def __init__(self, model: torch.nn.Module, x: torch.Tensor) -> None:
        import tcir.torch
        from tcir.torch.compiled import KernelModule

        # An older version, to compare with, has none of the options.
        self.old = "graph" not in inspect.signature(tcir.torch.compile).parameters
        options = {} if self.old else {"freeze": True}
        self.compiled = tcir.torch.compile(model, (x,), verbose=False, **options)
        found = self.compiled.graph.modules()
        self.parts = [each for each in found if isinstance(each, KernelModule)]

    @property
    def launches(self) -> int:
        return sum(len(each.kernel.launches.launches) for each in self.parts)

    def choose(self, graph: bool, freeze: bool) -> None:
        """Makes the next calls those of `compile(…, graph=graph, freeze=freeze)`."""
        from tcir.torch.compiled import GpuOptions
        from tcir.torch.graphs import Graphs

        self.compiled.clear()
        self.compiled.options = GpuOptions(graph=graph, freeze=freeze)
        self.compiled._graphs = Graphs(freeze) if graph else None
        for part in self.parts:
            part.launcher.frozen = freeze

    def once(self) -> int:
        """Number of launches that frozen weights save at each call."""
        return sum(
            len(ready.prepared._once._steps) if ready.prepared._once else 0
            for part in self.parts
            for ready in list(part.launcher._ready.values())[:1]
        )


def measure(name: str, model: torch.nn.Module, x: torch.Tensor, wait: Call) -> int:
    """Prints the rows of a network; returns 1 for other bits."""
    started = time.time()
    variants = Variants(model, x)
    took = time.time() - started
    wait()
    ours, launches = variants.compiled, variants.launches
    print(f"{name}: {launches} launches in {len(variants.parts)} parts, compiled in {took:.0f} s")
    wanted = model(x)
    row("eager", lambda: model(x), 0)
    replay, _ = graphed(lambda: model(x))
    row("eager, its graph", replay, 0)
    first = ours(x).clone() if variants.old else None
    if variants.old:
        row("tcir", lambda: ours(x), launches)
        replay, held = graphed(lambda: ours(x))
        row("tcir, PyTorch's graph", replay, launches)
        print(f"    equal bits: {torch.equal(held, first)}")
        return int(not torch.equal(held, first))
    results: dict[str, torch.Tensor] = {}
    for words, graph, freeze in (
        ("tcir", False, False),
        ("tcir, frozen", False, True),
        ("tcir, graph=True", True, False),
        ("tcir, graph=True, frozen", True, True),
    ):
        variants.choose(graph, freeze)
        results[words] = ours(x).clone()
        results[f"{words}, again"] = ours(x).clone()
        saved = 0 if graph else variants.once()
        row(words, lambda: ours(x), launches - saved)
        if not graph:
            print(f"    {'':34} {native_us(variants):6.2f} us a launch in the driver's function")
    variants.choose(False, False)
    ours(x)
    replay, held = graphed(lambda: ours(x))
    row("tcir, PyTorch's graph", replay, launches)
    results["PyTorch's graph"] = held.clone()
    mine = next(iter(results.values()))
    equal = all(torch.equal(each, mine) for each in results.values())
    error = float((mine.double() - wanted.double()).norm() / wanted.double().norm())
    print(f"    equal bits: {equal} ({len(results)} results); of eager PyTorch: {error:.2g}")
    return int(not equal)


def native_us(variants: Variants) -> float:
    """Median microseconds of a launch without the call around it; the addresses are as before."""
    lists = [
        (ready.prepared._each, list(ready.prepared._each._bound))
        for part in variants.parts
        for ready in list(part.launcher._ready.values())[:1]
    ]
    count = sum(len(each._steps) for each, _ in lists)
    return host_us(lambda: [each(bound) for each, bound in lists]) / count


def row(words: str, call: Call, launches: int) -> None:
    """Prints the times of a call."""
    for _ in range(5):
        call()
    host, whole = host_us(call), milliseconds(call)
    each = f"{host / launches:6.2f} us a launch of {launches}" if launches else ""
    print(f"    {words:26} {whole:8.3f} ms, host {host:8.1f} us  {each}", flush=True)


def memory(loads: int, compiles: int, seconds: float) -> None:
    """Prints the device's memory over many compilations or loads, each with calls."""
    import tcir.torch

    def model(width: int) -> torch.nn.Module:
        layers = torch.nn.Conv2d(16, width, 3, padding=1), torch.nn.ReLU()
        return torch.nn.Sequential(*layers).half().eval().cuda()

    x = torch.randn(2, 16, 16, 16, device="cuda").half()

    def use(compiled: Any) -> None:
        for graph in (False, True):
            compiled._graphs = Graphs(True) if graph else None
            for _ in range(2):
                compiled(x)

    from tcir.torch.graphs import Graphs

    compiled = tcir.torch.compile(model(32), (x,), freeze=True, verbose=False)
    text = pickle.dumps(compiled)
    started, done = time.time(), 0
    for number in range(loads):
        if number in (3, 30, 100):
            print(f"    after {number} loads: {used()}", flush=True)
        use(pickle.loads(text))
        done += 1
        if time.time() - started > seconds:
            break
    print(f"    after {done} loads and {4 * done} calls: {used()}, {time.time() - started:.0f} s")
    started, done = time.time(), 0
    for number in range(compiles):
        if number in (3, 30, 100):
            print(f"    after {number} compilations: {used()}", flush=True)
        use(tcir.torch.compile(model(32), (x,), freeze=True, verbose=False))
        done += 1
        if time.time() - started > seconds:
            break
    print(f"    after {done} compilations and calls: {used()}, {time.time() - started:.0f} s")


def main() -> int:
    """See the module's text."""
    known = networks()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*known, []], metavar="NETWORK")
    parser.add_argument("--loads", type=int, default=0)
    parser.add_argument("--compiles", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60, help="limit of either")
    parser.add_argument("--signal", metavar="FILE", help="made after the first compilation")
    parser.add_argument("--wait", metavar="FILE", help="waited for before the first measurement")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("launching: no GPU that PyTorch sees", file=sys.stderr)
        return 2
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)

    def wait() -> None:
        if options.signal:
            Path(options.signal).touch()
        while options.wait and not Path(options.wait).exists():
            time.sleep(0.1)

    wrong = 0
    with torch.no_grad():
        for name in options.names:
            model, x = known[name]()
            kind = {"device": "cuda", "dtype": torch.float16}
            try:
                wrong |= measure(name, model.eval().to(**kind), x.to(**kind), wait)
            except Exception:
                traceback.print_exc()
                wrong = 1
            torch.cuda.empty_cache()
        if options.loads or options.compiles:
            memory(options.loads, options.compiles, options.seconds)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
