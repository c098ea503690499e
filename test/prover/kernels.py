"""Kernels of this compiler, small, with a few steps of each loop: one at least per pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from endtoend.block_scaled_text import BlockScaled
from endtoend.breaking import PtxCheck
from endtoend.linalg_text import Conv, Matmul

import tcir

PRODUCT = Matmul(256, 64, 320, out="f16").text()
ROWS = Matmul(120, 32, 320, out="f16").text()
LONG = Matmul(64, 32, 320, out="f16").text()
SMALL = Matmul(128, 32, 192, out="f16").text()
FLOATS = Matmul(128, 32, 192, element="f32", b_layout="nk").text()
CONV = Conv(1, 12, 12, 64, 32, 3, 3, (1, 1, 1, 1), out="f16").text()
NVFP4 = BlockScaled(m=128, n=64, k=1024).linalg()
NVFP4_16 = BlockScaled(m=128, n=16, k=256).linalg()
NVFP4_ROWS = BlockScaled(m=64, k=256).linalg()

PAIRS = "it does not derive that both CTAs of a pair get the same columns of tensor memory"
SCALES = "it supports only scales of B for 64, 128 or 256 rows"
ASHIFT = "`.ashift` is left out, so A is read one row further down, within the same 128 rows"
IM2COL = "im2col loads are replaced by tiled loads of as many bytes"


@dataclass(frozen=True)
class Subject:
    """A program, and the pipeline that compiles it.

    verdict: the prover's, of the last launch; the others are proved
    because: why it is not "proved"
    """

    pipeline: str
    text: str
    verdict: str = "proved"
    because: str = ""
    target: str = "sm_100a"


SUBJECTS = {
    "gemm": Subject("gemm{stages=2}", ROWS),
    "gemm, persistent": Subject("gemm{persistent=true ctas=2}", PRODUCT),
    "gemm, launch control": Subject(
        "gemm{persistent=true scheduler=clc}", PRODUCT, "incomplete",
        "it executes a loop step by step without knowing its end, and gives up",
    ),
    "gemm, stores by TMA": Subject("gemm{store=tma}", PRODUCT),
    "gemm, pairs of CTAs": Subject("gemm{cta-group=2}", PRODUCT, "incomplete", PAIRS),
    "gemm, clusters that share loads": Subject("gemm{cluster=2x1}", PRODUCT),
    "gemm, split-k": Subject("gemm{split-k=2}", PRODUCT),
    "gemm, f32": Subject("gemm", FLOATS),
    "gemm, NVFP4": Subject("gemm", NVFP4, "incomplete", SCALES),
    "gemm, sm_90a": Subject("gemm", SMALL, "incomplete", "it does not support `wgmma`", "sm_90a"),
    "conv-shift-reuse": Subject("conv-shift-reuse", CONV, "neighbour proved", ASHIFT),
    "conv-shift-reuse, linear": Subject(
        "conv-shift-reuse{tiling=linear}", CONV, "refuted",
        "it reports a race, because a register that `tcgen05.st` reads is set to 0 again before "
        "`wait::st`, although its value does not change. PTX ISA forbids to touch registers of a "
        "`wgmma` in flight (9.7.15.7), but not those of a `tcgen05.st`, so the machine reports "
        "nothing",
    ),
    "conv-shift-reuse, refresh": Subject(
        "conv-shift-reuse{halo=refresh}", CONV, "incomplete",
        "it cannot determine which bytes `tcgen05.cp.4x256b` reads",
    ),
    "conv-shift-reuse, shift": Subject(
        "conv-shift-reuse{halo=refresh shift=shift}", CONV, "incomplete",
        "it cannot determine which bytes `tcgen05.shift` moves",
    ),
    "conv-implicit-gemm": Subject("conv-implicit-gemm", CONV, "neighbour proved", IM2COL),
    "conv-implicit-gemm, pairs of CTAs": Subject(
        "conv-implicit-gemm{cta-group=2}", CONV, "incomplete", PAIRS
    ),
    "conv-smem-offset": Subject("conv-smem-offset", CONV),
    "gemv-padded-n": Subject("gemv-padded-n", NVFP4_16, "incomplete", SCALES),
    "gemv-padded-n, 64 columns": Subject("gemv-padded-n{pad-n=64}", NVFP4),
    "gemv-simt": Subject("gemv-simt", NVFP4_ROWS),
    "matmul-warp, TMA": Subject("matmul-warp{copy=tma stages=2 warps-m=2}", LONG),
    "matmul-warp, TMA, f32": Subject(
        "matmul-warp{copy=tma}", Matmul(64, 32, 96, element="f32").text(), "incomplete",
        "it does not support swizzles of 32-byte atoms",
    ),
    "matmul-warp, cp.async": Subject("matmul-warp{copy=cp.async}", SMALL),
    "simt-elementwise": Subject("simt-elementwise", Matmul(24, 16, 40).text()),
}  # fmt: skip


@cache
def checked(name: str) -> PtxCheck:
    """A kernel of the table, compiled once, and what executes its PTX."""
    each = SUBJECTS[name]
    kernel = tcir.compile(
        each.text, tcir.named_pipeline(each.pipeline), target=each.target, cache=False
    )
    return PtxCheck(each.text, kernel)
