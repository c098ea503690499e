"""Atomics that nothing orders are no race if each is in the scope of the other (PTX ISA 8.7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .test_async_store import entry

INIT = """setp.eq.u32 %p0, %r0, 0; mov.b32 %r9, 5; mov.b32 %r8, 1;
@%p0 mbarrier.init.shared::cta.b64 [%r3], 1; @%p0 st.shared.b32 [%r2], %r9;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.b32 %r4, 0; mapa.shared::cluster.u32 %r5, %r2, %r4; mapa.shared::cluster.u32 %r6, %r3, %r4;
setp.eq.u32 %p2, %r1, 0;
"""
EXPECT = "@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4;\n"
RED = (
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
    "[%r5], %r8, [%r6];\n"
)
WAIT = "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra W;\n"
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
END = SYNC + "ld.shared::cluster.b32 %r10, [%r5]; " + SYNC + "@%p2 st.global.b32 [%d0], %r10;\n"


def two(first: str, second: str, middle: str = WAIT) -> str:
    """CTA 0 does `first` to its word, CTA 1 `second`; CTA 0 then waits for the red.async."""
    sides = f"@%p2 bra A;\n{second}bra B;\nA: {first}B:\n"
    waits = middle.replace("W:", "@!%p2 bra D;\nW:") + "D:\n" if middle else ""
    return entry(INIT + EXPECT + sides + waits + END)


def run(text: str, **more: Any) -> tuple[RunReport, int]:
    out = np.zeros(1, np.uint32)
    sizes = {"grid": 2, "block": 1, "cluster": 2, **more}
    return run_ptx(text, args=[out], **sizes), int(out[0])


ATOM = "atom.relaxed.{}.shared::cluster.add.u32 %r11, [%r5], %r8;\n"
REDUCE = "red.relaxed.{}.shared::cluster.add.u32 [%r5], %r8;\n"


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
@pytest.mark.parametrize(
    "other", [ATOM.format("cluster"), ATOM.format("gpu"), REDUCE.format("sys"), ATOM.format("cta")]
)
def test_red_async_beside_an_atomic(other: str, seed: Any, assemble: Any) -> None:
    """CTA 0 owns the word: its atom.cta includes no thread of CTA 1, whose red.async it meets."""
    report, value = run(two(other, RED), order_seed=seed)
    if ".cta" in other:
        assert "race" in {f.code for f in report.findings}, report
        return
    assert report.ok and not report.findings and value == 7, report
    if seed is None:
        assemble(two(other, RED))


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_red_async_beside_an_ordinary_store_is_a_race(seed: Any) -> None:
    report, _ = run(two("st.shared::cluster.b32 [%r5], %r8;\n", RED), order_seed=seed)
    assert "race" in {f.code for f in report.findings}, report


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_what_an_atomic_came_beside_is_not_forgotten(seed: Any) -> None:
    """The atom of CTA 0 is the last writer, but the word also holds what nobody has waited for."""
    read = ATOM.format("cluster") + "ld.shared.b32 %r10, [%r2];\n"
    report, _ = run(two(read, RED), order_seed=seed)
    assert "race" in {f.code for f in report.findings}, report
    relaxed = ATOM.format("cluster") + "ld.relaxed.cluster.shared.b32 %r10, [%r2];\n"
    report, value = run(two(relaxed, RED), order_seed=seed)
    assert report.ok and value == 7, report


SCOPES = ["cta", "cluster", "gpu", "sys"]


@pytest.mark.parametrize("first", SCOPES)
@pytest.mark.parametrize("second", SCOPES)
@pytest.mark.parametrize("cluster", [1, 2])
def test_scopes_of_two_ctas(first: str, second: str, cluster: int, assemble: Any) -> None:
    """Two CTAs count in one word of global memory."""
    body = (
        "mov.u32 %r7, %ctaid.x; setp.eq.u32 %p0, %r7, 0; mov.b32 %r8, 1;\n"
        f"@%p0 red.relaxed.{first}.global.add.u32 [%d0], %r8;\n"
        f"@!%p0 red.relaxed.{second}.global.add.u32 [%d0], %r8;"
    )
    report, value = run(entry(body), cluster=cluster)
    narrow = {"cta"} if cluster == 2 else {"cta", "cluster"}
    race = bool(narrow & {first, second})
    assert value == 2 and {f.code for f in report.findings} == ({"race"} if race else set()), report
    if race:
        assert "scope" in report.findings[0].missing
    assemble(entry(body))


def test_a_flag_of_cta_scope_publishes_nothing_to_another_cta() -> None:
    """CTA 0 writes a word and releases a flag; CTA 1 acquires the flag and reads the word."""
    body = (
        "mov.u32 %r7, %ctaid.x; setp.ne.u32 %p0, %r7, 0; mov.b32 %r8, 1; @%p0 bra B;\n"
        "st.global.b32 [%d0+4], %r8; st.release.SCOPE.global.b32 [%d0], %r8; bra C;\n"
        "B: ld.acquire.SCOPE.global.b32 %r10, [%d0]; setp.eq.u32 %p1, %r10, 0; @%p1 bra B;\n"
        "ld.global.b32 %r11, [%d0+4];\nC:"
    )
    for scope, good in (("gpu", True), ("cta", False)):
        out = np.zeros(2, np.uint32)
        text = entry(body.replace("SCOPE", scope))
        report = run_ptx(text, args=[out], grid=2, block=1)
        assert report.ok == good, report
