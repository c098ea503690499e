"""Modelled time of attention on a B200, from the events that the machine records: a Markdown table.

    python bench/time_attention.py

FLOP are those of both products, of scores that a mask leaves. Needs MLIR and ptxas. Nothing is
measured: see docs/explanation/time.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT)]

from time_events import modelled, streams, unique_bytes  # noqa: E402

import tcir  # noqa: E402
from tcir.codegen import assemble  # noqa: E402
from tcir.time import Constants  # noqa: E402

TARGET = "sm_100a"


@dataclass(frozen=True)
class Shape:
    """b batches of h heads, m rows and n keys of d elements."""

    b: int
    h: int
    m: int
    n: int
    d: int

    @property
    def text(self) -> str:
        """A program of one ``tc.attention`` in f16."""
        q, k = (f"tensor<{self.b}x{self.h}x{rows}x{self.d}xf16>" for rows in (self.m, self.n))
        return f"""func.func @attention(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
          %o, %lse = "tc.attention"(%q, %k, %v) ({{}}) {{scale = {1 / math.sqrt(self.d)!r} : f32,
              q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"}}
              : ({q}, {k}, {k}) -> ({q}, tensor<{self.b}x{self.h}x{self.m}xf32>)
          return %o : {q}
        }}"""

    @property
    def flop(self) -> int:
        """FLOP of both products."""
        return 4 * self.b * self.h * self.m * self.n * self.d

    def __str__(self) -> str:
        return f"{self.b}x{self.h}, {self.m} rows, {self.n} keys of {self.d}"


SHAPES = [
    Shape(8, 16, 1024, 1024, 64),
    Shape(4, 16, 4096, 4096, 64),
    Shape(8, 16, 1024, 1024, 128),
    Shape(4, 16, 4096, 4096, 128),
]
ROWS = (128, 256)


def row(shape: Shape, rows: int) -> str:
    """The row of one kernel."""
    kernel = tcir.compile(shape.text, f"attention{{rows={rows}}}", target=TARGET)
    (stream,) = streams(kernel)
    time = modelled(stream, Constants(TARGET), unique_bytes(kernel))
    cubin = assemble(kernel.ptx, target=TARGET)
    rate = shape.flop / time.microseconds / 1e6
    return (
        f"| {shape} | {rows} | {cubin.registers} | {cubin.spill_bytes} | {time.microseconds:.0f} "
        f"| {rate:.0f} | {time.bound} |"
    )


def main() -> int:
    """Prints the table."""
    print(
        "| batches x heads | rows of a CTA | registers | spilled bytes | us at 1.85 GHz "
        "| TFLOP/s | limited by |"
    )
    print("|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        for rows in ROWS:
            print(row(shape, rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
