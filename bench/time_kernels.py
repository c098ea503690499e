"""Modelled time of our own kernels, from the events that the machine records: a Markdown table.

    python bench/time_kernels.py

Needs MLIR and ptxas. Nothing is measured: see docs/explanation/time.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT)]

import matmul_warp  # noqa: E402
from time_events import modelled, streams, unique_bytes  # noqa: E402

import tcir  # noqa: E402
from tcir.time import Constants  # noqa: E402

EXAMPLES = ROOT.parent / "examples"
SIZE = 4096
GEMMS = (
    "gemm{n-tile=128}",
    "gemm{cta-group=2}",
    "gemm{persistent=true}",
    "gemm{cta-group=2 persistent=true}",
    "gemm{cta-group=2 persistent=true store=tma}",
)
OTHERS = (
    ("resnet50_conv2_3x3.mlir", "conv-implicit-gemm"),
    ("resnet50_conv2_3x3.mlir", "conv-smem-offset"),
    ("resnet50_conv2_3x3.mlir", "conv-shift-reuse"),
    ("nvfp4_gemv_7168x2048x4.mlir", "gemv-simt"),
    ("nvfp4_gemv_7168x2048x4.mlir", "gemv-padded-n"),
)


def row(program: str | Path, pipeline: str, what: str, flop: float = 0) -> str:
    """The row of one kernel; for several launches their sum, and the limit of the longest."""
    kernel = tcir.compile(program, pipeline=pipeline)
    nbytes, constants = unique_bytes(kernel), Constants("sm_100a")
    times = [modelled(stream, constants, nbytes) for stream in streams(kernel)]
    total = sum(time.microseconds for time in times)
    longest = max(times, key=lambda time: time.cycles)
    rate = f"{flop / total / 1e6:.0f}" if flop else ""
    waves = " + ".join(str(time.waves) for time in times)
    return f"| {what} | `{pipeline}` | {waves} | {total:.1f} | {rate} | {longest.bound} |"


def main() -> int:
    """Prints the table."""
    print("| problem | pipeline | waves | us, modelled at 1.85 GHz | TFLOP/s | limited by |")
    print("|---|---|---|---|---|---|")
    text = matmul_warp.program(SIZE, "f32")
    for pipeline in GEMMS:
        print(row(text, pipeline, f"{SIZE}³, f16 to f32", 2 * SIZE**3), flush=True)
    for file, pipeline in OTHERS:
        print(row(EXAMPLES / file, pipeline, file.removesuffix(".mlir")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
