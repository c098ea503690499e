"""Elements whose places are in a tensor: gathered on CUDA cores, checked to be inside."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.program.inputs import make_inputs
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context

TEXT = """
#at = affine_map<(i, j, k) -> (i, j)>
#whole = affine_map<(i, j, k) -> (i, j, k)>
func.func @embedding(%at: tensor<3x5xi64>, %table: tensor<11x7xf16>) -> tensor<3x5x7xf16> {{
  %n = arith.constant {wrap} : i64
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<3x5x7xf16>
  %y = linalg.generic {{indexing_maps = [#at, #whole],
                       iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%at : tensor<3x5xi64>) outs(%e : tensor<3x5x7xf16>) {{
  ^bb0(%i: i64, %o: f16):
    {body}
    %row = arith.index_cast %j : i64 to index
    %column = linalg.index 2 : index
    %g = tensor.extract %table[%row, %column] : tensor<11x7xf16>
    linalg.yield %g : f16
  }} -> tensor<3x5x7xf16>
  return %y : tensor<3x5x7xf16>
}}
"""
PLAIN = TEXT.format(wrap=0, body="%j = arith.addi %i, %n : i64")
BEHIND = TEXT.format(wrap=2, body="%j = arith.addi %i, %n : i64")
WRAPPED = TEXT.format(
    wrap=11,
    body="""%below = arith.cmpi slt, %i, %zero : i64
    %more = arith.addi %i, %n : i64
    %j = arith.select %below, %more, %i : i64""",
)
ASSERTED = TEXT.format(
    wrap=11,
    body="""%inside = arith.cmpi slt, %i, %n : i64
    cf.assert %inside, "index must be smaller than dim size"
    %j = arith.addi %i, %zero : i64""",
)


def _run(text: str, at: np.ndarray, table: np.ndarray) -> np.ndarray:
    out = np.zeros((3, 5, 7), np.float16)
    tcir.compile(text, "layers")(at, table, out)
    return out


def _table() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((11, 7)).astype(np.float16)


@pytest.mark.parametrize(("text", "low"), [(ASSERTED, 0), (WRAPPED, -11)], ids=["0 on", "below 0"])
def test_what_is_gathered(text: str, low: int) -> None:
    table, at = _table(), np.resize(np.arange(low, 11), (3, 5))
    assert np.array_equal(_run(text, at, table), table[at])


@pytest.mark.parametrize("index", [11, -1, 1 << 32], ids=str)
def test_an_index_outside_traps(index: int) -> None:
    at = np.zeros((3, 5), np.int64)
    at[1, 2] = index
    with pytest.raises(tcir.Error, match=r"trap: .* in lanes 0x00fe0000 .*CTA"):
        _run(PLAIN, at, _table())


def test_a_wrapped_index_outside_traps() -> None:
    with pytest.raises(tcir.Error, match="trap"):
        _run(WRAPPED, np.full((3, 5), -12), _table())


@pytest.mark.parametrize(
    ("text", "below"), [(PLAIN, 11), (BEHIND, 9), (WRAPPED, 11)], ids=["plain", "behind", "wrapped"]
)
def test_indices_are_drawn_inside(text: str, below: int) -> None:
    with mlir_context() as context:
        specs = signature_of(load_module(text, context)).inputs
    assert [spec.below for spec in specs] == [below, None]
    for kind in ("integers", "random"):
        at, _ = make_inputs(specs, 0, kind)
        assert at.min() == 0 and at.max() == below - 1


def test_every_pass_is_executed() -> None:
    assert tcir.validate(ASSERTED, "layers").verdict == "held"
