"""Gradients of attention: every level, beside numpy; breaks seen at their pass, refusals
clear."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import arith
from tcir.interp.types import Array
from tcir.passmanager.pipeline import Pipeline, as_pipeline

from .breaking import (
    Broken,
    Caught,
    Edit,
    change_operand,
    change_text,
    erase,
    noticed,
    pick,
    set_attribute,
)
from .gradient_text import Gradient, gradients

PIPELINE, TARGETS = "attention", ("sm_90a", "sm_100a")
UNIT = {"f16": 2.0**-10, "bf16": 2.0**-7}
CASES = [
    Gradient("q", h=1, m=64, n=64, d=32),
    Gradient("kv", h=1, m=64, n=64, d=32),
    Gradient("q", m=100, n=150, causal=50),
    Gradient("kv", m=100, n=150, causal=50),
    Gradient("q", d=128, element="bf16", m=130, n=70),
    Gradient("kv", d=128, element="bf16", m=70, n=130),
    Gradient("q", h=4, g=2, m=200, n=90, causal=-60, d=32, e=64),
    Gradient("kv", h=4, g=2, m=200, n=90, causal=-60, d=32, e=64),
    Gradient("q", b=2, m=150, n=150, causal=0, window=-70, d=16, q="bmhd", kv="bnhd"),
    Gradient("kv", b=2, m=150, n=150, causal=0, window=-70, d=16, q="bmhd", kv="bnhd"),
    Gradient("q", h=1, m=1, n=1, d=16),
    Gradient("kv", h=1, m=1, n=1, d=16),
]


def beside_numpy(kernel: tcir.Kernel, case: Gradient) -> None:
    """Within two units of the type, of the largest gradient."""
    operands, want = case.arrays()
    got = kernel.run(*operands)
    for mine, exact in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        far = np.abs(mine.astype(np.float64) - exact).max()
        assert far <= 2 * UNIT[case.element] * np.abs(exact).max() + 1e-6


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_level(case: Gradient, target: str) -> None:
    """Within the bound after tiling, and bit for bit the same after every later pass."""
    kernel = tcir.compile(case.text, PIPELINE, target=target, validate=True, inputs="random")
    kernel.report.check()
    lines = [line.compared for line in kernel.report.passes[2:]]
    assert all("bit for bit as before" in each or "bit for bit with" in each for each in lines)
    beside_numpy(kernel, case)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("of", ["q", "kv"])
def test_orders_and_draws(of: str, target: str) -> None:
    """Special values, the full range, dead rows; no hazard in other orders."""
    case = Gradient(of, h=1, m=128, n=192, d=32, causal=-20)
    report = tcir.validate(case.text, PIPELINE, target=target, orders=6, stages=2)
    report.check()


def test_rule_is_the_derivative() -> None:
    """The numbers of the reference are those of central differences of attention itself."""
    draw, scale = np.random.default_rng(1), 0.5
    given = [draw.standard_normal(size) for size in ((1, 2, 5, 4), (1, 1, 6, 4), (1, 1, 6, 3))]
    dout, kept = draw.standard_normal((1, 2, 5, 3)), np.tri(5, 6, 1, bool)
    found = gradients(*given, dout, scale, kept)[2:]

    def loss() -> float:
        q, k, v = given
        scores = np.where(kept, q @ k.swapaxes(-1, -2) * scale, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return float((dout * (powers / powers.sum(-1, keepdims=True) @ v)).sum())

    for array, gradient in zip(given, found, strict=True):
        place, step = tuple(n - 1 for n in array.shape), 1e-6
        array[place] += step
        above = loss()
        array[place] -= 2 * step
        slope = (above - loss()) / (2 * step)
        array[place] += step
        assert abs(slope - gradient[place]) < 1e-7


@pytest.mark.parametrize("target", TARGETS)
def test_arrays(target: str) -> None:
    """The three launches of `compile_attention_backward`, grouped and causal."""
    draw = np.random.default_rng(0)
    sizes = (1, 4, 70, 32), (1, 2, 90, 32), (1, 2, 90, 32), (1, 4, 70, 32)
    q, k, v, dout = (draw.standard_normal(size).astype(np.float16) for size in sizes)
    kept = np.tri(70, 90, 20, bool)
    lse, _, *want = gradients(q, k, v, dout, 32**-0.5, kept)
    out = _attended(q, k, v, kept)
    kernel = tcir.compile_attention_backward(
        q, k, v, out, dout, lse.astype(np.float32), causal=True, target=target
    )
    assert len(kernel.launches.launches) == 3
    for mine, exact in zip(kernel.run(), want, strict=True):
        assert np.abs(mine.astype(np.float64) - exact).max() <= 2**-8 * np.abs(exact).max()


def _attended(q: Array, k: Array, v: Array, kept: Array) -> Array:
    q, k, v = (each.astype(np.float64) for each in (q, k.repeat(2, 1), v.repeat(2, 1)))
    scores = np.where(kept, q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True) @ v).astype(np.float16)


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Gradient("kv", m=120, n=128, d=32, causal=0)
UNORDERED = ("hazard", "deadlock", "illegal")
VALUE = ("difference",)
TILED, WAIT, FETCH = "tile-attention-backward", "tc.mbarrier_wait", "tc.fetch_fragment"


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _bypass(name: str, index: int = 0) -> Edit:
    """Gives the users of a result an operand of its op instead."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        op.results[0].replace_all_uses_with(op.operands[0])

    return edit


def _exchanged(module: Any) -> None:
    """The transposes of queries and of their results' gradients, one for the other."""
    first, second = (pick(module, "tc.smem_transposed", n) for n in (0, 1))
    one, other = first.operands[0], second.operands[0]
    first.operands[0], second.operands[0] = other, one


Breaks = list[tuple[str, str, Edit, tuple[str, ...]]]
ANY = ("difference", *UNORDERED)
OF_BOTH: Breaks = [
    ("delta is not subtracted", TILED, _bypass("arith.subf"), VALUE),
    ("mask not exchanged", TILED, change_text("window_offset", "causal_offset"), VALUE),
    ("queries for their results' gradients", TILED, _exchanged, VALUE),
    ("queries of the next head", TILED, change_operand("tc.tma_load", 3, _plus(1), 2), ANY),
    ("a block less", TILED, change_operand("scf.for", 1, _plus(-1)), ANY),
]
BREAKS: dict[str, Breaks] = {
    "sm_90a": [
        *OF_BOTH,
        *((f"wait {n} removed", "assign-roles", erase(WAIT, n), UNORDERED) for n in range(3)),
        ("arrival removed", "assign-roles", erase("tc.mbarrier_arrive", 0), UNORDERED),
        *((f"wait of product {n} covers less", "delay-waits",
           set_attribute("tc.wgmma_wait", "pending", f"{p} : i64", n), UNORDERED)
          for n, p in ((0, 2), (1, 2), (2, 2), (3, 1))),
        ("ds without p", TILED, _bypass("arith.mulf", 1), VALUE),
        ("lse of the next row", TILED, change_operand(FETCH, 4, _plus(1)), VALUE),
        ("delta of the next row", TILED, change_operand(FETCH, 4, _plus(1), 1), VALUE),
        ("lse of the next head", TILED, change_operand(FETCH, 2, _plus(1)), ANY),
        ("mask of the next key", TILED, change_operand("tc.mask_fragment", 1, _plus(1)), VALUE),
        ("no mask", TILED, _bypass("tc.mask_fragment"), VALUE),
        ("dk without scale", TILED, set_attribute("tc.fill_rows", "value", "1.0 : f32"), VALUE),
    ],
    "sm_100a": [
        *OF_BOTH,
        *((f"wait {n} removed", "assign-roles", erase(WAIT, n), UNORDERED) for n in range(5)),
        *((f"commit {n} removed", "assign-roles", erase("tc.commit", n), UNORDERED)
          for n in range(2)),
        ("arrival removed", "assign-roles", erase("tc.mbarrier_arrive", 0), UNORDERED),
        ("lse of the next row", TILED, change_operand("tc.load_rows", 3, _plus(1)), VALUE),
        ("mask of the next key", TILED, change_operand("tc.mask_rows", 1, _plus(1)), VALUE),
        ("no mask", TILED, _bypass("tc.mask_rows"), VALUE),
    ],
}  # fmt: skip


def caught(target: str, at: str, edit: Edit) -> Caught:
    """What a report up to the broken pass says, on random numbers and then on all draws."""
    whole = as_pipeline(PIPELINE, stages=2)
    passes = list(whole.passes)[: whole.index(at) + 1]
    return noticed(BROKEN.text, Pipeline([*passes[:-1], Broken(passes[-1], edit)]), target)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("target", "what", "at", "edit", "by"),
    [(target, *each) for target, breaks in BREAKS.items() for each in breaks],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_breaks_are_caught(
    target: str, what: str, at: str, edit: Edit, by: tuple[str, ...]
) -> None:
    found = caught(target, at, edit)
    assert found, f"nothing noticed: {what}"
    assert found.at == at, found.text
    assert found.by.startswith((*by, "refused")), found.text


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "target", "message"),
    [
        (Gradient(d=40), "sm_90a", "head sizes must be .*, got 40"),
        (Gradient(d=256), "sm_100a", "head sizes must be .*, got 256"),
    ],
)
def test_refusals(case: Gradient, target: str, message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(case.text, PIPELINE, target=target)


def test_refused_arrays() -> None:
    x, lse = np.zeros((1, 2, 16, 16), np.float16), np.zeros((1, 2, 16), np.float32)
    with pytest.raises(tcir.InputError, match="must have the same type"):
        tcir.compile_attention_backward(x, x, x, x, x.astype(ml_dtypes.bfloat16), lse)
    with pytest.raises(tcir.InputError, match=r"lse of .B, H, M."):
        tcir.compile_attention_backward(x, x, x, x, x, lse[:, :1])
