"""Elementwise kernels with several elements per thread, and transposes in tiles: numpy's bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.simt import elementwise

from .breaking import Edit, change_text, erase, run_broken
from .row_text import DTYPES

PIPELINE = "simt-elementwise"


def transposed(batch: int, rows: int, columns: int, element: str) -> str:
    """Each matrix of a batch transposed, plus a number for each column of the result."""
    source, kind = (
        f"tensor<{batch}x{rows}x{columns}x{element}>",
        (f"tensor<{batch}x{columns}x{rows}x{element}>"),
    )
    add = "arith.addi" if element[0] == "i" else "arith.addf"
    return f"""
func.func @f(%x: {source}, %b: tensor<{rows}x{element}>) -> {kind} {{
  %e = tensor.empty() : {kind}
  %y = linalg.transpose ins(%x : {source}) outs(%e : {kind}) permutation = [0, 2, 1]
  %z = linalg.generic {{indexing_maps = [affine_map<(a, m, n) -> (a, m, n)>,
      affine_map<(a, m, n) -> (n)>, affine_map<(a, m, n) -> (a, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%y, %b : {kind}, tensor<{rows}x{element}>) outs(%e : {kind}) {{
  ^bb0(%p: {element}, %q: {element}, %o: {element}):
    %s = {add} %p, %q : {element}
    linalg.yield %s : {element}
  }} -> {kind}
  return %z : {kind}
}}
"""


def joined(rows: int, first: int, second: int, element: str) -> str:
    """Two matrices side by side, negated."""
    parts = [f"tensor<{rows}x{each}x{element}>" for each in (first, second, first + second)]
    return f"""
func.func @f(%x: {parts[0]}, %y: {parts[1]}) -> {parts[2]} {{
  %c = tensor.concat dim(1) %x, %y : ({parts[0]}, {parts[1]}) -> {parts[2]}
  %z = arith.negf %c : {parts[2]}
  return %z : {parts[2]}
}}
"""


def pooled(size: int, channels: int, window: int, pad: int, element: str) -> str:
    """The largest of each window with stride 2, channels last."""
    out = (size + 2 * pad - window) // 2 + 1
    kinds = [
        f"tensor<{shape}x{element}>"
        for shape in (
            f"2x{size}x{size}x{channels}",
            f"2x{size + 2 * pad}x{size + 2 * pad}x{channels}",
            f"{window}x{window}",
            f"2x{out}x{out}x{channels}",
        )
    ]
    least = "0xFC00" if element == "f16" else "0xFF800000"
    return f"""
func.func @f(%x: {kinds[0]}) -> {kinds[3]} {{
  %least = arith.constant {least} : {element}
  %p = tensor.pad %x low[0, {pad}, {pad}, 0] high[0, {pad}, {pad}, 0] {{
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %least : {element}
  }} : {kinds[0]} to {kinds[1]}
  %e = tensor.empty() : {kinds[3]}
  %f = linalg.fill ins(%least : {element}) outs(%e : {kinds[3]}) -> {kinds[3]}
  %w = tensor.empty() : {kinds[2]}
  %y = linalg.pooling_nhwc_max {{dilations = dense<1> : vector<2xi64>,
      strides = dense<2> : vector<2xi64>}} ins(%p, %w : {kinds[1]}, {kinds[2]})
      outs(%f : {kinds[3]}) -> {kinds[3]}
  return %y : {kinds[3]}
}}
"""


SHAPES = [
    (1, 64, 128, "f32"),
    (2, 100, 72, "f16"),
    (3, 33, 47, "f32"),
    (1, 32, 200, "bf16"),
    (1, 130, 65, "i32"),
    (2, 40, 48, "i16"),
]
TYPES: dict[str, Any] = {**DTYPES, "i16": np.int16, "i8": np.int8}


@pytest.mark.parametrize(("batch", "rows", "columns", "element"), SHAPES)
def test_transposes(batch: int, rows: int, columns: int, element: str) -> None:
    generator = np.random.default_rng(0)
    x, b = (
        generator.integers(-100, 100, shape).astype(TYPES[element])
        for shape in ((batch, rows, columns), (rows,))
    )
    want = x.transpose(0, 2, 1) + b
    out = np.zeros_like(want)
    report = tcir.compile(transposed(batch, rows, columns, element), PIPELINE)(x, b, out)
    assert out.tobytes() == want.tobytes()
    assert not report.findings


def threads_of(kernel: tcir.Kernel) -> int:
    """Threads of a kernel of one launch."""
    (launch,) = kernel.launches.launches
    return int(np.prod(launch.grid) * np.prod(launch.block))


@pytest.mark.parametrize(("rows", "first", "second", "element", "runs"), [
    (64, 33, 31, "f16", 1), (64, 333, 333, "f16", 4), (64, 333, 332, "f16", 8),
    (33, 333, 333, "f32", 2), (7, 1001, 332, "f32", 4), (128, 335, 337, "bf16", 4),
])  # fmt: skip
def test_rows_that_are_not_aligned(
    rows: int, first: int, second: int, element: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has several short runs, 16 bytes, if that leaves enough threads; the last CTA may
    have fewer."""
    monkeypatch.setattr(elementwise, "ENOUGH", 1 << 11)
    program = joined(rows, first, second, element)
    kernel = tcir.compile(program, PIPELINE, target="sm_90a", cache=False)
    count = rows * (first + second)
    run = 2 if (first + second) % 2 == 0 else 1
    if (first + second) % 8:
        per = run * runs * elementwise.THREADS
        assert threads_of(kernel) == -(-count // per) * elementwise.THREADS
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((rows, n)).astype(TYPES[element]) for n in (first, second))
    out = np.zeros((rows, first + second), TYPES[element])
    assert not kernel(x, y, out).findings
    assert out.tobytes() == (-np.concatenate([x, y], 1)).tobytes()


@pytest.mark.parametrize(("rows", "columns", "element", "together"), [
    (4, 4096, "f16", 2), (2, 4096, "f16", 4), (4, 4098, "bf16", 2), (4, 4095, "f16", 1),
    (2, 4096, "f32", 2), (4, 4096, "f32", 1), (8, 4096, "f16", 1), (2, 4096, "i8", 8),
])  # fmt: skip
def test_short_rows_of_a_transpose(
    rows: int, columns: int, element: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has rows of 16 bytes together, and loads from each row of the operand at once."""
    monkeypatch.setattr(elementwise, "ENOUGH", 1 << 9)
    program = transposed(1, rows, columns, element)
    kernel = tcir.compile(program, PIPELINE, target="sm_90a", cache=False)
    size = np.dtype(TYPES[element]).itemsize
    loads = re.findall(r"ld\.global\.(\S+)", kernel.ptx)
    stored = re.findall(r"st\.global\.(\S+)", kernel.ptx)
    if together > 1:
        assert 0 <= threads_of(kernel) - columns // together < elementwise.THREADS
        assert len(stored) == 1 and stored[0].startswith("v4.b32"), stored
        kinds = {2: "b16", 4: "b32", 8: "v2.b32"}
        assert loads.count(kinds[size * together]) >= rows, loads
    generator = np.random.default_rng(0)
    x, b = (
        generator.integers(-50, 50, shape).astype(TYPES[element])
        for shape in ((1, rows, columns), (rows,))
    )
    want = x.transpose(0, 2, 1) + b
    out = np.zeros_like(want)
    assert not kernel(x, b, out).findings
    assert out.tobytes() == want.tobytes()


def test_registers_of_windows() -> None:
    """ptxas is told that one CTA on an SM is enough, where a thread loads a window."""
    pool = tcir.compile(pooled(16, 16, 3, 1, "f16"), PIPELINE, target="sm_90a")
    assert ".minnctapersm 1" in pool.ptx
    assert ".minnctapersm" not in tcir.compile(joined(8, 16, 16, "f16"), PIPELINE).ptx


@pytest.mark.parametrize("program", [transposed(1, 4, 1026, "f16"), joined(9, 127, 63, "f16")])
def test_short_runs_at_every_level(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "ENOUGH", 64)
    monkeypatch.setattr(elementwise, "MANY", 64)
    report = tcir.validate(program, PIPELINE, orders=1)
    assert report.ok, str(report)


@pytest.mark.parametrize(("rows", "first", "second"), [(32, 96, 32), (40, 100, 12), (5, 1000, 7)])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_parts(rows: int, first: int, second: int, element: str) -> None:
    """Parts of whole runs, of runs of four, and of none."""
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((rows, n)).astype(TYPES[element]) for n in (first, second))
    out = np.zeros((rows, first + second), TYPES[element])
    tcir.compile(joined(rows, first, second, element), PIPELINE, target="sm_90a")(x, y, out)
    assert out.tobytes() == (-np.concatenate([x, y], 1)).tobytes()


WINDOWS = [(12, 64, 3, 1, "f16"), (22, 20, 2, 0, "f32")]


@pytest.mark.parametrize(("size", "channels", "window", "pad", "element"), WINDOWS)
def test_windows(size: int, channels: int, window: int, pad: int, element: str) -> None:
    """All loads of a window are in flight, and each is a run."""
    x = np.random.default_rng(0).standard_normal((2, size, size, channels))
    x = x.astype(TYPES[element])
    x[0, 0, 0, 0] = np.nan
    ends = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    padded = np.pad(x, ends, constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (1, 2))
    want = windows[:, ::2, ::2].max((-1, -2))
    out = np.zeros_like(want)
    kernel = tcir.compile(pooled(size, channels, window, pad, element), PIPELINE)
    kernel(x, out)
    assert np.array_equal(out, want, equal_nan=True)
    loads = [line for line in kernel.ptx.split("\n") if "ld.global" in line]
    assert len(loads) == window**2 and all(".v4" in line for line in loads), loads


def reshaped(element: str) -> str:
    """The sum of two tensors, one after a collapse and one after an expansion of dimensions."""
    x, z, y = (f"tensor<{shape}x{element}>" for shape in ("8x3x24x32", "24x768", "8x3x768"))
    return f"""
func.func @f(%x: {x}, %z: {z}) -> {y} {{
  %c = tensor.collapse_shape %x [[0], [1], [2, 3]] : {x} into {y}
  %e = tensor.expand_shape %z [[0, 1], [2]] output_shape [8, 3, 768] : {z} into {y}
  %s = arith.addf %c, %e : {y}
  return %s : {y}
}}
"""


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_runs_go_through_reshapes(element: str) -> None:
    generator = np.random.default_rng(0)
    x, z = (generator.standard_normal(n).astype(TYPES[element]) for n in (18432, 18432))
    out = np.zeros((8, 3, 768), TYPES[element])
    kernel = tcir.compile(reshaped(element), PIPELINE)
    kernel(x.reshape(8, 3, 24, 32), z.reshape(24, 768), out)
    assert out.tobytes() == (x + z).tobytes()
    loads = [line for line in kernel.ptx.split("\n") if "ld.global" in line]
    assert all(".v4" in line for line in loads) and loads, loads


@pytest.mark.parametrize(
    "program",
    [transposed(1, 64, 72, "f16"), joined(32, 96, 32, "f32"), joined(40, 100, 12, "f16")],
    ids=["transposed", "whole parts", "parts"],
)
def test_every_level(program: str) -> None:
    report = tcir.validate(program, PIPELINE, orders=2, strict=True)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize(
    ("program", "edit"),
    [
        pytest.param(transposed(1, 64, 72, "f16"), erase("nvvm.barrier"), id="the barrier"),
        pytest.param(
            transposed(1, 64, 72, "f16"),
            change_text(r"arith.constant 65 : i32", "arith.constant 63 : i32"),
            id="the pitch of a store",
        ),
        pytest.param(
            transposed(1, 64, 72, "f16"),
            change_text(r"scf.if %\w+ \{", "%true = arith.constant true\n scf.if %true {"),
            id="what is outside the matrix",
        ),
        pytest.param(
            joined(32, 96, 32, "f32"),
            change_text(r"arith.constant 92 : i32", "arith.constant 88 : i32"),
            id="the end of a part",
        ),
        pytest.param(
            pooled(12, 64, 3, 1, "f16"),
            change_text(r"arith.minui %\w+, %(\w+)", r"arith.maxui %\1, %\1"),
            id="the last row of an image",
        ),
        pytest.param(
            pooled(12, 64, 3, 1, "f16"),
            change_text(r"arith.cmpi ult, %(\w+), %c12_i32", r"arith.cmpi ugt, %\1, %c12_i32"),
            id="which rows are inside",
        ),
    ],
)
def test_breaks(program: str, edit: Edit) -> None:
    caught = run_broken(program, tcir.named_pipeline(PIPELINE), "convert-to-simt", edit)
    assert caught and caught.at == "convert-to-simt", caught
