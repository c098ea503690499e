"""Kernels of `wgmma` for the time model's predictions, and their cycles on a Hopper GPU.

    python bench/time_hopper.py --wgmma --predict              # bench/predictions_sm90a.json
    python bench/time_hopper.py --wgmma --prepare build/wgmma  # here: cubins
    python bench/time_wgmma.py build/wgmma                     # there: needs PyTorch

Products of several sizes and tiles, and the convolutions of ResNet-50 that are one launch, of
`bench/hopper_conv.py`, in f16 with bias and relu. The clock falls while `wgmma` runs and recovers
at once, so cycles are counted by the SMs themselves, around launches back to back in a CUDA graph,
whose buffers rotate through more than L2 holds. Every result is compared with PyTorch's.

Exit status: 0, 1 a wrong result.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hopper
import hopper_conv
import numpy as np
from matmul_warp import as_tuples
from time_hopper import IN_FLIGHT, SMS, WGMMA, Case, case_of, compiled

TARGET = "sm_90a"
LAUNCHES, REPLAYS, REPEATS, ROUNDS = 20, 3, 9, 2
"""Launches in a graph; replays of it between two counts; counts, whose median is taken; rounds of
all of that."""
WHOLE_SM = 120_000
"""Bytes of shared memory with which only one CTA fits an SM."""
COUNT_PTX = f""".version 8.4
.target {TARGET}
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry count(.param .u64 out)
{{
 .reg .b32 %r<2>; .reg .b64 %d<5>;
 ld.param.u64 %d1, [out]; mov.u32 %r1, %smid; mul.wide.u32 %d2, %r1, 16; add.s64 %d1, %d1, %d2;
 mov.u64 %d3, %clock64; mov.u64 %d4, %globaltimer;
 st.global.v2.b64 [%d1], {{%d3, %d4}};
 ret;
}}
"""
"""PTX that reads each SM's counters of cycles and nanoseconds."""
PRODUCTS: tuple[tuple[int, str, dict[str, Any]], ...] = (
    *((n, "f16", {}) for n in (1024, 2048, 3072, 4096, 6144, 8192)),
    (4096, "f16", {"n-tile": 128}),
)
STEM = "conv1"
"""The stem has two launches: the first repacks its input."""


def all_cases() -> Iterator[Case]:
    """All cases, compiled for `TARGET`."""
    import tcir

    for n, kind, options in PRODUCTS:
        name = f"gemm {n} {kind}" + "".join(f" {k}={v}" for k, v in options.items())
        python = {key.replace("-", "_"): value for key, value in options.items()}
        text = hopper.PROGRAM.format(n=n, t=kind)
        yield compiled(name, text, "gemm", python, TARGET)
    for batch in hopper_conv.BATCHES:
        for layer, (size, c, k, r, stride) in hopper_conv.LAYERS.items():
            if layer == STEM:
                continue
            x, w = np.ones((batch, size, size, c), "f2"), np.ones((r, r, c, k), "f2")
            kernel = tcir.compile_conv2d(
                x, w, stride=stride, padding=r // 2, bias=np.ones(k, "f4"), activation="relu",
                out="f2", pipeline="conv-implicit-gemm", target=TARGET,
            )  # fmt: skip
            yield case_of(f"{layer} {batch}", kernel, TARGET)


class Counter:
    """Measures the cycles of a launch, and GHz, by every SM's own counters."""

    def __init__(self, folder: Path) -> None:
        import torch

        from tcir import runtime

        self.torch, self.on = torch, runtime.device()
        cubin = (folder / "count.cubin").read_bytes()
        self.function = runtime.load(cubin, self.on).function("count")
        self.counts = [torch.zeros(2 * SMS, dtype=torch.int64, device="cuda") for _ in range(2)]

    def note(self, which: int) -> None:
        """Records the counters."""
        self.function.launch(
            [self.counts[which].data_ptr().to_bytes(8, "little")],
            grid=(SMS, 1, 1),
            block=(32, 1, 1),
            dynamic_smem=WHOLE_SM,
            stream=self.torch.cuda.current_stream().cuda_stream,
        )

    def cycles(self, launch: Callable[[int], None]) -> list[tuple[float, float]]:
        """Cycles of a launch in each round; `launch` receives the number of the launch."""
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for number in range(LAUNCHES):
                launch(number)
        graph.replay()
        return [self._round(graph) for _ in range(ROUNDS)]

    def _round(self, graph: Any) -> tuple[float, float]:
        took = []
        for _ in range(REPEATS):
            self.torch.cuda.synchronize()
            time.sleep(0.005)
            graph.replay()
            self.note(0)
            for _ in range(REPLAYS):
                graph.replay()
            self.note(1)
            before, after = (count.view(-1, 2).cpu() for count in self.counts)
            seen = (before[:, 0] > 0) & (after[:, 0] > 0)
            took.append((after - before)[seen].double().median(dim=0).values.tolist())
        cycles = statistics.median(each for each, _ in took) / LAUNCHES / REPLAYS
        return cycles, statistics.median(each / ns for each, ns in took)


def _right(name: str, arrays: list[Any]) -> bool:
    """Whether the last array is PyTorch's result for the others."""
    import torch

    *inputs, out = arrays
    if name.startswith("gemm"):
        want = inputs[0].float() @ inputs[1].float()
    else:
        _, _, _, r, stride = hopper_conv.LAYERS[name.split()[0]]
        x, w = inputs[0].permute(0, 3, 1, 2).float(), inputs[1].permute(3, 2, 0, 1).float()
        wide = torch.nn.functional.conv2d(x, w, inputs[2], stride, r // 2)
        want = wide.relu().permute(0, 2, 3, 1)
    return float((out.float() - want).norm() / want.norm()) < 4e-3


def main(folder: Path) -> int:
    """Measures every case, prints it with its prediction, and writes measured.json to `folder`."""
    import torch

    from tcir.program.launch import Launch
    from tcir.runtime.launching import launch_pointers

    predicted = {k["name"]: k["cycles"] for k in json.loads(WGMMA.read_text())["kernels"]}
    counter, rows, wrong = Counter(folder), [], 0
    kinds = {"<f2": torch.float16, "<f4": torch.float32}
    for case in as_tuples(json.loads((folder / "cases.json").read_text())):
        name, launch = case["name"], Launch(**case["launch"])
        cubin = (folder / case["cubin"]).read_bytes()
        shapes = [(shape, kinds[dtype]) for shape, dtype in case["buffers"]]
        total = sum(int(np.prod(shape)) * kind.itemsize for shape, kind in shapes)
        sets = [
            [torch.randn(*shape, device="cuda").to(kind) for shape, kind in shapes]
            for _ in range(min(LAUNCHES, max(2, -(-IN_FLIGHT // total))))
        ]

        def one(number: int, sets: Any = sets, launch: Any = launch, cubin: bytes = cubin) -> None:
            pointers = [array.data_ptr() for array in sets[number % len(sets)]]
            stream = torch.cuda.current_stream().cuda_stream
            launch_pointers(launch, cubin, pointers, counter.on, stream)

        one(0)
        found = counter.cycles(one)
        right = _right(name, sets[0])
        wrong += not right
        rows.append([name, *([round(cycles), round(ghz, 4)] for cycles, ghz in found)])
        (folder / "measured.json").write_text(json.dumps(rows) + "\n")
        errors = " ".join(f"{c:9.0f} {g:.3f} GHz {predicted[name] / c - 1:+.1%}" for c, g in found)
        print(f"{name:26} {predicted[name]:8} {errors}{'' if right else ' WRONG'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
