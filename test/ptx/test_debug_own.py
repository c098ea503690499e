"""The debugger on a kernel of this compiler: a line, a hazard, a wrong element."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

import tcir
from tcir import debug

MATMUL = """
func.func @matmul(%a: tensor<128x64xf16>, %b: tensor<64x64xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
  %out = linalg.matmul ins(%a, %b : tensor<128x64xf16>, tensor<64x64xf16>)
      outs(%init : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %out : tensor<128x64xf32>
}
"""


@cache
def kernel() -> tcir.Kernel:
    return tcir.compile(MATMUL, "matmul", stages=1)


def launch() -> tuple[dict[str, Any], np.ndarray]:
    """Keywords of `debug.run`, and the right result."""
    a = (np.arange(128 * 64).reshape(128, 64) % 7 - 3).astype(np.float16)
    b = (np.arange(64 * 64).reshape(64, 64) % 5 - 2).astype(np.float16)
    out, how = np.zeros((128, 64), np.float32), kernel().launch_config
    keywords = {
        "entry": how.name, "grid": how.grid, "block": how.block,
        "dynamic_smem": how.dynamic_smem, "args": how.arguments([a, b], [out]),
    }  # fmt: skip
    return keywords, a.astype(np.float32) @ b.astype(np.float32)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(kernel().ptx.splitlines(), 1) if text in line)


def test_a_line() -> None:
    line = line_of("tcgen05.ld")
    stop = debug.run(kernel().ptx, break_at=line, **launch()[0])
    assert stop.reason == f"breakpoint at line {line}"
    words, defined = stop.tensor_memory((0, 1), (0, 8))
    assert defined.all()
    np.testing.assert_array_equal(words.view(np.float32)[0], launch()[1][0, :8])
    shown = str(stop)
    assert "mbarrier at smem+0x4800 (phase 1" in shown and "registers of warp 0" in shown
    assert re.search(rf"-> warp 0, all lanes: line {line}: tcgen05.ld.*\(.*:\d+\)", shown)


def test_the_first_hazard() -> None:
    wait = re.search(r"tcgen05\.wait::ld[^;]*;", kernel().ptx)
    assert wait is not None
    text = kernel().ptx.replace(wait[0], "")
    stop = debug.run(text, break_at="first-hazard", ordering="isa", **launch()[0])
    assert stop.reason.startswith("first hazard: race: line")
    assert "tcgen05.ld" in stop.reason and "tcgen05.dealloc" in stop.reason
    assert "tcgen05.wait::ld" in stop.reason


def test_the_first_difference() -> None:
    keywords, want = launch()
    want[37, 9] += 1
    difference = debug.FirstDifference(want)
    stop = debug.run(kernel().ptx, break_at=difference, **keywords)
    assert "argument 2 at [37, 9]" in stop.reason, stop.reason
    right = launch()[1][37, 9]
    assert f"expected {right + 1}, got {right}" in stop.reason and "st.global" in stop.reason
