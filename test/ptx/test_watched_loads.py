"""Which loads may be in flight while their thread lets others go on (watch/loads.py)."""

from __future__ import annotations

from functools import partial

import pytest

from tcir.interp.ptx.watch import loads

from .test_idle import decoded

COPY = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;"
"""Only kernels with bulk copies are asked."""
FENCE = "fence.proxy.async.shared::cta;"
LOAD, USE, ARRIVE = "ld.shared.b32 %r2, [%r1];", "add.u32 %r3, %r2, 1;", "bar.sync 0;"
CASES = {
    "used behind a signal": (f"{LOAD} {ARRIVE} {USE}", 1),
    "used in front of it": (f"{LOAD} {USE} {ARRIVE}", 0),
    "a fence in front of it": (f"{LOAD} {FENCE} {ARRIVE} {USE}", 0),
    "a fence on one of two ways": (f"{LOAD} @%p1 bra ON; {FENCE} ON: {ARRIVE} {USE}", 1),
    "a use on one of two ways": (f"{LOAD} @%p1 bra ON; {USE} ON: {ARRIVE} {USE}", 1),
    "used in the next turn": (f"TURN: {USE} {LOAD} {ARRIVE} @%p1 bra TURN;", 1),
    "used later in the next turn": (
        f"TURN: mov.u32 %r3, 0; {USE} {LOAD} {ARRIVE} @%p1 bra TURN;",
        1,
    ),
    "used in the same turn": (f"TURN: {LOAD} {USE} {ARRIVE} @%p1 bra TURN;", 0),
    "lanes of one warp": (f"{LOAD} bar.warp.sync -1; {USE}", 0),
    "never used": (f"{LOAD} {ARRIVE}", 0),
    "two loads, one of them used": (f"{LOAD} {USE} {LOAD} {ARRIVE} {USE}", 1),
}


def watched(body: str) -> int:
    """How many loads tell the machine that they are under way."""
    runs = [op.run for op in decoded(f".reg .b64 %rd1;\n{body}\n{COPY}").code]
    return sum(isinstance(run, partial) and run.func is loads._load for run in runs)


@pytest.mark.parametrize("case", CASES)
def test_loads(case: str) -> None:
    body, expected = CASES[case]
    assert watched(body) == expected


def test_without_a_bulk_copy_none() -> None:
    runs = [op.run for op in decoded(CASES["used behind a signal"][0]).code]
    assert not any(isinstance(run, partial) and run.func is loads._load for run in runs)
