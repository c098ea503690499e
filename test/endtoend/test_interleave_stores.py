"""matmul-warp stores rows of atoms while it multiplies the rows below them."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import pytest

import tcir

from .test_matmul_warp import SMALL, Case, check

ROWS = {**SMALL, "block_m": 64, "block_k": 32}
"""Two rows of atoms a warp, two K steps of f16 a slot."""
RESIDUAL = """
func.func @f(%a: tensor<64x64xf16>, %b: tensor<64x16xf16>, %r: tensor<64x16xf32>)
    -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x16xf16>)
      outs(%init : tensor<64x16xf32>) -> tensor<64x16xf32>
  %d = linalg.add ins(%c, %r : tensor<64x16xf32>, tensor<64x16xf32>)
      outs(%empty : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %d : tensor<64x16xf32>
}
"""
WORDS = {"mma.sync": "m", "st.global": "s", "bar.warp.sync": "|"}


def rows(*sizes: Any, options: dict[str, Any] | None = None, **how: Any) -> Case:
    return Case(*sizes, **{"options": {**ROWS, **(options or {})}, **how})


def tail(kernel: tcir.Kernel) -> str:
    """Products, stores and barriers of warps in program order, each run of one kind as a letter,
    in what ends a tile."""
    found = re.findall("|".join(map(re.escape, WORDS)), kernel.ptx)
    return "".join(WORDS[word] for word, _ in groupby(found))


@pytest.mark.parametrize(
    ("case", "order"),
    [
        (rows(64, 16, 64, "f16"), "m|ms|s"),
        (rows(64, 32, 64, "f16", out="f16", options={"block_n": 32}), "m|ms|s"),
        (rows(128, 16, 64, "bf16", options={"block_m": 128}), "m|ms|ms|ms|s"),
        (rows(64, 16, 64, "i8", "mk", "nk", target="sm_80"), "m|ms|s"),
        (rows(64, 16, 64, "f16", options={"block_m": 32}), "ms"),  # one row of atoms
        (rows(60, 16, 64, "f16"), "ms"),  # stores in branches
        (rows(64, 16, 64, "f16", options={"ldmatrix": False}), "ms"),
    ],
    ids=str,
)
def test_order(case: Case, order: str) -> None:
    assert tail(case.compile()) == order


def test_where_an_epilogue_reads_all_stays() -> None:
    """What it loads beside the sums would be waited for row by row."""
    kernel = tcir.compile(RESIDUAL, "matmul-warp", target="sm_90", **ROWS)
    assert tail(kernel) == "ms"


def test_an_epilogue_that_only_computes() -> None:
    """Its ops go with the stores of their row."""
    square = RESIDUAL.replace("ins(%c, %r", "ins(%c, %c").replace("linalg.add", "linalg.mul")
    kernel = tcir.compile(square, "matmul-warp", target="sm_90", validate=True, **ROWS)
    assert kernel.report.ok, str(kernel.report)
    assert tail(kernel) == "m|ms|s"


def test_equal_at_every_level() -> None:
    check(rows(64, 16, 64, "f16"), "integers")


@pytest.mark.parametrize(
    "case",
    [
        rows(128, 32, 96, "bf16", options={"block_m": 128, "ctas": 1}),
        rows(128, 32, 96, "f16", "km", "nk", out="f16", options={"block_n": 32, "ctas": 1}),
        rows(128, 32, 64, "f32", "mk", "nk", options={"ctas": 3}),
        rows(64, 32, 64, "i8", "mk", "nk", options={"copy": "cp.async"}),
        rows(64, 32, 128, "f8E5M2", "mk", "nk", options={"block_k": 64}),
        rows(64, 32, 64, "f16", target="sm_80"),
        rows(64, 32, 64, "f16", target="sm_100a"),
    ],
    ids=str,
)
def test_integers_are_equal_at_every_level(case: Case) -> None:
    assert "|" in tail(check(case, "integers"))
