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
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from matmul_warp import Bench
from product_rows import HEAD, Rows, keep, launcher, read, write

TARGET = "sm_90a"
SIZES = (4096, 8192)
TYPES = {"e4m3": ("f8E4M3FN", "float8_e4m3fn"), "e5m2": ("f8E5M2", "float8_e5m2")}
"""MLIR's names of the types, and PyTorch's."""
PAIRS = ("e4m3 e4m3",)
MOST, MOST_FAST = 4e-3, 2e-2
"""Largest error of a correct result: 1.7e-3 from rounding to bf16 alone, and of sums of 13 bits."""
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
        words = " ".join(f"{k}={v}" for k, v in chosen.items()) or "gemm"
        name = f"fp8_{n}_{pair.replace(' ', '_')}_{number}"
        kernels.append(keep(folder, name, kernel, n=n, pair=pair, words=words))
    write(folder, kernels)
    return 0


def run(folder: Path, repeats: int) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error

    try:
        gpu = runtime.device()
    except Error as error:
        print(f"hopper_fp8: {error}")
        return 2
    import torch

    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}")
    bench, wrong, kernels = Bench(repeats), 0, read(folder)
    print(f"{'':49} {HEAD}")
    for n, pair in dict.fromkeys((k["n"], k["pair"]) for k in kernels):
        a, b = (
            torch.randn(n, n, device="cuda").to(getattr(torch, TYPES[name][1]))
            for name in pair.split()
        )
        out = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
        one = torch.ones((), device="cuda")
        rows = Rows(bench, f"{n:6} {pair}", 2 * n**3, out, a.float() @ b.float().T)
        theirs = partial(
            torch._scaled_mm, a, b.T, scale_a=one, scale_b=one, out_dtype=out.dtype, out=out
        )
        if "e4m3" in pair:  # PyTorch takes no two of e5m2
            rows.measure("cuBLASLt, exact", partial(theirs, use_fast_accum=False), MOST)
            rows.measure("cuBLASLt, fast", partial(theirs, use_fast_accum=True), MOST_FAST)
        for kernel in (k for k in kernels if (k["n"], k["pair"]) == (n, pair)):
            rows.measure(kernel["words"], launcher(folder, kernel, (a, b, out), gpu), MOST)
        wrong += rows.wrong
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
        help="options of the pipeline, once for each row ('{}')",
    )
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
