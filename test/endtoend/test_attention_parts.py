"""Attention in parts of the keys, which a second launch combines: every level, beside numpy; breaks
seen at their pass, refusals clear, the number of parts that is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passes.attention.split_kv import SplitKv
from tcir.passmanager.pipeline import Pipeline, as_pipeline
from tcir.program.source import load_module, mlir_context

from .attention_text import Attention
from .breaking import Broken, Caught, Edit, change_operand, noticed, pick, walk
from .test_attention_scores import drawn, off

TARGETS = ("sm_90a", "sm_100a")
CASES = [
    (Attention(b=2, h=4, g=2, m=1, n=300, d=32, causal=280), 2),
    (Attention(h=1, m=70, n=300, d=16, causal=200, window=-20), 3),
    (Attention(h=2, m=1, n=1000, d=64, element="bf16", body=("mask n", "bias hn f32")), 4),
    (Attention(b=2, m=130, n=260, d=16, e=32, q="bmhd", kv="bnhd", out="bmhd", lse=False), 3),
    (Attention(h=8, g=1, m=1, n=384, d=128, result="f32", causal=200), 3),
    (Attention(h=1, m=40, n=700, d=32, window=300), 6),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("case", "parts"),
    CASES,
    ids=str,
)
def test_every_level(case: Attention, parts: int, target: str) -> None:
    """Within the bound after each pass that changes numbers, bit for bit after every later one."""
    pipeline = f"attention{{split-kv={parts}}}"
    kernel = tcir.compile(case.text, pipeline, target=target, validate=True, inputs="random")
    kernel.report.check()
    assert len(kernel.launches.launches) == 2
    changing = ("(input)", "split-kv", "tile-attention")
    lines = [line.compared for line in kernel.report.passes if line.name not in changing]
    assert all("bit for bit as before" in each or "bit for bit with" in each for each in lines)
    arrays = drawn(case)
    assert off(case, kernel.run(*arrays), arrays) <= 2


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
def test_orders_and_draws(target: str) -> None:
    """Rising maxima, rows of one key, large logits, special values; no hazard in other orders."""
    case = Attention(h=2, g=1, m=1, n=600, d=32, causal=560, body=("bias hn f16",))
    tcir.validate(case.text, "attention", target=target, orders=6, split_kv=5).check()


@pytest.mark.timeout(1200)
def test_persistent_ctas() -> None:
    """Two CTAs share the tiles of two parts."""
    report = tcir.validate(
        Attention(n=512).text, "attention", target="sm_90a", split_kv=2, ctas=2, orders=3
    )
    report.check()


@pytest.mark.timeout(1200)
def test_in_layers() -> None:
    """A decoding step of one head over many keys is in parts by itself."""
    case = Attention(h=2, g=1, m=1, n=4096, d=16, lse=False)
    kernel = tcir.compile(case.text, "layers", target="sm_90a")
    assert len(kernel.launches.launches) == 2
    arrays = drawn(case)
    assert off(case, kernel.run(*arrays), arrays) <= 2


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        (Attention(b=1, h=32, g=8, m=1, n=16384, d=128), 16),
        (Attention(b=4, h=32, g=8, m=1, n=8192, d=128), 4),
        (Attention(b=1, h=32, g=8, m=1, n=2048, d=128), 16),
        (Attention(b=64, h=32, g=8, m=1, n=4096, d=128), 1),
        (Attention(b=1, h=16, g=16, m=1024, n=1024), 1),
        (Attention(b=1, h=1, g=1, m=1, n=256), 1),
    ],
    ids=str,
)
def test_chosen_parts(case: Attention, parts: int) -> None:
    """As many as give each SM a CTA; none where there are CTAs enough, or few keys."""
    with mlir_context() as context, ir.Location.unknown(context):
        module = load_module(case.text, context)
        module.operation.attributes["tc.target"] = ir.StringAttr.get("sm_90a")
        SplitKv().run(module)
        found = [
            op.attributes["key_part"].value
            for op in walk(module, "tc.attention")
            if "key_part" in op.attributes
        ]
    assert found == ([case.n // parts] if parts > 1 else [])


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Attention(b=2, h=4, g=2, m=1, n=640, d=32, scale=1.0)


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _without(name: str, operand: int, index: int = 0) -> Edit:
    """Gives the users of an op's result one of its operands instead."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        op.results[0].replace_all_uses_with(op.operands[operand])

    return edit


def _halved(old: Any) -> Any:
    return arith.mulf(old, arith.constant(old.type, ir.FloatAttr.get(old.type, 0.5)))


TILED, COMBINED = "tile-attention", "convert-to-simt"
BREAKS: dict[str, tuple[str, Edit]] = {
    "parts begin a block later": (TILED, change_operand("arith.muli", 1, _plus(1), 1)),
    "a block more": (TILED, change_operand("scf.for", 1, _plus(1))),
    "batch of the part": (TILED, change_operand("tc.tma_load", 4, _plus(1), 1)),
    "results of the next part": (TILED, change_operand("tc.store_fragment", 2, _plus(2))),
    "logarithms of the next part": (TILED, change_operand("tc.store_fragment_rows", 2, _plus(1))),
    "weights of powers of e": (COMBINED, _without("arith.mulf", 0)),
    "a weight is not of its part": (COMBINED, change_operand("arith.subf", 0, _halved, 1)),
    "a part is lost": (COMBINED, _without("llvm.intr.fma", 2, 1)),
    "a part is not in the total": (COMBINED, _without("arith.addf", 0, 1)),
    "not divided": (COMBINED, _without("arith.mulf", 0, 2)),
    "logarithms of weights alone": (COMBINED, _without("llvm.intr.fma", 0, 2)),
}


def caught(at: str, edit: Edit) -> Caught:
    """What a report up to the broken pass says, on random numbers and then on all draws."""
    whole = as_pipeline("attention", split_kv=2)
    passes = list(whole.passes)[: whole.index(at) + 1]
    broken = Pipeline([*passes[:-1], Broken(passes[-1], edit)])
    return noticed(BROKEN.text, broken, "sm_90a")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", BREAKS)
def test_breaks_are_caught(what: str) -> None:
    at, edit = BREAKS[what]
    found = caught(at, edit)
    assert found, f"nothing noticed: {what}"
    assert found.at == at, found.text
    assert found.by.startswith(("difference", "hazard", "illegal", "refused")), found.text


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"split_kv": -1},
            "must be at least 1, or 0 to choose it, got -1",
        ),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(Attention(n=512).text, "attention", target="sm_90a", **options)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_many_keys(target: str) -> None:
    """Each exponential and its product are off by a rounding of P, whatever their number is."""
    generator = np.random.default_rng(0)
    q, k, v = (
        generator.standard_normal((1, 1, n, 64)).astype(np.float16) for n in (1, 16384, 16384)
    )
    scores = (q[0, 0].astype(np.float64) @ k[0, 0].astype(np.float64).T) / 8
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    kernel = tcir.compile_attention(q, k, v, target=target)
    got = kernel.run(q, k, v)[0, 0].astype(np.float64)
    values = v[0, 0].astype(np.float64)
    bound = 2.0**-10 * (weights @ np.abs(values) + np.abs(weights @ values))
    assert (np.abs(got - weights @ values) <= bound).all()
