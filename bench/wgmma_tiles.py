"""The tiles that kernels of `wgmma` choose, beside those that the time model finds fastest.

    python bench/wgmma_tiles.py

A Markdown table of cycles, modelled from the events of the first CTA: ResNet-50's convolutions of
`hopper_conv.py` and square products, in f16. Nothing is measured; needs MLIR and ptxas.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import hopper
import hopper_conv
import numpy as np
from time_events import modelled, streams, unique_bytes
from time_wgmma import STEM, TARGET

import tcir
from tcir.passes.kernels.cores.wgmma import N_TILES
from tcir.time import Constants

PRODUCTS = (1024, 2048, 3072)
CONSTANTS = Constants(TARGET)


def cases() -> Iterator[tuple[str, int, Any]]:
    """Yields a name, the columns of the result, and a function that compiles it with a width (0:
    the rule's)."""
    for n in PRODUCTS:
        text = hopper.PROGRAM.format(n=n, t="f16")
        yield (
            f"{n}³",
            n,
            lambda width, text=text: tcir.compile(text, "gemm", target=TARGET, n_tile=width),
        )
    for batch in hopper_conv.BATCHES:
        for layer, (size, c, k, r, stride) in hopper_conv.LAYERS.items():
            x, w = np.ones((batch, size, size, c), "f2"), np.ones((r, r, c, k), "f2")
            bias = np.ones(k, "f4")

            def compiled(width: int, given: Any = (x, w, stride, r // 2, bias)) -> Any:
                x, w, stride, padding, bias = given
                return tcir.compile_conv2d(
                    x, w, stride=stride, padding=padding, bias=bias, activation="relu", out="f2",
                    pipeline="conv-implicit-gemm", target=TARGET, n_tile=width,
                )  # fmt: skip

            if layer != STEM:
                yield f"{layer}, batch {batch}", k, compiled


def cycles(kernel: Any) -> float:
    """Modelled cycles of a kernel of one launch."""
    (stream,) = streams(kernel)
    return modelled(stream, CONSTANTS, unique_bytes(kernel)).cycles


def main() -> int:
    """Prints the table."""
    print("| problem | by the rule | " + " | ".join(f"N = {n}" for n in N_TILES) + " | above |")
    print("|" + "---|" * (len(N_TILES) + 3))
    for name, columns, compiled in cases():
        chosen = cycles(compiled(0))
        found = {n: cycles(compiled(n)) for n in N_TILES if n <= max(columns, N_TILES[-1])}
        least = min(found.values())
        cells = [f"{found[n]:.0f}" if n in found else "" for n in N_TILES]
        print(
            f"| {name} | {chosen:.0f} | {' | '.join(cells)} | {chosen / least - 1:.1%} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
