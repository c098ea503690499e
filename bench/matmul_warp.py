"""TFLOP/s of `matmul-warp` on a Hopper GPU, beside cuBLAS, Triton and a measured peak; one run.

    python bench/matmul_warp.py --prepare build/warp    # here: cubins; needs MLIR and ptxas
    python bench/matmul_warp.py --run build/warp        # there: needs PyTorch, Triton, cuda-python

f16 operands, sums in f32, square sizes, random normal operands. The peak is that of `mma.sync` (the
best variant of `mma_peak.py`); cuBLAS and Triton use wgmma, which is faster. Each time is
the median of ``--repeats`` launches between events, the L2 cache written over before each. Results
are compared with PyTorch's in f32. Exit status: 0, 1 a wrong result, 2 no GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mma_peak

TARGET = "sm_90"
SIZES = (2048, 4096, 6144, 8192)
PROGRAM = """
func.func @matmul(%a: tensor<{n}x{n}xf16>, %b: tensor<{n}x{n}xf16>) -> tensor<{n}x{n}xf32> {{
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{n}x{n}xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %out = linalg.matmul ins(%a, %b : tensor<{n}x{n}xf16>, tensor<{n}x{n}xf16>)
      outs(%init : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  return %out : tensor<{n}x{n}xf32>
}}
"""


def prepare(folder: Path, options: list[dict[str, Any]], all_sizes: list[int]) -> None:
    """Cubins and launches, for each set of pipeline options."""
    import tcir
    from tcir.codegen import assemble

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peak.cubin").write_bytes(assemble(mma_peak.ptx(TARGET), target=TARGET).data)
    kernels = []
    for number, chosen in enumerate(options):
        for n in all_sizes:
            kernel = tcir.compile(PROGRAM.format(n=n), "matmul-warp", target=TARGET, **chosen)
            file = f"matmul_{n}_{number}.cubin"
            (folder / file).write_bytes(kernel.cubin)
            launch = asdict(kernel.launch_config)
            kernels.append({"n": n, "options": chosen, "file": file, "launch": launch})
            print(f"{file}: {launch}")
    (folder / "kernels.json").write_text(json.dumps(kernels, indent=1) + "\n")


def as_tuples(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    if isinstance(value, list):
        return tuple(as_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: as_tuples(item) for key, item in value.items()}
    return value


class Bench:
    """Timing on the current stream of PyTorch."""

    def __init__(self, repeats: int) -> None:
        import torch

        self.torch, self.repeats = torch, repeats
        self.cache = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")

    def milliseconds(self, launch: Callable[[], Any]) -> float:
        """Median; the clearing before the first event also hides the time that launching takes."""
        event = self.torch.cuda.Event
        for _ in range(3):
            launch()
        pairs = [
            (event(enable_timing=True), event(enable_timing=True)) for _ in range(self.repeats)
        ]
        for start, stop in pairs:
            self.cache.zero_()
            start.record()
            launch()
            stop.record()
        self.torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(stop) for start, stop in pairs)

    def peak(self, cubin: bytes) -> float:
        """TFLOP/s of the best variant, run for about as long as a product of 8192³."""
        from tcir import runtime

        torch = self.torch
        gpu = runtime.device()
        multiprocessors = gpu.attribute("MULTIPROCESSOR_COUNT")
        source = torch.randn(1 << 16, device="cuda").to(torch.float16)
        out = torch.empty(1 << 20, device="cuda")
        best = 0.0
        for v in mma_peak.VARIANTS:
            function = runtime.load(cubin, gpu).function(v.name)
            steps = round(1.2e12 / v.flops(1, multiprocessors))
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

            rate = v.flops(steps, multiprocessors) / self.milliseconds(launch) / 1e9
            print(f"  {v.name:18} {rate:7.1f} TFLOP/s ({function.registers} registers)")
            best = max(best, rate)
        return best


def run(folder: Path, repeats: int) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error
    from tcir.launch import Launch
    from tcir.runtime.kernel import launch_pointers

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
    peaks = [bench.peak((folder / "peak.cubin").read_bytes())]
    kernels = as_tuples(json.loads((folder / "kernels.json").read_text()))
    if not kernels:
        print("no cubins of matmul-warp in this folder: it is left out")
    rows: list[tuple[int, str, float]] = []
    wrong = 0
    for n in SIZES:
        a, b = (torch.randn(n, n, device="cuda").to(torch.float16) for _ in range(2))
        half = torch.empty(n, n, device="cuda", dtype=torch.float16)
        c = torch.empty(n, n, device="cuda")
        expected = a.float() @ b.float()

        def rate(launch: Callable[[], Any], n: int = n) -> float:
            return 2 * n**3 / bench.milliseconds(launch) / 1e9

        def check(name: str, got: Any, expected: Any = expected) -> None:
            nonlocal wrong
            error = float((got.float() - expected).norm() / expected.norm())
            if not error < 1e-3:
                wrong += 1
                print(f"WRONG: {name}: error {error:g}")

        rows.append((n, "cuBLAS", rate(lambda a=a, b=b, out=half: torch.mm(a, b, out=out))))
        check(f"cuBLAS {n}", half)
        best = 0.0
        for name, launch in triton_hopper.launches(a, b, c).items():
            c.fill_(float("nan"))
            best = max(best, rate(launch))
            check(f"Triton {n}, {name}", c)
        rows.append((n, "Triton", best))
        for kernel in (k for k in kernels if k["n"] == n):
            cubin = (folder / kernel["file"]).read_bytes()
            sizes = Launch(**kernel["launch"])
            c.fill_(float("nan"))
            pointers = [t.data_ptr() for t in (a, b, c)]

            def ours(sizes: Any = sizes, cubin: bytes = cubin, at: Any = pointers) -> None:
                stream = torch.cuda.current_stream().cuda_stream
                launch_pointers(sizes, cubin, at, gpu, stream)

            words = " ".join(f"{k}={v}" for k, v in kernel["options"].items())
            rows.append((n, f"matmul-warp {words}".strip(), rate(ours)))
            check(f"matmul-warp {n} {words}", c)
    peaks.append(bench.peak((folder / "peak.cubin").read_bytes()))
    peak = max(peaks)
    print(f"mma.sync peak: {peak:.1f} TFLOP/s (first {peaks[0]:.1f}, last {peaks[1]:.1f})")
    print(f"{'n':>6} {'':40} {'TFLOP/s':>8} {'of peak':>8} {'of cuBLAS':>10}")
    for n, name, found in rows:
        cublas = next(r for m, word, r in rows if m == n and word == "cuBLAS")
        print(f"{n:6} {name:40} {found:8.1f} {found / peak:8.1%} {found / cublas:10.1%}")
    return 1 if wrong else 0


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument(
        "--options", action="append", default=[], metavar="JSON",
        help="options of the pipeline, once for each variant to measure ('{}')",
    )  # fmt: skip
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
