"""Places of largest and smallest elements, which groups of threads find, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tcir
from tcir.passes.module.rewrites import long_rows

from .breaking import Edit, change_text, run_broken
from .row_text import DTYPES
from .test_layers import Array

PIPELINE = "simt-elementwise"
ENDS = {
    "max": ("maximumf", "ogt", {"f16": "0xFC00", "f32": "0xFF800000"}),
    "min": ("minimumf", "olt", {"f16": "0x7C00", "f32": "0x7F800000"}),
}


def text(rows: int, columns: int, element: str, way: str, first: int = 0) -> str:
    """An argmax or argmin along rows as torch-mlir's importer writes it; first: the place of what
    the search starts from."""
    combine, predicate, ends = ENDS[way]
    x, value, place = (
        f"tensor<{rows}x{columns}x{element}>",
        f"tensor<{rows}x{element}>",
        (f"tensor<{rows}xi64>"),
    )
    return f"""
func.func @f(%x: {x}) -> {place} {{
  %end = arith.constant {ends[element]} : {element}
  %first = arith.constant {first} : i64
  %e = tensor.empty() : {value}
  %v = linalg.fill ins(%end : {element}) outs(%e : {value}) -> {value}
  %g = tensor.empty() : {place}
  %p = linalg.fill ins(%first : i64) outs(%g : {place}) -> {place}
  %y:2 = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>,
      affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]}}
      ins(%x : {x}) outs(%v, %p : {value}, {place}) {{
  ^bb0(%a: {element}, %o: {element}, %q: i64):
    %n = linalg.index 1 : index
    %k = arith.index_cast %n : index to i64
    %m = arith.{combine} %a, %o : {element}
    %c = arith.cmpf {predicate}, %a, %o : {element}
    %s = arith.select %c, %k, %q : i64
    linalg.yield %m, %s : {element}, i64
  }} -> ({value}, {place})
  return %y#1 : {place}
}}
"""


def numpy(x: Array, way: str, first: int) -> Array:
    """Element after element, as the op is written."""
    sign = 1 if way == "max" else -1
    places = np.full(len(x), first, np.int64)
    for m, row in enumerate(x):
        best = -sign * np.inf
        for n, element in enumerate(row):
            if sign * element > sign * best:
                best, places[m] = element, n
            if np.isnan(element):
                break  # nothing is larger than a NaN
    return places


def rows(count: int, columns: int, element: str) -> Array:
    """Few values, so that the largest is there more than once; a row with a NaN before it, one with
    a NaN at first, one of infinities, zeros of both signs."""
    x = np.random.default_rng(0).integers(-9, 9, (count, columns)).astype(DTYPES[element])
    x[1, columns // 3] = np.nan
    x[2, 0] = np.nan
    x[3], x[4] = -np.inf, np.inf
    x[5] = np.where(np.arange(columns) % 3, 0.0, -0.0)
    return x


SIZES = [(33, 1000), (6, 70), (7, 5000)]


@pytest.mark.parametrize("way", ["max", "min"])
@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize(("count", "columns"), SIZES)
def test_against_numpy(count: int, columns: int, element: str, way: str) -> None:
    x = rows(count, columns, element)
    kernel = tcir.compile(text(count, columns, element, way, 3), PIPELINE, target="sm_90a")
    (launch,) = kernel.launches.launches
    assert np.prod(launch.grid) * np.prod(launch.block) >= 8 * count, "a thread has a row alone"
    out = np.zeros(count, np.int64)
    kernel(x, out)
    assert out.tolist() == numpy(x, way, 3).tolist()


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 600 elements have parts."""
    monkeypatch.setattr(long_rows, "LONG", 100)
    monkeypatch.setattr(long_rows, "GROUPS", 24)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("way", ["max", "min"])
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_parts_of_long_rows(element: str, way: str) -> None:
    """A NaN in a part, at its first element, at its last; the largest before it, or after it."""
    x = np.concatenate([rows(6, 600, element)] * 3)
    x[6, 100] = x[7, 99] = x[8, 350] = x[9, 0] = np.nan
    x[10, 500:], x[11, :250], x[12, 100:], x[13, 7] = np.nan, -np.inf, 5, np.inf
    kernel = tcir.compile(text(18, 600, element, way, 3), PIPELINE, target="sm_90a", cache=False)
    assert len(kernel.launches.launches) == 2
    out = np.zeros(18, np.int64)
    kernel(x, out)
    assert out.tolist() == numpy(x, way, 3).tolist()


@pytest.mark.usefixtures("parts")
def test_parts_at_every_level() -> None:
    report = tcir.validate(text(6, 600, "f32", "max"), PIPELINE, strict=True)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def test_every_level() -> None:
    report = tcir.validate(text(6, 70, "f32", "max"), PIPELINE, orders=2, strict=True)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(change_text("arith.minsi", "arith.maxsi"), id="the last NaN"),
        pytest.param(change_text("cmpf oeq", "cmpf ole"), id="the first element"),
        pytest.param(change_text("cmpf ogt", "cmpf oge"), id="the place that was there"),
    ],
)
def test_breaks(edit: Edit) -> None:
    caught = run_broken(
        text(6, 70, "f32", "max", 3), tcir.named_pipeline(PIPELINE), "split-layers", edit
    )
    assert caught and caught.at == "split-layers", caught
