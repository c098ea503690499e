"""Writes the pictures of the documentation: ``python -m tcir.viz.pictures [--check] [FOLDER]``.

Without arguments the pictures are written to docs/pictures; ``--check`` lists the pictures that are
out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from . import fragments, layouts, moves, products
from .picture import Picture
from .svg import svg
from .timeline import timeline_view

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "pictures"
EXAMPLES = ROOT / "examples"
CONVOLUTION = EXAMPLES / "resnet50_conv2_3x3.mlir"
ATTENTION = EXAMPLES / "attention.mlir"
GEMV = EXAMPLES / "nvfp4_gemv_7168x2048x4.mlir"


def _kernel(view: str, passes: str, program: Path = CONVOLUTION) -> Picture:
    """Draws a view of a program after `passes`."""
    from tcir.passmanager.pipeline import Pipeline
    from tcir.program.source import load_module, mlir_context

    from .conv_steps import conv_view
    from .tmem_map import tmem_view

    with mlir_context() as context:
        module = load_module(str(program), context)
        Pipeline([f"builtin.module({passes})"]).run(module)
        return conv_view(module) if view == "conv" else tmem_view(module)


def _timeline(program: Path, pipeline: str, entry: str) -> Picture:
    """Draws the timeline of one launch."""
    from tcir.session.timeline import timelines

    return timeline_view(timelines(program, pipeline, entry=entry))


PICTURES: dict[str, Callable[[], Picture]] = {
    "fragment_mma_m16n8k16_a.svg": lambda: fragments.mma_view("mma.m16n8k16", "A"),
    "mma_m16n8k16.svg": lambda: products.product_view("mma.m16n8k16"),
    "ldmatrix_x4_a.svg": lambda: products.copy_view("ldmatrix.x4", "mma.m16n8k16", "A"),
    "smem_swizzle_128b.svg": lambda: layouts.smem_view(16, 64, 2, "128B", 0),
    "moves.svg": moves.moves_view,
    "scale_factors.svg": layouts.scale_factor_view,
    "ld_16x256b_x1.svg": lambda: fragments.ld_view("16x256b.x1"),
    "tmem_conv.svg": lambda: _kernel(
        "tmem",
        "raise-to-tc,tile-conv-shift-reuse,multi-buffer,place-barriers,plan-memory,assign-roles",
    ),
    "tmem_attention.svg": lambda: _kernel(
        "tmem",
        "tile-attention{rows=256},multi-buffer,place-barriers,plan-memory,assign-roles",
        ATTENTION,
    ),
    "conv_shift_reuse.svg": lambda: _kernel("conv", "raise-to-tc,tile-conv-shift-reuse"),
    "timeline_gemm.svg": lambda: _timeline(EXAMPLES / "matmul.mlir", "gemm{n-tile=80}", "matmul"),
    "timeline_conv.svg": lambda: _timeline(CONVOLUTION, "conv-shift-reuse", "conv"),
    "timeline_conv_3_stages.svg": lambda: _timeline(
        CONVOLUTION, "conv-shift-reuse{stages=3}", "conv"
    ),
    "timeline_attention.svg": lambda: _timeline(ATTENTION, "attention{rows=256}", "attention"),
    "timeline_gemv.svg": lambda: _timeline(GEMV, "gemv-padded-n", "gemv"),
}


def main(argv: list[str] | None = None) -> int:
    """Writes or checks all pictures; returns 1 if one is missing or out of date."""
    parser = argparse.ArgumentParser(prog="python -m tcir.viz.pictures", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args(argv)
    stale = []
    for name, make in PICTURES.items():
        path, drawn = arguments.folder / name, svg(make())
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(drawn, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != drawn:
            stale.append(name)
    for name in stale:
        print(f"{arguments.folder / name} is not up to date: run python -m tcir.viz.pictures")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
