"""Depthwise convolutions with channels last on CUDA cores: sizes, strides, padding, epilogues."""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.passes.simt import depthwise

from .breaking import Edit, change_text, run_broken
from .row_text import DTYPES
from .test_layers import Array

PIPELINE = "simt-elementwise"


@dataclass(frozen=True)
class Case:
    """A convolution: size of the image (n, h, w, c), filter, stride, dilation, padding of h and w
    before and after; whether relu follows."""

    shape: tuple[int, int, int, int]
    taps: tuple[int, int] = (3, 3)
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    relu: bool = False

    @property
    def out(self) -> tuple[int, int, int, int]:
        """Size of the result."""
        n, h, w, c = self.shape
        (a, b), (d, e) = self.pads[:2], self.pads[2:]
        p, q = (
            (size - (taps - 1) * self.dilation - 1) // self.stride + 1
            for size, taps in ((h + a + b, self.taps[0]), (w + d + e, self.taps[1]))
        )
        return n, p, q, c

    def __str__(self) -> str:
        return f"{self.shape}-{self.taps}-s{self.stride}-d{self.dilation}-{self.pads}-{self.relu}"


def text(case: Case, element: str) -> str:
    """The convolution with a bias in f32, rounded."""
    n, h, w, c = case.shape
    r, s = case.taps
    a, b, d, e = case.pads
    x, k = f"tensor<{n}x{h}x{w}x{c}x{element}>", f"tensor<{r}x{s}x{c}x{element}>"
    padded = f"tensor<{n}x{h + a + b}x{w + d + e}x{c}x{element}>"
    out = "x".join(map(str, case.out))
    wide, bias = f"tensor<{out}xf32>", f"tensor<{c}x{element}>"
    narrow = element != "f32"
    extended = (
        f"%v = arith.extf %a : {element} to f32" if narrow else "%v = arith.addf %a, %o : f32"
    )
    loops = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'
    relu = "\n    %m = arith.maximumf %a, %zero : f32" if case.relu else ""
    last = "%m" if case.relu else "%a"
    body = f"\n    %t = arith.truncf {last} : f32 to {element}" if narrow else ""
    body = body or f"\n    %t = arith.addf {last}, %zero : f32"
    return f"""
#all = affine_map<(n, p, q, c) -> (n, p, q, c)>
#c = affine_map<(n, p, q, c) -> (c)>
func.func @f(%x: {x}, %w: {k}, %b: {bias}) -> tensor<{out}x{element}> {{
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : {element}
  %p = tensor.pad %x low[0, {a}, {d}, 0] high[0, {b}, {e}, 0] {{
  ^bb0(%a0: index, %a1: index, %a2: index, %a3: index):
    tensor.yield %none : {element}
  }} : {x} to {padded}
  %ie = tensor.empty() : {wide}
  %if = linalg.fill ins(%zero : f32) outs(%ie : {wide}) -> {wide}
  %i = linalg.generic {{indexing_maps = [#c, #all], {loops}}} ins(%b : {bias}) outs(%if : {wide}) {{
  ^bb0(%a: {element}, %o: f32):
    {extended}
    linalg.yield %v : f32
  }} -> {wide}
  %c = linalg.depthwise_conv_2d_nhwc_hwc {{strides = dense<{case.stride}> : vector<2xi64>,
      dilations = dense<{case.dilation}> : vector<2xi64>}}
      ins(%p, %w : {padded}, {k}) outs(%i : {wide}) -> {wide}
  %ye = tensor.empty() : tensor<{out}x{element}>
  %y = linalg.generic {{indexing_maps = [#all, #all], {loops}}} ins(%c : {wide})
      outs(%ye : tensor<{out}x{element}>) {{
  ^bb0(%a: f32, %o: {element}):{relu}{body}
    linalg.yield %t : {element}
  }} -> tensor<{out}x{element}>
  return %y : tensor<{out}x{element}>
}}
"""


def numpy(case: Case, x: Array, w: Array, b: Array) -> Array:
    """The same in f64."""
    a0, a1, d0, d1 = case.pads
    padded = np.pad(x.astype(np.float64), ((0, 0), (a0, a1), (d0, d1), (0, 0)))
    _, p, q, _ = case.out
    y = np.broadcast_to(b.astype(np.float64), case.out).copy()
    for r in range(case.taps[0]):
        for s in range(case.taps[1]):
            rows = slice(
                r * case.dilation, r * case.dilation + (p - 1) * case.stride + 1, case.stride
            )
            columns = slice(
                s * case.dilation, s * case.dilation + (q - 1) * case.stride + 1, case.stride
            )
            y += padded[:, rows, columns] * w[r, s].astype(np.float64)
    return np.maximum(y, 0) if case.relu else y


def inputs_of(case: Case, element: str) -> list[Array]:
    """Random numbers."""
    generator = np.random.default_rng(0)
    shapes = (case.shape, (*case.taps, case.shape[3]), case.shape[3:])
    return [generator.standard_normal(s).astype(DTYPES[element]) for s in shapes]


CASES = [
    Case((1, 7, 14, 6)),
    Case((2, 8, 14, 4), (7, 7), pads=(3, 3, 3, 3), relu=True),
    Case((1, 7, 7, 8), (7, 7), pads=(3, 3, 3, 3)),
    Case((1, 9, 29, 4), stride=2),
    Case((1, 8, 28, 4), stride=2, pads=(0, 1, 0, 1)),
    Case((1, 12, 18, 2), (5, 3), pads=(2, 2, 1, 1)),
    Case((1, 11, 16, 4), dilation=2, pads=(2, 2, 2, 2)),
    Case((2, 6, 10, 2), pads=(0, 0, 0, 0)),
    Case((1, 5, 8, 2), (1, 5), pads=(0, 0, 4, 0)),
    Case((1, 6, 11, 4), (3, 3), pads=(3, 0, 0, 3)),
]
TYPES = ("f16", "bf16", "f32")


def used(kernel: tcir.Kernel) -> bool:
    """Whether the kernel is that of depthwise convolutions."""
    (launch,) = kernel.launches.launches
    return launch.block[0] in (depthwise.FEW, depthwise.MANY)


@pytest.mark.parametrize("enough", [1 << 16, 1])
@pytest.mark.parametrize(("case", "element"), [(c, e) for e in TYPES for c in CASES], ids=str)
def test_against_numpy(
    case: Case, element: str, enough: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few units of the sum's magnitudes in f32, and the rounding."""
    monkeypatch.setattr(depthwise, "ENOUGH", enough)
    x, w, b = inputs_of(case, element)
    kernel = tcir.compile(text(case, element), PIPELINE, target="sm_90a")
    assert used(kernel)
    assert ("fma.rn.f32" in kernel.ptx) == (element != "f32")
    out = np.zeros(case.out, DTYPES[element])
    report = kernel(x, w, b, out)
    assert not report.findings
    want = numpy(case, x, w, b)
    magnitude = numpy(replace(case, relu=False), abs(x), abs(w), abs(b))
    room = 2.0**-20 * magnitude + float(ml_dtypes.finfo(DTYPES[element]).eps) * abs(want)
    assert (abs(out.astype(np.float64) - want) <= room).all()


def test_an_infinite_tap_multiplies_padding() -> None:
    """0 · inf is NaN, also where the 0 is padding."""
    case = CASES[0]
    x, w, b = inputs_of(case, "f16")
    w[0, 0, 0] = np.inf
    out = np.zeros(case.out, np.float16)
    tcir.compile(text(case, "f16"), PIPELINE, target="sm_90a")(x, w, b, out)
    with np.errstate(invalid="ignore"):
        want = numpy(case, x, w, b)
    assert np.array_equal(np.isnan(out), np.isnan(want)) and np.isnan(want).any()


@pytest.mark.parametrize("shape", [(1, 7, 13, 4), (1, 6, 14, 3)], ids=["13 wide", "odd channels"])
def test_others_have_a_thread_for_each_element(shape: tuple[int, int, int, int]) -> None:
    case = Case(shape)
    x, w, b = inputs_of(case, "f16")
    kernel = tcir.compile(text(case, "f16"), PIPELINE)
    assert not used(kernel)
    out = np.zeros(case.out, np.float16)
    kernel(x, w, b, out)
    assert np.allclose(out.astype(np.float64), numpy(case, x, w, b), 1e-3, 1e-3)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_every_level(element: str) -> None:
    report = tcir.validate(text(CASES[0], element), PIPELINE, orders=1, strict=True)
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def test_instructions_of_a_result() -> None:
    """Multiply-adds are most of what a thread executes: 7 x 7 taps, 2 x 7 pixels, 2 channels."""
    ptx = tcir.compile(
        text(Case((8, 56, 56, 96), (7, 7), pads=(3, 3, 3, 3)), "f16"), PIPELINE, target="sm_90a"
    ).ptx
    assert ptx.count("fma.rn.f32") == 49 * 28
    assert ptx.count("ld.global") == 8 * 13 + 49 + 1, "rows of the image, taps, the bias"
    assert ptx.count("and.b32") <= 8 * 13


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(
            change_text(r"cmpi ult, (%\w+), %c7_i32", r"cmpi uge, \1, %c7_i32"),
            id="rows before the image",
        ),
        pytest.param(
            change_text(r"arith.extsi (%\w+) : i1 to i32", r"arith.extui \1 : i1 to i32"),
            id="the mask",
        ),
        pytest.param(
            change_text(r"intr.fma\((%\w+), (%\w+), (%\w+)\)", r"intr.fma(\1, \1, \3)"),
            id="a factor",
        ),
    ],
)
def test_breaks(edit: Edit) -> None:
    caught = run_broken(
        text(CASES[0], "f16"), tcir.named_pipeline(PIPELINE), "convert-to-simt", edit
    )
    assert caught and caught.at == "convert-to-simt", caught
