"""Attention with numbers of keys for each batch: every level, beside numpy; blocks beyond them are
not loaded; breaks seen at their pass, wrong numbers named."""

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
CASES = [
    (Attention(b=2, h=1, m=70, n=200, d=16, lengths=(130, 0)), {}),
    (Attention(b=3, h=4, g=2, m=1, n=300, d=32, lengths=(0, 300, 129)), {}),
    (Attention(b=2, m=40, n=300, d=32, causal=200, window=-20, lengths=(1, 256)), {"stages": 1}),
    (Attention(b=2, h=2, m=1, n=640, d=64, element="bf16", body=("bias hn f32", "mask bn"),
               lengths=(600, 100)), {"split_kv": 3}),
    (Attention(b=3, m=130, n=260, d=16, e=32, q="bmhd", kv="bnhd", out="bmhd", result="f32",
               lse=False, lengths=(128, 40, 257)), {"tau": 0.0}),
    (Attention(b=2, h=8, g=1, m=1, n=384, d=128, causal=199, lengths=(384, 64)), {"split_kv": 2}),
    (Attention(b=3, h=1, m=200, n=300, d=16, lengths=(300, 0, 100)), {"ctas": 2}),
]  # fmt: skip
NAMES = [str(case) for case, _ in CASES]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("case", "options"),
    CASES,
    ids=NAMES,
)
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


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
def test_orders_and_draws(target: str) -> None:
    """Rising maxima, rows of one key, large logits, special values; no hazard in other orders."""
    case = Attention(b=3, h=2, g=1, m=2, n=300, d=32, causal=280, lengths=(1, 2, 3))
    tcir.validate(case.text, "attention", target=target, orders=6, stages=2).check()


def test_blocks_beyond_are_not_loaded() -> None:
    """Queries, and a block of keys and one of values for every 128 keys begun."""
    case = Attention(h=1, m=1, n=512, d=16, lse=False, lengths=(512,))
    kernel = tcir.compile(case.text, "attention", target="sm_90a", split_kv=1)
    outputs, loads = [OutputSpec((1, 1, 1, 16), np.dtype(np.float16))], []
    for length in (0, 128, 129, 512):
        arrays = [*drawn(case)[:-1], np.array([length], np.int32)]
        outcome = run_sequence(kernel.ptx, kernel.launches, arrays, outputs)
        loads.append(outcome.counters["tma_loads"])
    assert loads == [1, 3, 5, 9]


@pytest.mark.parametrize(
    ("lengths", "what"), [((200, 201), "201 for batch 1"), ((-1, 5), "-1 for batch 0")]
)
def test_wrong_numbers_are_named(lengths: tuple[int, int], what: str) -> None:
    case = Attention(b=2, h=1, m=1, n=200, d=16, lengths=lengths)
    outputs = [
        OutputSpec(shape, np.dtype(kind))
        for shape, kind in (((2, 1, 1, 16), np.float16), ((2, 1, 1), np.float32))
    ]
    with mlir_context() as context:
        run, module = executor_for("tensor"), load_module(case.text, context)
        with pytest.raises(tcir.InputError, match=f"keys from 0 to 200, got {what}"):
            run(module, "attention", drawn(case), outputs)


@pytest.mark.parametrize("level", ["tile", "ptx"])
def test_kernels_take_the_nearest_number(level: str) -> None:
    case = Attention(b=2, h=1, m=1, n=200, d=16, lengths=(0, 200))
    arrays = [*drawn(case)[:-1], np.array([-7, 201], np.int32)]
    kernel = tcir.compile(case.text, "attention", target="sm_90a")
    if level == "ptx":
        got = kernel.run(*arrays)
    else:
        outputs = [
            OutputSpec(shape, np.dtype(kind))
            for shape, kind in (((2, 1, 1, 16), np.float16), ((2, 1, 1), np.float32))
        ]
        with mlir_context() as context:
            module = load_module(kernel.ir["skew-attention"], context)
            got = tuple(executor_for("tile")(module, "attention", arrays, outputs).outputs)
    assert off(case, got, drawn(case)) <= 2


# --- breaks ------------------------------------------------------------------------------------

BROKEN = Attention(b=3, h=2, g=1, m=1, n=520, d=32, scale=1.0, lengths=(1, 2, 3))


def _plus(amount: int) -> Any:
    return lambda old: arith.addi(old, arith.constant(old.type, amount))


def _without(name: str, operand: int, index: int = 0) -> Edit:
    """Gives the users of an op's result one of its operands instead."""

    def edit(module: Any) -> None:
        op = pick(module, name, index)
        op.results[0].replace_all_uses_with(op.operands[operand])

    return edit


BREAKS: dict[str, tuple[str, Edit]] = {
    "lengths of the next batch": ("sm_90a", change_operand("tc.load_index", 1, _plus(1))),
    "a key more": ("sm_90a", change_operand("tc.mask_fragment", 3, _plus(1))),
    "a key less": ("sm_90a", change_operand("tc.mask_fragment", 3, _plus(-1))),
    "no mask": ("sm_90a", _without("tc.mask_fragment", 0)),
    "the last block only if it is whole": ("sm_90a", change_operand("arith.divui", 0, _plus(-127))),
    "blocks of all keys": ("sm_90a", change_operand("scf.for", 1, _plus(9))),
    "rows: a key more": ("sm_100a", change_operand("tc.mask_rows", 3, _plus(1))),
    "rows: no mask": ("sm_100a", _without("tc.mask_rows", 0)),
    "rows: lengths of the next batch": ("sm_100a", change_operand("tc.load_index", 1, _plus(1))),
}


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
