"""Fused attention of the pipeline `attention` beside PyTorch's SDPA on a Hopper GPU, in one run.

    python bench/hopper_attention.py [--element=bf16] [--only=decode] [--parts=4,8,32] [--page=FILE]

Each row is timed in a CUDA graph of 20 calls, the median of nine replays; the kernels of a row take
turns, so that clocks that drift do so for all of them. FLOP are those of both products, a causal
mask's half. Results are compared with SDPA's in float64. ``--page`` writes the tables as Markdown.

Decoding steps have a table of their own: bytes of keys and values in a second, those of a device
copy of as many bytes, which reads half of them, and the times of other numbers of parts of the
keys than the chosen one: 1 is one kernel, others are those of ``--parts``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import tcir

SHAPES = [
    # b, h, g, m, n, d, causal
    (8, 16, 16, 1024, 1024, 64, False),
    (4, 16, 16, 4096, 4096, 64, True),
    (4, 16, 16, 4096, 4096, 128, False),
    (4, 16, 16, 4096, 4096, 128, True),
    (1, 32, 8, 8192, 8192, 128, True),
    (8, 12, 12, 128, 128, 64, False),
    (8, 12, 12, 512, 512, 64, False),
]
"""Shapes of transformers: BERT's, long prefill with and without a mask, grouped."""
STEPS = [
    (64, 32, 8, 1, 4096, 128, False),
    (4, 32, 8, 1, 8192, 128, False),
    (1, 32, 8, 1, 2048, 128, False),
    (1, 32, 8, 1, 16384, 128, False),
    (1, 32, 8, 1, 131072, 128, False),
]
"""Decoding steps: many sequences, and few, whose keys are in parts."""
LAUNCHES, REPLAYS = 20, 9
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
Run = Callable[[], Any]


def program(shape: tuple[Any, ...], element: str) -> str:
    b, h, g, m, n, d, causal = shape
    q, k = f"tensor<{b}x{h}x{m}x{d}x{element}>", f"tensor<{b}x{g}x{n}x{d}x{element}>"
    mask = ", causal_offset = 0 : i64" if causal else ""
    return f"""func.func @attention(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o, %lse = "tc.attention"(%q, %k, %v) ({{}}) {{scale = {1 / math.sqrt(d)!r} : f32,
          q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"{mask}}}
          : ({q}, {k}, {k}) -> ({q}, tensor<{b}x{h}x{m}xf32>)
      return %o : {q}
    }}"""


def captured(run: Run) -> torch.cuda.CUDAGraph:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            run()
    return graph


def microseconds(runs: dict[str, Run]) -> dict[str, float]:
    """Median microseconds of a launch of each kernel; the kernels take turns."""
    graphs = {name: captured(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(REPLAYS):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(1e3 * start.elapsed_time(end) / LAUNCHES)
    return {name: median(each) for name, each in times.items()}


def sdpa(backend: SDPBackend, operands: list[torch.Tensor], causal: bool, grouped: bool) -> Run:
    def run() -> torch.Tensor:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(*operands, is_causal=causal, enable_gqa=grouped)

    return run


def operands_of(shape: tuple[Any, ...], element: str) -> list[torch.Tensor]:
    b, h, g, m, n, d, _ = shape
    sizes = (b, h, m, d), (b, g, n, d), (b, g, n, d)
    return [torch.randn(size, device="cuda", dtype=TYPES[element]) for size in sizes]


def ours(kernel: tcir.Kernel, operands: list[torch.Tensor], out: torch.Tensor) -> Run:
    return lambda: kernel.launch(*operands, out, stream=torch.cuda.current_stream().cuda_stream)


def theirs(shape: tuple[Any, ...], operands: list[torch.Tensor]) -> dict[str, Run]:
    _, h, g, *_, causal = shape
    backends = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    return {name: sdpa(each, operands, causal, h != g) for name, each in backends.items()}


def error_of(shape: tuple[Any, ...], operands: list[torch.Tensor], out: torch.Tensor) -> float:
    h, causal = shape[1], shape[-1]
    repeated = [each.repeat_interleave(h // each.shape[1], 1).double() for each in operands]
    want = scaled_dot_product_attention(*repeated, is_causal=causal)
    return float((out.double() - want).norm() / want.norm())


def named(shape: tuple[Any, ...]) -> str:
    b, h, g, m, n, d, causal = shape
    return f"b{b} h{h} g{g} {m}x{n} d{d}" + (" causal" if causal else "")


def row(shape: tuple[Any, ...], element: str, _: list[int]) -> list[str]:
    b, h, _g, m, n, d, causal = shape
    operands = operands_of(shape, element)
    kernel = tcir.compile(program(shape, element), "attention", target="sm_90a")
    out = torch.empty_like(operands[0])
    times = microseconds({"tcir": ours(kernel, operands, out), **theirs(shape, operands)})
    own = times["tcir"]
    flop = 4 * b * h * m * n * d * (0.5 if causal else 1)
    others = [f"{times[each]:.1f} ({times[each] / own:.2f})" for each in ("cuDNN", "flash")]
    rate = f"{flop / own / 1e6:.0f} TFLOP/s"
    error = error_of(shape, operands, out)
    return [named(shape), f"{own:.1f}", rate, *others, f"{error:.1e}"]


def step(shape: tuple[Any, ...], element: str, parts: list[int]) -> list[str]:
    operands, text = operands_of(shape, element), program(shape, element)
    counts = {"tcir": 0, **{f"{count}": count for count in dict.fromkeys([1, *parts])}}
    kernels = {
        name: tcir.compile(text, "attention", target="sm_90a", split_kv=count)
        for name, count in counts.items()
    }
    outs = {name: torch.empty_like(operands[0]) for name in kernels}
    runs = {name: ours(kernel, operands, outs[name]) for name, kernel in kernels.items()}
    bytes_ = sum(each.nbytes for each in operands[1:])
    source, target = (torch.empty(bytes_ // 8, device="cuda") for _ in range(2))
    copy = {"copy": lambda: target.copy_(source)}
    times = microseconds({**runs, **theirs(shape, operands), **copy})
    own = times["tcir"]
    grids = [launch.grid for launch in kernels["tcir"].launches.launches]
    chosen = grids[0][2] // shape[0] if len(grids) > 1 else 1
    others = [f"{times[each]:.1f} ({times[each] / own:.2f})" for each in ("cuDNN", "flash")]
    rate = f"{bytes_ / own / 1e6:.2f} TB/s, copy {bytes_ / times['copy'] / 1e6:.2f}"
    apart = ", ".join(f"{name}: {times[name]:.1f}" for name in kernels if name != "tcir")
    error = max(error_of(shape, operands, out) for out in outs.values())
    return [named(shape), f"{own:.1f}", rate, f"{chosen}", apart, *others, f"{error:.1e}"]


HEADERS = {
    row: "tcir, us | | cuDNN, us (of tcir) | flash, us | error",
    step: "tcir, us | | parts | us with others | cuDNN, us (of tcir) | flash, us | error",
}
TABLES = {"prefill": (row, SHAPES), "decode": (step, STEPS)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--element", choices=TYPES, default="bf16")
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--parts", default="", help="further numbers of parts, with commas")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    parts, lines = [int(each) for each in options.parts.split(",") if each], []
    for name, (measure, shapes) in TABLES.items():
        if options.only not in (None, name):
            continue
        header = f"| {options.element}: batch, heads, of keys, rows x keys, elements | "
        lines += ["", header + HEADERS[measure] + " |"]
        lines.append("|---" * (lines[-1].count("|") - 1) + "|")
        print("\n".join(lines[-3:]), flush=True)
        for shape in shapes:
            lines.append("| " + " | ".join(measure(shape, options.element, parts)) + " |")
            print(lines[-1], flush=True)
    if options.page:
        options.page.write_text("\n".join(lines[1:]) + "\n")


if __name__ == "__main__":
    main()
