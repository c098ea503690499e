"""Exact inputs: every code of narrow formats, both zeros, far exponents; sums stay exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.formats import from_blocked
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.program.factors import Contraction, contraction_of
from tcir.program.inputs import make_inputs
from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.program.special import special_values
from tcir.validation.compare import same_bits
from tcir.validation.draws import Draws
from tcir.validation.settings import Settings

from .block_scaled_text import F4, F6A, F6B, F8A, F8B, UE8M0, BlockScaled, from_codes
from .breaking import change_text
from .conv_epilogue_cases import BLOCK, NEGATED
from .conv_epilogue_text import FusedConv
from .epilogue_text import TRUNCATE, Fused
from .linalg_text import Conv, Matmul
from .oracle import integers
from .test_gemm_grouped import Grouped

Array = np.ndarray[Any, Any]
MX: dict[str, Any] = {"scale": UE8M0, "block": 32}


def _drawn(text: str, seed: int = 0) -> tuple[list[Array], Contraction | None]:
    with mlir_context() as context:
        module = load_module(text, context)
        signature = signature_of(module)
        contraction = contraction_of(module, signature)
        return make_inputs(signature.inputs, seed, "integers", contraction), contraction


def _codes(array: Array) -> set[int]:
    return set(np.unique(array.view(np.uint8)).tolist())


@pytest.mark.parametrize("element", [F4, F6A, F6B, F8A, F8B])
def test_every_code_of_narrow_elements(element: str) -> None:
    (a, _, b, _), _ = _drawn(BlockScaled(m=256, n=64, k=2048, a=element, b=element, **MX).linalg())
    for array in (a, b):
        every = np.arange(256, dtype=np.uint8).view(array.dtype)
        bits = ml_dtypes.finfo(array.dtype).bits
        finite = {c for c in range(2**bits) if np.isfinite(every[c].astype(np.float32))}
        assert _codes(array) >= finite


def test_codes_one_to_a_byte() -> None:
    case = BlockScaled(m=128, k=1024)
    (a, _, b, _), _ = _drawn(from_codes(case, case.linalg()))
    assert a.dtype == b.dtype == np.int8
    assert _codes(a & 0x0F) == _codes(b & 0x0F) == set(range(16))
    assert len(_codes(a)) > 200 and len(_codes(b)) > 200  # the upper bits mean nothing


def test_scales_at_both_ends() -> None:
    (_, sa, _, sb), _ = _drawn(BlockScaled(m=256, n=64, k=2048).linalg())
    assert _codes(sa) == set(range(128))  # ue4m3 without sign
    assert len(_codes(sb)) > 120
    (_, sa, _, sb), _ = _drawn(BlockScaled(m=256, n=64, k=2048, **MX).linalg())
    for codes in map(_codes, (sa, sb)):
        assert 0 in codes and max(codes) > 127 + 100
        assert len(codes) > 200


@pytest.mark.parametrize("masked", [False, True])
def test_groups(masked: bool) -> None:
    """Every code in A and in the matrices of all groups; sizes stay sizes."""
    (a, b, sizes), contraction = _drawn(Grouped(4, 256, 128, 512, F8A, masked=masked).text)
    assert contraction is not None and contraction.products == 512
    for array in (a, b):
        assert len(_codes(array)) >= 254  # all but the NaN
    assert (sizes >= 0).all() and (sizes if masked else sizes.sum()).max() <= 256


def test_the_range_of_integers_and_of_f16() -> None:
    (x, w), _ = _drawn(Conv(1, 9, 9, 64, 64, 3, 3, element="i8", out="i32").text())
    assert _codes(x) == _codes(w) == set(range(256))
    (a, b), _ = _drawn(Matmul(128, 64, 128).text())
    for array in (a, b):
        finite = array[np.isfinite(array)].astype(np.float64)
        magnitudes = np.abs(finite[finite != 0])
        assert magnitudes.min() < 2**-17 and magnitudes.max() > 2**14
        zeros = np.signbit(array[array == 0])
        assert zeros.any() and not zeros.all()
    with np.errstate(invalid="ignore"):
        results = np.abs(a.astype(np.float64) @ b.astype(np.float64))
    results = results[np.isfinite(results)]
    assert results.max() > 65504 and results[results > 0].min() < 2**-10


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f8E5M2", "f8E4M3FN"])
def test_special_values(element: str) -> None:
    (a, b), contraction = _drawn(Matmul(128, 64, 96, element=element).text())
    assert contraction is not None
    whats = {special.what for special in special_values(contraction)}
    infinite = element != "f8E4M3FN"
    assert {"subnormals", "overflow", "NaN", "zeros"} <= whats
    assert ("inf" in whats) == infinite
    for array in (a, b):
        wide = array.astype(np.float64)
        assert np.isnan(wide).any() and np.isinf(wide).any() == infinite
        assert not np.isnan(wide).any(axis=1).all() and not np.isnan(wide).any(axis=0).all()
    with np.errstate(all="ignore"):
        exact = a.astype(np.float64) @ b.astype(np.float64)
        results = exact.astype(np.float32)
    assert np.isnan(results).mean() < 1 / 8 + 1 / 8
    assert (np.isfinite(results) & (results != 0)).mean() > 0.6
    if element in ("bf16", "f32"):  # the exponents of f32
        overflow = np.isfinite(exact) & np.isinf(results)
        subnormal = (np.abs(results) < 2.0**-126) & (results != 0)
        assert overflow.any() and subnormal.any()
        assert (results[subnormal] == exact[subnormal]).all()
        assert (np.abs(a[a != 0].astype(np.float64)) < 2.0**-126).any()


PADDED = [
    Conv(1, 6, 36, 40, 24, 3, 3, (1, 1, 1, 1)),
    Conv(1, 9, 12, 8, 16, 3, 4, (1, 1, 3, 3), strides=(2, 1), dilations=(1, 3)),
    Conv(1, 12, 13, 8, 16, 3, 7, (1, 1, 3, 3), strides=(2, 3), dilations=(3, 1), filter="fhwc"),
    Conv(1, 7, 9, 16, 48, 2, 3, (1, 0, 0, 2), element="f8E4M3FN"),
    Conv(1, 7, 9, 16, 48, 2, 3, (0, 0, 0, 0)),
]


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_no_product_is_too_small_for_f32(element: str, k: int) -> None:
    """Such a sum would be a zero whose sign depends on how it is rounded."""
    text = Matmul(64, 64, k, element=element).text()
    for seed in range(10):
        (a, b), _ = _drawn(text, seed)
        with np.errstate(all="ignore"):
            exact = a.astype(np.float64) @ b.astype(np.float64)
            assert not ((exact != 0) & (exact.astype(np.float32) == 0)).any()


@pytest.mark.parametrize("conv", PADDED, ids=lambda conv: conv.name)
@pytest.mark.parametrize("seed", range(8))
def test_no_result_depends_on_products_with_padding(conv: Conv, seed: int) -> None:
    (_, w), _ = _drawn(conv.text(), seed)
    wrong = ~np.isfinite((w if conv.filter == "hwcf" else w.transpose(1, 2, 3, 0)).astype(float))
    assert wrong.any()
    for r, s in np.argwhere(wrong.any(axis=(2, 3))):
        rows = np.arange(conv.p) * conv.strides[0] - conv.pads[0] + r * conv.dilations[0]
        columns = np.arange(conv.q) * conv.strides[1] - conv.pads[2] + s * conv.dilations[1]
        assert rows.min() >= 0 and rows.max() < conv.h
        assert columns.min() >= 0 and columns.max() < conv.w


@pytest.mark.parametrize("conv", PADDED[:-1], ids=lambda conv: conv.name)
def test_a_tc_convolution_has_the_same_taps(conv: Conv) -> None:
    with mlir_context() as context:
        module = load_module(conv.text(), context)
        signature = signature_of(module)
        before = contraction_of(module, signature)
        RaiseToTc().apply(module)
        after = contraction_of(module, signature)
    assert before is not None and after is not None and before.taps
    assert before.taps == after.taps


def test_without_a_tap_clear_of_padding_the_filter_is_finite() -> None:
    (_, w), contraction = _drawn(Conv(1, 6, 9, 16, 48, 2, 3, (1, 1, 1, 1)).text())
    assert contraction is not None and not contraction.taps[4]
    assert np.isfinite(w).all()
    assert "zeros" in {special.what for special in special_values(contraction) if special.side}


@pytest.mark.parametrize(("tiling", "multiplied"), [("rows", True), ("linear", False)])
def test_zero_times_infinity_in_the_padding(tiling: str, multiplied: bool) -> None:
    """docs/explanation/convolution.md, "0 · inf": the schedules differ, as documented."""
    conv = Conv(1, 6, 9, 8, 16, 3, 3, (1, 1, 1, 1))
    x, w = (integers(shape, "f16", seed) for seed, shape in enumerate(conv.shapes[:2]))
    x = np.abs(x) + 1
    w[0, 0, 0, 5] = np.inf
    out = np.zeros(conv.shapes[2], np.float32)
    tcir.compile(conv.text(), "conv-shift-reuse", tiling=tiling)(x, w, out)
    border = np.zeros(out.shape[1:3], bool)
    border[0] = border[:, 0] = True
    assert np.isinf(out[0, ~border, 5]).all()
    assert np.isnan(out[0, border, 5]).all() == multiplied
    assert np.isfinite(out[0, border, 5]).all() != multiplied
    assert np.isfinite(np.delete(out, 5, axis=3)).all()


def test_special_scales() -> None:
    (_, sa, _, sb), _ = _drawn(BlockScaled(m=64, n=32, k=512, **MX).linalg())
    assert 255 in _codes(sa) and 254 in _codes(sa)
    assert 255 in _codes(sb) and 254 in _codes(sb) and 0 in _codes(sb)
    (_, sa, _, _), _ = _drawn(BlockScaled(m=64, k=512).linalg())
    assert 127 in _codes(sa)


def test_special_pixels() -> None:
    (x, w), _ = _drawn(Conv(1, 16, 16, 16, 32, 3, 3).text())
    assert np.isnan(x).sum() == 1 and np.isinf(x).sum() == 1
    assert np.isnan(w).any() and np.isinf(w).any()
    (x, w), _ = _drawn(Conv(1, 6, 6, 16, 8, 3, 3).text())  # no room
    assert np.isfinite(x).all() and np.isfinite(w).all()


INFINITE = ["inf in B", "NaN in B", "NaN scale in B"]
SCALES = ["smallest scale in B", "largest scale in B"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BlockScaled(m=64, k=256).linalg(), [["NaN scale in B"]]),
        (BlockScaled(m=64, k=512, a=F8A, b=F8B, **MX).linalg(), [[each] for each in INFINITE]),
        (
            BlockScaled(m=64, n=2, k=512, a=F8A, b=F8B, **MX).linalg(),
            [INFINITE[:2], [INFINITE[2], SCALES[0]], SCALES[1:]],
        ),
        (BlockScaled(m=64, n=8, k=256).linalg(), [[INFINITE[2], *SCALES]]),
        (BlockScaled(m=64, n=32, k=512, **MX).linalg(), []),
        (BlockScaled(m=64, n=16, k=512, **MX).linalg(), [SCALES[1:]]),
        (Matmul(64, 8, 96).text(), [INFINITE[:2]]),
        (Matmul(64, 16, 96).text(), [INFINITE[:1]]),
        (Matmul(16, 24, 96).text(), [["NaN in A"]]),
        (Matmul(8, 64, 96, element="f8E4M3FN").text(), [["NaN in A"]]),
        (
            BlockScaled(m=1, k=256).linalg(),
            [[f"{what} in A"] for what in ("subnormals", "overflow", "NaN scale")]
            + [["NaN scale in B"]],
        ),
    ],
)
def test_what_a_vector_shows_alone(text: str, expected: list[list[str]]) -> None:
    with mlir_context() as context:
        module = load_module(text, context)
        signature = signature_of(module)
        draws = Draws.of(module, signature, Settings())
        assert not Draws.of(module, signature, Settings(inputs="random")).more
    assert [draw.words for draw in draws.more] == [", ".join(each) for each in expected]
    assert not expected or f"; alone: {draws.more[0].words}" in draws.main.words
    for draw in draws.more:
        for number, array in enumerate(draw.inputs):
            wide = array.astype(np.float64)
            side = "AB"[2 * number // len(draw.inputs)]
            scale = " scale" if len(draw.inputs) == 4 and number % 2 else ""
            assert np.isnan(wide).any() == (f"NaN{scale} in {side}" in draw.words)
            assert np.isinf(wide).any() == (f"inf{scale} in {side}" in draw.words)
        finite = [np.isfinite(a.astype(np.float64)).mean() for a in draw.inputs]
        assert min(finite) > 0.8, "the rest is as in the other executions"


ELEMENTWISE = """#id = affine_map<(i) -> (i)>
func.func @f(%a: tensor<4096xf16>, %b: tensor<4096xf16>) -> tensor<4096xf32> {
  %empty = tensor.empty() : tensor<4096xf32>
  %out = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4096xf16>, tensor<4096xf16>) outs(%empty : tensor<4096xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %sum = arith.addf %x, %y : f16
    %most = arith.maximumf %sum, %y : f16
    %wide = arith.extf %most : f16 to f32
    linalg.yield %wide : f32
  } -> tensor<4096xf32>
  return %out : tensor<4096xf32>
}"""


def test_programs_without_sums_get_all_codes() -> None:
    with mlir_context() as context:
        module = load_module(ELEMENTWISE, context)
        draws = Draws.of(module, signature_of(module), Settings())
    for array in draws.main.inputs:
        assert np.isnan(array).any() and np.isinf(array).any()
        tiny = np.abs(array) < 2.0**-14
        assert (tiny & (array != 0)).any() and np.signbit(array[array == 0]).any()
        assert len(np.unique(array)) > 1500
    report = tcir.validate(ELEMENTWISE, ["canonicalize", "cse"])
    assert report and report.passes[0].compared == "tensor rules, no sums: all codes, seed 0"
    summed = ELEMENTWISE.replace("[#id, #id, #id]", "[#id, #id, affine_map<(i) -> (0)>]").replace(
        '"parallel"', '"reduction"'
    )
    with mlir_context() as context:
        module = load_module(summed, context)
        draws = Draws.of(module, signature_of(module), Settings())
    assert draws.main.words == "sums of unknown order: integers up to 3, seed 0"


@pytest.mark.parametrize(
    "fault",
    ["0x7C00", "0x0001"],
)
def test_a_fault_in_a_program_without_sums(fault: str) -> None:
    """Its maximum is wrong for infinities, or subnormals, only."""

    @dataclass(frozen=True)
    class Fault(tcir.Pass):
        name = "fault"

        def run(self, module: Any) -> None:
            change = change_text(
                r"(%\w+ = arith.extf )(%\w+)( : f16 to f32.*)",
                rf"%c = arith.constant {fault} : f16\n%other = arith.constant 2.0 : f16\n"
                r"%eq = arith.cmpf oeq, \2, %c : f16\n"
                r"%s = arith.select %eq, %other, \2 : f16\n\1%s\3",
            )
            change(module)

    report = tcir.validate(ELEMENTWISE, [Fault()])
    assert report.verdict == "different", str(report)


def test_every_nan_is_equal_and_nothing_else_is() -> None:
    nan = np.array([0x7FC00000, 0xFFC00001, 0x7FFFFFFF], np.uint32).view(np.float32)
    assert same_bits([nan], [nan[::-1]])
    assert not same_bits([nan], [np.array([np.nan, np.nan, np.inf], np.float32)])
    assert not same_bits([np.zeros(1)], [-np.zeros(1)])
    for dtype in (np.float16, ml_dtypes.bfloat16):
        assert same_bits([nan.astype(dtype)], [-nan.astype(dtype)])


@pytest.mark.parametrize(
    "text",
    [
        Matmul(96, 64, 4096).text(),
        Matmul(96, 64, 100, element="f32").text(),
        BlockScaled(m=64, n=3, k=7168).linalg(),
        BlockScaled(m=64, k=4096, a=F8B, b=F8A, **MX).linalg(),
    ],
)
def test_sums_are_exact_in_any_order(text: str) -> None:
    arrays, contraction = _drawn(text)
    assert contraction is not None
    wide = [np.nan_to_num(a.astype(np.float64), nan=0, posinf=0, neginf=0) for a in arrays]
    if len(wide) == 4:
        a, b = (
            np.atleast_2d(v * np.repeat(s, v.shape[-1] // s.shape[-1], axis=-1))
            for v, s in (wide[:2], wide[2:])
        )
    else:
        a, b = wide[0], wide[1].T
    generator = np.random.default_rng(0)
    for row, column in zip(a[:16], np.resize(b, (16, b.shape[1])), strict=True):
        products = row * column
        assert (products.astype(np.float32) == products).all()
        if np.count_nonzero(row) > 1:  # else it is special
            spread = np.log2(np.abs(row[row != 0]))
            assert np.ptp(spread) >= 4
        exact = products.sum()
        for _ in range(3):
            partial = np.cumsum(
                generator.permutation(products).astype(np.float32), dtype=np.float32
            )
            assert partial[-1] == exact


@pytest.mark.parametrize("scale", [{}, MX])
def test_scales_in_blocks_of_128x4(scale: dict[str, Any]) -> None:
    case = BlockScaled(m=130, n=16, k=512, blocked="a3b1", **scale)
    (_, sa, _, sb), contraction = _drawn(case.linalg())
    assert contraction is not None
    assert len(_codes(sa)) > 80 and len(_codes(sb)) > 40
    factor = next(f for f in contraction.factors if f.argument == 1)
    plain = from_blocked(sa.view(np.uint8).reshape(2, -1, 512), 130, 512 // case.block)
    assert factor.places is not None
    assert (sa.view(np.uint8).reshape(-1)[factor.places] == plain).all()
    nan = np.isnan(plain.view(sa.dtype).astype(np.float32))
    assert nan.sum() == 1
    assert nan.any(axis=0).sum() == nan.any(axis=1).sum() == 1


def test_ops_of_tc() -> None:
    kernel = tcir.compile(Matmul(128, 32, 64, "km", "nk").text(), "matmul")
    (a, b), contraction = _drawn(kernel.ir["raise-to-tc"])
    assert contraction is not None and [f.dims for f in contraction.factors] == [
        ((3, 1), (1, 1)),
        ((2, 1), (3, 1)),
    ]
    assert np.isnan(a).any() and np.isnan(b).any()
    kernel = tcir.compile(Conv(1, 12, 12, 16, 32, 3, 3, filter="fhwc").text(), "conv-smem-offset")
    (x, w), contraction = _drawn(kernel.ir["raise-to-tc"])
    assert contraction is not None and np.isnan(x).any() and np.isnan(w).any()
    for layout in ("row_major", "blocked_128x4"):
        case = BlockScaled(m=130, k=256, batch=2, a=F8A, b=F8B, **MX)
        (_, sa, _, sb), contraction = _drawn(case.op(layout, layout))
        assert contraction is not None
        assert len(_codes(sa)) > 80 and len(_codes(sb)) > 4


def test_long_sums() -> None:
    for k, case in ((1 << 19, {}), (1 << 20, MX), (1 << 22, {"a": F4, "b": F8B, **MX})):
        arrays, contraction = _drawn(BlockScaled(m=1, k=k, **case).linalg())
        assert contraction is not None and contraction.products == k
        (a, sa), (b, sb) = (
            [v.astype(np.float64).ravel() for v in arrays[n : n + 2]] for n in (0, 2)
        )
        products = a * b * np.repeat(sa * sb, k // len(sa))
        sums = np.cumsum(products)
        assert (sums == np.cumsum(products.astype(np.float32), dtype=np.float32)).all()
        assert len(np.unique(np.abs(a))) > 2 and len(np.unique(sa)) > 2


BIASED = """#id = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<64x32xbf16>, %b: tensor<32x48xbf16>, %bias: tensor<48xf32>)
    -> tensor<64x48xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<64x32xbf16>, tensor<32x48xbf16>)
                       outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  %out = tensor.empty() : tensor<64x48xbf16>
  %relu = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%sum, %bias : tensor<64x48xf32>, tensor<48xf32>) outs(%out : tensor<64x48xbf16>) {
  ^bb0(%x: f32, %y: f32, %o: bf16):
    %biased = arith.addf %x, %y : f32
    %large = arith.maximumf %biased, %zero : f32
    %narrow = arith.truncf %large : f32 to bf16
    linalg.yield %narrow : bf16
  } -> tensor<64x48xbf16>
  return %relu : tensor<64x48xbf16>
}"""


def test_elementwise_arithmetic_behind_a_contraction() -> None:
    (a, _, bias), contraction = _drawn(BIASED)
    assert contraction is not None and len(contraction.factors) == 2
    assert np.isnan(a.astype(np.float32)).any() and np.isinf(a.astype(np.float32)).any()
    magnitudes = np.log2(np.abs(bias[np.isfinite(bias) & (bias != 0)]))
    assert magnitudes.max() - magnitudes.min() > 16
    assert tcir.validate(BIASED, ["linalg-generalize-named-ops", "canonicalize", "cse"])
    text = BIASED.replace("arith.maximumf %biased, %zero", "math.atan2 %biased, %zero")
    assert _drawn(text)[1] is None  # no bound is known
    for bounded in ("math.exp", "math.tanh", "math.erf", "math.sin"):
        text = BIASED.replace("arith.maximumf %biased, %zero", f"{bounded} %biased")
        assert _drawn(text)[1] is not None
    before = BIASED.replace("ins(%a, %b", "ins(%c, %b").replace(
        "  %sum",
        "  %h = arith.constant dense<0.3> : tensor<64x32xbf16>\n"
        "  %c = arith.addf %a, %h : tensor<64x32xbf16>\n  %sum",
    )
    assert _drawn(before)[1] is None


START_OF_BIAS = """
func.func @f(%a: tensor<64x96xbf16>, %b: tensor<96x48xbf16>, %bias: tensor<48xf32>)
    -> tensor<64x48xf32> {
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.broadcast ins(%bias : tensor<48xf32>) outs(%empty : tensor<64x48xf32>)
    dimensions = [0]
  %sum = linalg.matmul ins(%a, %b : tensor<64x96xbf16>, tensor<96x48xbf16>)
                       outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %sum : tensor<64x48xf32>
}"""
STARTS = {
    "all": Fused("%t = arith.negf %s : f32" + TRUNCATE, start=True, m=40, n=48, k=96).linalg(),
    "bf16": Fused(
        "%t = arith.negf %s : f32" + TRUNCATE, start=True, m=40, n=48, k=96, element="bf16"
    ).linalg(),
    "bias": START_OF_BIAS,
    "convolution": FusedConv(Conv(1, 8, 8, 96, 48, 1, 1), NEGATED, start="k").linalg(),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STARTS)
def test_sums_added_to_an_input_are_exact_in_any_order(name: str, seed: int) -> None:
    (a, b, start), contraction = _drawn(STARTS[name], seed)
    assert contraction is not None and contraction.start is not None
    a, b = (each.reshape(-1, each.shape[-1]) for each in (a, b))  # of 1 x 1 taps
    start = np.broadcast_to(start, (len(a), b.shape[1]))
    finite = start[np.isfinite(start) & (start != 0)].astype(np.float64)
    assert np.log2(np.abs(finite)).max() - np.log2(np.abs(finite)).min() > 20
    assert np.isnan(start).any() and np.isinf(start).any()
    with np.errstate(invalid="ignore", over="ignore"):
        products = a.astype(np.float64)[:, :, None] * b.astype(np.float64)
        terms = np.concatenate([start[:, None, :], products], axis=1)
        exact = terms.sum(axis=1)
        ordinary = np.abs(exact) < 2.0**127
        assert ordinary.mean() > 0.5
        generator = np.random.default_rng(seed)
        for _ in range(3):
            ordered = generator.permutation(terms, axis=1).astype(np.float32)
            sums = np.cumsum(ordered, axis=1, dtype=np.float32)[:, -1]
            assert (sums == exact)[ordinary].all()


def test_factors_through_casts_and_transposes() -> None:
    turned = (
        STARTS["all"]
        .replace("%w: tensor<96x48xf16>", "%v: tensor<48x96xf16>")
        .replace(
            "  %zero_",
            """  %to_ = tensor.empty() : tensor<96x48xf16>
  %w = linalg.transpose ins(%v : tensor<48x96xf16>) outs(%to_ : tensor<96x48xf16>) permutation = [1, 0]
  %zero_""",  # noqa: E501
            1,
        )
    )
    (_, v, _), contraction = _drawn(turned)
    assert contraction is not None and contraction.factors[1].dims == ((1, 1), (2, 1))
    assert np.isnan(v).any(axis=1).sum() == 1, "in a column of the product"
    wide = BIASED.replace(
        "tensor<64x32xbf16>, tensor<32x48xbf16>)", "tensor<64x32xf32>, tensor<32x48xf32>)"
    )
    wide = wide.replace("ins(%a, %b", "ins(%c, %d").replace(
        "  %sum",
        """
  %c = arith.extf %a : tensor<64x32xbf16> to tensor<64x32xf32>
  %d = arith.extf %b : tensor<32x48xbf16> to tensor<32x48xf32>
  %sum""",
        1,
    )
    (a, b, _), contraction = _drawn(wide)
    assert contraction is not None and a.dtype == b.dtype == ml_dtypes.bfloat16


def test_inputs_beside_the_factors_are_at_the_ends_of_their_formats() -> None:
    (_, _, bias), _ = _drawn(BIASED)
    assert not np.isfinite(bias).all() and np.isfinite(bias).mean() > 0.8
    residual = Fused("%t = arith.addf %s, %r : f32" + TRUNCATE, {"r": ("f32", "mn")}, m=40, n=48)
    (_, _, r), _ = _drawn(residual.linalg())
    assert np.isnan(r).any() and np.isposinf(r).any() and np.isneginf(r).any()
    assert ((np.abs(r) < 2.0**-126) & (r != 0)).any() and np.signbit(r[r == 0]).any()


def test_inputs_beside_a_convolution() -> None:
    (_, _, bias, residual), contraction = _drawn(BLOCK.linalg())
    assert contraction is not None and contraction.taps
    assert not np.isfinite(bias).all()
    assert np.isnan(residual).any() and np.isposinf(residual).any()
    tiny = (np.abs(residual) < 2.0**-14) & (residual != 0)
    assert tiny.any() and np.signbit(residual[residual == 0]).any()


def test_scalars_are_zero_and_infinite_alone() -> None:
    case = Fused(
        "%x = arith.mulf %s, %al : f32\n%t = arith.addf %x, %be : f32" + TRUNCATE,
        {"al": ("f32", ""), "be": ("f32", "")},
        m=40,
        n=48,
    )
    with mlir_context() as context:
        module = load_module(case.linalg(), context)
        draws = Draws.of(module, signature_of(module), Settings())
    words = ["0 in argument 2", "inf in argument 2", "0 in argument 3", "inf in argument 3"]
    words += ["ties and limits"]
    assert [draw.words for draw in draws.more] == words
    assert draws.main.words.endswith(f"alone: {', '.join(words)}")
    for draw, value in zip(draws.more[:-1], (0, np.inf, 0, np.inf), strict=True):
        number = int(draw.words[-1])
        assert draw.inputs[number] == value and 0 < abs(draw.inputs[5 - number]) < 8
    with mlir_context() as context:
        module = load_module(BlockScaled(m=64, n=32, k=512, alpha="after").linalg(), context)
        more = Draws.of(module, signature_of(module), Settings()).more
    assert [draw.words for draw in more] == ["a subnormal global scale"]


def test_what_follows_whole_numbers() -> None:
    """int8 sums, dequantised: elements of the whole range, scales and sums far beyond 2^11."""
    case = Fused(
        "%x = arith.sitofp %s : i32 to f32\n%t = arith.mulf %x, %scale : f32" + TRUNCATE,
        {"scale": ("f32", "n")}, element="i8", sums="i32", m=40, n=48, k=1440, start=True,
    )  # fmt: skip
    (a, w, c, start), contraction = _drawn(case.linalg())
    assert contraction is not None and contraction.start is not None
    assert _codes(a) == _codes(w) == set(range(256))
    assert np.abs(start.astype(np.int64)).max() > 1 << 30 and not np.isfinite(c).all()
    assert np.abs(a.astype(np.int64) @ w.astype(np.int64)).max() > 1 << 24


def test_kernels_on_tiles_get_whole_numbers() -> None:
    kernel = tcir.compile(Matmul(128, 32, 64).text(), "matmul")
    report = tcir.validate(kernel.ir["tile-gemm"], ["canonicalize"])
    assert report and report.passes[0].compared.endswith("integers up to 63, seed 0"), str(report)


def test_what_is_no_single_contraction_gets_small_integers() -> None:
    two = """func.func @f(%a: tensor<8x8xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %y = linalg.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>)
                         outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
      return %y : tensor<8x8xf32>
    }"""
    arrays, contraction = _drawn(two)
    assert contraction is None
    assert set(np.unique(np.abs(arrays[0]))) == {1, 2, 3}
