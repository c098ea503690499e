"""Elements whose places are in a tensor: gathered on CUDA cores, checked to be inside."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.passes.simt import elementwise
from tcir.program.inputs import make_inputs
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context

from .breaking import Edit, change_text, run_broken

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


LONG = """
#at = affine_map<(i, j) -> (i)>
#whole = affine_map<(i, j) -> (i, j)>
func.func @rows(%at: tensor<40xi64>, %table: tensor<11x{n}x{t}>) -> tensor<40x{n}x{t}> {{
  %count = arith.constant 11 : i64
  %e = tensor.empty() : tensor<40x{n}x{t}>
  %y = linalg.generic {{indexing_maps = [#at, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%at : tensor<40xi64>) outs(%e : tensor<40x{n}x{t}>) {{
  ^bb0(%i: i64, %o: {t}):
    %inside = arith.cmpi slt, %i, %count : i64
    cf.assert %inside, "index must be smaller than dim size"
    %row = arith.index_cast %i : i64 to index
    %column = linalg.index 1 : index
    %g = tensor.extract %table[%row, %column] : tensor<11x{n}x{t}>
    linalg.yield %g : {t}
  }} -> tensor<40x{n}x{t}>
  return %y : tensor<40x{n}x{t}>
}}
"""
"""Rows long enough for threads that gather several elements each."""
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i64": np.int64}


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


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize(
    ("columns", "element", "loads"),
    [
        (128, "f16", 1),
        (128, "bf16", 1),
        (128, "f32", 1),
        (192, "f16", 1),
        (129, "f16", 0),
        (104, "i64", 0),
    ],
)
def test_rows_are_gathered_16_bytes_at_once(
    columns: int, element: str, loads: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread loads an index once, then its runs of the row."""
    monkeypatch.setattr(elementwise, "ENOUGH", 1 if parts > 1 else 1 << 17)
    generator = np.random.default_rng(0)
    table = generator.integers(-999, 999, (11, columns)).astype(DTYPES[element])
    at, out = generator.integers(0, 11, 40), np.zeros((40, columns), DTYPES[element])
    kernel = tcir.compile(LONG.format(n=columns, t=element), "layers")
    assert len(re.findall(r"ld\.global\.(v4\.b32|v2\.b64)", kernel.ptx)) == loads * parts
    assert kernel.ptx.count("trap;") == 2
    kernel(at, table, out)
    assert np.array_equal(out, table[at])


@pytest.mark.parametrize("index", [11, -1])
def test_an_index_of_a_long_row_outside_traps(index: int) -> None:
    at = np.zeros(40, np.int64)
    at[7] = index
    table, out = np.zeros((11, 128), np.float16), np.zeros((40, 128), np.float16)
    with pytest.raises(tcir.Error, match="trap"):
        tcir.compile(LONG.format(n=128, t="f16"), "layers")(at, table, out)


def test_long_rows_are_executed_after_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "ENOUGH", 1)
    assert tcir.validate(LONG.format(n=128, t="f16"), "layers").verdict == "held"


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(
            change_text("c4_i32_1 = arith.constant 4", "c4_i32_1 = arith.constant 3"),
            id="where the next run is",
        ),
        pytest.param(change_text("arith.remui", "arith.divui"), id="the row's first run"),
    ],
)
def test_breaks(edit: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "ENOUGH", 1)
    text, pipeline = LONG.format(n=128, t="f16"), tcir.named_pipeline("layers")
    caught = run_broken(text, pipeline, "convert-to-simt", edit)
    assert caught and caught.at == "convert-to-simt", caught
