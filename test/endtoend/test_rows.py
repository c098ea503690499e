"""Row and column reductions on CUDA cores: every level, odd sizes, what breaks them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.module.rewrites import long_rows
from tcir.passes.simt import group

from .breaking import Edit, change_text, erase, run_broken
from .row_text import DTYPES, OPS, WIDE, Array

SIZES = list(product((33, 1, 3), (31, 1, 7, 100, 1000, 4097)))
TARGETS = ("sm_100a", "sm_90a")


def inputs_of(name: str, rows: int, columns: int, element: str) -> list[Array]:
    """Normal numbers; integers where the type is one."""
    generator = np.random.default_rng(rows * columns)
    shapes = [(rows, columns), *[(columns,)] * OPS[name][2]]
    if element == "i32":
        return [generator.integers(-(2**31), 2**31, s, np.int32) for s in shapes]
    return [generator.standard_normal(s).astype(DTYPES[element]) for s in shapes]


def room(name: str, want: Array, inputs: list[Array], dtype: Any) -> Array:
    """What the result may be off: its own rounding, and a few of f32 in what it is made of."""
    info = np.finfo(np.float32) if dtype == np.float32 else None
    unit = float(info.eps) if info else 2.0 ** -(8 if dtype != np.float16 else 11)
    if name in ("sum", "column_sum"):
        axis = 0 if name == "column_sum" else 1
        return 2.0**-20 * np.abs(inputs[0].astype(np.float64)).sum(axis) + unit * np.abs(want)
    return unit * np.abs(want) + 2.0**-19 * (1 + np.abs(want))


def check(name: str, rows: int, columns: int, element: str, target: str) -> None:
    text, oracle, _ = OPS[name]
    inputs = inputs_of(name, rows, columns, element)
    if element == "i32":
        want = oracle(inputs[0]).astype(np.int32)
    else:
        want = oracle(*(each.astype(np.float64) for each in inputs))
    reduces = name in ("sum", "max", "column_sum")
    dtype = DTYPES[WIDE[element] if reduces else element]
    out = np.zeros(want.shape, dtype)
    kernel = tcir.compile(text(rows, columns, element), "simt-elementwise", target=target)
    report = kernel(*inputs, out)
    assert not report.findings
    if element == "i32" or name == "max":
        assert (out == want.astype(dtype)).all()
        return
    error = np.abs(out.astype(np.float64) - want)
    assert (error <= room(name, want, inputs, dtype)).all(), error.max()


@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("name", OPS)
def test_against_numpy(name: str, rows: int, columns: int) -> None:
    """f32; float64 is the oracle."""
    check(name, rows, columns, "f32", TARGETS[columns % 2])


@pytest.mark.parametrize(
    ("name", "element"),
    [*product(OPS, ("f16", "bf16")), *product(("sum", "max", "column_sum"), ("i32",))],
)
@pytest.mark.parametrize(("rows", "columns"), [(3, 104), (33, 31), (1, 4096), (130, 8)])
def test_other_types(name: str, rows: int, columns: int, element: str) -> None:
    """Runs of eight elements of two bytes; integers bit for bit."""
    check(name, rows, columns, element, "sm_90a")


LONG = [("sum", 2, 20000, 2), ("max", 3, 17000, 2), ("softmax", 2, 17000, 3), ("sum", 1, 16411, 1),
        ("rms_norm", 2, 17000, 3), ("sum", 300, 17000, 1), ("softmax", 64, 16400, 1)]  # fmt: skip


@pytest.mark.parametrize(("name", "rows", "columns", "launches"), LONG)
def test_few_long_rows_are_divided(name: str, rows: int, columns: int, launches: int) -> None:
    """Unless there are enough rows, or the length is prime."""
    program = OPS[name][0](rows, columns, "f16")
    kernel = tcir.compile(program, "simt-elementwise", target="sm_90a")
    assert len(kernel.launches.launches) == launches
    if rows < 300:
        check(name, rows, columns, "f16", "sm_90a")


@pytest.mark.parametrize("name", ["sum", "softmax"])
def test_parts_of_rows_at_every_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_rows, "LONG", 100)
    monkeypatch.setattr(long_rows, "GROUPS", 8)
    program = OPS[name][0](2, 600, "f32")
    kernel = tcir.compile(program, "simt-elementwise", validate=True)
    assert len(kernel.launches.launches) > 1
    assert kernel.report.ok, str(kernel.report)


def reduced(name: str, source: str, columns: int, *more: str, dim: int = 1) -> str:
    """Text of a reduction of rows, or of columns: the largest element that is also larger than that
    of each of `more` at the same column."""
    kept = (33, columns)[1 - dim]
    given = ", ".join([source, *more])
    kinds = ", ".join([f"tensor<33x{columns}xf32>", *[f"tensor<{columns}xf32>"] * len(more)])
    maps = ["(m, n) -> (m, n)", *["(m, n) -> (n)"] * len(more), f"(m, n) -> ({'nm'[dim]})"]
    loops = ["parallel", "reduction"] if dim else ["reduction", "parallel"]
    numbers = ["%a", *[f"%b{n}" for n in range(len(more))]]
    larger, last = "", "%a"
    for n in range(len(more)):
        larger += f"\n    %l{n} = arith.maximumf {last}, %b{n} : f32"
        last = f"%l{n}"
    return f"""
  %e{name} = tensor.empty() : tensor<{kept}xf32>
  %i{name} = linalg.fill ins(%low : f32) outs(%e{name} : tensor<{kept}xf32>) -> tensor<{kept}xf32>
  %{name} = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<{m}>" for m in maps)}],
      iterator_types = [{", ".join(f'"{loop}"' for loop in loops)}]}}
      ins({given} : {kinds}) outs(%i{name} : tensor<{kept}xf32>) {{
  ^bb0({", ".join(f"{n}: f32" for n in numbers)}, %o: f32):{larger}
    %t = arith.maximumf {last}, %o : f32
    linalg.yield %t : f32
  }} -> tensor<{kept}xf32>"""


LESS = """
  %ed = tensor.empty() : tensor<33x100xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %p : tensor<33x100xf32>, tensor<33xf32>) outs(%ed : tensor<33x100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<33x100xf32>"""
"""What each element is less than the largest of its row, `%p`."""
SAME_ROWS = {
    "one tensor": (reduced("p", "%x", 100) + reduced("q", "%x", 100, "%z"), 1),
    "two tensors": (reduced("p", "%x", 100) + reduced("q", "%y", 100), 2),
    "rows of two lengths": (reduced("p", "%x", 100) + reduced("q", "%w", 36), 2),
    "rows and columns": (reduced("p", "%x", 100) + reduced("q", "%x", 100, dim=0), 2),
    "after another launch": (
        reduced("p", "%x", 100) + reduced("c", "%y", 100, dim=0) + reduced("q", "%x", 100, "%c"),
        2,
    ),
    "with one between that reads the first": (
        reduced("p", "%x", 100)
        + LESS
        + reduced("c", "%d", 100, dim=0)
        + reduced("q", "%x", 100, "%c"),
        3,
    ),
}
"""Two results, and the launches that compute them."""


@pytest.mark.parametrize("name", SAME_ROWS)
def test_results_of_the_same_rows(name: str) -> None:
    """One launch reads the rows and stores both results, if no launch has to come between."""
    body, launches = SAME_ROWS[name]
    columns = 100 if name == "rows and columns" else 33
    program = f"""
func.func @f(%x: tensor<33x100xf32>, %y: tensor<33x100xf32>, %w: tensor<33x36xf32>,
    %z: tensor<100xf32>) -> (tensor<33xf32>, tensor<{columns}xf32>) {{
  %low = arith.constant 0xFF800000 : f32{body}
  return %p, %q : tensor<33xf32>, tensor<{columns}xf32>
}}"""
    kernel = tcir.compile(program, "simt-elementwise", validate=True)
    assert kernel.report.ok, str(kernel.report)
    assert len(kernel.launches.launches) == launches
    generator = np.random.default_rng(0)
    shapes = (33, 100), (33, 100), (33, 36), (100,)
    x, y, w, z = (generator.standard_normal(each).astype(np.float32) for each in shapes)
    largest = x.max(1)
    second = {
        "one tensor": np.maximum(x, z).max(1),
        "two tensors": y.max(1),
        "rows of two lengths": w.max(1),
        "rows and columns": x.max(0),
        "after another launch": np.maximum(x, y.max(0)).max(1),
        "with one between that reads the first": np.maximum(x, (x - largest[:, None]).max(0)).max(
            1
        ),
    }[name]
    outs = np.zeros_like(largest), np.zeros_like(second)
    assert not kernel(x, y, w, z, *outs).findings
    assert [each.tobytes() for each in outs] == [each.tobytes() for each in (largest, second)]


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_softmax_of_parts_that_are_infinite(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of -inf, and of large numbers beside small ones, count as they do in a whole row; rows
    of -inf, with a NaN, with inf are NaN."""
    monkeypatch.setattr(long_rows, "LONG", 100)
    monkeypatch.setattr(long_rows, "GROUPS", 8)
    program = OPS["softmax"][0](6, 600, element)
    kernel = tcir.compile(program, "simt-elementwise", target="sm_90a", cache=False)
    assert len(kernel.launches.launches) == 3
    x = np.random.default_rng(0).standard_normal((6, 600)).astype(DTYPES[element])
    x[0, :450], x[1, 300:] = -np.inf, x[1, 300:] + 1000
    x[2], x[3, 7], x[4, 599] = -np.inf, np.nan, np.inf
    out = np.zeros_like(x)
    assert not kernel(x, out).findings
    with np.errstate(invalid="ignore"):
        want = OPS["softmax"][1](x.astype(np.float64))
    assert np.isnan(want[2:5]).all() and not np.isnan(want[[0, 1, 5]]).any()
    unit = 1e-6 if element == "f32" else 2.0**-11
    assert np.allclose(out.astype(np.float64), want, unit, 1e-7, equal_nan=True)


GROUPS = {
    "wide": {"MOST": 32, "LOADED": 16, "FEW_ROWS": 256, "WIDE_GROUP": (64, 50)},
    "tall": {"MOST": 64, "LOADED": 8, "FEW_ROWS": 1, "TALL_GROUP": (32, 128)},
}
"""Smaller limits of groups, for rows of 1,001 elements."""


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_of_long_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that hold a long row: every pass, and rows of -inf, with a NaN, with inf."""
    for name, value in GROUPS[kind].items():
        monkeypatch.setattr(group, name, value)
    program = OPS["softmax"][0](5, 1001, "f32")
    report = tcir.validate(program, "simt-elementwise", orders=1)
    assert report.ok, str(report)
    kernel = tcir.compile(program, "simt-elementwise", target="sm_90a", cache=False)
    (launch,) = kernel.launches.launches
    assert launch.block[0] == {"wide": 64, "tall": 32}[kind]
    x = np.random.default_rng(0).standard_normal((5, 1001)).astype(np.float32)
    x[1], x[2, 7], x[3, 1000] = -np.inf, np.nan, np.inf
    out = np.zeros_like(x)
    assert not kernel(x, out).findings
    with np.errstate(invalid="ignore"):
        want = OPS["softmax"][1](x.astype(np.float64))
    assert np.isnan(want[1:4]).all()
    assert np.allclose(out, want, 1e-6, 1e-9, equal_nan=True)


def test_a_sum_that_keeps_its_dimension_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch's softmax has it: (m, n) -> (m, 0)."""
    monkeypatch.setattr(long_rows, "LONG", 100)
    monkeypatch.setattr(long_rows, "GROUPS", 8)
    program = """
func.func @f(%x: tensor<2x600xf32>) -> tensor<2x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x1xf32>) -> tensor<2x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, 0)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x600xf32>) outs(%z : tensor<2x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<2x1xf32>
  return %s : tensor<2x1xf32>
}"""
    assert len(tcir.compile(program, "simt-elementwise").launches.launches) == 2
    report = tcir.validate(program, "simt-elementwise", orders=1)
    assert report.ok, str(report)


def test_a_part_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of half the length."""
    right = long_rows.reshape
    monkeypatch.setattr(
        long_rows, "reshape", lambda x, shape: right(x, [shape[0], shape[2], shape[1]])
    )
    with pytest.raises(tcir.Error):
        tcir.compile(OPS["sum"][0](2, 20000, "f32"), "simt-elementwise")


@pytest.mark.parametrize("inputs", ["integers", "random"])
@pytest.mark.parametrize(("rows", "columns"), SIZES)
@pytest.mark.parametrize("name", OPS)
def test_every_level(name: str, rows: int, columns: int, inputs: Any) -> None:
    """The order of a sum is chosen by convert-to-simt: whatever follows keeps its bits."""
    program = OPS[name][0](rows, columns, "f32")
    report = tcir.validate(program, "simt-elementwise", inputs=inputs, orders=2)
    assert report.ok, str(report)
    assert not [f for line in report.passes for f in line.findings], str(report)
    behind = False
    for line in report.passes:
        behind |= line.name == "convert-to-simt"
        if line.verdict == "within bound":
            assert behind, str(report)
            kept = "bit for bit as before the pass" in line.compared
            assert kept or line.name == "convert-to-simt", str(report)
    if name in ("sum", "max", "column_sum") and (inputs == "integers" or name == "max"):
        assert {line.verdict for line in report.passes} <= {"reference", "equal"}, str(report)


@pytest.mark.parametrize("name", OPS)
def test_one_launch(name: str) -> None:
    """A chain over one row is one kernel."""
    kernel = tcir.compile(OPS[name][0](8, 64, "f32"), "simt-elementwise")
    assert len(kernel.launches.launches) == 1


@pytest.mark.parametrize(
    ("name", "size", "at", "edit"),
    [
        pytest.param("sum", (3, 1000), "convert-to-simt",
                     change_text(r"(%\d+) = nvvm.shfl.sync bfly %[-\w]+, (%\d+), %c4_i32\w*, "
                                 r"%[-\w]+ : i32 -> i32",
                                 r"\1 = arith.addi \2, %c0_i32 : i32"), id="a shuffle"),
        pytest.param("sum", (3, 1000), "convert-to-simt", erase("nvvm.barrier"), id="a barrier"),
        pytest.param("layer_norm", (3, 1000), "convert-to-simt", erase("nvvm.barrier", 1),
                     id="the second barrier"),
        pytest.param("max", (33, 31), "convert-to-simt",
                     change_text("0xFF800000", "0x00000000"), id="what is behind the row"),
        pytest.param("sum", (33, 31), "convert-to-simt",
                     change_text(r"arith.select (%\d+), (%\d+), (%\w+) : f32",
                                 r"arith.select \1, \2, \2 : f32"), id="the tail's mask"),
        pytest.param("sum", (3, 1000), "convert-to-simt",
                     change_text(r"%c250_i32 = arith.constant 250", "%c250_i32 = arith.constant 9"),
                     id="the last run"),
        pytest.param("column_sum", (33, 31), "convert-to-simt",
                     change_text(r"arith.select (%\d+), (%\d+), (%\w+) : f32",
                                 r"arith.select \1, \2, \2 : f32"), id="rows that are not there"),
        pytest.param("softmax", (3, 1000), "convert-to-simt",
                     change_text(r"arith.addf (%\d+), (%\d+) : f32", r"arith.addf \1, \1 : f32"),
                     id="a power twice"),
        pytest.param("softmax", (3, 100), "convert-scf-to-cf",
                     change_text("arith.maxnumf", "arith.minnumf"), id="a later pass"),
    ],
)  # fmt: skip
def test_breaks(name: str, size: tuple[int, int], at: str, edit: Edit) -> None:
    """Caught behind the pass that made it."""
    program = OPS[name][0](*size, "f32")
    caught = run_broken(program, tcir.named_pipeline("simt-elementwise"), at, edit)
    assert caught and caught.at == at, caught
