"""Convolutions with epilogues: through all levels and all schedules, against numpy, and broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir, vector
from tcir.passmanager.remarks import remarks_to

from .breaking import (
    Break,
    Edit,
    activation_first,
    change_operand,
    change_text,
    pick,
    set_attribute,
    walk,
)
from .conv_epilogue_cases import BLOCK, CASES, IMPLICIT, OFFSET, REUSE, SCHEDULES
from .conv_epilogue_text import FusedConv
from .epilogue_text import KEEP, SILU_OF_SUMS, gelu_of_sums
from .linalg_text import Conv
from .oracle import convolution, integers

Array = np.ndarray[Any, Any]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "resnet50_residual.mlir"


def check(text: str, pipeline: str, orders: int) -> None:
    """Bit for bit at every level."""
    report = tcir.validate(text, pipeline, orders=orders)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize(
    "pipeline",
    SCHEDULES,
)
def test_a_residual_block_by_every_schedule(pipeline: str, orders: int) -> None:
    check(BLOCK.linalg(), pipeline, orders)


@pytest.mark.parametrize(
    ("case", "pipeline"),
    [pytest.param(case, p, id=f"{name}: {p}") for name, (case, of) in CASES.items() for p in of],
)
def test_equal_at_every_level(case: FusedConv, pipeline: str, orders: int) -> None:
    check(case.linalg(), pipeline, orders)


@pytest.mark.parametrize(
    "pipeline",
    SCHEDULES,
)
def test_against_numpy(pipeline: str) -> None:
    conv = BLOCK.conv
    kernel = tcir.compile(BLOCK.linalg(), pipeline)
    x, w, _ = conv.shapes
    image, weights = integers(x, "f16", 1), integers(w, "f16", 2)
    draw = np.random.default_rng(3)
    bias = draw.integers(-40, 41, conv.k).astype(np.float32)
    residual = draw.integers(-40, 41, conv.shapes[2]).astype(np.float16)
    sums = convolution(replace(conv, out="f32"), image, weights)
    want = np.maximum(sums + bias + residual, 0).astype(np.float16)
    out = np.zeros_like(want)
    outcome = kernel(image, weights, bias, residual, out)
    assert not outcome.findings and (out == want).all() and want.any() and not want.all()


def test_what_fusion_saves() -> None:
    """The same bits as by two kernels, whose sums go to memory and back; the rest is the same."""
    conv = replace(BLOCK.conv, out="f32")
    x, w, shape = conv.shapes
    image, weights = integers(x, "f16", 1), integers(w, "f16", 2)
    draw = np.random.default_rng(3)
    bias, residual = (draw.standard_normal(n) for n in (conv.k, shape))
    beside = bias.astype(np.float32), residual.astype(np.float16)
    sums, want = np.zeros(shape, np.float32), np.zeros(shape, np.float16)
    first = tcir.compile(conv.text(), IMPLICIT)(image, weights, sums).counters
    second = tcir.compile(BLOCK.unfused(), "simt-elementwise")(sums, *beside, want).counters
    out = np.zeros_like(want)
    fused = tcir.compile(BLOCK.linalg(), IMPLICIT)(image, weights, *beside, out).counters
    assert out.tobytes() == want.tobytes() and want.any()
    for name in ("mma", "global_to_shared_0", "global_to_shared_1"):
        assert fused[name] == first[name]
    read = 128 * beside[0].nbytes + beside[1].nbytes  # each lane all of the bias, its own pixel
    assert (fused["global_load"], fused["global_store"]) == (read, out.nbytes)
    assert (first["global_load"], first["global_store"]) == (0, sums.nbytes)
    assert second["global_load"] >= sums.nbytes + beside[1].nbytes


def test_the_example_against_numpy() -> None:
    shapes = (1, 56, 56, 64), (1, 1, 64, 256)
    image, weights = (integers(shape, "f16", n) for n, shape in enumerate(shapes))
    draw = np.random.default_rng(3)
    bias = draw.integers(-40, 41, 256).astype(np.float32)
    residual = draw.integers(-40, 41, (1, 56, 56, 256)).astype(np.float16)
    out = np.zeros_like(residual)
    for pipeline in (IMPLICIT, "conv"):
        outcome = tcir.compile(EXAMPLE, pipeline)(image, weights, bias, residual, out)
        sums = image.astype(np.float64) @ weights[0, 0].astype(np.float64)
        want = np.maximum(sums + bias + residual, 0).astype(np.float16)
        assert not outcome.findings and (out == want).all()


TWO_GENERICS = """
#pixel = affine_map<(n, p, q, k) -> (n, p, q, k)>
#channel = affine_map<(n, p, q, k) -> (k)>
func.func @f(%x: tensor<1x4x5x8xf16>, %w: tensor<1x1x8x16xf16>, %scale: tensor<16xf32>,
             %shift: tensor<16xf32>, %r: tensor<1x4x5x16xf16>) -> tensor<1x4x5x16xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x4x5x16xf32>
  %half = tensor.empty() : tensor<1x4x5x16xf16>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x5x16xf32>) -> tensor<1x4x5x16xf32>
  %s = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x4x5x8xf16>, tensor<1x1x8x16xf16>)
      outs(%init : tensor<1x4x5x16xf32>) -> tensor<1x4x5x16xf32>
  %h = linalg.generic {indexing_maps = [#pixel, #channel, #channel, #pixel],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %scale, %shift : tensor<1x4x5x16xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%half : tensor<1x4x5x16xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f16):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %c : f32
    %3 = arith.truncf %2 : f32 to f16
    linalg.yield %3 : f16
  } -> tensor<1x4x5x16xf16>
  %sum = linalg.add ins(%h, %r : tensor<1x4x5x16xf16>, tensor<1x4x5x16xf16>)
      outs(%half : tensor<1x4x5x16xf16>) -> tensor<1x4x5x16xf16>
  %y = linalg.map ins(%sum : tensor<1x4x5x16xf16>) outs(%half : tensor<1x4x5x16xf16>)
    (%a: f16, %o: f16) {
      %floor = arith.constant 0.0 : f16
      %m = arith.maximumf %a, %floor : f16
      linalg.yield %m : f16
    }
  return %y : tensor<1x4x5x16xf16>
}
"""
GATED = """
#pixel = affine_map<(n, p, q, k) -> (n, p, q, k)>
func.func @f(%x: tensor<1x4x9x8xf16>, %w: tensor<1x3x8x48xf16>) -> tensor<1x4x7x24xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x4x7x48xf32>
  %none = arith.constant dense<0.0> : tensor<1x4x7x24xf32>
  %s = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x4x9x8xf16>, tensor<1x3x8x48xf16>)
      outs(%zero : tensor<1x4x7x48xf32>) -> tensor<1x4x7x48xf32>
  %gate = tensor.extract_slice %s[0, 0, 0, 0] [1, 4, 7, 24] [1, 1, 1, 2]
      : tensor<1x4x7x48xf32> to tensor<1x4x7x24xf32>
  %value = tensor.extract_slice %s[0, 0, 0, 1] [1, 4, 7, 24] [1, 1, 1, 2]
      : tensor<1x4x7x48xf32> to tensor<1x4x7x24xf32>
  %r = arith.maximumf %gate, %none : tensor<1x4x7x24xf32>
  %y = arith.mulf %r, %value : tensor<1x4x7x24xf32>
  return %y : tensor<1x4x7x24xf32>
}
"""


def test_several_ops_behind_a_convolution() -> None:
    """Folded batch norm, a residual and relu as three ops: one epilogue, named in a remark."""
    said: list[str] = []
    with remarks_to(lambda _, message: said.append(message)):
        report = tcir.validate(TWO_GENERICS, IMPLICIT)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    words = "arith.mulf, arith.addf, arith.truncf, arith.addf, arith.maximumf; reads argument 2"
    assert any(words in each for each in said), said


@pytest.mark.parametrize("pipeline", [IMPLICIT, OFFSET, REUSE, f"{REUSE}{{tiling=linear}}"])
def test_gate_and_value_in_alternating_channels(pipeline: str, orders: int) -> None:
    check(GATED, pipeline, orders)


FUNCTIONS = {
    "silu": SILU_OF_SUMS + KEEP,
    **{f"gelu by {name}": gelu_of_sums(name) + KEEP for name in ("erf", "tanh")},
}


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [
        ("silu", IMPLICIT),
        ("gelu by erf", REUSE),
        ("gelu by tanh", OFFSET),
    ],
)
def test_functions_are_within_their_bound(name: str, pipeline: str) -> None:
    case = FusedConv(replace(BLOCK.conv, n=1, out="f32"), FUNCTIONS[name])
    report = tcir.validate(case.linalg(), pipeline, inputs="random")
    assert report.ok and report["llvm-to-ptx"].verdict == "within bound", str(report)


@pytest.mark.parametrize("pipeline", [IMPLICIT, OFFSET, REUSE])
def test_a_residual_block_on_floats(pipeline: str) -> None:
    report = tcir.validate(BLOCK.linalg(), pipeline, inputs="random", seed=4)
    assert report.ok, str(report)


# --- breaks ------------------------------------------------------------------------------------

SQUARE = FusedConv(Conv(2, 24, 24, 8, 24, 1, 3, (0, 0, 1, 1), out="f16"), BLOCK.body, BLOCK.inputs)
"""As many rows as columns as channels, so that a tensor fits where it does not belong."""


def _one_further(old: Any) -> Any:
    """The next index, of a lane or of all."""
    one = arith.constant(ir.IndexType.get(), 1)
    return arith.addi(old, one if old.type == one.type else vector.broadcast(old.type, one))


def _tile_further(old: Any) -> Any:
    return arith.addi(old, arith.constant(old.type, 16))


def _pass_on(name: str, operand: int) -> Edit:
    """An op of the epilogue is left out."""

    def edit(module: Any) -> None:
        op = pick(module, name)
        op.results[0].replace_all_uses_with(op.operands[operand])

    return edit


def _added_twice(module: Any) -> None:
    """The sums start from what the epilogue adds as well."""
    start = pick(module, "tc.element").operands[0]
    pick(module, "linalg.conv_2d_nhwc_hwcf").operands[2] = start


def _all_of_lane_0(module: Any) -> None:
    """All lanes read the pixel of lane 0."""
    load = next(op for op in walk(module, "tc.load_rows") if "row_dim" in op.attributes)
    del load.attributes["row_dim"]


def _dropped_in_the_last_tile(module: Any) -> None:
    """The CTAs of the last channels store their sums as they are."""
    store = pick(module, "tc.store_rows")
    sums = pick(module, "tc.tmem_ld").results[0]
    with ir.InsertionPoint(store), store.location:
        column, finished = store.operands[3], store.operands[0]
        last = arith.cmpi(arith.CmpIPredicate.uge, column, arith.constant(ir.IndexType.get(), 16))
        plain = arith.truncf(finished.type, sums)
        mask = vector.broadcast(ir.VectorType.get([32, 16], last.type), last)
        store.operands[0] = arith.select(mask, plain, finished)


def _unclipped(module: Any) -> None:
    """Every lane loads, whether it has a pixel or not."""
    for op in list(walk(module, "scf.if")):
        if [str(result.type) for result in op.results] == ["vector<4xi32>"]:
            with ir.InsertionPoint(op), op.location:
                op.operands[0] = arith.constant(ir.IntegerType.get_signless(1), 1)


START = CASES["tf32, added to an argument"][0]
HWCF = replace(START, conv=replace(START.conv, filter="hwcf", k=16))
TILE = "tile-conv-implicit-gemm"
DIFFERENT = ("difference",)
BREAKS: list[tuple[FusedConv, str, Break]] = [
    (SQUARE, IMPLICIT, Break(
        "activation on the wrong side of the residual", "fuse-epilogue", activation_first,
        DIFFERENT)),
    (SQUARE, IMPLICIT, Break(
        "bias along columns of pixels", "fuse-epilogue",
        set_attribute("tc.element", "map", "affine_map<(n, p, q, k) -> (q)>"), DIFFERENT)),
    (SQUARE, IMPLICIT, Break(
        "residual of the transposed pixel", "fuse-epilogue",
        set_attribute("tc.element", "map", "affine_map<(n, p, q, k) -> (n, q, p, k)>", 1),
        DIFFERENT)),
    (HWCF, IMPLICIT, Break(
        "start added by the product, too", "fuse-epilogue", _added_twice, DIFFERENT)),
    (SQUARE, OFFSET, Break("no bias", "raise-to-tc", _pass_on("arith.addf", 0), DIFFERENT)),
    (BLOCK, IMPLICIT, Break(
        "bias of other channels", TILE, change_operand("tc.load_rows", 1, _tile_further),
        DIFFERENT)),
    (BLOCK, IMPLICIT, Break(
        "residual of the next column", TILE, change_operand("tc.load_rows", 3, _one_further, 1),
        DIFFERENT)),
    (BLOCK, IMPLICIT, Break(
        "epilogue dropped in the last tile", TILE, _dropped_in_the_last_tile, DIFFERENT)),
    (BLOCK, OFFSET, Break(
        "residual of the next row", "tile-conv-smem-offset",
        change_operand("tc.load_rows", 2, _one_further, 1), DIFFERENT)),
    (BLOCK, f"{REUSE}{{tiling=linear}}", Break(
        "residual of the next image", "tile-conv-shift-reuse",
        change_operand("tc.load_rows", 1, _one_further, 1), DIFFERENT)),
    (BLOCK, REUSE, Break(
        "residual of the unit's first pixel", "tile-conv-shift-reuse", _all_of_lane_0, DIFFERENT)),
    (BLOCK, REUSE, Break(
        "relu left out", "tile-conv-shift-reuse", _pass_on("arith.maximumf", 0), DIFFERENT)),
    (BLOCK, IMPLICIT, Break(
        "bias of other channels", "assign-roles",
        change_operand("tc.load_rows", 1, _tile_further), DIFFERENT)),
    (BLOCK, IMPLICIT, Break(
        "bias of other columns", "convert-tc-to-nvvm",
        change_text(r"(llvm.getelementptr %\w+\[)16(\] : \(!llvm.ptr<1>\))", r"\g<1>0\2"),
        DIFFERENT)),
    (BLOCK, IMPLICIT, Break(
        "lanes without a pixel load", "convert-tc-to-nvvm", _unclipped, ("illegal",))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "pipeline", "break_"),
    [
        pytest.param(case, pipeline, each, id=f"{each.at}: {each.what}")
        for case, pipeline, each in BREAKS
    ],
)
def test_break(case: FusedConv, pipeline: str, break_: Break) -> None:
    break_.check(case.linalg(), tcir.named_pipeline(pipeline), orders=1)
