"""The programs in which bugs are planted: small, with all types of operands and results."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from endtoend.block_scaled_text import F6A, F6B, F8A, F8B, UE8M0, BlockScaled, from_codes
from endtoend.chain_text import TWO_PRODUCTS
from endtoend.constants_text import with_constants
from endtoend.epilogue_text import KEEP, SILU_OF_SUMS, TRUNCATE, Fused
from endtoend.linalg_text import Conv, Matmul
from endtoend.quantise_text import quantised
from endtoend.test_gemm_grouped import Grouped
from endtoend.test_gemm_quantise import E4M3 as E4M3_BLOCKS
from endtoend.test_gemm_quantise import MXFP4 as MXFP4_BLOCKS
from endtoend.test_gemm_quantise import NVFP4 as NVFP4_BLOCKS
from endtoend.test_gemm_quantise import Case
from endtoend.test_quantise_apart import argument

from .attack_programs import TEXTS as _ATTACKED
from .planted import Program

NVFP4 = BlockScaled(m=64, k=256)
NVFP4_COLUMNS = BlockScaled(m=128, n=16, k=256, alpha="after", out="bf16")
MX = BlockScaled(m=64, k=512, scale=UE8M0, block=32, a=F8A, b=F8B)
MX_COLUMNS = replace(MX, m=128, n=2)
MX6_COLUMNS = replace(MX_COLUMNS, a=F6A, b=F6B)


def _conv(element: str, out: str = "f32", channels: int = 16) -> str:
    return Conv(1, 10, 10, channels, 32, 3, 3, (1, 1, 1, 1), element=element, out=out).text()


START = Fused(
    "%t = arith.negf %s : f32\nlinalg.yield %t : f32", out="f32", start=True, m=40, n=32, k=32
)
BIAS = Fused(
    """
    %z = arith.constant 0.0 : f32
    %u = arith.addf %s, %b : f32
    %t = arith.maximumf %u, %z : f32
    """
    + TRUNCATE,
    {"b": ("f32", "n")},
    m=40,
    n=32,
    k=32,
)
RESIDUAL = Fused(
    """
    %e = arith.extf %r : f16 to f32
    %x = arith.mulf %s, %al : f32
    %y = arith.mulf %e, %be : f32
    %t = arith.addf %x, %y : f32
    linalg.yield %t : f32
    """,
    {"r": ("f16", "mn"), "al": ("f32", ""), "be": ("f32", "")},
    out="f32",
    m=40,
    n=32,
    k=32,
)
NARROW = Fused(
    """
    %z = arith.constant 0.0 : f16
    %h = arith.truncf %s : f32 to f16
    %u = arith.addf %h, %b : f16
    %t = arith.maximumf %u, %z : f16
    linalg.yield %t : f16
    """,
    {"b": ("f16", "n")},
    m=40,
    n=32,
    k=32,
)
DEQUANTISED = Fused(
    """
    %x = arith.sitofp %s : i32 to f32
    %y = arith.mulf %x, %rows : f32
    %t = arith.mulf %y, %columns : f32
    linalg.yield %t : f32
    """,
    {"rows": ("f32", "m"), "columns": ("f32", "n")}, out="f32", element="i8", sums="i32",
    m=40, n=32, k=1440,
)  # fmt: skip
WEIGHTS = np.random.default_rng(1).standard_normal((32, 32)).astype(np.float16)
TESTS = Path(__file__).parent.parent


def _layer(name: str) -> str:
    return (TESTS / "endtoend" / "layers" / f"{name}.mlir").read_text()


SILU = Fused(SILU_OF_SUMS + KEEP, out="f32", m=40, n=32, k=32)

_TEXTS = {
    "matmul f16": ("matmul", Matmul(128, 32, 64, out="f16").text()),
    "matmul bf16": ("matmul", Matmul(128, 32, 64, element="bf16", out="bf16").text()),
    "matmul bf16 f32": ("matmul", Matmul(128, 32, 64, element="bf16").text()),
    "warp tf32": ("matmul-warp", Matmul(64, 32, 96, element="f32").text()),
    "warp tf32, K 512": ("matmul-warp", Matmul(64, 32, 512, element="f32").text()),
    "warp bf16": ("matmul-warp", Matmul(64, 32, 96, element="bf16", out="bf16").text()),
    "warp e4m3": ("matmul-warp", Matmul(64, 32, 96, element="f8E4M3FN").text()),
    "shift-reuse f16": ("conv-shift-reuse", _conv("f16", "f16")),
    "smem-offset tf32": ("conv-smem-offset", _conv("f32")),
    "smem-offset e5m2": ("conv-smem-offset", _conv("f8E5M2")),
    "implicit-gemm bf16": ("conv-implicit-gemm", _conv("bf16", "bf16")),
    "implicit-gemm i8": ("conv-implicit-gemm", _conv("i8", "i32", 192)),
    "implicit-gemm f16, 3 channels": ("conv-implicit-gemm", _conv("f16", "f32", 3)),
    "simt nvfp4": ("gemv-simt", NVFP4.linalg()),
    "simt nvfp4 codes": ("gemv-simt", from_codes(NVFP4, NVFP4.linalg())),
    "simt mx": ("gemv-simt", MX.linalg()),
    "padded nvfp4": ("gemv-padded-n", NVFP4_COLUMNS.linalg()),
    "padded mx": ("gemv-padded-n", MX_COLUMNS.linalg()),
    "padded mx6": ("gemv-padded-n", MX6_COLUMNS.linalg()),
    "gemm start": ("gemm", START.linalg()),
    "gemm bias, relu": ("gemm", BIAS.linalg()),
    "gemm residual": ("gemm", RESIDUAL.linalg()),
    "gemm f16 bias, relu": ("gemm", NARROW.linalg()),
    "gemm i8, dequantised": ("gemm", DEQUANTISED.linalg()),
    "gemm silu": ("gemm", SILU.linalg()),
    "two gemms": ("gemm", TWO_PRODUCTS),
    "persistent gemm": (
        "gemm{n-tile=16 persistent=true ctas=2 store=tma}",
        Matmul(140, 40, 64, out="f16").text(),
    ),
    "gemm sm_90a": ("gemm", Matmul(128, 32, 64, out="f16").text(), "sm_90a"),
    "gemm of 50 rows, sm_90a": (
        "gemm{n-tile=16 stages=2}",
        Matmul(50, 32, 320, out="f16").text(),
        "sm_90a",
    ),
    "softmax": ("simt-elementwise", _layer("softmax")),
    "quantise i8": ("simt-elementwise", _layer("quantise")),
    "max pool": ("simt-elementwise", _layer("max_pool")),
    "maximum of rows": ("simt-elementwise", _layer("max_dim")),
    "attention f16": ("gemm", _layer("sdpa_f16")),
    "mlp bf16": ("gemm", (TESTS.parent / "examples" / "mlp_bf16.mlir").read_text()),
    "layers f32, gelu": ("gemm", _layer("block")),
    "linear residual": ("gemm", _layer("linear_residual")),
    "constant weights": ("gemm", with_constants(NARROW.linalg(), {1: WEIGHTS})),
}
PROGRAMS = tuple(_TEXTS)
LAYERS = Path(__file__).parents[1] / "endtoend" / "layers"


def _fp8(element: str) -> str:
    return Matmul(64, 32, 64, element=element, out=element).text()


def _blocks(formats: tuple[str, str], rounding: str = "", m: int = 64) -> str:
    body = "%t = arith.negf %u : f32"  # no relu: amax may have either sign
    return Case(formats, m=m, k=64, body=body, rounding=rounding).linalg()


CLAMPED = Fused(
    """
    %low = arith.constant -127.0 : f32
    %high = arith.constant 127.0 : f32
    %x = arith.mulf %s, %al : f32
    %y = arith.addf %x, %b : f32
    %u = arith.maximumf %y, %low : f32
    %t = arith.minimumf %u, %high : f32
    """
    + TRUNCATE,
    {"b": ("f32", "n"), "al": ("f32", "")},
    m=40,
    n=32,
    k=32,
)
_BOUNDARIES = {
    "gemm e4m3": ("gemm", _fp8("f8E4M3FN")),
    "gemm e5m2": ("gemm", _fp8("f8E5M2")),
    "gemm e4m3, sm_90a": ("gemm", _fp8("f8E4M3FN"), "sm_90a"),
    "gemm f16": ("gemm", Matmul(64, 32, 64, out="f16").text()),
    "gemm bf16": ("gemm", Matmul(64, 32, 64, element="bf16", out="bf16").text()),
    "gemm clamped": ("gemm", CLAMPED.linalg()),
    "gemm to nvfp4": ("gemm", _blocks(NVFP4_BLOCKS)),
    "gemm to mxfp4": ("gemm", _blocks(MXFP4_BLOCKS)),
    "gemm to mxfp8": ("gemm", _blocks(E4M3_BLOCKS, "rceil")),
    "gemm to mxfp8, sm_90a": ("gemm", _blocks(E4M3_BLOCKS, "rceil", 128), "sm_90a"),
    "quantise to nvfp4": ("simt-elementwise", quantised(argument(64, 64), NVFP4_BLOCKS)),
    "quantise to mxfp4": ("simt-elementwise", quantised(argument(64, 64), MXFP4_BLOCKS)),
    "quantise to mxfp8": (
        "simt-elementwise",
        quantised(argument(64, 64), E4M3_BLOCKS, rounding="rceil"),
    ),
    "implicit-gemm i8, 128 channels": ("conv-implicit-gemm", _conv("i8", "i32", 128)),
    "max pool": ("simt-elementwise", (LAYERS / "max_pool.mlir").read_text()),
    "quantise to i8": ("simt-elementwise", (LAYERS / "quantise.mlir").read_text()),
    "to e4m3": ("simt-elementwise", (LAYERS / "to_f8.mlir").read_text()),
    "grouped": ("gemm", Grouped(3, 420, 24, 72).text),
    "grouped, masked": ("gemm", Grouped(3, 260, 24, 72, masked=True).text),
}
"""Programs whose bugs show at boundaries only."""


@cache
def program(name: str) -> Program:
    """The program of a name; compiled once."""
    return Program(*(_TEXTS | _BOUNDARIES | _ATTACKED)[name])
