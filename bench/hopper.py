"""TFLOP/s of `gemm` for sm_90a on a Hopper GPU, beside cuBLAS in the same run.

    python bench/hopper.py --prepare build/hopper    # here: cubins; needs MLIR and ptxas
    python bench/hopper.py --run build/hopper        # there: needs PyTorch, cuda-python, NVML

Square products of random normal operands, sums in f32, results rounded to the operands' type. Rates
as in `matmul_warp.py`: from rest, and held, with the clock and the power that NVML reports. Every
row is one set of options of the pipeline. Results are compared with PyTorch's in f32.

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
SIZES = (2048, 4096, 6144, 8192)
TYPES = {"f16": "float16", "bf16": "bfloat16"}
"""Types of the operands and the result, by PyTorch's names."""
MOST = 4e-3
"""Error of a right result: rounding to bf16 alone makes 1.7e-3."""
PROGRAM = """
func.func @matmul(%a: tensor<{n}x{n}x{t}>, %b: tensor<{n}x{n}x{t}>) -> tensor<{n}x{n}x{t}> {{
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{n}x{n}xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<{n}x{n}x{t}>, tensor<{n}x{n}x{t}>)
      outs(%init : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %out = arith.truncf %sum : tensor<{n}x{n}xf32> to tensor<{n}x{n}x{t}>
  return %out : tensor<{n}x{n}x{t}>
}}
"""


def prepare(folder: Path, options: list[dict[str, Any]], types: list[str], sizes: list[int]) -> int:
    """Cubins and launches, for each set of pipeline options."""
    import tcir

    folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for (number, chosen), kind, n in product(enumerate(options), types, sizes):
        kernel = tcir.compile(PROGRAM.format(n=n, t=kind), "gemm", target=TARGET, **chosen)
        name = f"gemm_{n}_{kind}_{number}"
        kernels.append(keep(folder, name, kernel, n=n, type=kind, options=chosen))
    write(folder, kernels)
    return 0


def run(folder: Path, repeats: int) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error

    try:
        gpu = runtime.device()
    except Error as error:
        print(f"hopper: {error}")
        return 2
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}")
    bench, wrong, kernels = Bench(repeats), 0, read(folder)
    print(f"{'':49} {HEAD}")
    for n, kind in dict.fromkeys((k["n"], k["type"]) for k in kernels):
        dtype = getattr(torch, TYPES[kind])
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        out = torch.empty(n, n, device="cuda", dtype=dtype)
        rows = Rows(bench, f"{n:6} {kind}", 2 * n**3, out, a.float() @ b.float())
        rows.measure("cuBLAS", partial(torch.mm, a, b, out=out), MOST)
        for kernel in (k for k in kernels if (k["n"], k["type"]) == (n, kind)):
            words = " ".join(f"{k}={v}" for k, v in kernel["options"].items()) or "gemm"
            rows.measure(words, launcher(folder, kernel, (a, b, out), gpu), MOST)
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
    parser.add_argument("--types", default=",".join(TYPES))
    options = parser.parse_args()
    if options.prepare:
        chosen = [json.loads(text) for text in options.options] or [{}, {"persistent": True}]
        sizes = [int(n) for n in options.sizes.split(",")]
        return prepare(options.prepare, chosen, options.types.split(","), sizes)
    if options.run:
        return run(options.run, options.repeats)
    parser.error("expected --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())
