"""Quotients by a divisor that adjacent elements have: the bits of a division, for all numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passes.emit import simt
from tcir.passes.emit.functions import division
from tcir.passes.emit.functions.division import Divisor

ROWS, COLUMNS = 8, 512
RUN = 4
"""Numbers of a thread: 16 bytes."""


def program(divisor: str) -> str:
    """Rows divided by a number of each row, or by a constant."""
    x, of_row = f"tensor<{ROWS}x{COLUMNS}xf32>", f"tensor<{ROWS}xf32>"
    number = "%y" if divisor == "row" else "%c"
    return f"""
func.func @f(%a: {x}, %b: {of_row}) -> {x} {{
  %c = arith.constant {divisor if divisor != "row" else "1.0"} : f32
  %e = tensor.empty() : {x}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %b : {x}, {of_row}) outs(%e : {x}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %q = arith.divf %x, {number} : f32
    linalg.yield %q : f32
  }} -> {x}
  return %r : {x}
}}"""


def numbers(generator: np.random.Generator, count: int, least: int, most: int) -> np.ndarray:
    """Random numbers of both signs with exponents in a range."""
    signs = generator.choice([-1.0, 1.0], count)
    sizes = generator.uniform(1, 2, count)
    return (signs * np.ldexp(sizes, generator.integers(least, most, count))).astype(np.float32)


def differing(divisor: str) -> int:
    """Number of quotients whose bits are not numpy's."""
    generator = np.random.default_rng(7)
    a = numbers(generator, ROWS * COLUMNS, -110, 110).reshape(ROWS, COLUMNS)
    a[:, 200:300] = generator.integers(0, 1 << 32, (ROWS, 100), np.uint32).view(np.float32)
    a[:, 300:308] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 1.0]
    a[:, 308:312] = [0.0, -0.0, 1.0, -1.0]
    b = numbers(generator, ROWS, -20, 20)
    b[:4] = [3.0, 1.9999999, 1e-30, 2.0**100]
    out = np.zeros_like(a)
    kernel = tcir.compile(program(divisor), "simt-elementwise", target="sm_90a", cache=False)
    assert not kernel(a, b, out).findings
    by = b[:, None] if divisor == "row" else np.float32(divisor)
    with np.errstate(all="ignore"):
        want = (a / by).astype(np.float32)
    same = (out.view(np.uint32) == want.view(np.uint32)) | (np.isnan(out) & np.isnan(want))
    return int((~same).sum())


@pytest.mark.parametrize("divisor", ["row", "9.0", "-12544.0", "1.0e-30"])
def test_bits_of_a_division(divisor: str) -> None:
    """Numbers in range and out of it, zeros of both signs, infinities, NaN; ranges of divisors."""
    assert differing(divisor) == 0


def test_a_run_has_one_branch() -> None:
    """Four quotients a thread: their numerators are checked together."""
    kernel = tcir.compile(program("9.0"), "simt-elementwise", target="sm_90a", cache=False)
    assert kernel.ptx.count("div.rn.f32") == RUN
    assert len(re.findall(r"\bbra\b", kernel.ptx)) == 3  # none to do, out of range, behind it


@pytest.mark.parametrize("broken", ["no correction", "the share added", "no check"])
def test_breaks(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the correction quotients are off by one unit; a share that is added, not subtracted,
    makes 0 of -0; out of range, remainders are wrong."""

    def near(self: Divisor, number: ir.Value) -> ir.Value:
        quotient = arith.MulFOp(number, self.inverse).result
        if broken == "no correction":
            return quotient
        left = simt.fma(arith.NegFOp(self.number).result, quotient, number)
        return simt.fma(self.inverse, left, quotient)

    if broken == "no check":
        monkeypatch.setattr(division, "_usable", lambda _: simt.constant(1, 1))
    else:
        monkeypatch.setattr(Divisor, "_near", near)
    assert differing("9.0") > (100 if broken == "no correction" else 0)
