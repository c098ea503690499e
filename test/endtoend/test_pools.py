"""Pooling in one launch: padding, windows, what follows and the order of the result."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.passes.simt import elementwise

from .breaking import Edit, change_text, run_broken
from .row_text import DTYPES
from .test_layers import Array

LOW = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000"}
SHAPE = (1, 16, 32, 34)
SMALL = (1, 8, 8, 6)
"""Images, channels, rows and columns; windows of 3 x 3, stride 2, padding 1."""


def text(element: str, way: str, last: bool, shape: tuple[int, ...] = SHAPE) -> str:
    """nn.MaxPool2d(3, 2, 1), or nn.AvgPool2d with sums in f32, as torch-mlir's importer writes it;
    last: whether the memory of the image and of the result is channels last."""
    n, c, h, w = shape
    p, q = (h + 1) // 2, (w + 1) // 2
    inner = element if way == "max" else "f32"
    low = LOW[element] if way == "max" else "0.0"
    image, result = (
        f"tensor<{n}x{a}x{b}x{c}x{element}>" if last else f"tensor<{n}x{c}x{a}x{b}x{element}>"
        for a, b in ((h, w), (p, q))
    )
    first, pooled = (f"tensor<{n}x{c}x{a}x{b}x" for a, b in ((h, w), (p, q)))
    padded = f"tensor<{n}x{c}x{h + 2}x{w + 2}x{inner}>"
    map_ = "affine_map<(a, b, c, d) -> (a, b, c, d)>"
    loops = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'
    body, x = "", "%x"
    if last:
        body += f"""
  %te = tensor.empty() : {first}{element}>
  %t = linalg.transpose ins(%x : {image}) outs(%te : {first}{element}>)
      permutation = [0, 3, 1, 2]"""
        x = "%t"
    if way == "avg" and element != "f32":
        body += f"""
  %we = tensor.empty() : {first}f32>
  %wide = linalg.generic {{indexing_maps = [{map_}, {map_}], {loops}}}
      ins({x} : {first}{element}>) outs(%we : {first}f32>) {{
  ^bb0(%a: {element}, %o: f32):
    %b = arith.extf %a : {element} to f32
    linalg.yield %b : f32
  }} -> {first}f32>"""
        x = "%wide"
    name = "max" if way == "max" else "sum"
    body += f"""
  %p = tensor.pad {x} low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%a0: index, %a1: index, %a2: index, %a3: index):
    tensor.yield %low : {inner}
  }} : {first}{inner}> to {padded}
  %e = tensor.empty() : {pooled}{inner}>
  %f = linalg.fill ins(%low : {inner}) outs(%e : {pooled}{inner}>) -> {pooled}{inner}>
  %k = tensor.empty() : tensor<3x3x{inner}>
  %m = linalg.pooling_nchw_{name} {{dilations = dense<1> : vector<2xi64>,
      strides = dense<2> : vector<2xi64>}} ins(%p, %k : {padded}, tensor<3x3x{inner}>)
      outs(%f : {pooled}{inner}>) -> {pooled}{inner}>"""
    y = "%m"
    if way == "avg":
        narrow = f"\n    %r = arith.truncf %s : f32 to {element}" if element != "f32" else ""
        body += f"""
  %ne = tensor.empty() : {pooled}{element}>
  %n = linalg.generic {{indexing_maps = [{map_}, {map_}], {loops}}}
      ins(%m : {pooled}f32>) outs(%ne : {pooled}{element}>) {{
  ^bb0(%a: f32, %o: {element}):
    %s = arith.divf %a, %nine : f32{narrow}
    linalg.yield %{"r" if narrow else "s"} : {element}
  }} -> {pooled}{element}>"""
        y = "%n"
    if last:
        body += f"""
  %ye = tensor.empty() : {result}
  %y = linalg.transpose ins({y} : {pooled}{element}>) outs(%ye : {result})
      permutation = [0, 2, 3, 1]"""
        y = "%y"
    return f"""
func.func @pool(%x: {image}) -> {result} {{
  %low = arith.constant {low} : {inner}
  %nine = arith.constant 9.0 : f32{body}
  return {y} : {result}
}}
"""


def numpy(x: Array, way: str, last: bool) -> Array:
    """The same in f64."""
    a = x.astype(np.float64).transpose(0, 3, 1, 2) if last else x.astype(np.float64)
    edge = -np.inf if way == "max" else 0.0
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=edge)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    y = windows.max((4, 5)) if way == "max" else windows.mean((4, 5))
    return np.asarray(y.transpose(0, 2, 3, 1) if last else y)


def image(element: str, last: bool) -> Array:
    """Random numbers, a NaN, infinities, a window of nothing but -inf."""
    n, c, h, w = SHAPE
    x = np.random.default_rng(0).standard_normal((n, h, w, c) if last else (n, c, h, w))
    where = (slice(None), slice(0, 6), slice(0, 6)) if last else (..., slice(0, 6), slice(0, 6))
    x[where] = -np.inf
    flat = x.reshape(-1)
    flat[[1000, 9000]] = np.nan, np.inf
    return x.astype(DTYPES[element])


@pytest.mark.parametrize(
    ("element", "way", "last"),
    [(e, w, last) for last in (True, False) for w in ("max", "avg") for e in LOW],
)
def test_against_numpy(element: str, way: str, last: bool) -> None:
    x = image(element, last)
    if way == "avg":
        x = np.nan_to_num(x.astype(np.float32), posinf=2, neginf=-2).astype(DTYPES[element])
    kernel = tcir.compile(text(element, way, last), "layers", target="sm_90a")
    assert len(kernel.launches.launches) == 1
    loads = len(re.findall(r"ld\.global\.v4\.b32", kernel.ptx))
    assert loads == (9 * last), "16 bytes of channels side by side"
    with np.errstate(invalid="ignore"):
        want = numpy(x, way, last)
    out = np.zeros(want.shape, DTYPES[element])
    kernel(x, out)
    room = 0 if way == "max" else float(ml_dtypes.finfo(DTYPES[element]).eps)
    assert np.allclose(out.astype(np.float64), want, room, room, equal_nan=True)


def test_padding_is_chosen_before_it_is_extended() -> None:
    """Two numbers of 16 bits by a select, whatever the sums are; and places of 32 bits."""
    ptx = tcir.compile(text("f16", "avg", True), "layers", target="sm_90a", cache=False).ptx
    assert ptx.count("selp.b32") == 9 * 4
    assert "selp.f32" not in ptx
    assert not re.search(r"(mul|mad)\.lo\.[su]64", ptx)


def test_every_pass_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "MANY", 1)
    report = tcir.validate(text("f16", "max", True, SMALL), "layers", orders=1)
    assert report.verdict == "held", str(report)


@pytest.mark.parametrize("block", [(2, 2), (1, 2)])
def test_a_thread_computes_a_block_of_results(
    block: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pass; neighbours read the same pixels, which are loaded once."""
    for name, value in (("MANY", 1), ("ENOUGH", 1), ("BLOCKS", (block,))):
        monkeypatch.setattr(elementwise, name, value)
    program = text("f16", "max", True, (1, 8, 8, 8))
    report = tcir.validate(program, "layers", target="sm_90a", orders=1)
    assert report.verdict == "held", str(report)
    ptx = tcir.compile(program, "layers", target="sm_90a", cache=False).ptx
    rows, columns = (2 * each + 1 for each in block)
    assert len(re.findall(r"ld\.global\.v4\.b32", ptx)) == rows * columns


def test_a_block_that_does_not_divide_the_image_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "MANY", 1)
    monkeypatch.setattr(elementwise, "_pixels", lambda *_: (3, 2))
    report = tcir.validate(text("f32", "max", True, (1, 4, 8, 8)), "layers", target="sm_90a")
    failure = report.first_failure()
    assert failure is not None and failure.name == "convert-to-simt", str(report)


def test_another_order_than_memorys_is_a_launch_of_its_own() -> None:
    """Channels first in, channels last out: a transpose in tiles after the pool."""
    n, c, h, w = SHAPE
    program = text("f16", "max", False).replace(
        "  return %m",
        f"""
  %ye = tensor.empty() : tensor<{n}x{h // 2}x{w // 2}x{c}xf16>
  %y = linalg.transpose ins(%m : tensor<{n}x{c}x{h // 2}x{w // 2}xf16>)
      outs(%ye : tensor<{n}x{h // 2}x{w // 2}x{c}xf16>) permutation = [0, 2, 3, 1]
  return %y""",
    )
    kind = f"tensor<{n}x{h // 2}x{w // 2}x{c}xf16>"
    program = re.sub(r"-> tensor<[\dx]*xf16> \{\n  %low", f"-> {kind} {{\n  %low", program)
    program = re.sub(r"return %y : .*", f"return %y : {kind}", program)
    kernel = tcir.compile(program, "layers", target="sm_90a")
    assert len(kernel.launches.launches) == 2


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(change_text("arith.maximumf", "arith.minimumf"), id="the least"),
        pytest.param(
            change_text(
                r"arith.select (%\w+), (%\w+), (%\w+) : vector<2xf16>",
                r"arith.select \1, \2, \2 : vector<2xf16>",
            ),
            id="the padding",
        ),
    ],
)
def test_breaks(edit: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "MANY", 1)
    pipeline = tcir.named_pipeline("layers")
    caught = run_broken(text("f16", "max", True, SMALL), pipeline, "convert-to-simt", edit)
    assert caught and caught.at == "convert-to-simt", caught
