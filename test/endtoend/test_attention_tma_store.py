"""Attention in tensor memory whose results TMA stores: every level, the bits of stores by threads;
breaks; refusals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tcir
from tcir.passmanager.pipeline import Pipeline, as_pipeline

from .attention_text import Attention
from .breaking import Broken, Edit, change_operand, erase, noticed
from .test_attention_wgmma import _plus

TARGET = "sm_100a"
CASES = [
    (Attention(h=1, m=70, n=128, d=32), {}),
    (Attention(h=2, m=200, n=256, e=96, out="bmhd", element="bf16"), {}),
    (Attention(h=2, m=130, n=200, causal=70, lse=False), {}),
    (Attention(h=1, m=256, n=256, d=128), {"rows": 256}),
    (Attention(h=1, m=130, n=128, d=32, result="f32"), {}),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("case", "options"), CASES, ids=str)
def test_every_level(case: Attention, options: dict[str, Any]) -> None:
    """Within the bound, later passes bit for bit; results are those of stores by threads."""
    kernel = tcir.compile(
        case.text,
        "attention",
        target=TARGET,
        validate=True,
        inputs="random",
        store="tma",
        **options,
    )
    kernel.report.check()
    assert "cp.async.bulk.tensor" in kernel.ptx and ".global.shared::cta" in kernel.ptx
    kind = np.float16 if case.element == "f16" else ml_dtypes.bfloat16
    draw = np.random.default_rng(0)
    operands = [draw.standard_normal(case.shapes[name]).astype(kind) for name in "qkv"]
    other = tcir.compile(case.text, "attention", target=TARGET, **options)
    got, want = kernel.run(*operands), other.run(*operands)
    got, want = ((each,) if not isinstance(each, tuple) else each for each in (got, want))
    assert [each.tobytes() for each in got] == [each.tobytes() for each in want]


@pytest.mark.timeout(2400)
def test_orders_and_draws() -> None:
    case = Attention(h=1, m=160, n=200, d=32, causal=40)
    tcir.validate(case.text, "attention{store=tma}", target=TARGET, orders=6).check()


BROKEN = Attention(h=1, m=128, n=128, d=32, e=128)
BREAKS: list[tuple[str, str, Edit]] = [
    ("a row further", "tile-attention", change_operand("tc.tma_store", 2, _plus(1))),
    ("the next columns", "tile-attention", change_operand("tc.tma_store", 1, _plus(64))),
    ("columns in shared memory", "tile-attention", change_operand("tc.store_shared", 3, _plus(8))),
    ("rows of the next warp", "tile-attention", change_operand("tc.slot", 1, _plus(1))),
    ("no fence", "place-barriers", erase("tc.fence", kind='"proxy.async"')),
    ("tiles are written again before they are read", "place-barriers",
     erase("tc.bulk_wait", 0)),
    ("the kernel ends before its stores", "place-barriers", erase("tc.bulk_wait", 1)),
    ("no commit", "place-barriers", erase("tc.bulk_commit")),
]  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("what", "at", "edit"),
    BREAKS,
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_breaks_are_caught(what: str, at: str, edit: Edit) -> None:
    whole = as_pipeline("attention", store="tma")
    passes = list(whole.passes)[: whole.index("assign-roles") + 1]
    place = next(n for n, each in enumerate(passes) if str(each).startswith(at))
    passes[place] = Broken(passes[place], edit)
    found = noticed(BROKEN.text, Pipeline(passes), TARGET)
    assert found, f"nothing noticed: {what}"


@pytest.mark.parametrize(
    ("target", "store", "message"),
    [("sm_90a", "tma", "store is not available for sm_90a, got tma"),
     (TARGET, "bulk", "expected store to be direct or tma, got 'bulk'")],
)  # fmt: skip
def test_refusals(target: str, store: str, message: str) -> None:
    with pytest.raises(tcir.Error, match=message):
        tcir.compile(Attention().text, "attention", target=target, store=store)
