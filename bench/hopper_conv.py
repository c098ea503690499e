"""Microseconds of convolutions for sm_90a on a Hopper GPU, beside cuDNN in the same run.

    python bench/hopper_conv.py --prepare build/conv    # here: cubins; needs MLIR and ptxas
    python bench/hopper_conv.py --run build/conv        # there: needs PyTorch, cuda-python

``--prepare`` takes ``--layers`` (all), ``--pipelines`` (conv{programmatic=true}; several, separated
by spaces, are compared with each other, too), and writes down what the model says of their cycles.

The 23 distinct convolutions of ResNet-50, f16 with f32 sums, bias and relu fused in both. cuDNN
through PyTorch, channels last, the faster of its fused and its plain convolution after its own
benchmark. Memory between our launches is allocated before, as cuDNN's is. From rest (L2
overwritten, the median of ``--repeats``), and back to back in a CUDA graph. Random normal operands;
results are compared with PyTorch's.

Exit status: 0, 1 a wrong result, 2 no GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from matmul_warp import Bench, as_tuples

TARGET, PIPELINE = "sm_90a", "conv{programmatic=true}"
BATCHES = (8, 32)
LAUNCHES = 20
"""Launches back to back in a graph."""
LAYERS = {  # pixels, channels, outputs, filter, stride
    "conv1": (224, 3, 64, 7, 2),
    "conv2_reduce_first": (56, 64, 64, 1, 1),
    "conv2_3x3": (56, 64, 64, 3, 1),
    "conv2_expand": (56, 64, 256, 1, 1),
    "conv2_reduce": (56, 256, 64, 1, 1),
    "conv3_reduce_first": (56, 256, 128, 1, 1),
    "conv3_3x3_stride2": (56, 128, 128, 3, 2),
    "conv3_expand": (28, 128, 512, 1, 1),
    "conv3_shortcut": (56, 256, 512, 1, 2),
    "conv3_reduce": (28, 512, 128, 1, 1),
    "conv3_3x3": (28, 128, 128, 3, 1),
    "conv4_reduce_first": (28, 512, 256, 1, 1),
    "conv4_3x3_stride2": (28, 256, 256, 3, 2),
    "conv4_expand": (14, 256, 1024, 1, 1),
    "conv4_shortcut": (28, 512, 1024, 1, 2),
    "conv4_reduce": (14, 1024, 256, 1, 1),
    "conv4_3x3": (14, 256, 256, 3, 1),
    "conv5_reduce_first": (14, 1024, 512, 1, 1),
    "conv5_3x3_stride2": (14, 512, 512, 3, 2),
    "conv5_expand": (7, 512, 2048, 1, 1),
    "conv5_shortcut": (14, 1024, 2048, 1, 2),
    "conv5_reduce": (7, 2048, 512, 1, 1),
    "conv5_3x3": (7, 512, 512, 3, 1),
}


def prepare(folder: Path, layers: list[str], pipelines: list[str]) -> int:
    """Cubins, launches and modelled cycles."""
    import numpy as np

    import tcir

    folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for batch, name, pipeline in product(BATCHES, layers, pipelines):
        size, c, k, r, stride = LAYERS[name]
        x, w = np.ones((batch, size, size, c), "f2"), np.ones((r, r, c, k), "f2")
        kernel = tcir.compile_conv2d(
            x, w, stride=stride, padding=r // 2, bias=np.ones(k, "f4"), activation="relu",
            out="f2", pipeline=pipeline, target=TARGET,
        )  # fmt: skip
        file = f"{name}_{batch}_{len(kernels)}.cubin"
        (folder / file).write_bytes(kernel.cubin)
        launches = [asdict(each) for each in kernel.launches.launches]
        spaces = asdict(kernel.launches.workspaces)
        tile, cycles = ("", 0) if spaces["sizes"] else modelled(batch, name, pipeline)
        kernels.append(
            {"name": name, "batch": batch, "pipeline": pipeline, "tile": tile, "cycles": cycles,
             "file": file, "launches": launches, "spaces": spaces}
        )  # fmt: skip
        grids = [each["grid"] for each in launches]
        print(f"{file}: {grids}, {tile}: {cycles} cycles (modelled)", flush=True)
    (folder / "kernels.json").write_text(json.dumps(kernels, indent=1) + "\n")
    return 0


def modelled(batch: int, layer: str, pipeline: str) -> tuple[str, int]:
    """Returns the schedule and tile that the model chooses, and the cycles of the busiest SM.
    `prepare` leaves it out for programs with workspaces."""
    from tcir._mlir import ir
    from tcir.passes.conv.shapes import ConvShape
    from tcir.passes.conv.warpgroup_schedules import N_TILES, candidates
    from tcir.program.source import mlir_context
    from tcir.target import TARGETS

    size, c, k, r, stride = LAYERS[layer]
    out, c = (size + 2 * (r // 2) - r) // stride + 1, max(c, 8)
    with mlir_context() as context, context:
        shape = ConvShape(
            batch, size, size, c, r, r, out, out, k, (stride, stride), (1, 1), *[r // 2] * 4,
            "hwcf", ir.F16Type.get(), 0, 0,
        )  # fmt: skip
        found = candidates(shape, list(N_TILES), TARGETS[TARGET].sms)
    schedule = pipeline.partition("{")[0]
    best = next(each for each in found if schedule in ("conv", each.schedule))
    return f"{best.schedule} {best.rows}x{best.columns} {best.tile_of}", best.cycles


def run(folder: Path, repeats: int) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error
    from tcir.program.launch import Launch
    from tcir.program.workspaces import Workspaces
    from tcir.runtime.launching import launch_pointers

    try:
        gpu = runtime.device()
    except Error as error:
        print(f"hopper_conv: {error}")
        return 2
    import torch

    torch.backends.cudnn.benchmark = True
    bench, wrong = Bench(repeats), 0
    version = torch.backends.cudnn.version()
    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}, cuDNN {version}")
    print(
        f"{'batch':>5} {'layer':20} {'GFLOP':>6} {'cuDNN us':>9} {'tcir us':>8} {'rest x':>7} "
        f"{'cuDNN us':>9} {'tcir us':>8} {'held x':>7}  pipeline, tile, modelled cycles"
    )
    ratios: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for kernel in as_tuples(json.loads((folder / "kernels.json").read_text())):
        batch, (size, c, k, r, stride) = kernel["batch"], LAYERS[kernel["name"]]
        x = torch.randn(batch, c, size, size, device="cuda").half()
        x = x.to(memory_format=torch.channels_last)
        w = (torch.randn(k, c, r, r, device="cuda") / math.sqrt(c * r * r)).half()
        w = w.to(memory_format=torch.channels_last)
        bias = torch.randn(k, device="cuda")
        half = bias.half()
        taps = w.permute(2, 3, 1, 0).contiguous()
        out = torch.empty(batch, size // stride, size // stride, k, device="cuda").half()
        launches = [Launch(**each) for each in kernel["launches"]]
        spaces = Workspaces(**kernel["spaces"])
        arena = torch.empty(max(1, spaces.arena), dtype=torch.uint8, device="cuda")
        cubin = (folder / kernel["file"]).read_bytes()
        pointers = [t.data_ptr() for t in (x, taps, bias, out)]
        pointers += [arena.data_ptr() + offset for offset in spaces.offsets]

        def ours(launches: Any = launches, cubin: bytes = cubin, at: Any = pointers) -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for each in launches:
                launch_pointers(each, cubin, at, gpu, stream)

        place = ([stride] * 2, [r // 2] * 2, [1, 1])

        def fused(x: Any = x, w: Any = w, b: Any = half, place: Any = place) -> Any:
            return torch.cudnn_convolution_relu(x, w, b, *place, 1)

        def plain(x: Any = x, w: Any = w, b: Any = half, place: Any = place) -> Any:
            return torch.relu_(torch.nn.functional.conv2d(x, w, b, *place))

        def back_to_back(launch: Callable[[], Any]) -> float:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(LAUNCHES):
                    launch()
            return bench.from_rest(graph.replay) / LAUNCHES

        theirs = [(bench.from_rest(each), back_to_back(each)) for each in (fused, plain)]
        rest, lasting = (min(pair) for pair in zip(*theirs, strict=True))
        mine = bench.from_rest(ours), back_to_back(ours)
        wide = torch.nn.functional.conv2d(x.float(), w.float(), bias, *place).relu()
        error = float((out.permute(0, 3, 1, 2).float() - wide).norm() / wide.norm())
        flops = 2 * out.numel() * c * r * r / 1e9
        key = batch, kernel["pipeline"]
        ratios.setdefault(key, []).append((rest / mine[0], lasting / mine[1]))
        print(
            f"{batch:5} {kernel['name']:20} {flops:6.2f} {rest * 1e3:9.2f} {mine[0] * 1e3:8.2f} "
            f"{rest / mine[0]:7.3f} {lasting * 1e3:9.2f} {mine[1] * 1e3:8.2f} "
            f"{lasting / mine[1]:7.3f}  {kernel['pipeline']}, {kernel['tile']}, {kernel['cycles']}",
            flush=True,
        )
        if not error < 2e-3:
            wrong += 1
            print(f"WRONG: {kernel['name']}: error {error:g}")
    for (batch, pipeline), pairs in ratios.items():
        means = [
            math.exp(sum(map(math.log, each)) / len(each)) for each in zip(*pairs, strict=True)
        ]
        held = f"geometric means {means[0]:.3f} from rest, {means[1]:.3f} held"
        print(f"batch {batch}, {pipeline}: {held}")
    return 1 if wrong else 0


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--layers", default=",".join(LAYERS), metavar="NAME,…")
    parser.add_argument("--pipelines", nargs="+", default=[PIPELINE], metavar="NAME")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    if options.prepare:
        return prepare(options.prepare, options.layers.split(","), options.pipelines)
    if options.run:
        return run(options.run, options.repeats)
    parser.error("expected --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())
