"""The programs in which bugs are planted: small, with all types of operands and results."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from endtoend.block_scaled_text import F6A, F6B, F8A, F8B, UE8M0, BlockScaled, from_codes
from endtoend.linalg_text import Conv, Matmul

from .planted import Program

NVFP4 = BlockScaled(m=64, k=256)
NVFP4_COLUMNS = BlockScaled(m=128, n=16, k=256, alpha="after", out="bf16")
MX = BlockScaled(m=64, k=512, scale=UE8M0, block=32, a=F8A, b=F8B)
MX_COLUMNS = replace(MX, m=128, n=2)
MX6_COLUMNS = replace(MX_COLUMNS, a=F6A, b=F6B)


def _conv(element: str, out: str = "f32", channels: int = 16) -> str:
    return Conv(1, 10, 10, channels, 32, 3, 3, (1, 1, 1, 1), element=element, out=out).text()


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
}  # fmt: skip
PROGRAMS = tuple(_TEXTS)


@cache
def program(name: str) -> Program:
    """The program of a name; compiled once."""
    return Program(*_TEXTS[name])
