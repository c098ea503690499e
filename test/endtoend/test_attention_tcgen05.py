"""Attention in tensor memory: every shape at every level, exact inputs against numpy, resources."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir import codegen
from tcir.interp import OutputSpec, executor_for
from tcir.program.execution import run_sequence
from tcir.program.source import load_module, mlir_context
from tcir.run_options import RunOptions

Array = np.ndarray[Any, Any]
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


@dataclass(frozen=True)
class Attention:
    """A program of one op. options: of the pipeline; orders: that are tried."""

    b: int = 1
    h: int = 1
    g: int = 1
    m: int = 128
    n: int = 128
    d: int = 64
    e: int = 64
    element: str = "f16"
    out: str = ""
    causal: int | None = None
    q_layout: str = "bhmd"
    kv_layout: str = "bhnd"
    out_layout: str = "bhmd"
    scale: float = 0.125
    options: str = ""

    def __str__(self) -> str:
        causal = "" if self.causal is None else f" causal {self.causal}"
        sizes = f"{self.b}x{self.h}/{self.g}x{self.m}x{self.n}x{self.d}/{self.e}"
        return f"{sizes} {self.element}{causal} {self.options}".strip()

    def shape(self, layout: str, **sizes: int) -> list[int]:
        return [({"b": self.b} | sizes)[letter] for letter in layout]

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Of each operand and result."""
        return {
            "q": self.shape(self.q_layout, h=self.h, m=self.m, d=self.d),
            "k": self.shape(self.kv_layout, h=self.g, n=self.n, d=self.d),
            "v": self.shape(self.kv_layout, h=self.g, n=self.n, d=self.e),
            "o": self.shape(self.out_layout, h=self.h, m=self.m, d=self.e),
        }

    @property
    def text(self) -> str:
        def kind(name: str, element: str) -> str:
            return f"tensor<{'x'.join(map(str, self.shapes[name]))}x{element}>"

        q, k, v = (kind(name, self.element) for name in "qkv")
        o, lse = kind("o", self.out or self.element), f"tensor<{self.b}x{self.h}x{self.m}xf32>"
        causal = "" if self.causal is None else f", causal_offset = {self.causal} : i64"
        return f"""
        func.func @attention(%q: {q}, %k: {k}, %v: {v}) -> ({o}, {lse}) {{
          %o, %lse = "tc.attention"(%q, %k, %v) {{scale = {self.scale!r} : f32,
              q_layout = "{self.q_layout}", kv_layout = "{self.kv_layout}",
              out_layout = "{self.out_layout}"{causal}}} : ({q}, {k}, {v}) -> ({o}, {lse})
          return %o, %lse : {o}, {lse}
        }}
        """

    @property
    def pipeline(self) -> str:
        return f"attention{{{self.options}}}"

    def oracle(self, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        """In float64: results [b, h, m, e] and logarithms; rows without keys are 0 and -inf."""
        q, k, v = (each.astype(np.float64) for each in (q, k, v))
        k, v = (np.repeat(each, self.h // self.g, axis=1) for each in (k, v))
        scores = q @ k.swapaxes(-1, -2) * self.scale
        if self.causal is not None:
            later = np.arange(self.n)[None] > np.arange(self.m)[:, None] + self.causal
            scores[..., later] = -np.inf
        most = scores.max(axis=-1, keepdims=True)
        most[np.isneginf(most)] = 0
        p = np.exp(scores - most)
        total = p.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.where(total == 0, 0, p @ v / total)
            return out, (np.log(total) + most)[..., 0]


BLOCKS = [Attention(n=128 * blocks) for blocks in (1, 2, 3)]
SHAPES = [
    *BLOCKS,
    Attention(n=384, element="bf16", options="tau=0.0"),
    Attention(n=384, options="stages=1 tau=0.0"),
    Attention(h=2, g=1, b=2, n=256),
    Attention(n=200, m=100),
    Attention(n=136, m=300, causal=-140, e=32),
    Attention(h=4, g=2, m=150, n=200, causal=0, element="bf16"),
    Attention(n=150, m=130, d=128, e=128, causal=20),
    Attention(n=64, m=20, d=16, e=16, out="f32"),
    Attention(n=100, m=40, d=96, e=48, options="keys=32"),
    Attention(n=130, d=256, e=256, element="bf16"),
    Attention(h=2, g=2, n=130, m=140, q_layout="bmhd", kv_layout="bnhd", out_layout="bmhd"),
]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_at_every_level(case: Attention, orders: int) -> None:
    """Within the bound behind tiling, bit for bit behind every later pass."""
    report = tcir.validate(case.text, case.pipeline, target="sm_100a", orders=orders)
    assert report.ok, str(report)
    assert "full range" in str(report)
    later = [line for line in report.passes if line.index > 1 and line.compared]
    assert len(later) > 8
    assert all("bit for bit as before the pass" in line.compared for line in later), str(report)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", BLOCKS, ids=str)
def test_in_orders_that_the_isa_allows(case: Attention) -> None:
    report = tcir.validate(case.text, case.pipeline, target="sm_100a", orders=7, ordering="isa")
    assert report.ok, str(report)


@cache
def kernel(case: Attention) -> tcir.Kernel:
    return tcir.compile(case.text, case.pipeline, target="sm_100a")


def drawn(case: Attention, size: float, last: float = 1.0) -> list[Array]:
    """Random operands; keys grow by a factor up to `last`, so that maxima rise."""
    rng = np.random.default_rng(3)
    q, k, v = (size * rng.standard_normal(case.shapes[name]) for name in "qkv")
    along = [case.n if letter == "n" else 1 for letter in case.kv_layout]
    k = k * np.linspace(1, last, case.n).reshape(along)
    return [np.asarray(each, DTYPES[case.element]) for each in (q, k, v)]


@pytest.mark.slow
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_ptx_has_the_bits_of_the_last_tile_program(case: Attention) -> None:
    """Also where exponents are beyond `FAR`, and in orders that the ISA allows."""
    made = kernel(case)
    outputs = [
        OutputSpec(tuple(case.shapes["o"]), np.dtype(DTYPES[case.out or case.element])),
        OutputSpec((case.b, case.h, case.m), np.dtype(np.float32)),
    ]
    runs = [(1.0, 1.0, None), (1.0, 40.0, 1), (50.0, 1.0, 2), (3e3, 1.0, 3)]
    for size, last, seed in runs:
        inputs, options = drawn(case, size, last), RunOptions(ordering="isa", order_seed=seed)
        with mlir_context() as context:
            module = load_module(made.ir["assign-roles"], context)
            tiles = executor_for("tile")(module, "attention", inputs, outputs, options)
        threads = run_sequence(made.ptx, made.launches, inputs, outputs, options)
        assert not tiles.findings and not threads.findings
        for one, other in zip(tiles.outputs, threads.outputs, strict=True):
            assert one.tobytes() == other.tobytes()


def whole(case: Attention, seed: int = 0) -> list[Array]:
    """Scores of a few whole numbers: where scale * log2(e) is 1, exponentials, their sums and
    results are exact in f32."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[case.element]
    q = np.zeros(case.shapes["q"])
    for place in np.ndindex(*q.shape[:-1]):
        q[place][rng.choice(case.d, 3, replace=False)] = rng.choice([-1, 1], 3)
    k, v = rng.integers(-2, 3, case.shapes["k"]), rng.integers(-8, 9, case.shapes["v"])
    return [np.asarray(each, dtype) for each in (q, k, v)]


@pytest.mark.parametrize("options", ["", "tau=0.0", "keys=64", "keys=32 tau=0.0 stages=1"])
def test_whole_scores_are_exact(options: str) -> None:
    """The same bits whatever the blocks and the threshold: all sums are exact."""
    case = Attention(n=384, scale=math.log(2), options=options)
    inputs = whole(case)
    out, lse = kernel(case).run(*inputs)
    want, logarithms = case.oracle(*inputs)
    np.testing.assert_array_equal(out, want.astype(np.float32).astype(np.float16))
    assert np.abs(lse - logarithms).max() <= 2 * 2.0**-23 * np.abs(logarithms).max()


@pytest.mark.parametrize("options", ["", "tau=0.0"])
def test_maxima_that_rise_rescale_what_was_summed(options: str) -> None:
    """Each block raises the maximum by 12, more than tau: every block rescales the sums before."""
    case = Attention(n=384, scale=math.log(2), options=options)
    q, k, v = whole(case)
    q[..., 0] = 1
    k[..., 0] = np.repeat([-12, 0, 12], 128)
    out, lse = kernel(case).run(q, k, v)
    want, logarithms = case.oracle(q, k, v)
    assert np.abs(out - want).max() <= 2.0**-10 * np.abs(want).max()
    assert np.abs(lse - logarithms).max() < 1e-5


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_each_row_finds_its_key(element: str) -> None:
    """Row i has weight 1 on one key, whose value is that key's number."""
    case = Attention(m=64, n=200, element=element, causal=None)
    code = np.array([[1 if key >> bit & 1 else -1 for bit in range(8)] * 8 for key in range(200)])
    chosen = np.random.default_rng(1).permutation(200)[:64]
    dtype = DTYPES[element]
    q, k = (np.asarray(each[None, None], dtype) for each in (16 * code[chosen], code))
    v = np.zeros(case.shapes["v"], dtype)
    v[0, 0, :, :] = np.arange(200)[:, None]
    out, _ = kernel(case).run(q, k, v)
    np.testing.assert_array_equal(out[0, 0].astype(int), np.repeat(chosen[:, None], 64, axis=1))


def test_rows_without_keys_are_zero() -> None:
    case = Attention(m=300, n=136, causal=-140, e=32)
    inputs = [
        np.random.default_rng(n).standard_normal(case.shapes[name]).astype(np.float16)
        for n, name in enumerate("qkv")
    ]
    out, lse = kernel(case).run(*inputs)
    want, logarithms = case.oracle(*inputs)
    assert not out[0, 0, :140].any() and np.isneginf(lse[0, 0, :140]).all()
    assert np.abs(out - want).max() < 2e-3
    np.testing.assert_allclose(lse[0, 0, 140:], logarithms[0, 0, 140:], atol=1e-4)


@pytest.mark.parametrize(
    ("case", "registers"),
    [(Attention(n=1024), 168), (Attention(n=1024, d=128, e=128, causal=0), 168),
     (Attention(n=1024, d=256, e=256), 255)],
    ids=str,
)  # fmt: skip
def test_two_ctas_fit_without_spills(case: Attention, registers: int) -> None:
    cubin = codegen.assemble(kernel(case).ptx, target="sm_100a")
    assert cubin.spill_bytes == 0
    assert cubin.registers <= registers


def test_keys_that_no_load_takes_are_refused() -> None:
    with pytest.raises(tcir.PassError, match="expected keys to be one of 16, 32, 64, 128, got 48"):
        tcir.compile(Attention().text, "attention{keys=48}", target="sm_100a")
