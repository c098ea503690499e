"""Attention for sm_90a: every level, beside numpy; breaks seen at their pass, refusals clear."""

from __future__ import annotations

import math
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir._mlir import arith
from tcir.passmanager.pipeline import Pipeline, as_pipeline

from .attention_text import Attention
from .breaking import Broken, Caught, Edit, change_operand, erase, noticed, pick, set_attribute

TARGET, PIPELINE = "sm_90a", "attention"
TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
UNIT = {"f16": 2.0**-10, "bf16": 2.0**-7}
CASES = [
    Attention(),
    Attention(m=200, n=300, causal=100),
    Attention(n=128, d=128, element="bf16"),
    Attention(h=2, m=64, d=96, g=2, n=384, e=32, q="bmhd", kv="bnhd", out="bmhd"),
    Attention(m=256, d=128, g=2, n=256, causal=0),
    Attention(n=200, causal=-100),
    Attention(b=2, m=130, d=16, n=40, result="f32", lse=False),
    Attention(h=1, d=256, n=160),
    Attention(b=2, h=8, m=1, g=2, n=256, d=128, causal=199),
    Attention(b=1, h=4, m=1, g=1, n=130, d=64, q="bmhd", out="bmhd", element="bf16"),
    Attention(h=1, m=1, n=1, d=16),
    Attention(h=1, m=7, n=500, d=32, causal=493, lse=False),
    Attention(h=1, m=300, n=100, d=48, causal=-150),
]
OPTIONS = [
    (Attention(h=3, g=3, m=256), {"ctas": 2}),
    (Attention(h=3, m=192, d=32, n=320), {"ctas": 2, "rows": 192}),
    (Attention(h=3, d=128, n=384), {"ctas": 2, "stages": 2}),
    (Attention(h=1, m=384, n=384, causal=0), {"ctas": 1}),
    (Attention(b=2, m=300, d=32, n=300, causal=-100, window=-170), {"ctas": 3, "stages": 1}),
    (Attention(n=384), {"stages": 1}),
    (Attention(n=384), {"keys": 16, "tau": 0.0}),
    (Attention(m=400, n=250, causal=-20), {"keys": 48, "rows": 192}),
    (Attention(n=704, d=128), {"keys": 176}),
]


def drawn(count: int, seed: int = 0) -> list[Attention]:
    """Random combinations of sizes, masks, groups, types and layouts."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        g, n, m = draw.choice((1, 2)), draw.randint(1, 300), draw.randint(1, 200)
        d = draw.choice((16, 32, 64, 80, 96, 128))
        found.append(
            Attention(
                b=draw.choice((1, 1, 2)), h=g * draw.choice((1, 1, 3)), m=m, d=d, g=g, n=n,
                e=draw.choice((0, 0, 32, 64)), element=draw.choice(("f16", "bf16")),
                result=draw.choice(("", "f32")), q=draw.choice(("bhmd", "bmhd")),
                causal=draw.choice((None, 0, n - m, draw.randint(-60, 60))),
                scale=draw.choice((0.125, d**-0.5, 0.69314718)),
                kv=draw.choice(("bhnd", "bnhd")), out=draw.choice(("bhmd", "bmhd")),
                lse=draw.choice((True, False)),
            )
        )  # fmt: skip
    return found


def operands(case: Attention, seed: int = 0) -> list[Any]:
    draw, kind = np.random.default_rng(seed), TYPES[case.element]
    return [draw.standard_normal(case.shapes[name]).astype(kind) for name in "qkv"]


def beside_numpy(kernel: tcir.Kernel, case: Attention) -> None:
    """Within two units of the type of the exponentials, of the sum of weighted magnitudes."""
    arrays = operands(case)
    got = kernel.run(*arrays)
    out, *lse = got if isinstance(got, tuple) else (got,)
    want, logarithms = case.computed(*arrays)
    size, _ = case.computed(*arrays[:2], np.abs(arrays[2].astype(np.float64)))
    assert (np.abs(out.astype(np.float64) - want) <= 2 * UNIT[case.element] * size + 1e-6).all()
    for each in lse:
        assert np.array_equal(np.isneginf(each), np.isneginf(logarithms))
        finite = np.isfinite(logarithms)
        assert np.allclose(each[finite], logarithms[finite], rtol=0, atol=1e-4)


def checked(case: Attention, **options: Any) -> tcir.Kernel:
    kernel = tcir.compile(
        case.text, PIPELINE, target=TARGET, validate=True, inputs="random", **options
    )
    kernel.report.check()
    lines = [line.compared for line in kernel.report.passes[2:]]
    assert all("bit for bit as before" in each or "bit for bit with" in each for each in lines)
    return kernel


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_level(case: Attention) -> None:
    """Within the bound after tiling, and bit for bit the same after every later pass."""
    beside_numpy(checked(case), case)


DRAWN = drawn(40)
HIDDEN = [
    case for case in DRAWN if case.lse and case.causal is not None and case.causal + case.m <= 0
]
"""Cases whose mask hides all keys from all queries: every logarithm is -inf."""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", [case for case in DRAWN if case not in HIDDEN], ids=str)
def test_random_combinations(case: Attention) -> None:
    beside_numpy(checked(case), case)


@pytest.mark.parametrize("case", HIDDEN, ids=str)
def test_a_mask_that_hides_all_keys(case: Attention) -> None:
    """One result has no finite element, so the comparison is not complete."""
    with pytest.raises(tcir.VerdictError, match=r"incomplete.*\n.*no finite"):
        checked(case)
    beside_numpy(tcir.compile(case.text, PIPELINE, target=TARGET), case)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("case", "options"), OPTIONS, ids=str)
def test_options(case: Attention, options: dict[str, Any]) -> None:
    beside_numpy(checked(case, **options), case)


@pytest.mark.timeout(1200)
def test_orders_and_draws() -> None:
    """Rising maxima, dead rows, large logits, special values; no hazard in other orders."""
    case = Attention(h=1, m=128, n=384, d=32, causal=200)
    report = tcir.validate(case.text, PIPELINE, target=TARGET, orders=6, stages=2)
    report.check()


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Attention(h=2, g=1, m=128, d=32, n=384, causal=256)
UNORDERED = ("hazard", "deadlock", "illegal")
VALUE = ("difference",)
REJECTED = ("refused", *UNORDERED)


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _take(name: str, operand: int, other: int, index: int = 0) -> Edit:
    """Replaces an operand by another one of the same op."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        op.operands[operand] = op.operands[other]

    return edit


def _bypass(name: str, operand: int = 0, result: int = 0, index: int = 0) -> Edit:
    """Gives the users of a result an operand of its op instead."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        op.results[result].replace_all_uses_with(op.operands[operand])

    return edit


def _take_result(name: str, result: int, other: int) -> Edit:
    def edit(module: Any) -> None:
        op = pick(module, name)
        op.results[result].replace_all_uses_with(op.results[other])

    return edit


WAIT, ARRIVE, TURN = "tc.mbarrier_wait", "tc.mbarrier_arrive", "tc.turn"
BREAKS: list[tuple[str, str, Edit, tuple[str, ...]]] = [
    *((f"wait {n} removed", "assign-roles", erase(WAIT, n), UNORDERED) for n in range(5)),
    *((f"arrival {n} removed", "assign-roles", erase(ARRIVE, n), UNORDERED) for n in range(2)),
    *((f"bytes of load {n}", "place-barriers",
       set_attribute("tc.mbarrier_expect_tx", "nbytes", "4096 : i64", n), UNORDERED)
      for n in range(3)),
    ("arrivals of an empty barrier", "place-barriers",
     set_attribute("tc.mbarrier_init", "arrivals", "4 : i64", 2), UNORDERED),
    *((f"wait of product {n} covers less", "skew-attention",
       set_attribute("tc.wgmma_wait", "pending", f"{p} : i64", n), UNORDERED)
      for n, p in ((0, 1), (1, 2), (2, 1), (3, 1))),
    *((f"turn {n} removed", "take-turns", erase(TURN, n), UNORDERED) for n in range(3)),
    ("K of one block freed twice, of V never", "assign-roles",
     _take(ARRIVE, 0, 0), ()),
    ("a key less", "tile-attention",
     change_operand("tc.mask_fragment", 3, _plus(-1)), VALUE),
    ("causal one key more", "tile-attention",
     set_attribute("tc.mask_fragment", "causal_offset", "257 : i64"), VALUE),
    ("causal one key less", "tile-attention",
     set_attribute("tc.mask_fragment", "causal_offset", "255 : i64"), VALUE),
    ("causal from the top", "tile-attention",
     set_attribute("tc.mask_fragment", "causal_offset", "0 : i64"), VALUE),
    ("row of the mask", "tile-attention", change_operand("tc.mask_fragment", 1, _plus(1)), VALUE),
    ("column of the mask", "tile-attention",
     change_operand("tc.mask_fragment", 2, _plus(1)), VALUE),
    ("no mask", "tile-attention", _bypass("tc.mask_fragment"), VALUE),
    ("no log2(e)", "tile-attention",
     set_attribute("tc.exp_fragment", "scale", "0.125 : f32"), VALUE),
    ("scale of the maximum", "tile-attention",
     set_attribute("tc.online_max", "scale", "0.125 : f32"), VALUE),
    ("scale of the logarithm", "tile-attention",
     set_attribute("tc.log_sum_rows", "scale", "0.125 : f32"), VALUE),
    ("sums not rescaled", "tile-attention", _bypass("tc.scale_fragment"), VALUE),
    ("factor is the reference", "tile-attention", _take_result("tc.online_max", 2, 1), VALUE),
    ("maximum forgotten", "tile-attention", _bypass("tc.online_max", 1, 0), VALUE),
    ("sum of exponentials forgotten", "tile-attention", _bypass("tc.add_row_sums"), VALUE),
    ("sum not rescaled", "tile-attention", _take("tc.add_row_sums", 1, 0), VALUE),
    ("not divided", "tile-attention", _bypass("tc.scale_fragment", index=1), VALUE),
    ("maximum begins with 0", "tile-attention",
     set_attribute("tc.fill_rows", "value", "0.0 : f32"), VALUE),
    ("finite maximum of nothing", "tile-attention",
     set_attribute("tc.fill_rows", "value", "-5.0e4 : f32"), VALUE),
    ("next head's keys", "tile-attention", change_operand("tc.tma_load", 3, _plus(1), 1),
     ("difference", "hazard", "illegal")),
    ("values a key further", "tile-attention",
     change_operand("tc.tma_load", 2, _plus(1), 2), VALUE),
    ("row of the result", "tile-attention",
     change_operand("tc.store_fragment", 3, _plus(1)), ("difference", "hazard", "illegal")),
]  # fmt: skip
BREAKS = [each for each in BREAKS if each[3]]


def caught(at: str, edit: Edit) -> Caught:
    """What a report up to the broken pass says, on random numbers and then on all draws."""
    whole = as_pipeline(PIPELINE, stages=2)
    passes = list(whole.passes)[: whole.index(at) + 1]
    broken = Pipeline([*passes[:-1], Broken(passes[-1], edit)])
    return noticed(BROKEN.text, broken, TARGET)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("what", "at", "edit", "by"),
    BREAKS,
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_breaks_are_caught(what: str, at: str, edit: Edit, by: tuple[str, ...]) -> None:
    found = caught(at, edit)
    assert found, f"nothing noticed: {what}"
    assert found.at == at, found.text
    assert found.by.startswith((*by, "refused")), found.text


# --- persistent CTAs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "ctas"),
    [
        (Attention(b=8, h=16, g=16, m=1024, n=1024, causal=0), 132),
        (Attention(b=4, h=16, g=16, m=1024, n=1024, d=128, element="bf16", causal=0), 132),
        (Attention(b=1, h=8, g=8, m=1024, n=1024, causal=0), 64),
        (Attention(b=8, h=16, g=16, m=1024, n=1024, d=256, causal=0), 1024),
    ],
    ids=str,
)
def test_causal_tiles_are_shared_by_as_many_ctas_as_sms(case: Attention, ctas: int) -> None:
    """Where there are more tiles, of heads of at most 128 elements."""
    kernel = tcir.compile(case.text, PIPELINE, target=TARGET)
    assert [math.prod(each.grid) for each in kernel.launches.launches] == [ctas]


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "options", "message"),
    [
        (Attention(d=40), {}, "heads of a multiple of 16 elements, 16 to 256, got 40"),
        (Attention(), {"keys": 8}, "keys, those of a step, must be a multiple of 16"),
        (Attention(), {"rows": 96}, "rows, the queries of a tile, must be one of 64, 128, 192"),
        (Attention(), {"tau": 20.0}, "tau must be from 0 to 15, got 20.0"),
        (Attention(), {"keys": 272}, "keys must be"),
    ],
)
def test_refusals(case: Attention, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(case.text, PIPELINE, target=TARGET, **options)
