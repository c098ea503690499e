"""TFLOP/s of `matmul-warp` on a Hopper GPU, with cuBLAS, Triton and a measured peak.

    python bench/matmul_warp.py --prepare build/warp    # here: cubins; needs MLIR and ptxas
    python bench/matmul_warp.py --run build/warp        # there: needs PyTorch, Triton, cuda-python

f16 operands, sums in f32, square sizes, random normal operands; cuBLAS stores f16, Triton f32,
`matmul-warp` both. The peak is that of `mma.sync` (the best variant of `mma_peak.py`); cuBLAS and
Triton use wgmma, which is faster. Two rates of each:

* from rest: the median of ``--repeats`` launches, each after a pause, with the L2 cache
  overwritten before it and the clock up. Beside the peak of a long launch (1.2e12 operations, as
  many as a product of 8192³ and a tenth more) there is that of one with as many operations as the
  product: a short launch has its start and the clock of its first microseconds, too;
* held: launches back to back for over a second, with the clock and the power that NVML reports;
  there kernels meet the GPU's power limit.

Results are compared with PyTorch's in f32. Exit status: 0, 1 a wrong result, 2 no GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import mma_peak
from gpu_clocks import Held, held

TARGET = "sm_90"
SIZES = (2048, 4096, 6144, 8192)
PROGRAM = """
func.func @matmul(%a: tensor<{n}x{n}xf16>, %b: tensor<{n}x{n}xf16>) -> tensor<{n}x{n}x{out}> {{
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{n}x{n}xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<{n}x{n}xf16>, tensor<{n}x{n}xf16>)
      outs(%init : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  {end}
}}
"""
ENDS = {
    "f32": "return %sum : tensor<{n}x{n}xf32>",
    "f16": """%out = arith.truncf %sum : tensor<{n}x{n}xf32> to tensor<{n}x{n}xf16>
  return %out : tensor<{n}x{n}xf16>""",
}
PAUSE = 0.02
"""Seconds of rest before a launch."""
SPIN = 2_000_000
"""Cycles of waiting on the GPU before a launch: the clock rises, and launching is hidden."""
LONG = 1.2e12
"""Operations of the peak kernel's long launch, 1.9 ms."""


def program(n: int, out: str) -> str:
    """The product of two n x n matrices, stored as `out`."""
    return PROGRAM.format(n=n, out=out, end=ENDS[out].format(n=n))


def prepare(folder: Path, options: list[dict[str, Any]], all_sizes: list[int]) -> None:
    """Writes cubins and launches, for each set of pipeline options."""
    import tcir
    from tcir.codegen import assemble

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peak.cubin").write_bytes(assemble(mma_peak.ptx(TARGET), target=TARGET).data)
    kernels = []
    for (number, chosen), out, n in product(enumerate(options), ENDS, all_sizes):
        kernel = tcir.compile(program(n, out), "matmul-warp", target=TARGET, **chosen)
        file = f"matmul_{n}_{out}_{number}.cubin"
        (folder / file).write_bytes(kernel.cubin)
        launch = asdict(kernel.launch_config)
        kernels.append({"n": n, "out": out, "options": chosen, "file": file, "launch": launch})
        print(f"{file}: {launch}")
    (folder / "kernels.json").write_text(json.dumps(kernels, indent=1) + "\n")


def as_tuples(value: Any) -> Any:
    """Converts JSON's lists back to tuples."""
    if isinstance(value, list):
        return tuple(as_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: as_tuples(item) for key, item in value.items()}
    return value


@dataclass(frozen=True)
class Rate:
    """TFLOP/s of one kernel."""

    name: str
    rest: float
    lasting: float
    gpu: Held

    def line(self, peak: Rate, short: float) -> str:
        """One line of the table. short: peak, from rest, of a launch of as many operations"""
        shares = f"{self.rest / peak.rest:7.1%} {self.rest / short:7.1%}"
        return (
            f"{self.name:36} {self.rest:7.1f} {shares} {self.lasting:7.1f} "
            f"{self.lasting / peak.lasting:7.1%} {self.gpu}"
        )


class Bench:
    """Timing on the current stream of PyTorch."""

    def __init__(self, repeats: int) -> None:
        import torch

        self.torch, self.repeats = torch, repeats
        self.cache = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")

    def from_rest(self, launch: Callable[[], Any]) -> float:
        """Median milliseconds of a launch from rest."""
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        launch()
        times = []
        for _ in range(self.repeats):
            self.torch.cuda.synchronize()
            time.sleep(PAUSE)
            self.cache.zero_()
            self.torch.cuda._sleep(SPIN)
            start.record()
            launch()
            stop.record()
            self.torch.cuda.synchronize()
            times.append(start.elapsed_time(stop))
        return statistics.median(times)

    def rate(self, name: str, launch: Callable[[], Any], flops: float) -> Rate:
        """Measures both rates."""
        rest = flops / self.from_rest(launch) / 1e9
        gpu = held(self.torch, launch)
        return Rate(name, rest, flops / gpu.milliseconds / 1e9, gpu)

    def peaks(self, cubin: bytes, flops: float) -> Iterator[tuple[str, Callable[[], Any], float]]:
        """Returns each variant's name, its launch of about `flops` operations, and their exact
        number."""
        from tcir import runtime

        torch = self.torch
        gpu = runtime.device()
        multiprocessors = gpu.attribute("MULTIPROCESSOR_COUNT")
        source = torch.randn(1 << 16, device="cuda").to(torch.float16)
        out = torch.empty(1 << 20, device="cuda")
        for v in mma_peak.VARIANTS:
            function = runtime.load(cubin, gpu).function(v.name)
            steps = round(flops / v.flops(1, multiprocessors))
            values = [
                source.data_ptr().to_bytes(8, "little"),
                out.data_ptr().to_bytes(8, "little"),
                steps.to_bytes(4, "little"),
            ]

            def launch(function: Any = function, values: Any = values, v: Any = v) -> None:
                function.launch(
                    values,
                    grid=(v.ctas * multiprocessors, 1, 1),
                    block=(32 * v.warps, 1, 1),
                    stream=torch.cuda.current_stream().cuda_stream,
                )

            yield v.name, launch, v.flops(steps, multiprocessors)

    def peak(self, cubin: bytes) -> Rate:
        """Best variant for each rate, in long launches."""
        found = [self.rate(*each) for each in self.peaks(cubin, LONG)]
        lasting = max(found, key=lambda r: r.lasting)
        rest = max(r.rest for r in found)
        best = Rate("mma.sync peak", rest, lasting.lasting, lasting.gpu)
        for rate in found:
            print(f"       {rate.line(best, rest)}")
        return best

    def short_peak(self, cubin: bytes, flops: float) -> float:
        """Best rate from rest in launches of `flops` operations."""
        return max(
            exact / self.from_rest(launch) / 1e9 for _, launch, exact in self.peaks(cubin, flops)
        )


def run(folder: Path, repeats: int) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error
    from tcir.program.launch import Launch
    from tcir.runtime.launching import launch_pointers

    try:
        gpu = runtime.device()
    except Error as error:
        print(f"matmul_warp: {error}")
        return 2
    import torch
    import triton
    import triton_hopper

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}, Triton {triton.__version__}")
    bench = Bench(repeats)
    columns = ("rest", "of peak", "short", "held", "of peak")
    print(f"{'TFLOP/s':43} {' '.join(f'{c:>7}' for c in columns)} clock and power, held")
    of_peak = (folder / "peak.cubin").read_bytes()
    peak = bench.peak(of_peak)
    print(f"       {peak.line(peak, peak.rest)}")
    kernels = as_tuples(json.loads((folder / "kernels.json").read_text()))
    if not kernels:
        print("no cubins of matmul-warp in this folder: it is left out")
    wrong = 0
    for n in SIZES:
        a, b = (torch.randn(n, n, device="cuda").to(torch.float16) for _ in range(2))
        outs = {
            "f16": torch.empty(n, n, device="cuda", dtype=torch.float16),
            "f32": torch.empty(n, n, device="cuda"),
        }
        expected = a.float() @ b.float()
        short = bench.short_peak(of_peak, 2 * n**3)
        print(f"{n:6} {'mma.sync peak, as short':36} {short:7.1f} {short / peak.rest:7.1%}")

        def measure(name: str, launch: Callable[[], Any], out: Any, n: int = n) -> None:
            nonlocal wrong
            out.fill_(float("nan"))
            rate = bench.rate(name, launch, 2 * n**3)
            print(f"{n:6} {rate.line(peak, short)}", flush=True)  # noqa: B023
            error = float((out.float() - expected).norm() / expected.norm())  # noqa: B023
            if not error < 1e-3:
                wrong += 1
                print(f"WRONG: {name}: error {error:g}")

        half = outs["f16"]
        measure("cuBLAS, f16 out", partial(torch.mm, a, b, out=half), half)
        configs = triton_hopper.launches(a, b, outs["f32"])
        best = min(configs, key=lambda name: bench.from_rest(configs[name]))
        measure(
            f"Triton {best}, f32 out".replace(" warps", "w").replace(" stages", "s"),
            configs[best],
            outs["f32"],
        )
        for kernel in (k for k in kernels if k["n"] == n):
            cubin = (folder / kernel["file"]).read_bytes()
            sizes = Launch(**kernel["launch"])
            out = outs[kernel["out"]]
            pointers = [t.data_ptr() for t in (a, b, out)]

            def ours(sizes: Any = sizes, cubin: bytes = cubin, at: Any = pointers) -> None:
                stream = torch.cuda.current_stream().cuda_stream
                launch_pointers(sizes, cubin, at, gpu, stream)

            words = "".join(f" {k}={v}" for k, v in kernel["options"].items())
            measure(f"matmul-warp, {kernel['out']} out{words}", ours, out)
    again = bench.peak(of_peak)
    print(f"       {again.line(peak, peak.rest)}, measured again")
    return 1 if wrong else 0


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument(
        "--options",
        action="append",
        default=[],
        metavar="JSON",
        help="options of the pipeline, once for each variant to measure ('{}')",
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="of our kernels")
    parser.add_argument("--without-ours", action="store_true", help="prepare the peak only")
    options = parser.parse_args()
    if options.prepare:
        chosen = [json.loads(text) for text in options.options] or [{}]
        wanted = [int(n) for n in options.sizes.split(",")]
        prepare(options.prepare, [] if options.without_ours else chosen, wanted)
        return 0
    if options.run:
        return run(options.run, options.repeats)
    parser.error("expected --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())
