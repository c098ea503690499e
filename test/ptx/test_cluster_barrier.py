"""barrier.cluster without .aligned: each lane arrives and waits when it comes.

Every legal program also goes through ptxas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .test_async_store import entry

READ = """xor.b32 %r4, %r1, 1; mapa.shared::cluster.u32 %r5, %r10, %r4;
ld.shared::cluster.b32 %r6, [%r5];
"""
BEGIN = """and.b32 %r8, %r0, 1; setp.eq.u32 %p1, %r8, 1;
shl.b32 %r10, %r0, 2; add.u32 %r10, %r10, %r2; mad.lo.u32 %r11, %r1, 100, %r0;
st.shared.b32 [%r10], %r11;
"""
END = """barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mad.lo.u32 %r12, %r1, 32, %r0; mul.wide.u32 %d1, %r12, 4; add.s64 %d1, %d0, %d1;
st.global.b32 [%d1], %r6;
"""
ARRIVE, WAIT = "barrier.cluster.arrive{};\n", "barrier.cluster.wait{};\n"


def apart(odd: str, even: str, read: str = READ) -> str:
    """Odd lanes go one way, even ones another, and each reads the word of its peer."""
    return entry(BEGIN + f"@%p1 bra A;\n{even}{read}bra B;\nA: {odd}{read}B:\n" + END)


def run(text: str, seed: int | None = None, block: int = 32) -> tuple[RunReport, np.ndarray]:
    out = np.zeros((2, 32), np.uint32)
    report = run_ptx(text, args=[out], grid=2, block=block, cluster=2, order_seed=seed)
    return report, out


BOTH = ARRIVE.format("") + WAIT.format("")


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
@pytest.mark.parametrize(
    "text",
    [
        apart(BOTH, BOTH),
        apart(ARRIVE.format(".release") + WAIT.format(".acquire"), BOTH),
        apart(BOTH, "mov.b32 %r9, 3;\n" + BOTH),
        entry(BEGIN + "@%p1 " + ARRIVE.format("") + "@!%p1 " + ARRIVE.format("")
              + WAIT.format(".aligned") + READ + END),
        entry(BEGIN + ARRIVE.format(".aligned") + "@%p1 " + WAIT.format("") + "@!%p1 "
              + WAIT.format("") + READ + END),
    ],
)  # fmt: skip
def test_lanes_apart(text: str, seed: Any, assemble: Any) -> None:
    report, out = run(text, seed)
    assert report.ok and not report.findings, report
    assert (out == 100 * np.array([[1], [0]]) + np.arange(32)).all()
    if seed is None:
        assemble(text)


def test_lanes_that_end_count_as_arrived(assemble: Any) -> None:
    """Odd lanes end; the others' barrier does not wait for them."""
    rest = "barrier.cluster.arrive; barrier.cluster.wait;\n"
    text = entry(BEGIN + "@%p1 exit;\n" + rest + "add.u32 %r6, %r11, 0;\n" + END)
    report, out = run(text)
    assert report.ok and (out[1, ::2] == 100 + np.arange(0, 32, 2)).all(), report
    late = entry(BEGIN + "@!%p1 " + ARRIVE.format("") + "@%p1 exit;\n" + WAIT.format("") + END)
    report, _ = run(late.replace("st.global.b32 [%d1], %r6;", ""))
    assert report.ok, report
    assemble(late)


@pytest.mark.parametrize(
    "text,code",
    [
        (apart(BOTH, ""), "deadlock|not-converged"),
        (apart(WAIT.format("") + ARRIVE.format(""), BOTH), "cluster-barrier-order"),
        (apart(ARRIVE.format("") + BOTH, BOTH), "cluster-barrier-order"),
        (apart(BOTH.replace(";", ".aligned;"), BOTH.replace(";", ".aligned;")), "not-converged"),
    ],
)
def test_wrong_orders(text: str, code: str) -> None:
    for seed in (None, 1):
        report, _ = run(text.replace("bra B;", "bra B;"), seed)
        assert [e.code for e in report.errors] and report.errors[0].code in code.split("|"), report


def test_reading_before_the_wait_is_a_race() -> None:
    text = apart(READ + BOTH, BOTH)
    assert "race" in {f.code for f in run(text)[0].findings} | {
        f.code for f in run(text, 1)[0].findings
    }
