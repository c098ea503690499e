"""Block quantisation as a launch of its own, behind what has no kernel that quantises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.emit import simt

from . import quantise_oracle as oracle
from .block_scaled_oracle import inputs_of, product
from .block_scaled_text import BlockScaled
from .breaking import Edit, change_operand, change_text, erase, run_broken
from .conv_epilogue_text import FusedConv
from .linalg_text import Conv
from .oracle import integers
from .quantise_text import MASK, Spelling, quantised
from .quantise_text import NVFP4 as NVFP4_SCALE
from .test_gemm_quantise import E4M3, E5M2, MXFP4, NVFP4, Case, hard_rows

Array = np.ndarray[Any, Any]


def argument(*shape: int) -> str:
    """A program that returns its argument."""
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    return f"func.func @f(%x: {kind}) -> {kind} {{\n  return %x : {kind}\n}}\n"


def _word_further(pointer: Any) -> Any:
    return simt.behind(pointer, 4)


def room(shape: tuple[int, ...], of: str) -> Array:
    """An array of codes, none of which is right."""
    return np.full(shape, 0x55 if of != "f4E2M1FN" else 5, np.uint8).view(oracle.DTYPES[of])


@pytest.mark.parametrize(
    ("formats", "norm", "n", "rounding", "blocked"),
    [
        (NVFP4, 0.3, 240, "", True),
        (E4M3, 1.0, 224, "rceil", False),
        *((f, 1.0, 224, "", True) for f in (MXFP4, E5M2)),
        (NVFP4, 1.0, 48, "", False),
        (MXFP4, 1.0, 96, "rceil", True),
    ],
)
def test_an_argument_against_numpy(
    formats: tuple[str, str], norm: float, n: int, rounding: str, blocked: bool
) -> None:
    m, has_norm = 200, norm != 1.0
    text = quantised(argument(m, n), formats, blocked=blocked, norm=has_norm, rounding=rounding)
    kernel = tcir.compile(text, "simt-elementwise")
    x = hard_rows(m, n, *formats, norm)
    across = n // (16 if formats == NVFP4 else 32)
    shape = (2, -(-across // 4), 512) if blocked else (m, across)
    codes, scales = room((m, n), formats[0]), room(shape, formats[1])
    kernel(x, *[np.array(norm, np.float32)] * has_norm, codes, scales)
    want, want_scales = oracle.quantised(x, *formats, norm, rounding or "floor")
    assert (codes.view(np.uint8) == want).all()
    want_scales = oracle.blocked(want_scales) if blocked else want_scales
    assert (scales.view(np.uint8) == want_scales).all()


ARGUMENT = """
func.func @f(%x: tensor<24x128xf32>, %norm: tensor<f32>, %w: tensor<40x128xf4E2M1FN>,
             %sw: tensor<40x8xf8E4M3FN>) -> tensor<24x40xf32> {
  %q:2 = "tc.quantise_blocks"(%x, %norm) {operandSegmentSizes = array<i32: 1, 1>}
      : (tensor<24x128xf32>, tensor<f32>)
      -> (tensor<24x128xf4E2M1FN>, tensor<1x2x512xf8E4M3FN>)
  %y = "tc.block_scaled_matmul"(%q#0, %q#1, %w, %sw) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<24x128xf4E2M1FN>, tensor<1x2x512xf8E4M3FN>, tensor<40x128xf4E2M1FN>,
         tensor<40x8xf8E4M3FN>) -> tensor<24x40xf32>
  return %y : tensor<24x40xf32>
}
"""


def test_gemm_multiplies_an_argument_that_a_launch_quantises() -> None:
    norm = 0.3
    kernel = tcir.compile(ARGUMENT, "gemm{quantise-apart=true}")
    assert [each.title for each in kernel.launches.launches] == ["f_quantise0", "f_scales1", "f"]
    x, w = hard_rows(24, 128, *NVFP4, norm), integers((40, 128), "f32", 7)
    x = np.where(np.isfinite(x), x, 1.5).astype("f4")
    codes, scales = oracle.quantised(w.astype("f4"), *NVFP4)
    y = np.zeros((24, 40), np.float32)
    kernel(x, np.array(norm, "f4"), *_viewed(codes, scales), y)
    left = oracle.block_values(*oracle.quantised(x, *NVFP4, norm), *NVFP4)
    right = oracle.block_values(codes, scales, *NVFP4)
    bound = 2.0**-20 * (np.abs(left) @ np.abs(right).T)
    assert (np.abs(y - left @ right.T) <= bound).all() and np.abs(y).max() > 0


def _viewed(codes: Array, scales: Array) -> tuple[Array, Array]:
    return codes.view(oracle.DTYPES[NVFP4[0]]), scales.view(oracle.DTYPES[NVFP4[1]])


def test_gemm_alone_names_the_option() -> None:
    with pytest.raises(tcir.Error, match=r"tc\.quantise_blocks; quantise-apart=true makes"):
        tcir.compile(ARGUMENT, "gemm")


CONV = FusedConv(
    Conv(2, 5, 6, 16, 64, 3, 3, (1, 1, 1, 1)),
    """
    %z = arith.constant 0.0 : f32
    %u = arith.addf %s, %b : f32
    %e = arith.extf %r : f16 to f32
    %v = arith.addf %u, %e : f32
    %t = arith.maximumf %v, %z : f32
    linalg.yield %t : f32
    """,
    {"b": ("f32", "k"), "r": ("f16", "npqk")},
)
"""The end of a residual block."""


def at_every_level(text: str, pipeline: str, **options: Any) -> None:
    report = tcir.validate(text, pipeline, **options)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize(
    ("pipeline", "formats", "blocked"),
    [
        ("conv-implicit-gemm", E4M3, False),
        ("conv-smem-offset", NVFP4, False),
        ("conv-shift-reuse", E5M2, False),
        ("conv", MXFP4, True),
    ],
)
def test_convolutions(pipeline: str, formats: tuple[str, str], blocked: bool) -> None:
    at_every_level(quantised(CONV.linalg(), formats, blocked=blocked), pipeline)


def convolved(x: Array, w: Array) -> Array:
    image = np.pad(x.astype(float), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (1, 2))
    return np.einsum("npqcrs,rsck->npqk", windows, w.astype(float))


def test_a_convolution_against_numpy() -> None:
    kernel = tcir.compile(quantised(CONV.linalg(), NVFP4, norm=True), "conv-smem-offset")
    assert [each.title for each in kernel.launches.launches] == ["conv", "conv_quantise1"]
    x, w, _ = CONV.conv.shapes
    inputs = [integers(x, "f16", 1), integers(w, "f16", 2), integers([64], "f32", 3)]
    residual = integers([2, 5, 6, 64], "f16", 4)
    norm, codes, scales = (
        np.float32(0.25),
        room((2, 5, 6, 64), NVFP4[0]),
        room((2, 5, 6, 4), NVFP4[1]),
    )
    kernel(*inputs, residual, np.array(norm), codes, scales)
    sums = convolved(*inputs[:2]) + inputs[2].astype(float) + residual.astype(float)
    values = np.maximum(sums, 0).astype(np.float32).reshape(-1, 64)
    want, want_scales = oracle.quantised(values, *NVFP4, float(norm))
    assert (codes.view(np.uint8).reshape(want.shape) == want).all() and len(np.unique(want)) > 4
    assert (scales.view(np.uint8).reshape(want_scales.shape) == want_scales).all()
    # The f32 between the launches is written once and read once.
    assert kernel.launch_table.total[1:3] == (values.nbytes, values.nbytes)


@pytest.mark.parametrize("pipeline", ["conv-implicit-gemm", "conv"])
def test_a_convolution_in_linalg(pipeline: str) -> None:
    """Rows of channels, quantised as linalg, arith and math ops."""
    spelled = Spelling(E4M3, MASK, m=60, n=64)
    image, matrix = "tensor<2x5x6x64xf32>", "tensor<60x64xf32>"
    codes, scales = spelled.results
    text = CONV.linalg().replace("%zero", "%nothing")
    head, _, tail = text.partition(f") -> {image} {{")
    body = spelled.body()
    tail = tail.replace("%y = linalg", "%image = linalg").replace(
        f"return %y : {image}",
        f"%x2 = tensor.collapse_shape %image [[0, 1, 2], [3]] : {image} into {matrix}"
        f"{body.replace('%x ', '%x2 ')}\n  return %codes, %scales : {codes}, {scales}",
    )
    at_every_level(f"{head}) -> ({codes}, {scales}) {{{tail}", pipeline)


PRODUCT = Case(E4M3, m=40, n=96, row_major=True)


def test_matmul_warp_has_the_codes_of_gemm() -> None:
    draw = np.random.default_rng(2)
    case = Case(NVFP4, m=40, n=80)
    inputs = [
        draw.integers(-3, 4, (40, 16)).astype(np.float16),
        draw.integers(-3, 4, (16, 80)).astype(np.float16),
        draw.integers(-9, 10, 80).astype(np.float32),
        np.array(0.5, np.float32),
    ]
    found = []
    for pipeline, launches in (("gemm", 1), ("matmul-warp", 2)):
        kernel = tcir.compile(case.linalg(), pipeline)
        assert len(kernel.launches.launches) == launches
        found.append([room((40, 80), NVFP4[0]), room((1, 2, 512), NVFP4[1])])
        kernel(*inputs, *found[-1])
    for ours, theirs in zip(*found, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize(
    ("case", "target"),
    [
        (PRODUCT, "sm_90"),
        (Case(E5M2, m=136, n=64), "sm_90"),
        (Case(NVFP4, m=40, n=80), "sm_100a"),
        (Case(MXFP4, n=96, rounding="rceil"), "sm_100a"),
    ],
)
def test_matmul_warp_at_every_level(case: Case, target: str) -> None:
    at_every_level(case.linalg(), "matmul-warp", target=target)


def test_linalg_in_matmul_warp() -> None:
    at_every_level(Spelling(NVFP4, NVFP4_SCALE, n=80).linear(), "matmul-warp")


@pytest.mark.parametrize(
    ("pipeline", "target"),
    [
        ("gemv-simt", "sm_100a"),
        ("gemv-padded-n", "sm_100a"),
        ("gemv-padded-n{schedule=split-k splits=2}", "sm_100a"),
        ("gemv-simt", "sm_90"),
    ],
)
def test_gemv(pipeline: str, target: str) -> None:
    formats, n = (NVFP4, 16) if target == "sm_100a" else (E4M3, 32)
    scaled = BlockScaled(m=130, k=512, n=n)
    at_every_level(quantised(scaled.linalg(), formats), pipeline, target=target)


def test_gemv_against_numpy() -> None:
    scaled = BlockScaled(m=40, k=256, n=32)
    inputs = inputs_of(scaled, seed=4)
    codes, scales = room((40, 32), E4M3[0]), room((40, 1), E4M3[1])
    tcir.compile(quantised(scaled.linalg(), E4M3), "gemv-simt")(*inputs.values(), codes, scales)
    want, want_scales = oracle.quantised(product(scaled, **inputs), *E4M3)
    assert (codes.view(np.uint8) == want).all() and (scales.view(np.uint8) == want_scales).all()


def test_targets_without_the_conversion_are_refused() -> None:
    with pytest.raises(tcir.PassError, match=r"sm_90 converts to, got f4E2M1FN .* take sm_100a"):
        tcir.compile(Case(NVFP4, n=64).linalg(), "matmul-warp", target="sm_90")
    with pytest.raises(
        tcir.PassError, match=r"sm_80 .* got f8E4M3FN .* take sm_90 or sm_90a or sm_100a"
    ):
        tcir.compile(PRODUCT.linalg(), "matmul-warp", target="sm_80")


def test_layers_names_the_pipeline_that_quantises_behind_convolutions() -> None:
    with pytest.raises(tcir.PassError, match=r"a quantised one: .*; take pipeline conv"):
        tcir.compile(quantised(CONV.linalg(), E4M3), "layers")


PASS = "convert-to-simt"


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(change_text(r"constant 2147483647 : i32", "constant -1 : i32"), id="signs"),
        pytest.param(change_operand("llvm.store", 1, _word_further), id="codes a word further"),
        pytest.param(erase("llvm.inline_asm", -1), id="padding is not stored"),
    ],
)
def test_a_broken_kernel_is_caught_at_its_pass(edit: Edit) -> None:
    text = quantised(argument(264, 160), MXFP4, blocked=True)
    caught = run_broken(text, tcir.named_pipeline("simt-elementwise"), PASS, edit)
    assert caught and caught.at == PASS, caught
