"""Compile time, linalg -> cubin for sm_100a, and Triton on a comparable kernel in the same run.

    python bench/compile_time.py [--repeat 5]

Prints seconds per compilation (validation off; the best of the repetitions after one warm-up) and
the ratio to Triton's, when Triton is installed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"

MATMUL = """
func.func @matmul(%a: tensor<2048x2048xf16>, %b: tensor<2048x2048xf16>) -> tensor<2048x2048xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2048x2048xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %out = linalg.matmul ins(%a, %b : tensor<2048x2048xf16>, tensor<2048x2048xf16>)
      outs(%init : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %out : tensor<2048x2048xf32>
}
"""


def best(run: Callable[[], Any], repeat: int) -> float:
    """Seconds of the fastest of `repeat` runs after one warm-up."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat

    import tcir

    conv = (EXAMPLES / "resnet50_conv2_3x3.mlir").read_text()
    rows = {
        "tcir matmul 2048^3 (pipeline matmul)": lambda: tcir.compile(MATMUL, "matmul").cubin,
        "tcir conv 56x56x64 3x3 (conv-shift-reuse)": lambda: (
            tcir.compile(conv, "conv-shift-reuse").cubin
        ),
        "tcir conv 56x56x64 3x3 (conv-implicit-gemm)": lambda: (
            tcir.compile(conv, "conv-implicit-gemm").cubin
        ),
    }
    seconds = {name: best(run, repeat) for name, run in rows.items()}
    reference = None
    try:
        os.environ["TRITON_ALWAYS_COMPILE"] = "1"
        import triton_matmul
    except ModuleNotFoundError as error:
        print(f"no comparison: {error}")
    else:
        reference = best(triton_matmul.compile_once, repeat)
        print(f"{'Triton matmul (warp-specialised, TMA, tcgen05)':<48} {reference:7.3f} s")
    for name, value in seconds.items():
        ratio = f"  {value / reference:5.2f} x Triton" if reference else ""
        print(f"{name:<48} {value:7.3f} s{ratio}")


if __name__ == "__main__":
    main()
