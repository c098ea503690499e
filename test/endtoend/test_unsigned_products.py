"""Products of unsigned i8, alone and with signed ones: every level, numpy, and exchanged."""

from __future__ import annotations

import numpy as np
import pytest

import tcir

from .breaking import run_broken, set_attribute

FORMS = {"matrix": ("mk", "kn"), "transposed": ("km", "nk"), "vector": ("mk", "k"),
         "batch": ("lmk", "kn")}  # fmt: skip
SIZES = {"l": 3, "m": 37, "n": 24, "k": 160}
EXTENSION = {"u": "extui", "s": "extsi"}


def program(a: str, b: str, signs: str) -> str:
    """``c = sum over k of a b``; signs: u or s for each."""
    loops = [d for d in "lmnk" if d in a + b]
    out = [d for d in loops if d != "k"]
    kinds = [f"tensor<{''.join(f'{SIZES[d]}x' for d in dims)}i8>" for dims in (a, b)]
    sums = f"tensor<{''.join(f'{SIZES[d]}x' for d in out)}i32>"
    maps = ", ".join(
        f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>" for dims in (a, b, out)
    )
    iterators = ", ".join('"reduction"' if d == "k" else '"parallel"' for d in loops)
    return f"""
func.func @f(%a: {kinds[0]}, %b: {kinds[1]}) -> {sums} {{
  %z = arith.constant 0 : i32
  %e = tensor.empty() : {sums}
  %i = linalg.fill ins(%z : i32) outs(%e : {sums}) -> {sums}
  %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins(%a, %b : {kinds[0]}, {kinds[1]}) outs(%i : {sums}) {{
  ^bb0(%x: i8, %y: i8, %s: i32):
    %p = arith.{EXTENSION[signs[0]]} %x : i8 to i32
    %q = arith.{EXTENSION[signs[1]]} %y : i8 to i32
    %m = arith.muli %p, %q : i32
    %t = arith.addi %s, %m : i32
    linalg.yield %t : i32
  }} -> {sums}
  return %c : {sums}
}}
"""


def _held(a: str, b: str, signs: str, pipeline: str) -> None:
    kernel = tcir.compile(program(a, b, signs), pipeline, validate=True)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}
    draw = np.random.default_rng(5)
    given = [draw.integers(0, 256, [SIZES[d] for d in dims]).astype(np.uint8) for dims in (a, b)]
    wide = [x if s == "u" else x.view(np.int8) for x, s in zip(given, signs, strict=True)]
    loops = "".join(d for d in "lmn" if d in a + b)
    want = np.einsum(f"{a},{b}->{loops}", *(x.astype(np.int64) for x in wide)).astype(np.int32)
    out = np.zeros_like(want)
    kernel(*(x.view(np.int8) for x in given), out)
    assert (out == want).all()


PIPELINES = ("gemm", "gemm{swap=always}", "gemm{split-k=2}", "matmul-warp")
CASES = [(f, s, p) for f in FORMS for s in ("us", "su", "uu") for p in PIPELINES]


@pytest.mark.parametrize(
    ("form", "signs", "pipeline"),
    CASES,
)
def test_unsigned(form: str, signs: str, pipeline: str) -> None:
    _held(*FORMS[form], signs, pipeline)


def test_signs_exchanged() -> None:
    """B's sign for A's bytes."""
    edit = set_attribute("tc.matmul", "unsigned", "array<i64: 0, 1>")
    pipeline = tcir.named_pipeline("gemm")
    caught = run_broken(program("km", "nk", "us"), pipeline, "raise-to-tc", edit, orders=1)
    assert caught and caught.at == "raise-to-tc", caught.text
