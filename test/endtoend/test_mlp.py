"""A gated MLP in NVFP4, two products: fp4 to fp4, bit for bit beside NumPy and ml_dtypes.

The second kernel reads the codes and scale factors that the first one wrote. What they are is
taken from a run of the first alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.errors import PassError

from . import quantise_oracle as oracle
from .breaking import Edit, change_operand, pick, run_broken, walk

Array = np.ndarray[Any, Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "nvfp4_mlp.mlir"
NVFP4 = ("f4E2M1FN", "f8E4M3FN")
M, K, H, N = 136, 64, 128, 96
SILU = """    %one = arith.constant 1.0 : f32
    %negative = arith.negf %gate : f32
    %e = math.exp %negative : f32
    %d = arith.addf %one, %e : f32
    %silu = arith.divf %gate, %d : f32
"""
RELU = """    %zero = arith.constant 0.0 : f32
    %silu = arith.maximumf %gate, %zero : f32
"""


def program(activation: str = SILU, whole: bool = True) -> str:
    """The example with an activation; its first product alone, which returns what it quantised."""
    text = EXAMPLE.read_text()
    assert SILU in text
    text = text.replace(SILU, activation)
    if whole:
        return text
    between = f"tensor<{M}x{H}xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>"
    text = text.replace(f"-> tensor<{M}x{N}xf16> {{", f"-> ({between}) {{", 1)
    text = text[: text.index("  %y = ")] + f"  return %q, %sq : {between}\n}}\n"
    for name in ("%v: ", "%sv: ", "%beta: "):
        start = text.index(name)
        text = text[:start] + text[text.index(">", start) + 1 :].lstrip(", \n")
    return text.replace("%norm: tensor<f32>,\n               )", "%norm: tensor<f32>)")


@dataclass(frozen=True)
class Operand:
    """Rows of fp4 codes, a byte each, and their scale codes."""

    codes: Array
    scales: Array

    @property
    def values(self) -> Array:
        """As float64, exact."""
        return oracle.block_values(self.codes, self.scales, *NVFP4)

    @property
    def arrays(self) -> tuple[Array, Array]:
        """What a kernel is given."""
        codes, scales = (oracle.DTYPES[name] for name in NVFP4)
        return self.codes.view(codes), oracle.blocked(self.scales).view(scales)


def draw(rows: int, columns: int, seed: int) -> Operand:
    """Any codes; scales of a few powers of two, so that sums are exact in any order."""
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 16, (rows, columns), np.uint8)
    powers = generator.integers(-1, 2, (rows, columns // 16))
    scales = (2.0**powers).astype(oracle.DTYPES["f8E4M3FN"]).view(np.uint8)
    return Operand(codes, scales)


def inputs() -> tuple[Operand, Operand, Operand]:
    """x with rows that make zero blocks, blocks beyond the largest scale, and NaN; weights."""
    x, w, v = draw(M, K, 0), draw(2 * H, K, 1), draw(N, H, 2)
    x.codes[3] = 0  # all results are zeros
    x.codes[4] = 8  # of -0
    w.codes[2 * 16 : 2 * 32] = 0  # a block of zeros in every row
    x.scales[7] = 0x70  # 2^7: amax is beyond 6 * 448
    x.scales[9, 0] = 0x7F  # NaN
    return x, w, v


ALPHA, NORM, BETA = 0.25, 1.5, 2.0**-7


def hidden(x: Operand, w: Operand, activation: str) -> Array:
    """What the first kernel quantises: the sums are exact in f32, each step after them rounds once.

    ``ex2.approx.f32`` is off by 2^-22 at most; here, and on the simulated machine, it is exact 2^x
    rounded once.
    """
    f32 = np.float32
    sums = x.values @ w.values.T
    finite = np.nan_to_num(sums)
    assert (finite.astype(f32) == finite).all(), "sums that f32 has not"
    scaled = sums.astype(f32) * f32(ALPHA)
    gate, value = scaled[:, ::2], scaled[:, 1::2]
    if activation == RELU:
        gate = np.maximum(gate, f32(0))
    else:
        power = np.exp2((-gate * f32(1.4426950408889634)).astype(np.float64)).astype(f32)
        gate = gate / (f32(1) + power)
    return gate * value


def ran(text: str, *arrays: Array, results: list[Array]) -> list[Array]:
    """The results of a program, compiled to PTX and run on the simulated machine."""
    kernel = tcir.compile(text, "gemm")
    kernel(*arrays, *results)
    return results


def scalar(number: float) -> Array:
    return np.array(number, np.float32)


@pytest.mark.parametrize(
    "activation",
    [pytest.param(SILU, id="silu"), pytest.param(RELU, id="relu")],
)
def test_bits_of_numpy(activation: str) -> None:
    x, w, v = inputs()
    with np.errstate(all="ignore"):
        h = hidden(x, w, activation)
        want, want_scales = oracle.quantised(h, *NVFP4, NORM)
    between = Operand(want, want_scales)

    given = (*x.arrays, *w.arrays, scalar(ALPHA), scalar(NORM))
    found = [np.full_like(each, each.dtype.type(1)) for each in between.arrays]
    codes, scales = ran(program(activation, whole=False), *given, results=found)
    assert (codes.view(np.uint8) == want).all(), np.argwhere(codes.view(np.uint8) != want)[:4]
    assert (scales.view(np.uint8) == oracle.blocked(want_scales)).all()
    # Zero blocks, blocks beyond the largest scale, blocks with NaN, and many in between.
    assert (want_scales[:, 1] == 0)[np.arange(M) != 9].all() and (want_scales[3:5] == 0).all()
    assert (want_scales[7] == 0x7E).any() and (want_scales[9] == 0x7F).all()
    assert len(np.unique(want_scales)) > 30 and len(np.unique(want)) == 16

    y = np.zeros((M, N), np.float16)
    arrays = (*given, *v.arrays, scalar(BETA))
    ran(program(activation), *arrays, results=[y])
    with np.errstate(all="ignore"):
        sums = between.values @ v.values.T
        exact = sums.astype(np.float32).astype(np.float64)
        assert (np.isnan(sums) | (exact == sums)).all(), "sums that f32 has not"
        expected = (sums.astype(np.float32) * np.float32(BETA)).astype(np.float16)
    same = y.view(np.uint16) == expected.view(np.uint16)
    assert (same | (np.isnan(y) & np.isnan(expected))).all()
    assert np.isnan(expected[9]).all() and np.isfinite(np.delete(expected, 9, 0)).all()


@pytest.mark.parametrize("kind", ["integers", "random"])
def test_every_level(kind: Any) -> None:
    report = tcir.validate(program(whole=False), "gemm", inputs=kind)
    assert report.ok, str(report)


GATED = """
func.func @f(%a: tensor<40x128xf16>, %b: tensor<128x32xf16>) -> tensor<40x16xf32> {
  %zeros = arith.constant dense<0.0> : tensor<40x32xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x128xf16>, tensor<128x32xf16>) outs(%zeros : tensor<40x32xf32>) -> tensor<40x32xf32>
  %gate = tensor.extract_slice %c[0, 0] [40, 16] [1, 2] : tensor<40x32xf32> to tensor<40x16xf32>
  %value = tensor.extract_slice %c[0, 1] [40, 16] [1, 2] : tensor<40x32xf32> to tensor<40x16xf32>
  %h = arith.mulf %gate, %value : tensor<40x16xf32>
  return %h : tensor<40x16xf32>
}
"""  # noqa: E501


def test_gated_at_every_level() -> None:
    report = tcir.validate(GATED, "gemm")
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"store": "tma"}, "take store=direct"),
        ({"split_k": 2}, "leave split-k out"),
        ({"swap": "always"}, "leave swap out"),
    ],
)
def test_gated_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PassError, match=words):
        tcir.compile(GATED, tcir.named_pipeline("gemm", **options))


# --- breaks ------------------------------------------------------------------------------------


def _exchanged(module: Any) -> None:
    """Gate and value exchanged."""
    tile = pick(module, "vector.deinterleave")
    gate, value = tile.results
    gates, values = ([(u.owner, u.operand_number) for u in r.uses] for r in (gate, value))
    for uses, new in ((gates, value), (values, gate)):
        for owner, number in uses:
            owner.operands[number] = new


def _halves(module: Any) -> None:
    """The sums' columns in the place of the results': codes of other columns."""
    half = next(
        op
        for op in walk(module, "arith.divui")
        if any(use.owner.name == "arith.divui" for use in op.results[0].uses)
    )
    half.results[0].replace_all_uses_with(half.operands[0])


def _rows_of_the_next_block(old: Any) -> Any:
    return arith.addi(old, arith.constant(ir.IndexType.get(), 32))


BREAKS: list[tuple[str, str, Edit]] = [
    ("gate and value exchanged", "tile-gemm", _exchanged),
    ("columns of the sums taken for those of the results", "tile-gemm", _halves),
    ("scales of other rows", "tile-gemm",
     change_operand("tc.store_scales", 2, _rows_of_the_next_block)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "edit"), [pytest.param(at, edit, id=f"{at}: {what}") for what, at, edit in BREAKS]
)
def test_break(at: str, edit: Edit) -> None:
    caught = run_broken(program(RELU, whole=False), tcir.named_pipeline("gemm"), at, edit)
    assert caught, "nothing noticed the break"
    assert caught.at == at, caught.text


MXFP8 = """func.func @f(%x: tensor<136x64xf8E4M3FN>, %sx: tensor<2x1x512xf8E8M0FNU>,
               %w: tensor<96x64xf8E4M3FN>, %sw: tensor<1x1x512xf8E8M0FNU>,
               %v: tensor<80x96xf8E4M3FN>, %sv: tensor<1x1x512xf8E8M0FNU>)
    -> tensor<136x80xf16> {
  %sums = "tc.block_scaled_matmul"(%x, %sx, %w, %sw) {block = 32 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<136x64xf8E4M3FN>, tensor<2x1x512xf8E8M0FNU>, tensor<96x64xf8E4M3FN>,
         tensor<1x1x512xf8E8M0FNU>) -> tensor<136x96xf32>
  %h = "tc.epilogue"(%sums) ({
  ^bb0(%sum: f32):
    %one = arith.constant 1.0 : f32
    %d = arith.addf %one, %sum : f32
    "tc.yield"(%d) : (f32) -> ()
  }) : (tensor<136x96xf32>) -> tensor<136x96xf32>
  %q, %sq = "tc.quantise_blocks"(%h) {scale_rounding = "rceil",
      operandSegmentSizes = array<i32: 1, 0>} : (tensor<136x96xf32>)
      -> (tensor<136x96xf8E4M3FN>, tensor<2x1x512xf8E8M0FNU>)
  %y = "tc.block_scaled_matmul"(%q, %sq, %v, %sv) {block = 32 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<136x96xf8E4M3FN>, tensor<2x1x512xf8E8M0FNU>, tensor<80x96xf8E4M3FN>,
         tensor<1x1x512xf8E8M0FNU>) -> tensor<136x80xf16>
  return %y : tensor<136x80xf16>
}
"""


def test_three_scales_between(orders: int) -> None:
    """MXFP8, scales rounded up: the second product reads rows of three scales."""
    report = tcir.validate(MXFP8, "gemm", orders=orders)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
