"""TFLOP/s of `gemm` for sm_90a with an epilogue, beside cuBLAS and PyTorch's compiled epilogue.

    python bench/hopper_fused.py --prepare build/fused    # here: cubins; needs MLIR and ptxas
    python bench/hopper_fused.py --run build/fused        # there: needs PyTorch, cuda-python, NVML

Square products of random normal f16 operands, their sums rounded to f16, as PyTorch's are: alone,
bias + gelu (with erf), residual + relu, all to f16, a scale and e4m3, and MXFP8: e4m3 with a ue8m0
scale for each 32 columns. PyTorch's is `torch.compile` of the same expression; if it has no
compiler there, the row is eager and says so.
Rates as in `hopper.py`. Results are compared with PyTorch's, those of MXFP8 times their scales, and
of whole numbers code by code.

Exit status: 0, 1 a wrong result, 2 no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from matmul_warp import Bench
from product_rows import HEAD, Rows, as_f32, keep, launcher, read, write

TARGET = "sm_90a"
SIZES = (4096, 8192)
SCALE = 1 / 64
MOST = {1: 4e-2, 2: 2e-3}
"""Largest error of a correct result, by the bytes of an element."""
PROGRAM = """
#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
func.func @fused(%a: tensor<{n}x{n}xf16>, %b: tensor<{n}x{n}xf16>{more}) -> ({results}) {{
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{n}x{n}xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<{n}x{n}xf16>, tensor<{n}x{n}xf16>)
      outs(%init : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>{rest}
}}
"""
ELEMENTWISE = """
  %to = tensor.empty() : tensor<{n}x{n}x{out}>
  %y = linalg.generic
      {{indexing_maps = [#all, {maps}#all], iterator_types = ["parallel", "parallel"]}}
      ins(%sum{names} : tensor<{n}x{n}xf32>{types}) outs(%to : tensor<{n}x{n}x{out}>) {{
  ^bb0(%s: f32{scalars}, %o: {out}):
{body}
    linalg.yield %t : {out}
  }} -> tensor<{n}x{n}x{out}>
  return %y : tensor<{n}x{n}x{out}>"""
BLOCKS = """
  %h = arith.truncf %sum : tensor<{n}x{n}xf32> to tensor<{n}x{n}xf16>
  %w = arith.extf %h : tensor<{n}x{n}xf16> to tensor<{n}x{n}xf32>
  %q:2 = "tc.quantise_blocks"(%w) {{operandSegmentSizes = array<i32: 1, 0>}}
      : (tensor<{n}x{n}xf32>) -> ({results})
  return %q#0, %q#1 : {results}"""
ROUND = """
    %r = arith.truncf %s : f32 to f16
    %v = arith.extf %r : f16 to f32"""
GELU = f"""{ROUND}
    %r2 = arith.constant 0.7071067811865476 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %x = arith.addf %v, %e : f32
    %i = arith.mulf %x, %r2 : f32
    %erf = math.erf %i : f32
    %p = arith.addf %erf, %one : f32
    %h = arith.mulf %x, %half : f32
    %g = arith.mulf %h, %p : f32
    %t = arith.truncf %g : f32 to f16"""
RELU = f"""{ROUND}
    %w = arith.extf %e : f16 to f32
    %x = arith.addf %v, %w : f32
    %g = arith.maximumf %x, %f0 : f32
    %t = arith.truncf %g : f32 to f16"""
NONE = """
    %t = arith.truncf %s : f32 to f16"""
QUANTISE = f"""{ROUND}
    %k = arith.constant {SCALE} : f32
    %g = arith.mulf %v, %k : f32
    %t = arith.truncf %g : f32 to f8E4M3FN"""
EPILOGUES = {
    "none": "f16", "bias + gelu": "f16", "residual + relu": "f16", "fp8": "f8E4M3FN",
    "mxfp8": "f8E4M3FN",
}  # fmt: skip
MX_BLOCK = 32
"""Elements that share a scale."""


def program(name: str, n: int) -> str:
    """The product with that epilogue."""
    other = {"bias + gelu": f"tensor<{n}xf32>", "residual + relu": f"tensor<{n}x{n}xf16>"}.get(name)
    element = "f32" if name == "bias + gelu" else "f16"
    out, more = EPILOGUES[name], f", %other: {other}" if other else ""
    results = f"tensor<{n}x{n}x{out}>"
    if name == "mxfp8":
        results += f", tensor<{n}x{n // MX_BLOCK}xf8E8M0FNU>"
        rest = BLOCKS.format(n=n, results=results)
        return PROGRAM.format(n=n, more=more, results=results, rest=rest)
    rest = ELEMENTWISE.format(
        n=n,
        out=out,
        body={"none": NONE, "bias + gelu": GELU, "residual + relu": RELU, "fp8": QUANTISE}[name],
        names=", %other" if other else "",
        types=f", {other}" if other else "",
        scalars=f", %e: {element}" if other else "",
        maps={"bias + gelu": "#column, ", "residual + relu": "#all, "}.get(name, ""),
    )
    return PROGRAM.format(n=n, more=more, results=results, rest=rest)


def prepare(folder: Path) -> int:
    """Cubins and launches."""
    import tcir

    folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for number, name in enumerate(EPILOGUES):
        for n in SIZES:
            kernel = tcir.compile(program(name, n), "gemm", target=TARGET)
            kernels.append(keep(folder, f"fused_{n}_{number}", kernel, n=n, name=name))
    write(folder, kernels)
    return 0


def numbers(result: Any) -> Any:
    """Values of codes and scales."""
    import torch

    codes, scales = result
    steps = (scales.int() << 23).view(torch.float32)[..., None]
    return (codes.float().unflatten(1, (-1, MX_BLOCK)) * steps).flatten(1)


def returning(launch: Callable[[], None], results: Any) -> Any:
    """A launch that returns its results."""
    launch()
    return results


def same_codes(
    theirs: Callable[[], Any], launch: Callable[[], None], ours: Any, operands: Any
) -> bool:
    """Prints how many codes and scales equal PyTorch's; returns whether all do, on whole numbers
    whose sums are exact in any order."""
    import torch

    a, b = operands
    for kind in ("random", "whole"):
        if kind == "whole":
            for each, dim, most in ((a, 0, 4), (b, 1, 3)):
                shape = [1, 1]
                shape[dim] = each.shape[dim]
                powers = torch.randint(-most, most, shape, device="cuda").half()
                each.copy_(torch.randint(-1, 2, each.shape, device="cuda") * torch.exp2(powers))
        launch()
        same = [
            float((mine.view(torch.uint8) == other.view(torch.uint8)).float().mean())
            for mine, other in zip(ours, theirs(), strict=True)
        ]
        print(f"{kind} numbers: {same[0]:.6f} of the codes, {same[1]:.6f} of the scales are equal")
    return same == [1.0, 1.0]


def run(folder: Path, repeats: int) -> int:
    """Prints the table; see the module's text."""
    from tcir import runtime
    from tcir.errors import Error

    try:
        gpu = runtime.device()
    except Error as error:
        print(f"hopper_fused: {error}")
        return 2
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    print(f"{gpu}, driver {gpu.driver}, PyTorch {torch.__version__}")
    bench, wrong = Bench(repeats), 0

    def gelu(a: Any, b: Any, other: Any) -> Any:
        return torch.nn.functional.gelu((a @ b).float() + other).half()

    def relu(a: Any, b: Any, other: Any) -> Any:
        return torch.relu((a @ b) + other)

    def quantise(a: Any, b: Any, other: Any) -> Any:
        return ((a @ b).float() * SCALE).to(torch.float8_e4m3fn)

    def none(a: Any, b: Any, other: Any) -> Any:
        return a @ b

    def blocks(a: Any, b: Any, other: Any) -> Any:
        x = (a @ b).float().unflatten(1, (-1, MX_BLOCK))
        largest = x.abs().amax(-1, keepdim=True)
        scale = (((largest.view(torch.int32) >> 23) & 255) - 8).clamp(0, 254)
        inverse = ((254 - scale) << 23).view(torch.float32)
        codes = (x * inverse).clamp(-448, 448).to(torch.float8_e4m3fn).flatten(1)
        return codes, scale.squeeze(-1).to(torch.uint8)

    theirs = {
        "none": none, "bias + gelu": gelu, "residual + relu": relu, "fp8": quantise,
        "mxfp8": blocks,
    }  # fmt: skip
    print(f"{'':49} {HEAD}")
    for kernel in read(folder):
        n, name = kernel["n"], kernel["name"]
        a, b = (torch.randn(n, n, device="cuda").half() for _ in range(2))
        other = torch.randn(n, device="cuda")
        if name == "residual + relu":
            other = torch.randn(n, n, device="cuda").half()
        kind = torch.float8_e4m3fn if EPILOGUES[name] == "f8E4M3FN" else torch.float16
        out = torch.empty(n, n, device="cuda", dtype=kind)
        eager, how, most = theirs[name], "compiled", MOST[kind.itemsize]
        compiled: Callable[..., Any] = torch.compile(eager)
        try:
            compiled(a, b, other)
        except Exception as error:  # whatever PyTorch's compiler lacks there
            compiled, how = eager, f"eager ({type(error).__name__})"
        tensors = (a, b, out) if name in ("none", "fp8", "mxfp8") else (a, b, other, out)
        expected = theirs["none"] if name == "mxfp8" else eager
        rows = Rows(
            bench,
            f"{n:6} {name}",
            2 * n**3,
            out,
            expected(a.float(), b.float(), other.float()).float(),
            of=numbers if name == "mxfp8" else as_f32,
        )
        rows.measure(f"PyTorch, {how}", partial(compiled, a, b, other), most)
        if name == "mxfp8":
            scales = torch.empty(n, n // MX_BLOCK, device="cuda", dtype=torch.uint8)
            launch = launcher(folder, kernel, (*tensors, scales), gpu)
            rows.measure("gemm", partial(returning, launch, (out, scales)), most)
            wrong += not same_codes(partial(compiled, a, b, other), launch, (out, scales), (a, b))
        else:
            rows.measure("gemm", launcher(folder, kernel, tensors, gpu), most)
        wrong += rows.wrong
    return 1 if wrong else 0


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=Path, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="DIR")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    if options.prepare:
        return prepare(options.prepare)
    if options.run:
        return run(options.run, options.repeats)
    parser.error("expected --prepare DIR or --run DIR")


if __name__ == "__main__":
    sys.exit(main())
