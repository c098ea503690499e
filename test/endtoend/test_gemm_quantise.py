"""Matrix products whose results are quantised in blocks: every level, NumPy, and broken ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith
from tcir.errors import PassError

from . import quantise_oracle as oracle
from .breaking import (
    Edit,
    activation_first,
    change_operand,
    change_text,
    pick,
    run_broken,
    set_attribute,
    walk,
)

Array = np.ndarray[Any, Any]
NVFP4, MXFP4 = ("f4E2M1FN", "f8E4M3FN"), ("f4E2M1FN", "f8E8M0FNU")
E4M3, E5M2 = ("f8E4M3FN", "f8E8M0FNU"), ("f8E5M2", "f8E8M0FNU")


@dataclass(frozen=True)
class Case:
    """``quantise(body(a @ w + bias))``; a norm constant in NVFP4 only; `start`: an accumulator;
    `rounding`: of ue8m0 scales; `row_major`: scales."""

    formats: tuple[str, str]
    m: int = 40
    n: int = 128
    k: int = 16
    body: str = "%t = arith.maximumf %u, %zero : f32"
    start: bool = False
    element: str = "f16"
    rounding: str = ""
    row_major: bool = False

    @property
    def results(self) -> str:
        """Types of codes and scales."""
        codes, scales = self.formats
        block = 16 if scales == "f8E4M3FN" else 32
        blocks = f"{-(-self.m // 128)}x{-(-self.n // block // 4)}x512"
        if self.row_major:
            blocks = f"{self.m}x{self.n // block}"
        return f"tensor<{self.m}x{self.n}x{codes}>, tensor<{blocks}x{scales}>"

    def linalg(self) -> str:
        """The program."""
        m, n, k, e = self.m, self.n, self.k, self.element
        out, a, w = f"tensor<{m}x{n}xf32>", f"tensor<{m}x{k}x{e}>", f"tensor<{k}x{n}x{e}>"
        has_norm = self.formats == NVFP4
        norm, number = (", %norm", ", tensor<f32>") if has_norm else ("", "")
        more = (", %norm: tensor<f32>" if has_norm else "") + (
            f", %start: {out}" if self.start else ""
        )
        rounding = f'scale_rounding = "{self.rounding}", ' if self.rounding else ""
        first = "%start" if self.start else "%zeros"
        return f"""
func.func @f(%a: {a}, %w: {w}, %bias: tensor<{n}xf32>{more}) -> ({self.results}) {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {out}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {out}) -> {out}
  %c = linalg.matmul ins(%a, %w : {a}, {w}) outs({first} : {out}) -> {out}
  %y = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
        affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}}
      ins(%c, %bias : {out}, tensor<{n}xf32>) outs(%empty : {out}) {{
  ^bb0(%s: f32, %b: f32, %o: f32):
    %u = arith.addf %s, %b : f32
    {self.body}
    linalg.yield %t : f32
  }} -> {out}
  %q:2 = "tc.quantise_blocks"(%y{norm}) {{{rounding}
      operandSegmentSizes = array<i32: 1, {int(has_norm)}>}} : ({out}{number}) -> ({self.results})
  return %q#0, %q#1 : {self.results}
}}
"""


ONE_MORE = """%one = arith.constant 1.0 : f32
    %t = arith.addf %u, %one : f32"""
"""Not 0 where sums and bias are: outside of the output."""
CASES = {
    "NVFP4": Case(NVFP4, n=64),
    "NVFP4, two tiles each way, the second half empty": Case(NVFP4, m=200, n=192),
    "MXFP4": Case(MXFP4),
    "MXFP8, e4m3": Case(E4M3, m=136, n=256),
    "MXFP8, e5m2": Case(E5M2),
    "NVFP4, one block to a row": Case(NVFP4, n=16),
    "NVFP4, five scales, two tiles": Case(NVFP4, m=136, n=80, body=ONE_MORE),
    "MXFP4, rounded up, three scales": Case(MXFP4, n=96, rounding="rceil"),
    "MXFP8, rounded up, nine scales": Case(E4M3, n=288, rounding="rceil", body=ONE_MORE),
    "MXFP8, e5m2, rounded up, one scale": Case(E5M2, n=32, rounding="rceil"),
    "NVFP4, scales row-major, five": Case(NVFP4, m=136, n=80, row_major=True),
    "MXFP4, scales row-major, two tiles": Case(MXFP4, m=136, n=256, row_major=True, body=ONE_MORE),
    "MXFP8, scales row-major, three": Case(E4M3, n=96, row_major=True),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_at_every_level(name: str, orders: int) -> None:
    report = tcir.validate(CASES[name].linalg(), "gemm", orders=orders)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def test_persistent() -> None:
    case = Case(NVFP4, m=200, n=192)
    passes = tcir.named_pipeline("gemm", persistent=True, ctas=2)
    report = tcir.validate(case.linalg(), passes)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def hard_rows(rows: int, columns: int, element: str, scale: str, norm: float) -> Array:
    """f32 that are next to ties, beyond the largest numbers, of all sizes, zeros, NaN."""
    draw = np.random.default_rng(0)
    block = 16 if scale == "f8E4M3FN" else 32
    blocks = columns // block
    table = oracle.values_of(element)
    ties = np.concatenate([table, (table[1:] + table[:-1]) / 2])
    largest = table[-1]
    powers = (
        draw.integers(-9, 9, (rows, blocks))
        if block == 16
        else draw.integers(-120, 100, (rows, blocks))
    )
    mantissas = draw.integers(8, 16, (rows, blocks)) / 8 if block == 16 else 1.0
    steps = np.repeat(np.ldexp(mantissas, powers), block, axis=1)
    x = draw.choice(ties, (rows, columns)) * steps
    x[:, ::block] = largest * steps[:, ::block]  # the scale is this step
    x = (x / norm).astype(np.float32)
    moved = draw.integers(-1, 2, x.shape)
    x = np.where(moved > 0, np.nextafter(x, np.float32(np.inf)), x)
    x = np.where(moved < 0, np.nextafter(x, np.float32(0)), x)
    x *= draw.choice([-1, 1], x.shape).astype(np.float32)
    wild = draw.integers(0, 1 << 32, (rows // 8, columns), np.uint64).astype(np.uint32)
    x[: rows // 8] = wild.view(np.float32)  # any f32, NaN and infinities, too
    x[rows // 8 : rows // 4] *= np.float32(2.0**-100)  # small scales
    x[rows // 4] = 0
    x[rows // 4 + 1, :block] = np.float32(3e38)
    x[rows // 4 + 2, block : 2 * block] = 0
    x[rows // 4 + 3] = np.float32(1e-45)
    x[rows // 4 + 4, 3] = np.inf
    x[rows // 4 + 5, block] = np.nan
    return x


def test_tiles_without_columns() -> None:
    """Five scales of 32 columns: the padding of the second block is a tile of its own."""
    passes = tcir.named_pipeline("gemm", n_tile=64)
    report = tcir.validate(Case(E4M3, n=160, body=ONE_MORE).linalg(), passes)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize(
    ("formats", "norm", "n", "rounding", "row_major"),
    [
        (NVFP4, 1.0, 256, "", False),
        (NVFP4, 0.3, 240, "", False),
        (E4M3, 1.0, 224, "rceil", False),
        (E4M3, 1.0, 224, "", True),
        *((f, 1.0, 256, "", False) for f in (MXFP4, E4M3, E5M2)),
        *((f, 1.0, 160, "rceil", False) for f in (MXFP4, E5M2)),
        *((f, 1.0, 288, "", True) for f in (NVFP4, MXFP4)),
    ],
)
def test_bytes_against_numpy(
    formats: tuple[str, str], norm: float, n: int, rounding: str, row_major: bool
) -> None:
    """The accumulator's start is quantised: the product adds zeros. negf makes zeros of -0."""
    m = 200
    negated = "%t = arith.negf %u : f32"
    case = Case(formats, m, n, body=negated, start=True, rounding=rounding, row_major=row_major)
    kernel = tcir.compile(case.linalg(), "gemm")
    x = hard_rows(m, n, *formats, norm)
    codes = np.zeros((m, n), oracle.DTYPES[formats[0]])
    block = 16 if formats == NVFP4 else 32
    across = -(-n // block // 4)
    shape = (m, n // block) if row_major else (2, across, 512)
    scales = np.full(shape, 0x55, np.uint8).view(oracle.DTYPES[formats[1]])
    zeros = [np.zeros(shape, np.float16) for shape in ((m, 16), (16, n))]
    numbers = [np.array(norm, np.float32)] if formats == NVFP4 else []
    kernel(*zeros, np.zeros(n, np.float32), *numbers, x, codes, scales)
    with np.errstate(all="ignore"):
        want, want_scales = oracle.quantised(
            -(x + np.float32(0)), *formats, norm, rounding or "floor"
        )
    assert (codes.view(np.uint8) == want).all(), np.argwhere(codes.view(np.uint8) != want)[:4]
    stored = want_scales if row_major else oracle.blocked(want_scales)
    assert (scales.view(np.uint8) == stored).all()
    assert len(np.unique(want)) >= (16 if formats[0] == "f4E2M1FN" else 200)
    nan = 0x7F if formats == NVFP4 else 0xFF
    assert {0, nan} <= set(np.unique(want_scales)) and len(np.unique(want_scales)) > 40


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "options", "words"),
    [
        (Case(NVFP4, n=192), {"n_tile": 96}, "take n-tile=128"),
        (Case(NVFP4), {"store": "tma"}, "take store=direct"),
        (Case(NVFP4, k=256), {"split_k": 2}, "leave split-k out"),
        (Case(NVFP4, m=8), {"swap": "always"}, "leave swap out"),
    ],
)
def test_refused(case: Case, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PassError, match=words):
        tcir.compile(case.linalg(), tcir.named_pipeline("gemm", **options))


# --- breaks ------------------------------------------------------------------------------------


def _unrounded(module: Any) -> None:
    """Elements divided by amax / 6 in the place of the scale that is stored."""
    quotients = list(walk(module, "arith.divf"))
    for sixth, inverse in zip(quotients[::2], quotients[1::2], strict=True):
        inverse.operands[1].owner.operands[1] = sixth.results[0]


def _half_of_a_block(module: Any) -> None:
    """amax of the first 8 of 16 columns."""
    largest = [
        op for op in walk(module, "arith.maximumf") if "vector" not in str(op.results[0].type)
    ]
    for first in range(0, len(largest), 15):
        for use in list(largest[first + 14].results[0].uses):
            use.owner.operands[use.operand_number] = largest[first + 6].results[0]


def _no_norm(module: Any) -> None:
    quantise = pick(module, "tc.quantise_rows")
    quantise.operands[0] = quantise.operands[0].owner.operands[0]


def _neighbours(module: Any) -> None:
    """The scales of the second and the third block of a thread exchanged."""
    moved = [
        op
        for op in walk(module, "arith.shli")
        if getattr(op.operands[0].owner, "name", "") == "arith.select"
    ]
    second, third = (op.operands[0] for op in moved[:2])
    moved[0].operands[0], moved[1].operands[0] = third, second


def _moved(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


BREAKS: list[tuple[str, str, Edit]] = [
    ("activation on the wrong side of the bias", "fuse-epilogue", activation_first),
    ("activation on the wrong side of the bias", "tile-gemm", activation_first),
    ("norm constant left out", "tile-gemm", _no_norm),
    ("scales of the blocks beside", "tile-gemm", change_operand("tc.store_scales", 3, _moved(4))),
    ("scales of other rows", "tile-gemm", change_operand("tc.store_scales", 2, _moved(32))),
    ("padding that is not zero", "tile-gemm",
     set_attribute("tc.store_scales", "rows", "128 : i64")),
    ("codes of other columns", "tile-gemm", change_operand("tc.store_rows", 3, _moved(8))),
    ("division by the unrounded scale", "convert-tc-to-nvvm", _unrounded),
    ("amax of half a block", "convert-tc-to-nvvm", _half_of_a_block),
    ("two elements of a byte exchanged", "convert-tc-to-nvvm",
     change_text(r"a, \$2, \$1;", "a, $1, $2;")),
    ("the scale of the neighbour block", "convert-tc-to-nvvm", _neighbours),
]  # fmt: skip
TAIL = Case(NVFP4, n=80, body=ONE_MORE)
ROUNDED_UP = Case(E4M3, n=96, rounding="rceil", body=ONE_MORE)
ROW_MAJOR = Case(NVFP4, n=128, row_major=True)
TAIL_BREAKS: list[tuple[str, Case, str, Edit]] = [
    ("scales of columns that are not there", TAIL, "tile-gemm",
     set_attribute("tc.store_scales", "scales", "8 : i64")),
    ("a scale behind the last one", TAIL, "convert-tc-to-nvvm",
     change_text("arith.constant 255 : i32", "arith.constant 65535 : i32")),
    ("the last scale as padding", TAIL, "convert-tc-to-nvvm",
     change_text("arith.constant 255 : i32", "arith.constant 0 : i32")),
    ("scales rounded down", ROUNDED_UP, "tile-gemm",
     set_attribute("tc.quantise_rows", "scale_rounding", '"floor"')),
    ("the carry from 1.5 in place of 1.75", ROUNDED_UP, "convert-tc-to-nvvm",
     change_text("arith.constant 2097151", "arith.constant 4194303")),
    ("row-major scales of other columns", ROW_MAJOR, "tile-gemm",
     change_operand("tc.store_rows", 3, _moved(4), 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("at", "edit"),
    [pytest.param(at, edit, id=f"{at}: {what}") for what, at, edit in BREAKS],
)
def test_break(at: str, edit: Edit) -> None:
    _broken(Case(NVFP4, n=128), at, edit)


@pytest.mark.parametrize(
    ("case", "at", "edit"),
    [pytest.param(case, at, edit, id=f"{at}: {what}") for what, case, at, edit in TAIL_BREAKS],
)
def test_break_of_tails_and_rounding(case: Case, at: str, edit: Edit) -> None:
    _broken(case, at, edit)


def _broken(case: Case, at: str, edit: Edit) -> None:
    caught = run_broken(case.linalg(), tcir.named_pipeline("gemm"), at, edit)
    assert caught, "nothing noticed the break"
    assert caught.at == at, caught.text
    assert caught.by in ("difference", "hazard: output-never-written"), caught.text
