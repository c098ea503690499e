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
    """b batches of h heads, m rows and n keys of d elements; scaled: type of queries and keys with
    scales, "" for f16 without."""

    b: int
    h: int
    m: int
    n: int
    d: int
    scaled: str = ""

    @property
    def text(self) -> str:
        """A program of one attention, with values and results in f16."""
        o, v = (f"tensor<{self.b}x{self.h}x{rows}x{self.d}xf16>" for rows in (self.m, self.n))
        q, k, op, more = o, v, "attention", ""
        names, types, given = "%q, %k, %v", f"{q}, {k}, {v}", f"%q: {q}, %k: {k}, %v: {v}"
        if self.scaled:
            q, k = (each.replace("f16", self.scaled) for each in (o, v))
            scale, block = SCALES[self.scaled]
            op, more = "block_scaled_attention", f", block = {block} : i64"
            sets = -(-self.d // block // 4)
            sq, sk = (
                f"tensor<{self.b}x{self.h}x{-(-rows // 128)}x{sets}x512x{scale}>"
                for rows in (self.m, self.n)
            )
            names, types = "%q, %k, %v, %sq, %sk", f"{q}, {k}, {v}, {sq}, {sk}"
            given = f"%q: {q}, %k: {k}, %v: {v}, %sq: {sq}, %sk: {sk}"
        return f"""func.func @attention({given}) -> {o} {{
          %o, %lse = "tc.{op}"({names}) ({{}}) {{scale = {1 / math.sqrt(self.d)!r} : f32{more},
              q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"}}
              : ({types}) -> ({o}, tensor<{self.b}x{self.h}x{self.m}xf32>)
          return %o : {o}
        }}"""

    @property
    def flop(self) -> int:
        """FLOP of both products."""
        return 4 * self.b * self.h * self.m * self.n * self.d

    def __str__(self) -> str:
        kind = f" in {self.scaled}" if self.scaled else ""
        return f"{self.b}x{self.h}, {self.m} rows, {self.n} keys of {self.d}{kind}"


SHAPES = [
    Shape(8, 16, 1024, 1024, 64),
    Shape(4, 16, 4096, 4096, 64),
    Shape(8, 16, 1024, 1024, 128),
    Shape(4, 16, 4096, 4096, 128),
]
ROWS = (128, 256)
SCALES = {"f8E4M3FN": ("f8E8M0FNU", 32), "f4E2M1FN": ("f8E4M3FN", 16)}
"""By the type of queries and keys: type of their scales, and elements of one."""
BLOCK_SCALED = [
    (Shape(*shape, scaled), rows)
    for scaled in SCALES
    for shape, rows in (((4, 16, 4096, 4096, 64), 256), ((4, 16, 4096, 4096, 128), 128))
]
"""Those of which two tiles fit tensor memory, in two tiles."""


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
    for shape, rows in BLOCK_SCALED:
        print(row(shape, rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
