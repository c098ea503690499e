"""TFLOP/s of `gemm` of fp8 for sm_90a on a Hopper GPU, beside cuBLASLt in the same run.

    python bench/hopper_fp8.py --prepare build/fp8    # here: cubins; needs MLIR and ptxas
    python bench/hopper_fp8.py --run build/fp8        # there: needs PyTorch, cuda-python, NVML

Square products of random normal operands, both with K innermost, results in bf16. cuBLASLt is
``torch._scaled_mm`` with scales of 1: exact, whose sums are promoted to f32 as those of `gemm` are,
and fast, whose sums stay in the tensor core with 13 bits. Rates as in `hopper.py`, and the error,
relative in the root mean square, against f32. Every row is one set of options of the pipeline.

Exit status: 0, 1 a wrong result, 2 no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from matmul_warp import Bench, as_tuples

TARGET = "sm_90a"
SIZES = (4096, 8192)
TYPES = {"e4m3": ("f8E4M3FN", "float8_e4m3fn"), "e5m2": ("f8E5M2", "float8_e5m2")}
"""MLIR's names and PyTorch's."""
PAIRS = ("e4m3 e4m3",)
MOST = 4e-3
"""Error of a right result: rounding to bf16 alone makes 1.7e-3."""
PROGRAM = """
func.func @matmul(%a: tensor<{n}x{n}x{a}>, %b: tensor<{n}x{n}x{b}>) -> tensor<{n}x{n}xbf16> {{
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{n}x{n}xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %sum = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<{n}x{n}x{a}>, tensor<{n}x{n}x{b}>)
      outs(%init : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %out = arith.truncf %sum : tensor<{n}x{n}xf32> to tensor<{n}x{n}xbf16>
  return %out : tensor<{n}x{n}xbf16>
}}
"""


def prepare(folder: Path, options: list[dict[str, Any]], pairs: list[str], sizes: list[int]) -> int:
    """Cubins and launches, for each set of pipeline options."""
    import tcir

    folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for (number, chosen), pair, n in product(enumerate(options), pairs, sizes):
        a, b = (TYPES[name][0] for name in pair.split())
        kernel = tcir.compile(PROGRAM.format(n=n, a=a, b=b), "gemm", target=TARGET, **chosen)
        file = f"fp8_{n}_{pair.replace(' ', '_')}_{number}.cubin"
        (folder / file).write_bytes(kernel.cubin)
        launch = asdict(kernel.launch_config)
        words = " ".join(f"{k}={v}" for k, v in chosen.items()) or "gemm"
        kernels.append({"n": n, "pair": pair, "words": words, "file": file, "launch": launch})
        print(f"{file}: grid {kernel.launch_config.grid}, {words}")
    (folder / "kernels.json").write_text(json.dumps(kernels, indent=1) + "\n")
    return 0


def run(folder: Path, repeats: int) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error
    from tcir.program.launch import Launch
    from tcir.runtime.launching import launch_pointers

    try:
        gpu = runtime.device()
    except Error as error:
        print(f"hopper_fp8: {error}")
        return 2
    import torch

    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}")
    bench, wrong = Bench(repeats), 0
    kernels = as_tuples(json.loads((folder / "kernels.json").read_text()))
    head = f"{'rest':>7} {'of it':>6} {'held':>7} {'of it':>6} {'error':>8}"
    print(f"{'':42} {head} clock and power, held")
    for n, pair in dict.fromkeys((k["n"], k["pair"]) for k in kernels):
        a, b = (
            torch.randn(n, n, device="cuda").to(getattr(torch, TYPES[name][1]))
            for name in pair.split()
        )
        out = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
        one = torch.ones((), device="cuda")
        expected = a.float() @ b.float().T
        against = None

        def measure(name: str, launch: Callable[[], Any], most: float = MOST) -> Any:
            nonlocal wrong
            out.fill_(float("nan"))  # noqa: B023
            rate = bench.rate(name, launch, 2 * n**3)  # noqa: B023
            first = against or rate  # noqa: B023
            error = float((out.float() - expected).norm() / expected.norm())  # noqa: B023
            print(
                f"{n:6} {pair:10} {name:24} {rate.rest:7.1f} {rate.rest / first.rest:6.3f} "  # noqa: B023
                f"{rate.lasting:7.1f} {rate.lasting / first.lasting:6.3f} {error:8.1e} {rate.gpu}",
                flush=True,
            )
            if not error < most:
                wrong += 1
                print(f"WRONG: {name}: error {error:g}")
            return rate

        theirs = partial(
            torch._scaled_mm, a, b.T, scale_a=one, scale_b=one, out_dtype=out.dtype, out=out
        )
        if "e4m3" in pair:  # PyTorch takes no two of e5m2
            against = measure("cuBLASLt, exact", partial(theirs, use_fast_accum=False))
            measure("cuBLASLt, fast", partial(theirs, use_fast_accum=True), 2e-2)
        for kernel in (k for k in kernels if (k["n"], k["pair"]) == (n, pair)):
            cubin = (folder / kernel["file"]).read_bytes()
            sizes = Launch(**kernel["launch"])
            pointers = [t.data_ptr() for t in (a, b, out)]

            def ours(sizes: Any = sizes, cubin: bytes = cubin, at: Any = pointers) -> None:
                stream = torch.cuda.current_stream().cuda_stream
                launch_pointers(sizes, cubin, at, gpu, stream)

            measure(kernel["words"], ours)
    return 1 if wrong else 0


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument(
        "--options", action="append", default=[], metavar="JSON",
        help="options of the pipeline, once for each row ('{}')",
    )  # fmt: skip
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--pairs", default=",".join(PAIRS), help="types of A and B")
    options = parser.parse_args()
    if options.prepare:
        chosen = [json.loads(text) for text in options.options] or [{}]
        sizes = [int(n) for n in options.sizes.split(",")]
        return prepare(options.prepare, chosen, options.pairs.split(","), sizes)
    if options.run:
        return run(options.run, options.repeats)
    parser.error("expected --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())
