"""Masks, windows, biases and functions of scores in attention, for both cores: every level, beside
numpy; breaks seen at their pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith
from tcir.passmanager.pipeline import Pipeline, as_pipeline

from .attention_text import Attention
from .breaking import Broken, Caught, Edit, change_operand, noticed, pick, set_attribute
from .test_attention_wgmma import TYPES, UNIT

TARGETS = ("sm_90a", "sm_100a")
CAPPED = ("times 0.125", "softcap 2", "bias hmn f16")
CASES = [
    Attention(m=100, n=192, d=32, body=("mask bn",)),
    Attention(b=2, m=65, n=129, d=16, causal=-10, body=("mask bmn", "bias hn f32")),
    Attention(h=4, g=2, m=70, n=150, d=32, scale=1.0, body=CAPPED),
    Attention(h=1, m=200, n=300, d=32, causal=100, window=20),
    Attention(h=1, m=300, n=100, d=16, window=-150, element="bf16"),
    Attention(h=1, m=256, n=700, d=64, causal=0, window=-100, lse=False),
    Attention(h=1, m=130, n=140, d=16, causal=-20, window=-25),
    Attention(b=2, h=8, m=1, g=2, n=256, d=64, causal=199, body=("mask bn",)),
    Attention(h=4, m=1, g=1, n=200, d=32, body=("bias hn bf16",)),
    Attention(h=2, m=1, g=1, n=300, d=32, causal=250, window=150),
    Attention(m=64, n=64, d=32, q="bmhd", kv="bnhd", out="bmhd", body=("bias bhmn f32",)),
]


def drawn(case: Attention, seed: int = 0) -> list[Any]:
    """Random operands, and a mask that leaves three of five keys."""
    draw = np.random.default_rng(seed)
    arrays = [draw.standard_normal(case.shapes[n]).astype(TYPES[case.element]) for n in "qkv"]
    for _, kind, shape in case.beside:
        numbers = draw.standard_normal(shape)
        arrays.append(numbers > -0.25 if kind == "i1" else numbers.astype(TYPES[kind]))
    if case.pages:
        return [*arrays, case.rows(draw)]
    return [*arrays, *([np.array(case.lengths, np.int32)] if case.lengths else [])]


def off(case: Attention, got: Any, arrays: list[Any]) -> float:
    """The largest error, in units of the type of exponentials of the magnitudes of values."""
    out, *lse = got if isinstance(got, tuple) else (got,)
    want, logarithms = case.computed(*arrays)
    q, k, v, *beside = arrays
    size, _ = case.computed(q, k, np.abs(v.astype(np.float64)), *beside)
    for each in lse:
        finite = np.isfinite(logarithms)
        assert np.array_equal(finite, np.isfinite(each))
        assert np.allclose(each[finite], logarithms[finite], rtol=0, atol=1e-4)
    return float((np.abs(out.astype(np.float64) - want) / (UNIT[case.element] * size + 1e-6)).max())


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "case",
    CASES,
    ids=str,
)
def test_every_level(case: Attention, target: str) -> None:
    """Within the bound after tiling, and bit for bit the same after every later pass."""
    kernel = tcir.compile(case.text, "attention", target=target, validate=True, inputs="random")
    kernel.report.check()
    lines = [line.compared for line in kernel.report.passes[2:]]
    assert all("bit for bit as before" in each or "bit for bit with" in each for each in lines)
    arrays = drawn(case)
    assert off(case, kernel.run(*arrays), arrays) <= 2


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
def test_orders_and_draws(target: str) -> None:
    """Rising maxima, large logits, special values; no hazard in other orders."""
    case = Attention(h=1, m=128, n=384, d=32, causal=200, window=-20, body=("mask n", "bias m f16"))
    tcir.validate(case.text, "attention", target=target, orders=6, stages=2).check()


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Attention(
    h=2, m=128, d=32, n=512, causal=384, window=150, scale=1.0,
    body=("times 0.25", "softcap 3", "bias hmn f16", "mask n"),
)  # fmt: skip
ROWS = {"sm_90a": "tc.mask_fragment", "sm_100a": "tc.mask_rows"}


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _map(text: str, index: int) -> Edit:
    """Reads of another tensor go elsewhere."""
    return set_attribute("tc.element", "map", f"affine_map<(b, h, m, n) -> ({text})>", index)


def _without(name: str, operand: int, result: int = 0) -> Edit:
    """Gives the users of an op's result one of its operands instead."""

    def edit(module: Any) -> None:
        op = pick(module, name)
        op.results[result].replace_all_uses_with(op.operands[operand])

    return edit


def _swapped(name: str, a: int, b: int) -> Edit:
    def edit(module: Any) -> None:
        op = pick(module, name)
        op.operands[a], op.operands[b] = op.operands[b], op.operands[a]

    return edit


BREAKS: dict[str, tuple[str, Edit]] = {
    "window one key more": ("sm_90a", set_attribute(ROWS["sm_90a"], "window_offset", "149 : i64")),
    "window one key less": ("sm_90a", set_attribute(ROWS["sm_90a"], "window_offset", "151 : i64")),
    "no window": ("sm_90a", set_attribute(ROWS["sm_90a"], "window_offset", "-999 : i64")),
    "first block one later": ("sm_90a", change_operand("arith.divui", 0, _plus(128), 2)),
    "row of the body": ("sm_90a", change_operand("tc.fragment_epilogue", 3, _plus(1))),
    "key of the body": ("sm_90a", change_operand("tc.fragment_epilogue", 4, _plus(2))),
    "head of the body": ("sm_90a", change_operand("tc.fragment_epilogue", 2, _plus(1))),
    "bias of the first row": ("sm_90a", _map("0, h, 0, n", 0)),
    "no body": ("sm_90a", _without("tc.fragment_epilogue", 0)),
    "mask the other way": ("sm_90a", _swapped("arith.select", 1, 2)),
    "no softcap": ("sm_90a", _without("math.tanh", 0)),
    "bias not added": ("sm_90a", _without("arith.addf", 0)),
    "window of rows one key more": (
        "sm_100a", set_attribute(ROWS["sm_100a"], "window_offset", "149 : i64")),
    "window of rows one key less": (
        "sm_100a", set_attribute(ROWS["sm_100a"], "window_offset", "151 : i64")),
    "bias of the next row": ("sm_100a", change_operand("tc.load_rows", 3, _plus(1))),
    "bias of the next keys": ("sm_100a", change_operand("tc.load_rows", 4, _plus(8))),
    "rows: no softcap": ("sm_100a", _without("math.tanh", 0)),
    "rows: mask the other way": ("sm_100a", _swapped("arith.select", 1, 2)),
}  # fmt: skip


def caught(target: str, edit: Edit) -> Caught:
    """What a report up to the tiling pass says, on random numbers and then on all draws."""
    whole = as_pipeline("attention")
    (tiled,) = [each for each in whole.passes if getattr(each, "name", "") == "tile-attention"]
    return noticed(BROKEN.text, Pipeline([Broken(tiled, edit)]), target)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", BREAKS)
def test_breaks_are_caught(what: str) -> None:
    found = caught(*BREAKS[what])
    assert found, f"nothing noticed: {what}"
    assert found.by.startswith(("difference", "hazard", "illegal", "refused")), found.text
