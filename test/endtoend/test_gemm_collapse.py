"""Linear layers: rows of a batch by one matrix of weights, as one product, in place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.program.inputs import make_inputs, poison

from .breaking import run_broken, set_attribute
from .oracle import DTYPES, Array


@dataclass(frozen=True)
class Layer:
    """``y[b, m, n] = sum_k x[b, m, k] * w[k, n]`` as linalg.generic; bias: the dimensions that
    index a tensor that is added in f32, "" for none."""

    batch: int
    m: int
    n: int
    k: int
    element: str = "f16"
    x: str = "mk"
    w: str = "nk"
    out: str = "f32"
    bias: str = ""
    options: str = ""

    def __str__(self) -> str:
        sizes = f"{self.batch}x{self.m}x{self.n}x{self.k}"
        words = [sizes, self.element, self.x, self.w, self.out, self.bias, self.options]
        return "-".join(word for word in words if word)

    def tensor(self, dims: str, element: str) -> str:
        """The type of a tensor indexed by `dims`."""
        sizes = {"b": self.batch, "m": self.m, "n": self.n, "k": self.k}
        return f"tensor<{''.join(f'{sizes[d]}x' for d in dims)}{element}>"

    @property
    def text(self) -> str:
        """The module."""
        whole = self.element == "i8"
        total = "i32" if whole else "f32"
        x, w = self.tensor("b" + self.x, self.element), self.tensor(self.w, self.element)
        sums, out = self.tensor("bmn", total), self.tensor("bmn", self.out)
        maps = [
            f"affine_map<(b, m, n, k) -> ({', '.join(dims)})>"
            for dims in ("b" + self.x, self.w, "bmn")
        ]
        extend, multiply, add = (
            ("arith.extsi", "arith.muli", "arith.addi")
            if whole
            else ("arith.extf", "arith.mulf", "arith.addf")
        )
        widened = (
            ""
            if self.element == "f32"
            else f"""
    %ex = {extend} %a : {self.element} to {total}
    %ew = {extend} %v : {self.element} to {total}"""
        )
        names = ("%a", "%v") if self.element == "f32" else ("%ex", "%ew")
        extra = f", %bias: {self.tensor(self.bias, 'f32')}" if self.bias else ""
        added = f"""
  %to = tensor.empty() : {sums}
  %d = linalg.generic {{indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> ({", ".join(self.bias)})>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%c, %bias : {sums}, {self.tensor(self.bias, "f32")}) outs(%to : {sums}) {{
  ^bb0(%s: f32, %b: f32, %o: f32):
    %t = arith.addf %s, %b : f32
    linalg.yield %t : f32
  }} -> {sums}"""  # noqa: E501
        last = "%d" if self.bias else "%c"
        rounded = f"%e = arith.truncf {last} : {sums} to {out}"
        return f"""
func.func @layer(%x: {x}, %w: {w}{extra}) -> {out} {{
  %zero = arith.constant {"0" if whole else "0.0"} : {total}
  %empty = tensor.empty() : {sums}
  %init = linalg.fill ins(%zero : {total}) outs(%empty : {sums}) -> {sums}
  %c = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%init : {sums}) {{
  ^bb0(%a: {self.element}, %v: {self.element}, %o: {total}):{widened}
    %p = {multiply} {names[0]}, {names[1]} : {total}
    %q = {add} %o, %p : {total}
    linalg.yield %q : {total}
  }} -> {sums}{added if self.bias else ""}
  {rounded if self.out != total else ""}
  return {"%e" if self.out != total else last} : {out}
}}
"""  # noqa: E501

    @property
    def pipeline(self) -> str:
        """Its pipeline with options."""
        return f"gemm{{{self.options}}}"

    def product(self, x: Array, w: Array, *bias: Array) -> Array:
        """numpy's."""
        whole = self.element == "i8"
        wide: Any = np.int64 if whole else np.float64
        left = x.astype(wide) if self.x == "mk" else x.astype(wide).swapaxes(-1, -2)
        right = w.astype(wide) if self.w == "kn" else w.astype(wide).T
        sums = (left @ right).astype(np.int32 if whole else np.float32)
        for each in bias:
            at = tuple(slice(None) if d in self.bias else None for d in "bmn")
            sums = sums + each[at]
        return sums if whole or self.out == "f32" else sums.astype(DTYPES[self.out])


QUICK = Layer(3, 50, 24, 40, out="bf16", bias="n")
CASES = [
    Layer(2, 65, 40, 72, "bf16", w="kn", out="bf16"),
    Layer(6, 1, 200, 64),  # decoding: 6 rows, so A and B are exchanged
    Layer(2, 40, 24, 48, x="km"),  # keeps its batch: rows are no rows of memory
    Layer(2, 33, 24, 40, "f32", w="kn"),
    Layer(3, 20, 40, 64, "i8", out="i32"),
    Layer(2, 70, 32, 64, "f8E4M3FN", out="f16"),
    Layer(2, 20, 24, 200, bias="bmn", options="split-k=2"),
    Layer(3, 50, 40, 72, bias="n", options="n-tile=16 persistent=true ctas=2"),
    Layer(2, 24, 16, 40, bias="m"),  # keeps its batch: the bias is the same for all of it
]


@pytest.mark.parametrize("case", [QUICK, *CASES], ids=str)
def test_case(case: Layer) -> None:
    kernel = tcir.compile(case.text, case.pipeline, validate=True, orders=2, seed=3)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}, str(
        kernel.report
    )
    assert not [finding for line in kernel.report.passes for finding in line.findings]
    inputs = make_inputs(kernel.signature.inputs, 7, "integers")
    (out,) = (poison(spec) for spec in kernel.signature.outputs)
    outcome = kernel(*inputs, out)
    assert out.tobytes() == case.product(*inputs).tobytes() and not outcome.findings, str(outcome)


def test_tiles_go_across_the_batch() -> None:
    """150 rows are two tiles, not three; nothing is copied."""
    (launch,) = tcir.compile(QUICK.text, "gemm", n_tile=128).launches.launches
    assert launch.grid == (2, 1, 1)


def test_a_bias_of_the_rows_in_the_place_of_one_of_the_columns() -> None:
    """24 rows and 24 columns; the difference is told in the caller's shape."""
    case = Layer(3, 8, 24, 40, bias="n")
    edit = set_attribute("tc.element", "map", "affine_map<(d0, d1) -> (d0)>")
    caught = run_broken(case.text, tcir.named_pipeline("gemm"), "collapse-batch", edit, orders=1)
    assert (caught.at, caught.by) == ("collapse-batch", "difference"), caught.text
    edit = set_attribute("tc.mma", "b_slice", "1 : i64")
    caught = run_broken(case.text, tcir.named_pipeline("gemm"), "tile-gemm", edit, orders=1)
    assert (caught.at, caught.by) == ("tile-gemm", "difference"), caught.text
    assert re.search(r"output 0 at \[\d+, \d+, \d+\] \(.*lane", caught.text), caught.text
