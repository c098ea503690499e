"""Attention of block-scaled queries and keys (MXFP8, MXFP4, NVFP4): every level, beside numpy; PTX
in other orders; breaks; refusals."""

from __future__ import annotations

import re
import runpy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir import codegen, formats
from tcir._mlir import arith, ir
from tcir.interp import OutputSpec
from tcir.passmanager.pipeline import Pipeline, as_pipeline
from tcir.program.execution import run_sequence
from tcir.run_options import RunOptions

from .attention_text import Array, Attention
from .breaking import Broken, Caught, Edit, change_operand, erase, noticed, pick
from .breaking import set_attribute as set_

TARGET = "sm_100a"
E4, E5, E6, E2 = "f8E4M3FN", "f8E5M2", "f6E3M2FN", "f4E2M1FN"
E8M0 = "f8E8M0FNU"
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    E2: ml_dtypes.float4_e2m1fn,
    E4: ml_dtypes.float8_e4m3fn,
    E5: ml_dtypes.float8_e5m2,
    E6: ml_dtypes.float6_e3m2fn,
    E8M0: ml_dtypes.float8_e8m0fnu,
}
NAN = {E4: 0x7F, E8M0: 0xFF}
"""Codes of NaN of the types of scales."""


@dataclass(frozen=True)
class Scaled(Attention):
    """block: elements of a scale; scales: their type; options: of the pipeline."""

    h: int = 1
    kinds: tuple[str, ...] = (E4, E4, "f16")
    block: int = 32
    scales: str = E8M0
    options: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()}-{self.scales}/{self.block} {self.options}".strip()

    @property
    def pipeline(self) -> str:
        return f"attention{{{self.options}}}"

    @property
    def text(self) -> str:
        sets = -(-self.d // self.block // 4)
        q, k = (
            f"tensor<{self.b}x{heads}x{-(-rows // 128)}x{sets}x512x{self.scales}>"
            for heads, rows in ((self.h, self.m), (self.g, self.n))
        )
        v = self._type("v", self.elements[2])
        limits = f", tensor<{self.b}xi32>" if self.lengths else ""
        return (
            super().text
            .replace(") -> ", f", %sq: {q}, %sk: {k}) -> ", 1)
            .replace('"tc.attention"', '"tc.block_scaled_attention"')
            .replace(") ({", ", %sq, %sk) ({", 1)
            .replace("scale = ", f"block = {self.block} : i64, scale = ", 1)
            .replace(f"{v}{limits}) -> (", f"{v}{limits}, {q}, {k}) -> (", 1)
        )  # fmt: skip

    def scaled(self, draw: np.random.Generator, name: str) -> tuple[Array, Array]:
        """Elements and scales of queries or keys; the latter row by row."""
        shape = self.shapes[name]
        elements = draw.standard_normal(shape) * (2 if E2 in self.kinds else 1)
        rows = 2.0 ** draw.integers(-2, 2, (*shape[:-1], self.d // self.block))
        if self.scales == E4:
            rows *= draw.choice([1, 1.25, 1.875], rows.shape)
            rows *= draw.choice([-1, 1], rows.shape)  # a sign is ignored
        kind = self.elements["qk".index(name)]
        return elements.astype(DTYPES[kind]), rows.astype(DTYPES[self.scales])

    def operands(self, seed: int = 0) -> tuple[list[Array], list[Array]]:
        """Inputs of a kernel; queries and keys in float64, and values."""
        draw = np.random.default_rng(seed)
        (q, sq), (k, sk) = (self.scaled(draw, name) for name in "qk")
        v = draw.standard_normal(self.shapes["v"]).astype(DTYPES[self.elements[2]])
        limits = [np.array(self.lengths, np.int32)] if self.lengths else []
        beside = [draw.standard_normal(x).astype(np.float16) for _, _, x in self.beside]
        signature = [q, k, v, *beside, *limits, self.blocked(sq), self.blocked(sk)]
        wide = [self.wide(q, sq), self.wide(k, sk), v, *beside]
        return signature, wide

    def wide(self, elements: Array, rows: Array) -> Array:
        factors = np.repeat(np.abs(rows.astype(np.float64)), self.block, axis=-1)
        return elements.astype(np.float64) * factors

    def blocked(self, rows: Array) -> Array:
        """Scales in blocks of 128 rows times 4, with NaN beside them."""
        *outer, count, each = rows.shape
        whole = np.full((*outer, -(-count // 128) * 128, -(-each // 4) * 4), NAN[self.scales])
        whole[..., :count, :each] = rows.view(np.uint8)
        parts = whole.reshape(*outer, -1, 4, 32, whole.shape[-1] // 4, 4)
        parts = np.moveaxis(parts, -2, -4)  # [..., rows / 128, sets, 4, 32, 4]
        parts = parts.swapaxes(-3, -2).astype(np.uint8)
        return parts.reshape(*parts.shape[:-3], 512).view(DTYPES[self.scales])


NVFP4 = {"kinds": (E2, E2, "f16"), "scales": E4, "block": 16}
MXFP4 = {"kinds": (E2, E2, "bf16"), "element": "bf16"}
AT_EVERY_LEVEL = [
    Scaled(d=128),
    Scaled(h=2, m=200, n=300, causal=100),
    Scaled(d=128, n=200, m=70, **NVFP4),
]
TWO_TILES = Scaled(d=64, n=384, m=256, options="rows=256")
CASES = [
    *AT_EVERY_LEVEL,
    TWO_TILES,
    Scaled(n=128, **MXFP4),
    Scaled(h=4, g=2, b=2, m=130, n=150, causal=20, window=-60, kinds=(E5, E4, "bf16"),
           element="bf16"),
    Scaled(d=256, e=64, n=200),
    Scaled(d=96, e=128, n=130),
    Scaled(d=192, e=128, m=40, n=256, **NVFP4),
    Scaled(d=128, n=130, kinds=(E5, E2, "f16")),
    Scaled(d=128, n=64, kinds=(E6, E4, "f16")),
    Scaled(d=64, n=300, kinds=(E4, E4, E4), times=0.5),
    Scaled(d=128, n=300, b=2, m=60, lengths=(300, 77)),
    Scaled(d=64, n=256, body=("bias hmn f16", "softcap 5")),
    Scaled(d=128, n=300, options="split-kv=2", **NVFP4),
    Scaled(d=64, n=300, m=300, options="rows=256", **NVFP4),
    Scaled(h=2, m=300, n=300, causal=0, options="ctas=2"),
    Scaled(d=128, m=200, n=192, options="store=tma keys=64 stages=1"),
    Scaled(d=128, n=192, options="keys=32 split-kv=1", **NVFP4),
    Scaled(h=4, g=1, m=1, n=256, d=128),
]  # fmt: skip
UNITS = {"f16": 2.0**-10, "bf16": 2.0**-7, E4: 2.0**-4, E5: 2.0**-4}
"""By the type of values: error of a result relative to its weighted magnitudes."""


@cache
def kernel(case: Scaled) -> tcir.Kernel:
    return tcir.compile(case.text, case.pipeline, target=TARGET)


def beside_numpy(case: Scaled, out: Array, lse: Array, wide: list[Array]) -> None:
    want, logarithms = case.computed(*wide, *([None] if case.lengths else []))
    size, _ = case.computed(wide[0], wide[1], np.abs(wide[2].astype(np.float64)), *wide[3:])
    error = np.abs(out.astype(np.float64) - want)
    assert (error <= UNITS[case.elements[2]] * np.abs(size) + 1e-6).all()
    finite = np.isfinite(logarithms)
    assert np.array_equal(np.isneginf(lse), ~finite)
    assert np.allclose(lse[finite], logarithms[finite], rtol=1e-5, atol=1e-4)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_beside_numpy(case: Scaled) -> None:
    given, wide = case.operands()
    beside_numpy(case, *kernel(case).run(*given), wide)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", AT_EVERY_LEVEL, ids=str)
def test_every_level(case: Scaled) -> None:
    """Within the bound after tiling, and bit for bit the same after every later pass."""
    report = tcir.validate(case.text, case.pipeline, target=TARGET, inputs="random")
    report.check()
    lines = [line.compared for line in report.passes if line.compared][2:]
    assert lines and all("bit for bit as before" in each for each in lines)


@pytest.mark.timeout(1800)
def test_draws() -> None:
    """Rows of one key, rising maxima, dead rows, large logits; scales are 1."""
    case = Scaled(m=60, n=200, d=32, causal=120, kinds=(E4, E5, "f16"))
    tcir.validate(case.text, "attention", target=TARGET, orders=2, stages=2).check()


@pytest.mark.parametrize("case", [CASES[0], CASES[2], TWO_TILES], ids=str)
def test_ptx_in_other_orders(case: Scaled) -> None:
    """The same bits, and no hazard, in whatever order asynchronous operations complete."""
    given, _ = case.operands()
    made, element = kernel(case), np.dtype(DTYPES[case.element])
    outputs = [
        OutputSpec(tuple(case.shapes["o"]), element),
        OutputSpec((case.b, case.h, case.m), np.dtype(np.float32)),
    ]
    runs = [
        run_sequence(made.ptx, made.launches, given, outputs, RunOptions(order_seed=seed))
        for seed in range(7)
    ]
    assert not any(run.findings for run in runs)
    assert len({tuple(out.tobytes() for out in run.outputs) for run in runs}) == 1


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Scaled(m=64, d=64, n=288, causal=230)
UNORDERED = ("hazard", "deadlock", "illegal")
VALUE = ("difference",)


def _next(value: Any) -> Any:
    one = arith.constant(ir.IndexType.get(), 1)
    return arith.addi(value, one)


def _scales_of_keys(module: Any) -> None:
    op = pick(module, "tc.mma_block_scale")
    op.operands[3] = op.operands[4]


BREAKS: list[tuple[str, str, Edit, tuple[str, ...]]] = [
    ("scales of another block of keys", "tile-attention",
     change_operand("tc.tma_load", 3, _next, 3), VALUE),
    ("scales of keys for queries", "tile-attention", _scales_of_keys, UNORDERED),
    ("scale of the step before", "tile-attention",
     set_("tc.mma_block_scale", "sfb_id", "0 : i64", 1), VALUE),
    ("scale of the next step", "tile-attention",
     set_("tc.mma_block_scale", "sfa_id", "1 : i64"), VALUE),
    ("scales of the next 32 keys", "tile-attention",
     set_("tc.mma_block_scale", "sfb_column", "5 : i64"), UNORDERED),
    ("scales of the 32 keys before", "tile-attention",
     set_("tc.mma_block_scale", "sfb_column", "3 : i64"), (*UNORDERED, *VALUE)),
    ("elements as e5m2", "tile-attention",
     set_("tc.mma_block_scale", "b_type", '"e5m2"'), VALUE),
    ("bytes without those of the scales", "place-barriers",
     set_("tc.mbarrier_expect_tx", "nbytes", "4096 : i64", 1), UNORDERED),
    ("scales of queries not waited for", "assign-roles", erase("tc.mbarrier_wait", 2), UNORDERED),
    ("scales of keys not waited for", "assign-roles", erase("tc.mbarrier_wait", 3), UNORDERED),
    ("scales not copied", "convert-tc-to-nvvm", erase("nvvm.tcgen05.cp", 1),
     (*UNORDERED, *VALUE)),
]  # fmt: skip


def caught(at: str, edit: Edit) -> Caught:
    whole = as_pipeline("attention", stages=2)
    passes = list(whole.passes)[: whole.index(at) + 1]
    return noticed(BROKEN.text, Pipeline([*passes[:-1], Broken(passes[-1], edit)]), TARGET)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("what", "at", "edit", "by"), BREAKS, ids=lambda each: each if isinstance(each, str) else ""
)
def test_breaks_are_caught(what: str, at: str, edit: Edit, by: tuple[str, ...]) -> None:
    found = caught(at, edit)
    assert found, f"nothing noticed: {what}"
    assert found.at == at, found.text
    assert found.by.startswith((*by, "refused")), found.text


# --- resources, refusals, arrays ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "ctas"),
    [
        (Scaled(b=4, h=16, g=16, m=1024, n=1024, d=128), 2),
        (Scaled(b=4, h=16, g=16, m=1024, n=2048, d=128, **NVFP4), 2),
        (Scaled(b=4, h=16, g=16, m=1024, n=2048, d=64), 1),
    ],
    ids=str,
)
def test_columns_of_tensor_memory(case: Scaled, ctas: int) -> None:
    """Two CTAs fit an SM, or two tiles of one, beside two slots of scales of keys; nothing
    spills."""
    made = kernel(case)
    (launch,) = made.launches.launches
    tiles = re.findall(
        r'"tc.tmem_tile"\(.*\{column = (\d+).*-> (?:!tc.ring<(\d+) : i64, )?'
        r"!tc.tmem<array<i64: 128, (\d+)>, (\w+)>",
        made.ir["plan-memory"],
    )
    size = {"f32": 4, "f16": 2, "i8": 1}
    ends = [int(c) + int(s or 1) * int(n) * size[kind] // 4 for c, s, n, kind in tiles]
    assert len(tiles) == (5 if ctas == 2 else 9) and max(ends) <= 512 // ctas
    assert [int(slots) >= 2 for _, slots, *_ in tiles if slots] == [True]
    assert launch.block[0] == (192 if ctas == 2 else 512)
    assert codegen.assemble(made.ptx, target=TARGET).spill_bytes == 0


@pytest.mark.parametrize(
    ("target", "case", "message"),
    [
        ("sm_90a", Scaled(), "expected a target with tcgen05 for block-scaled queries and keys"),
        (TARGET, Scaled(d=32, **NVFP4), "a multiple of 64 elements, 64 to 256, got 32"),
        (TARGET, Scaled(d=64, kinds=(E5, E2, "f16")), "a multiple of 128 elements"),
        (TARGET, Scaled(e=40), "a multiple of 16 elements, 16 to 256, got 40"),
        (TARGET, Scaled(q="bmhd"), "q_layout must be bhmd"),
        (TARGET, Scaled(kinds=("f16", E4, "f16")), "no kind of tcgen05.mma multiplies f16 by"),
        (
            TARGET,
            Scaled(options="keys=16"),
            "keys must be a multiple of 32 for block-scaled operands, got 16",
        ),
    ],
    ids=str,
)
def test_refusals(target: str, case: Scaled, message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(case.text, case.pipeline, target=target)


BENCH = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "attention_formats.py"))


@pytest.mark.parametrize(
    ("kind", "row"),
    [("nvfp4", "NVFP4"), ("mxfp8_e4m3", "MXFP8 (e4m3)"), ("mxfp4", "MXFP4")],
)
def test_arrays_have_the_error_of_the_page(kind: str, row: str) -> None:
    """A kernel of quantised arrays is nearer to the page's numbers than they are to exact ones."""
    draw = np.random.default_rng(0)
    q, k, v = (draw.standard_normal((1, 2, n, 64)) for n in (40, 130, 130))
    halves, factors = v.astype(np.float16), (0.5, 2.0, 0.25)
    made = tcir.compile_attention(
        *(formats.quantise(x.astype(np.float32), kind) for x in (q, k)), halves, factors=factors
    )
    out = made.run()
    of_q, of_k, of_v, powers = BENCH["FORMATS"][row]
    page = BENCH["attention"](of_q(q), of_k(k), of_v(v), powers)
    exact = BENCH["attention"](q, k, v)
    assert len(made.launches.launches) == 3
    off = np.abs(4 * out.astype(np.float64) - page).max()
    assert off <= 2e-3 < np.abs(page - exact).max() / 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros((1, 1, 8, 64), np.float16)}, "q: expected a result of tcir.formats"),
        ({"k": (np.zeros((1, 1, 8, 64), DTYPES[E4]), np.ones((1, 1, 8, 3), DTYPES[E8M0]))},
         r"k: expected elements of four dimensions, \[.., D\], and scales \[.., D / block\]"),
        ({"v": np.zeros((1, 1, 8, 64), np.float32)}, "v of f16 or bf16"),
        ({"target": "sm_90a"}, "take sm_100a"),
        ({"pages": np.zeros((1, 3), np.int32)}, "pages and sequences begin inside of blocks"),
    ],
)  # fmt: skip
def test_refused_arrays(change: dict[str, Any], message: str) -> None:
    rows = np.ones((1, 1, 8, 64), np.float32)
    scaled = formats.quantise(rows, "mxfp8_e4m3")
    given = {"q": scaled, "k": scaled, "v": rows.astype(np.float16)} | change
    with pytest.raises(tcir.Error, match=message):
        tcir.compile_attention(**given)


def test_scales_of_several_heads_are_reordered() -> None:
    """All matrices of several dimensions before the rows, as numpy reorders them."""
    rows = np.arange(2 * 3 * 130 * 4).reshape(2, 3, 130, 4) % 251
    text = """func.func @f(%s: tensor<2x3x130x4xf8E8M0FNU>) -> tensor<2x3x2x1x512xf8E8M0FNU> {
      %b = "tc.scales_to_blocked"(%s)
          : (tensor<2x3x130x4xf8E8M0FNU>) -> tensor<2x3x2x1x512xf8E8M0FNU>
      return %b : tensor<2x3x2x1x512xf8E8M0FNU>
    }"""
    given = rows.astype(np.uint8).view(DTYPES[E8M0])
    out = tcir.compile(text, "attention", target=TARGET).run(given)
    whole = np.zeros((2, 3, 256, 4), np.uint8)
    whole[:, :, :130] = rows
    want = whole.reshape(2, 3, 2, 4, 32, 4).swapaxes(3, 4).reshape(2, 3, 2, 1, 512)
    assert np.array_equal(out.view(np.uint8), want)
