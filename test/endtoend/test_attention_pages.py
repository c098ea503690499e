"""Attention whose keys and values are in pages: every level, beside numpy; pages beyond the keys of
a batch are not read; breaks seen at their pass, wrong pages named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith
from tcir.interp import OutputSpec, executor_for
from tcir.passmanager.pipeline import Pipeline, as_pipeline
from tcir.program.execution import run_sequence
from tcir.program.source import load_module, mlir_context

from .attention_text import Attention
from .breaking import Broken, Caught, Edit, change_operand, noticed, pick
from .test_attention_scores import drawn, off

TARGETS = ("sm_90a", "sm_100a")
DECODE = Attention(b=2, h=4, g=2, m=1, n=144, d=32, lengths=(130, 70), pages=20, page=16)
CASES = [
    (DECODE, {}),
    (Attention(b=2, m=40, n=192, d=16, causal=150, lengths=(190, 5), pages=8, page=64), {}),
    (Attention(b=2, h=4, g=1, m=1, n=640, d=64, element="bf16", lengths=(640, 300),
               pages=11, page=128), {"split_kv": 2}),
    (Attention(b=3, m=130, n=96, d=32, e=16, q="bmhd", kv="bnhd", out="bmhd", result="f32",
               lse=False, lengths=(96, 0, 33), pages=7, page=48), {"tau": 0.0, "stages": 1}),
    (Attention(m=70, n=512, d=16, window=-40, causal=60, body=("bias hn f32",), lengths=(300,),
               pages=3, page=256), {}),
]  # fmt: skip


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("case", "options"), CASES, ids=[str(case) for case, _ in CASES])
def test_every_level(case: Attention, options: dict[str, Any], target: str) -> None:
    """Within the bound after each pass that changes numbers, bit for bit after every later one."""
    kernel = tcir.compile(
        case.text, "attention", target=target, validate=True, inputs="random", **options
    )
    kernel.report.check()
    changing = ("(input)", "split-kv", "tile-attention")
    lines = [line.compared for line in kernel.report.passes if line.name not in changing]
    assert all("bit for bit as before" in each or "bit for bit with" in each for each in lines)
    arrays = drawn(case)
    assert off(case, kernel.run(*arrays), arrays) <= 2


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", TARGETS)
def test_orders_and_draws(target: str) -> None:
    """Rising maxima, rows of one key, large logits, special values; no hazard in other orders."""
    case = Attention(b=2, h=2, g=1, m=2, n=304, d=32, lengths=(1, 2), pages=40, page=16)
    tcir.validate(case.text, "attention", target=target, orders=6, stages=2).check()


@pytest.mark.parametrize("target", TARGETS)
def test_pages_beyond_the_keys_are_not_used(target: str) -> None:
    """Whatever their numbers are: those of no page are loaded as zeros at most."""
    q, k, v, rows = drawn(DECODE)
    kernel = tcir.compile(DECODE.text, "attention", target=target)
    want = kernel.run(q, k, v, rows)
    for batch, length in enumerate(DECODE.lengths):
        rows[batch, 1 + -(-length // DECODE.page) :] = (-1, 10**6, 20)[batch]
    for one, other in zip(want, kernel.run(q, k, v, rows), strict=True):
        assert one.tobytes() == other.tobytes()


def test_wrong_pages_are_named() -> None:
    q, k, v, rows = drawn(DECODE)
    rows[1, 3] = 20
    outputs = [OutputSpec(shape, np.dtype(kind)) for shape, kind in (
        ((2, 4, 1, 32), np.float16), ((2, 4, 1), np.float32))]  # fmt: skip
    with mlir_context() as context:
        run, module = executor_for("tensor"), load_module(DECODE.text, context)
        words = "page numbers from 0 to 19, got 20 for page 2 of batch 1"
        with pytest.raises(tcir.InputError, match=words):
            run(module, "attention", [q, k, v, rows], outputs)


def test_from_arrays() -> None:
    q, k, v, rows = drawn(DECODE)
    kernel = tcir.compile_attention(q, k, v, pages=rows, scale=0.125, target="sm_90a")
    got, (want, _) = kernel.run(q, k, v, rows), DECODE.computed(q, k, v, rows)
    assert np.abs(np.asarray(got, np.float64) - want).max() <= 2.0**-9
    with pytest.raises(tcir.InputError, match="the number of keys of each batch and its pages"):
        tcir.compile_attention(q, k, v, pages=rows[:1], target="sm_90a")
    with pytest.raises(tcir.InputError, match="without key_lengths"):
        tcir.compile_attention(q, k, v, pages=rows, key_lengths=rows[:, 0], target="sm_90a")


@pytest.mark.parametrize("target", TARGETS)
def test_parts(target: str) -> None:
    """Two launches; the first one reads numbers of keys before its roles, so it starts as usual."""
    kernel, arrays = (
        tcir.compile(DECODE.text, "attention", target=target, split_kv=2),
        drawn(DECODE),
    )
    assert len(kernel.launches.launches) == 2
    assert off(DECODE, kernel.run(*arrays), arrays) <= 2


def test_a_page_is_loaded_by_boxes_of_it() -> None:
    """A block of 128 keys is eight boxes of keys and eight of values, the queries of a head one."""
    q, k, v, rows = drawn(DECODE)
    kernel = tcir.compile(DECODE.text, "attention", target="sm_90a")
    outputs = [OutputSpec((2, 4, 1, 32), np.dtype(np.float16)),
               OutputSpec((2, 4, 1), np.dtype(np.float32))]  # fmt: skip
    outcome = run_sequence(kernel.ptx, kernel.launches, [q, k, v, rows], outputs)
    blocks = sum(DECODE.g * -(-length // 128) for length in DECODE.lengths)
    assert outcome.counters["tma_loads"] == DECODE.b * DECODE.g + 2 * 8 * blocks


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Attention(b=2, h=1, g=1, m=1, n=288, d=32, scale=1.0, lengths=(1, 2), pages=20, page=32)


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _without(name: str, operand: int, index: int = 0) -> Edit:
    """Gives the users of an op's result one of its operands instead."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        op.results[0].replace_all_uses_with(op.operands[operand])

    return edit


def _the_first_page(module: Any) -> None:
    """The page of a block's second box is that of its first: an index is not read again."""
    first, second = (pick(module, "tc.load_index", n) for n in (1, 2))
    second.results[0].replace_all_uses_with(first.results[0])


BREAKS: dict[str, tuple[str, Edit]] = {
    "a stale page": ("sm_90a", _the_first_page),
    "the page after": ("sm_90a", change_operand("tc.load_index", 2, _plus(1), 1)),
    "the page before": ("sm_90a", change_operand("tc.load_index", 2, _plus(-1), 3)),
    "pages of values are not those of keys": (
        "sm_90a", change_operand("tc.load_index", 2, _plus(1), 5)
    ),
    "pages of the next batch": ("sm_90a", change_operand("tc.load_index", 1, _plus(1), 2)),
    "a key more": ("sm_90a", change_operand("tc.mask_fragment", 3, _plus(1))),
    "the number of keys is a page": ("sm_90a", change_operand("tc.load_index", 2, _plus(1), 0)),
    "rows: a stale page": ("sm_100a", _the_first_page),
    "rows: the page after": ("sm_100a", change_operand("tc.load_index", 2, _plus(1), 1)),
    "rows: pages of values": ("sm_100a", change_operand("tc.load_index", 2, _plus(1), 6)),
    "rows: no mask": ("sm_100a", _without("tc.mask_rows", 0)),
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
