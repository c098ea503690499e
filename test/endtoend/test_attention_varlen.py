"""Attention of sequences packed one after another: every level, beside numpy in float64; wrong
cumulative lengths named; breaks seen at their pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tcir
from tcir._mlir import arith, ir
from tcir.interp import OutputSpec, executor_for
from tcir.passmanager.pipeline import Pipeline, as_pipeline
from tcir.program.source import load_module, mlir_context
from tcir.session.session import set_target

from .attention_text import attended
from .breaking import Broken, Caught, Edit, change_operand, noticed, pick, set_attribute
from .test_attention_wgmma import TYPES, UNIT

Array = np.ndarray[Any, Any]
TARGETS = ("sm_90a", "sm_100a")


@dataclass(frozen=True)
class Packed:
    """rows, keys: of each sequence; h, d, g, e, element, result, causal, window, lse, out: as
    `Attention` has them; aligned: whether the last row has the number of the last key; softcap: 0,
    or the largest score."""

    rows: tuple[int, ...]
    keys: tuple[int, ...]
    h: int = 1
    d: int = 32
    g: int = 1
    e: int = 0
    element: str = "f16"
    result: str = ""
    causal: int | None = None
    window: int | None = None
    aligned: bool = False
    softcap: float = 0.0
    lse: bool = True
    out: str = "bmhd"

    def __str__(self) -> str:
        lengths = "_".join(f"{m}x{n}" for m, n in zip(self.rows, self.keys, strict=True))
        band = f"{self.causal}-{self.window}{'-aligned' if self.aligned else ''}"
        sizes = f"h{self.h}g{self.g}d{self.d}e{self.e or self.d}"
        return f"{lengths}-{sizes}-{self.element}{self.result}-{band}-{self.softcap}-{self.out}"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of queries, keys, values, the result, and the logarithms."""
        m, n, e = sum(self.rows), sum(self.keys), self.e or self.d
        out = (1, m, self.h, e) if self.out == "bmhd" else (1, self.h, m, e)
        kv = (1, n, self.g)
        return {
            "q": (1, m, self.h, self.d), "k": (*kv, self.d), "v": (*kv, e), "o": out,
            "lse": (1, self.h, m),
        }  # fmt: skip

    @property
    def text(self) -> str:
        kinds = dict.fromkeys("qkv", self.element) | {"o": self.result or self.element}
        types = {
            name: f"tensor<{'x'.join(map(str, shape))}x{kinds.get(name, 'f32')}>"
            for name, shape in self.shapes.items()
        }
        ends = f"tensor<{len(self.rows) + 1}xi32>"
        operands = f"{types['q']}, {types['k']}, {types['v']}, {ends}, {ends}"
        results = f"{types['o']}, {types['lse']}" if self.lse else types["o"]
        band = "" if self.causal is None else f", causal_offset = {self.causal} : i64"
        band += "" if self.window is None else f", window_offset = {self.window} : i64"
        band += ", aligned_ends" if self.aligned else ""
        body = ""
        if self.softcap:
            body = f"""^bb0(%sum: f32):
              %c = arith.constant {self.softcap!r} : f32
              %x = arith.divf %sum, %c : f32
              %t = math.tanh %x : f32
              %s = arith.mulf %t, %c : f32
              "tc.yield"(%s) : (f32) -> ()"""
        given = "%q, %k, %v, %a, %b"
        names = ", ".join(map(": ".join, zip(given.split(", "), operands.split(", "), strict=True)))
        return f"""func.func @attention({names}) -> ({results}) {{
          %o, %lse = "tc.attention"({given}) ({{{body}}}) {{scale = 0.125 : f32,
              q_layout = "bmhd", kv_layout = "bnhd", out_layout = "{self.out}"{band}}}
              : ({operands}) -> ({types["o"]}, {types["lse"]})
          return {"%o, %lse" if self.lse else "%o"} : {results}
        }}"""

    def drawn(self, seed: int = 0) -> list[Array]:
        """Random operands, and the ends of the sequences."""
        draw = np.random.default_rng(seed)
        arrays = [draw.standard_normal(self.shapes[n]).astype(TYPES[self.element]) for n in "qkv"]
        ends = (np.array([0, *accumulate(each)], np.int32) for each in (self.rows, self.keys))
        return [*arrays, *ends]

    def computed(self, q: Array, k: Array, v: Array, *ends: Array) -> tuple[Array, Array]:
        """Results and logarithms, in float64, sequence by sequence."""
        q, k, v = (np.float64(each[0].swapaxes(0, 1)) for each in (q, k, v))
        k, v = (each.repeat(self.h // self.g, 0) for each in (k, v))
        out, lse = np.zeros((*q.shape[:2], v.shape[2])), np.zeros(q.shape[:2])
        for (row, row_end), (key, key_end) in zip(*map(pairwise, ends), strict=True):
            scores = q[:, row:row_end] @ k[:, key:key_end].swapaxes(1, 2)
            if self.softcap:
                scores = self.softcap * np.tanh(scores / self.softcap)
            m, n = scores.shape[1:]
            distance = np.arange(n) - np.arange(m)[:, None] - (n - m if self.aligned else 0)
            for offset, wrong in ((self.causal, np.greater), (self.window, np.less)):
                if offset is not None:
                    scores = np.where(wrong(distance, offset), -np.inf, scores)
            made = attended(scores * 0.125, v[:, key:key_end])
            out[:, row:row_end], lse[:, row:row_end] = made
        return (out if self.out == "bhmd" else out.swapaxes(0, 1))[None], lse[None]

    def off(self, got: Any, arrays: list[Array]) -> float:
        """The largest error, in units of the type of exponentials of the magnitudes of values."""
        out, *lse = got if isinstance(got, tuple) else (got,)
        (want, logarithms), (q, k, v, *ends) = self.computed(*arrays), arrays
        size, _ = self.computed(q, k, np.abs(np.float64(v)), *ends)
        for each in lse:
            finite = np.isfinite(logarithms)
            assert np.array_equal(finite, np.isfinite(each))
            assert np.allclose(each[finite], logarithms[finite], rtol=0, atol=1e-4)
        return float((np.abs(np.float64(out) - want) / (UNIT[self.element] * size + 1e-6)).max())


CASES = [
    Packed((70, 130), (130, 170), h=2, d=64),
    Packed((1, 0, 129, 20), (30, 10, 0, 160), h=4, g=2, causal=0, aligned=True),
    Packed((128, 64, 3), (128, 64, 3), d=128, causal=0, lse=False),
    Packed((50, 1, 1, 90), (90, 1, 200, 40), element="bf16", causal=0, aligned=True, out="bhmd"),
    Packed((64, 65), (20, 150), d=16, e=48, result="f32", causal=10, window=-30),
    Packed((127, 1, 0, 0, 2), (1, 127, 5, 0, 128), h=2, softcap=2.0),
    Packed((33,), (150,), window=-20, aligned=True, lse=False),
    Packed((0, 40, 0), (0, 300, 0), h=6, g=2, d=192, element="bf16"),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_level(case: Packed, target: str) -> None:
    """Within the bound after tiling, and bit for bit the same after every later pass."""
    kernel = tcir.compile(case.text, "attention", target=target, validate=True, inputs="random")
    kernel.report.check()
    lines = [line.compared for line in kernel.report.passes[2:]]
    assert all("bit for bit as before" in each or "bit for bit with" in each for each in lines)
    arrays = case.drawn()
    assert case.off(kernel.run(*arrays), arrays) <= 2


@pytest.mark.parametrize("target", TARGETS)
def test_persistent(target: str) -> None:
    """Fewer CTAs than tiles, some of which no sequence has."""
    case, arrays = CASES[1], CASES[1].drawn()
    kernel = tcir.compile(case.text, "attention", target=target, ctas=3)
    assert case.off(kernel.run(*arrays), arrays) <= 2


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("target", TARGETS)
def test_orders_and_draws(target: str) -> None:
    """Rising maxima, rows of one key, large logits, special values, sequences at edges of tiles; no
    hazard in other orders."""
    case = Packed((100, 100, 60), (150, 100, 70), causal=0, aligned=True)
    tcir.validate(case.text, "attention", target=target, orders=6, stages=2).check()


def tiling() -> tcir.Pass:
    """The pass that makes a kernel of an attention."""
    whole = as_pipeline("attention")
    (tiled,) = [each for each in whole.passes if getattr(each, "name", "") == "tile-attention"]
    assert isinstance(tiled, tcir.Pass)
    return tiled


LENGTHS = st.lists(st.tuples(st.integers(0, 140), st.integers(0, 140)), min_size=1, max_size=5)
BANDS = st.tuples(st.none() | st.integers(-5, 40), st.none() | st.integers(-60, -6))


@settings(max_examples=12, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    LENGTHS.filter(lambda x: all(map(sum, zip(*x)))),
    BANDS,
    st.booleans(),
    st.sampled_from([(1, 1), (4, 2), (3, 1)]),
    st.sampled_from(TARGETS),
)
def test_random_sequences(
    lengths: list[tuple[int, int]],
    band: tuple[int | None, int | None],
    aligned: bool,
    heads: tuple[int, int],
    target: str,
) -> None:
    """Kernels of random sequences and bands, tile by tile, beside numpy."""
    rows, keys = zip(*lengths)
    case = Packed(rows, keys, *heads[:1], 16, heads[1], causal=band[0], window=band[1],
                  aligned=aligned)  # fmt: skip
    arrays = case.drawn()
    outputs = [OutputSpec(case.shapes["o"], np.dtype(np.float16)),
               OutputSpec(case.shapes["lse"], np.dtype(np.float32))]  # fmt: skip
    with mlir_context() as context, ir.Location.unknown(context):
        module = load_module(case.text, context)
        set_target(module, target)
        tiling().run(module)
        got = tuple(executor_for("tile")(module, "attention", arrays, outputs).outputs)
    assert case.off(got, arrays) <= 2


@pytest.mark.parametrize("target", TARGETS)
def test_one_kernel_for_all_lengths(target: str) -> None:
    """The lengths of a call decide; a sequence's results do not depend on the others."""
    first = Packed((60, 90, 0), (90, 60, 20), causal=0, aligned=True)
    kernel = tcir.compile(first.text, "attention", target=target)
    for rows, keys in (((150, 0, 0), (100, 70, 0)), ((1, 148, 1), (1, 1, 168))):
        case = replace(first, rows=rows, keys=keys)
        arrays = case.drawn()
        assert case.off(kernel.run(*arrays), arrays) <= 2
    arrays = first.drawn()
    out, lse = kernel.run(*arrays)
    for each, ends in zip(arrays, (arrays[3], arrays[4], arrays[4])):
        each[:, ends[1] :] = each[:, ends[1] :][:, ::-1]
    again, sums = kernel.run(*arrays)
    assert np.array_equal(out[:, :60], again[:, :60]) and np.array_equal(
        lse[..., :60], sums[..., :60]
    )


@pytest.mark.parametrize("level", ["tensor", "array"])
@pytest.mark.parametrize(
    ("ends", "what"),
    [
        ((0, 50, 40, 100), "40 after 50 for sequence 1"),
        ((1, 50, 60, 100), "1 at first and 100 at last"),
        ((0, 50, 60, 101), "0 at first and 101 at last"),
        ((0, 10, 20, 99), "0 at first and 99 at last"),
    ],
)
def test_wrong_ends_are_named(ends: tuple[int, ...], what: str, level: str) -> None:
    case = Packed((50, 10, 40), (50, 10, 40))
    arrays, wrong = case.drawn(), np.array(ends, np.int32)
    with pytest.raises(tcir.InputError, match=f"from 0 to 100 that never decrease, got {what}"):
        if level == "array":
            q, k, v = (each[0] for each in arrays[:3])
            tcir.compile_varlen_attention(q, k, v, wrong, arrays[4], target="sm_90a")
        outputs = [OutputSpec(case.shapes["o"], np.dtype(np.float16))] * 2
        with mlir_context() as context:
            module = load_module(case.text, context)
            executor_for("tensor")(module, "attention", [*arrays[:3], wrong, arrays[4]], outputs)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_stay_in_memory(target: str) -> None:
    """Ends that are none give other results, but no access outside the tensors."""
    case = Packed((50, 50), (50, 50))
    kernel = tcir.compile(case.text, "attention", target=target)
    for ends in ((0, 70, 50), (0, -7, 100), (-900, 50, 4000), (90, 200, 300)):
        arrays = case.drawn()[:3]
        kernel.run(*arrays, *[np.array(ends, np.int32)] * 2, hazards="report")


# --- arrays --------------------------------------------------------------------------------------


def test_arrays() -> None:
    """Tokens of all sequences in one dimension; one tensor of lengths for both, and two."""
    case = Packed((1, 60, 39), (1, 60, 39), h=4, g=2, causal=0, aligned=True)
    *arrays, ends, _ = case.drawn()
    q, k, v = (each[0] for each in arrays)
    options: dict[str, Any] = {"scale": 0.125, "causal": True, "lse": True, "target": "sm_90a"}
    one = tcir.compile_varlen_attention(q, k, v, ends, **options)
    out, lse = one.run()
    assert (out.shape, lse.shape) == ((100, 4, 32), (4, 100))
    assert case.off((out[None], lse[None]), case.drawn()) <= 2
    two = tcir.compile_varlen_attention(q, k, v, ends, ends, **options)
    assert np.array_equal(two.run()[0], out) and len(two.signature.inputs) == 5
    with pytest.raises(tcir.InputError, match="cu_seq_q: expected ends of tokens"):
        one.run(q, k, v, ends[::-1].copy())


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"q": np.zeros((1, 9, 2, 16), np.float16)}, "expected 3 dimensions"),
        ({"q": np.zeros((9, 2, 16), np.float32)}, "q, k and v must have the same type"),
        ({"k": np.zeros((9, 3, 16), np.float16)}, "H a multiple of G"),
        ({"cu_seq_q": np.array([0, 9])}, "expected int32 of shape"),
        ({"cu_seq_k": np.array([0, 4, 9], np.int32)}, "as many sequences"),
        ({"scale": -1.0}, "scale: expected a positive number"),
    ],
)  # fmt: skip
def test_what_arrays_are_rejected(change: dict[str, Any], what: str) -> None:
    each = np.zeros((9, 2, 16), np.float16)
    plain = {"q": each, "k": each, "v": each, "cu_seq_q": np.array([0, 9], np.int32)}
    with pytest.raises(tcir.InputError, match=what):
        tcir.compile_varlen_attention(**(plain | change), target="sm_90a")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"split_kv": 2}, "split-kv is not available for seq"),
        ({"store": "tma"}, "store=direct with"),
    ],
)
def test_what_options_are_rejected(options: dict[str, Any], what: str) -> None:
    with pytest.raises(tcir.PassError, match=what):
        tcir.compile(Packed((9,), (9,)).text, "attention", target="sm_100a", **options)


# --- breaks --------------------------------------------------------------------------------------

CAUSAL = Packed((60, 0, 130, 30), (80, 20, 150, 10), h=2, causal=0, aligned=True)
WHOLE = replace(CAUSAL, causal=None)


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _without(name: str, operand: int, index: int = 0) -> Edit:
    """Gives the users of an op's result one of its operands instead."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        op.results[0].replace_all_uses_with(op.operands[operand])

    return edit


def _plus_result(name: str, result: int, amount: int, index: int = 0) -> Edit:
    """Adds to a result of an op for all of its users."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        old = op.results[result]
        with ir.InsertionPoint.after(op), op.location:
            new = _plus(amount)(old)
        old.replace_all_uses_except(new, [new.owner.operation])

    return edit


def _fewer_tiles(module: Any) -> None:
    """The grid has a tile less."""
    op = pick(module, "func.func")
    x, y, z = ir.DenseI64ArrayAttr(op.attributes["tc.grid"])
    op.attributes["tc.grid"] = ir.DenseI64ArrayAttr.get([x, y - 1, z])


BREAKS: dict[str, tuple[str, Packed, Edit]] = {
    "a row of the next sequence": (
        "sm_90a", CAUSAL, change_operand("tc.store_fragment_group", 2, _plus(1)),
    ),
    "the last row is lost": (
        "sm_90a", CAUSAL, change_operand("tc.store_fragment_group", 2, _plus(-1)),
    ),
    "a logarithm of the next": (
        "sm_90a", CAUSAL, change_operand("tc.store_fragment_rows", 5, _plus(1)),
    ),
    "a key of the next sequence": (
        "sm_90a", WHOLE, change_operand("tc.mask_fragment", 3, _plus(1)),
    ),
    "no mask": ("sm_90a", WHOLE, _without("tc.mask_fragment", 0)),
    "keys from 20 further on": ("sm_90a", WHOLE, _plus_result("tc.load_index", 0, 20, 2)),
    "aligned a row off": ("sm_90a", CAUSAL, change_operand("tc.mask_fragment", 1, _plus(1))),
    "the tile after": ("sm_90a", CAUSAL, change_operand("tc.find_group", 1, _plus(1))),
    "tiles of other rows": (
        "sm_90a", CAUSAL, set_attribute("tc.find_group", "tile_rows", "160 : i64"),
    ),
    "keys of the sequence after": ("sm_90a", WHOLE, _plus_result("tc.find_group", 0, 1)),
    "a tile less": ("sm_90a", CAUSAL, _fewer_tiles),
    "lanes: a row of the next sequence": (
        "sm_100a", CAUSAL, change_operand("arith.minui", 0, _plus(1), 1),
    ),
    "lanes: all rows": ("sm_100a", CAUSAL, _without("arith.select", 1, 1)),
    "lanes: a key more": ("sm_100a", WHOLE, change_operand("tc.mask_rows", 3, _plus(1))),
    "lanes: keys from 20 further on": ("sm_100a", WHOLE, _plus_result("tc.load_index", 0, 20, 2)),
    "lanes: a tile less": ("sm_100a", CAUSAL, _fewer_tiles),
}  # fmt: skip


def caught(target: str, case: Packed, edit: Edit) -> Caught:
    """What a report up to the tiling pass says, on random numbers and then on all draws."""
    return noticed(case.text, Pipeline([Broken(tiling(), edit)]), target)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", BREAKS)
def test_breaks_are_caught(what: str) -> None:
    found = caught(*BREAKS[what])
    assert found, f"nothing noticed: {what}"
    assert found.at == "tile-attention"
    assert found.by.startswith(("difference", "hazard", "illegal", "refused")), found.text
