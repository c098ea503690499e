"""Elementwise functions whose rows have no whole runs are computed on one dimension."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tcir
from tcir.passes.simt import flat


def text(columns: int, transposed: bool = False) -> str:
    """x + y of 16 rows in f16; transposed: x + y.T of 16 x 16."""
    kind = f"tensor<16x{columns}xf16>"
    second = "affine_map<(a, b) -> (b, a)>" if transposed else "#m"
    return f"""#m = affine_map<(a, b) -> (a, b)>
func.func @f(%x: {kind}, %y: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.generic {{indexing_maps = [#m, {second}, #m],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : {kind}, {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f16, %b: f16, %o: f16):
    %s = arith.addf %a, %b : f16
    linalg.yield %s : f16
  }} -> {kind}
  return %r : {kind}
}}
"""


@pytest.mark.parametrize(
    ("columns", "bits"), [(1001, "v4.b32"), (1002, "v4.b32"), (1000, "v4.b32")]
)
def test_accesses_of_16_bytes_at_every_level(columns: int, bits: str) -> None:
    kernel = tcir.compile(text(columns), "simt-elementwise", target="sm_90a", validate=True)
    assert kernel.report.verdict == "held", str(kernel.report)
    assert set(re.findall(r"(?:ld|st)\.global\.(\S+)", kernel.ptx)) == {bits}
    x, y = np.random.default_rng(0).standard_normal((2, 16, columns)).astype(np.float16)
    out = np.zeros_like(x)
    kernel(x, y, out)
    assert (out == x + y).all()


def test_a_transposed_operand_taken_for_another_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    program = text(16, transposed=True)
    assert tcir.validate(program, "simt-elementwise", orders=1).verdict == "held"
    monkeypatch.setattr(flat, "_is_alike", lambda op: True)
    monkeypatch.setattr(flat, "run_of", lambda extent, _: extent)
    failure = tcir.validate(program, "simt-elementwise", orders=1).first_failure()
    assert failure is not None and failure.name == "convert-to-simt"
