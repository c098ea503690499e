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
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from matmul_warp import Bench, as_tuples

TARGET = "sm_90a"
SIZES = (2048, 4096, 6144, 8192)
TYPES = {"f16": "float16", "bf16": "bfloat16"}
"""Of the operands and the result; PyTorch's names."""
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
        file = f"gemm_{n}_{kind}_{number}.cubin"
        (folder / file).write_bytes(kernel.cubin)
        launch = asdict(kernel.launch_config)
        kernels.append({"n": n, "type": kind, "options": chosen, "file": file, "launch": launch})
        print(f"{file}: grid {kernel.launch_config.grid}, {chosen}")
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
        print(f"hopper: {error}")
        return 2
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}")
    bench, wrong = Bench(repeats), 0
    kernels = as_tuples(json.loads((folder / "kernels.json").read_text()))
    print(f"{'':44} {'rest':>7} {'of it':>6} {'held':>7} {'of it':>6} clock and power, held")
    for n, kind in dict.fromkeys((k["n"], k["type"]) for k in kernels):
        dtype = getattr(torch, TYPES[kind])
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        out = torch.empty(n, n, device="cuda", dtype=dtype)
        expected = a.float() @ b.float()
        against = None

        def measure(name: str, launch: Callable[[], Any]) -> Any:
            nonlocal wrong
            out.fill_(float("nan"))  # noqa: B023
            rate = bench.rate(name, launch, 2 * n**3)  # noqa: B023
            first = against or rate  # noqa: B023
            print(
                f"{n:6} {kind:5} {name:31} {rate.rest:7.1f} {rate.rest / first.rest:6.3f} "  # noqa: B023
                f"{rate.lasting:7.1f} {rate.lasting / first.lasting:6.3f} {rate.gpu}",
                flush=True,
            )
            error = float((out.float() - expected).norm() / expected.norm())  # noqa: B023
            if not error < 4e-3:
                wrong += 1
                print(f"WRONG: {name}: error {error:g}")
            return rate

        against = measure("cuBLAS", partial(torch.mm, a, b, out=out))
        for kernel in (k for k in kernels if (k["n"], k["type"]) == (n, kind)):
            cubin = (folder / kernel["file"]).read_bytes()
            sizes = Launch(**kernel["launch"])
            pointers = [t.data_ptr() for t in (a, b, out)]

            def ours(sizes: Any = sizes, cubin: bytes = cubin, at: Any = pointers) -> None:
                stream = torch.cuda.current_stream().cuda_stream
                launch_pointers(sizes, cubin, at, gpu, stream)

            measure(" ".join(f"{k}={v}" for k, v in kernel["options"].items()) or "gemm", ours)
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
