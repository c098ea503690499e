"""Attention in tensor memory: every shape at every level, exact inputs against numpy, resources."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir import codegen
from tcir.interp import OutputSpec, executor_for
from tcir.passes.attention.tile_attention import TileAttention
from tcir.passes.pipelining.place_barriers import PlaceBarriers
from tcir.program.execution import run_sequence
from tcir.program.source import load_module, mlir_context
from tcir.run_options import RunOptions
from tcir.session.session import set_target

from .attention_text import Array, Attention

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


@dataclass(frozen=True)
class Case(Attention):
    """options: of the pipeline."""

    h: int = 1
    n: int = 128
    options: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()} {self.options}".strip()

    @property
    def pipeline(self) -> str:
        return f"attention{{{self.options}}}"


BLOCKS = [Case(n=128 * blocks) for blocks in (1, 2, 3)]
TWO = [Case(n=128 * blocks, m=256, options="rows=256") for blocks in (1, 2, 3)]
OVER = [Case(n=n, m=256, d=128, e=128, options="rows=256") for n in (128, 300)]
"""Exponentials over scores."""
PERSISTENT = [
    Case(m=384, n=384, causal=0, options="ctas=1"),
    Case(b=2, h=2, m=300, n=300, causal=0, d=16, element="bf16", options="ctas=5 stages=1"),
    Case(h=2, g=1, m=200, n=200, causal=-70, window=-130, d=32, options="ctas=3 tau=0.0"),
    Case(b=3, m=200, n=300, d=16, lengths=(300, 0, 100), options="ctas=2"),
    Case(m=300, n=300, d=128, e=128, options="ctas=2 store=tma"),
    Case(h=2, m=200, n=520, d=16, causal=200, element="bf16", options="ctas=2 keys=64 split-kv=1"),
]
"""CTAs with several tiles: one with 3, 2 and 1 blocks; with none; with as many blocks each."""
SHAPES = [
    *PERSISTENT,
    *BLOCKS,
    *TWO,
    Case(n=256, m=256, options="rows=256 polynomial=4"),
    Case(n=200, m=140, causal=20, element="bf16", options="polynomial=16"),
    Case(n=384, m=300, element="bf16", options="rows=256 tau=0.0 stages=1"),
    Case(h=2, g=1, b=2, n=200, m=270, causal=-70, options="rows=256"),
    Case(n=150, m=256, d=128, e=128, causal=20, result="f32", options="rows=256"),
    *OVER,
    Case(
        n=100,
        m=140,
        d=96,
        e=48,
        options="keys=32 rows=256 split-kv=1",
        q="bmhd",
        kv="bnhd",
        out="bmhd",
    ),
    Case(b=2, h=8, g=2, m=1, n=200),
    Case(h=8, g=1, m=1, n=100, causal=60, d=128, e=128, element="bf16"),
    Case(n=384, element="bf16", options="tau=0.0"),
    Case(n=384, options="stages=1 tau=0.0"),
    Case(h=2, g=1, b=2, n=256),
    Case(n=200, m=100),
    Case(n=136, m=300, causal=-140, e=32),
    Case(h=4, g=2, m=150, n=200, causal=0, element="bf16"),
    Case(n=150, m=130, d=128, e=128, causal=20),
    Case(n=64, m=20, d=16, e=16, result="f32"),
    Case(n=100, m=40, d=96, e=48, options="keys=32 split-kv=1"),
    Case(n=130, d=256, e=256, element="bf16"),
    Case(h=2, g=2, n=130, m=140, q="bmhd", kv="bnhd", out="bmhd"),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_at_every_level(case: Case, orders: int) -> None:
    """Within the bound behind tiling, bit for bit behind every later pass."""
    report = tcir.validate(case.text, case.pipeline, target="sm_100a", orders=orders)
    assert report.ok, str(report)
    assert "full range" in str(report)
    tiled = report["tile-attention"].index
    later = [line for line in report.passes if line.index > tiled and line.compared]
    assert len(later) > 8
    assert all("bit for bit as before the pass" in line.compared for line in later), str(report)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", [*BLOCKS, *TWO, *OVER], ids=str)
def test_in_orders_that_the_isa_allows(case: Case) -> None:
    report = tcir.validate(case.text, case.pipeline, target="sm_100a", orders=7, ordering="isa")
    assert report.ok, str(report)


@cache
def kernel(case: Case) -> tcir.Kernel:
    return tcir.compile(case.text, case.pipeline, target="sm_100a")


def drawn(case: Case, size: float, last: float = 1.0) -> list[Array]:
    """Random operands; keys grow by a factor up to `last`, so that maxima rise."""
    rng = np.random.default_rng(3)
    q, k, v = (size * rng.standard_normal(case.shapes[name]) for name in "qkv")
    along = [case.n if letter == "n" else 1 for letter in case.kv]
    k = k * np.linspace(1, last, case.n).reshape(along)
    counts = [np.array(case.lengths, np.int32)] if case.lengths else []
    return [*(np.asarray(each, DTYPES[case.element]) for each in (q, k, v)), *counts]


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_ptx_has_the_bits_of_the_last_tile_program(case: Case) -> None:
    """Also where exponents are beyond `FAR`, and in orders that the ISA allows."""
    made = kernel(case)
    outputs = [
        OutputSpec(tuple(case.shapes["o"]), np.dtype(DTYPES[case.result or case.element])),
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


def whole(case: Case, seed: int = 0) -> list[Array]:
    """Scores of a few whole numbers: where scale * log2(e) is 1, exponentials, their sums and
    results are exact in f32."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[case.element]
    q = np.zeros(case.shapes["q"])
    for place in np.ndindex(*q.shape[:-1]):
        q[place][rng.choice(case.d, 3, replace=False)] = rng.choice([-1, 1], 3)
    k, v = rng.integers(-2, 3, case.shapes["k"]), rng.integers(-8, 9, case.shapes["v"])
    return [np.asarray(each, dtype) for each in (q, k, v)]


PAIR = "rows=256"
"""Two tiles."""


@pytest.mark.parametrize(
    "options",
    [
        "",
        "tau=0.0",
        "keys=64 split-kv=1",
        "keys=32 tau=0.0 stages=1 split-kv=1",
        "polynomial=6",
        PAIR,
    ],
)
def test_whole_scores_are_exact(options: str) -> None:
    """The same bits whatever the blocks, the tiles and the threshold: all sums are exact."""
    case = Case(m=200 if options == "rows=256" else 128, n=384, scale=math.log(2), options=options)
    inputs = whole(case)
    out, lse = kernel(case).run(*inputs)
    want, logarithms = case.computed(*inputs)
    np.testing.assert_array_equal(out, want.astype(np.float32).astype(np.float16))
    assert np.abs(lse - logarithms).max() <= 2 * 2.0**-23 * np.abs(logarithms).max()


@pytest.mark.parametrize("options", ["", "tau=0.0", PAIR])
def test_maxima_that_rise_rescale_what_was_summed(options: str) -> None:
    """Each block raises the maximum by 12, more than tau: every block rescales the sums before."""
    case = Case(m=200 if options == "rows=256" else 128, n=384, scale=math.log(2), options=options)
    q, k, v = whole(case)
    q[..., 0] = 1
    k[..., 0] = np.repeat([-12, 0, 12], 128)
    out, lse = kernel(case).run(q, k, v)
    want, logarithms = case.computed(q, k, v)
    assert np.abs(out - want).max() <= 2.0**-10 * np.abs(want).max()
    assert np.abs(lse - logarithms).max() < 1e-5


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_each_row_finds_its_key(element: str) -> None:
    """Row i has weight 1 on one key, whose value is that key's number."""
    case = Case(m=64, n=200, element=element, causal=None)
    code = np.array([[1 if key >> bit & 1 else -1 for bit in range(8)] * 8 for key in range(200)])
    chosen = np.random.default_rng(1).permutation(200)[:64]
    dtype = DTYPES[element]
    q, k = (np.asarray(each[None, None], dtype) for each in (16 * code[chosen], code))
    v = np.zeros(case.shapes["v"], dtype)
    v[0, 0, :, :] = np.arange(200)[:, None]
    out, _ = kernel(case).run(q, k, v)
    np.testing.assert_array_equal(out[0, 0].astype(int), np.repeat(chosen[:, None], 64, axis=1))


def test_rows_without_keys_are_zero() -> None:
    case = Case(m=300, n=136, causal=-140, e=32)
    inputs = [
        np.random.default_rng(n).standard_normal(case.shapes[name]).astype(np.float16)
        for n, name in enumerate("qkv")
    ]
    out, lse = kernel(case).run(*inputs)
    want, logarithms = case.computed(*inputs)
    assert not out[0, 0, :140].any() and np.isneginf(lse[0, 0, :140]).all()
    assert np.abs(out - want).max() < 2e-3
    np.testing.assert_allclose(lse[0, 0, 140:], logarithms[0, 0, 140:], atol=1e-4)


@pytest.mark.parametrize(
    ("case", "registers"),
    [
        (Case(n=1024), 168),
        (Case(n=1024, d=128, e=128, causal=0), 168),
        (Case(n=1024, d=256, e=256), 255),
        (Case(m=256, n=1024, options="rows=256"), 128),
        (Case(m=256, n=1024, d=128, e=128, causal=0, options="rows=256"), 128),
        (Case(m=256, n=1000, element="bf16", options="rows=256"), 128),
        (Case(m=256, n=1024, d=128, e=128, options="rows=256"), 128),
    ],
    ids=str,
)
def test_nothing_spills_and_two_tiles_fit(case: Case, registers: int) -> None:
    cubin = codegen.assemble(kernel(case).ptx, target="sm_100a")
    assert cubin.spill_bytes == 0
    assert cubin.registers <= registers


@pytest.mark.parametrize(
    ("case", "two"),
    [(Case(m=256, n=2048), True), (Case(m=256, n=1920), False), (Case(m=128, n=2048), False),
     (Case(m=256, n=2048, causal=0), False), (Case(m=256, n=2048, e=128), True),
     (Case(m=256, n=2048, d=192, e=128), False), (Case(m=256, n=2048, d=128, e=256), False),
     (Case(m=256, n=2048, d=128, e=64), True), (Case(m=256, n=2048, d=128, e=128), True),
     (Case(h=8, m=1, n=2048), False)],
    ids=str,
)  # fmt: skip
def test_two_tiles_are_taken_where_they_are_faster(case: Case, two: bool) -> None:
    with mlir_context() as context:
        module = load_module(case.text, context)
        set_target(module, "sm_100a")
        TileAttention().apply(module)
        assert ('tc.warp_map = "tcgen05-attention"' in str(module)) == two


def test_persistent_ctas_of_two_tiles_are_refused() -> None:
    with pytest.raises(tcir.PassError, match="ctas is not available with rows=256, got 2: the"):
        tcir.compile(Case(m=512).text, "attention{rows=256 ctas=2}", target="sm_100a")


def test_an_access_after_the_exchanges_needs_a_path_to_the_next_tile() -> None:
    """The epilogue reads scores after the loop over blocks, which the next tile's products
    overwrite without waiting for it."""
    case = Case(m=256, n=256, causal=0, options="ctas=1 keys=64")
    whole = kernel(case).ir["multi-buffer"]
    scores, sums = re.findall(r'(%\w+) = "tc.tmem_tile".*128, 64>, f32>', whole)
    before, read, after = whole.rpartition(f'"tc.tmem_ld"({sums},')
    assert read
    with mlir_context() as context:
        PlaceBarriers().apply(load_module(whole, context))
        module = load_module(f'{before}"tc.tmem_ld"({scores},{after}', context)
        with pytest.raises(tcir.PassError, match="without a path of waits"):
            PlaceBarriers().apply(module)


@pytest.mark.parametrize("columns", [3, 18, -2])
def test_polynomials_of_half_an_instruction_are_refused(columns: int) -> None:
    with pytest.raises(tcir.InputError, match=f"every 16 keys .*an even number, got {columns}"):
        tcir.compile(Case().text, f"attention{{polynomial={columns}}}", target="sm_100a")


def test_polynomials_on_hopper_are_refused() -> None:
    with pytest.raises(tcir.PassError, match="polynomial is not available for sm_90a, got 2"):
        tcir.compile(Case().text, "attention{polynomial=2}", target="sm_90a")


def test_keys_that_no_load_takes_are_refused() -> None:
    with pytest.raises(tcir.PassError, match="keys must be one of 16, 32, 64, 128, got 48"):
        tcir.compile(Case().text, "attention{keys=48}", target="sm_100a")
