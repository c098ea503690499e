"""Fused attention of the pipeline `attention` beside PyTorch's SDPA on a Hopper GPU, in one run.

    python bench/hopper_attention.py [--element=bf16] [--page=FILE]

Each row is timed in a CUDA graph of 20 launches, the median of nine replays; the three kernels of a
row take turns, so that clocks that drift do so for all of them. FLOP are those of both products, a
causal mask's half; a decoding step is compared with a copy of as many bytes. Results are compared
with SDPA's in float64. ``--page`` writes the table as Markdown.
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
    (64, 32, 8, 1, 4096, 128, False),
]
"""Shapes of transformers: BERT's, long prefill with and without a mask, grouped heads, decoding."""
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


def row(shape: tuple[Any, ...], element: str) -> list[str]:
    b, h, g, m, n, d, causal = shape
    sizes = (b, h, m, d), (b, g, n, d), (b, g, n, d)
    operands = [torch.randn(size, device="cuda", dtype=TYPES[element]) for size in sizes]
    kernel = tcir.compile(program(shape, element), "attention", target="sm_90a")
    out = torch.empty_like(operands[0])

    def ours() -> None:
        kernel.launch(*operands, out, stream=torch.cuda.current_stream().cuda_stream)

    grouped = h != g
    runs: dict[str, Run] = {"tcir": ours}
    for name, backend in (
        ("cuDNN", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION),
    ):  # fmt: skip
        runs[name] = sdpa(backend, operands, causal, grouped)
    bytes_ = 2 * sum(each.numel() for each in operands[1:])
    source, target = (torch.empty(bytes_ // 8, device="cuda") for _ in range(2))
    if m == 1:
        runs["copy"] = lambda: target.copy_(source)
    times = microseconds(runs)
    repeated = [each.repeat_interleave(h // each.shape[1], 1).double() for each in operands]
    want = scaled_dot_product_attention(*repeated, is_causal=causal)
    error = f"{float((out.double() - want).norm() / want.norm()):.1e}"
    flop = 4 * b * h * m * n * d * (0.5 if causal else 1)
    rate = (
        f"{bytes_ / times['tcir'] / 1e6:.2f} TB/s, copy {bytes_ / times['copy'] / 1e6:.2f}"
        if m == 1
        else f"{flop / times['tcir'] / 1e6:.0f} TFLOP/s"
    )
    name = f"b{b} h{h} g{g} {m}x{n} d{d}" + (" causal" if causal else "")
    own = times["tcir"]
    others = [f"{times[each]:.1f} ({times[each] / own:.2f})" for each in ("cuDNN", "flash")]
    return [name, f"{times['tcir']:.1f}", rate, *others, error]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--element", choices=TYPES, default="bf16")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    lines = [
        f"| {options.element}: batch, heads, of keys, rows x keys, elements | tcir, us | | "
        "cuDNN, us (of tcir) | flash, us | error |",
        "|---|---|---|---|---|---|",
    ]
    for shape in SHAPES:
        lines.append("| " + " | ".join(row(shape, options.element)) + " |")
        print(lines[-1], flush=True)
    if options.page:
        options.page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
