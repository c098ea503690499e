"""What strong accesses and fences order between threads (PTX ISA 8.7 to 8.9).

Each pair is a program with and without its edge. A relaxed or volatile access hands over itself
only; what came before it needs a release or a fence in front, and an acquire or a fence behind,
each in the other's scope.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .test_async_store import entry

SEEDS = [None, 1, 2, 3, 4, 5, 6]
SPIN = "W: {} %r10, [%d0]; setp.eq.u32 %p1, %r10, 0; @%p1 bra W;"


def codes(report: RunReport) -> set[str]:
    return {f.code for f in report.findings} | {e.code for e in report.errors}


def passed(writer: str, reader: str) -> str:
    """CTA 0 stores a word and raises a flag; CTA 1 polls the flag and reads the word."""
    spins = SPIN.format("ld.relaxed.gpu.global.b32")
    return entry(
        "mov.u32 %r7, %ctaid.x; setp.ne.u32 %p0, %r7, 0; mov.b32 %r8, 1; @%p0 bra B;\n"
        f"{writer.replace('DATA', 'st.global.b32 [%d0+4], %r8;')}\nbra C;\n"
        f"B: {reader.replace('SPIN', spins)}\nld.global.b32 %r11, [%d0+4];\n"
        "st.global.b32 [%d0+8], %r11;\nC:"
    )


def run(text: str, seed: int | None = None, **sizes: Any) -> tuple[RunReport, np.ndarray]:
    out = np.zeros(8, np.uint32)
    report = run_ptx(text, args=[out], order_seed=seed, **{"grid": 2, "block": 1, **sizes})
    return report, out


FLAG = " st.relaxed.gpu.global.b32 [%d0], %r8;"
FENCED = "DATA fence.acq_rel.gpu;" + FLAG
BEHIND = "SPIN fence.acq_rel.gpu;"
VOLATILE = " st.volatile.global.b32 [%d0], %r8;"
AGAIN = SPIN.format("ld.volatile.global.b32")
ATOM = SPIN.format("atom.relaxed.gpu.global.or.b32").replace("[%d0]", "[%d0], 0")
ACQUIRE = SPIN.format("ld.acquire.gpu.global.b32")
RELEASE = "DATA st.release.gpu.global.b32 [%d0], %r8;"

PAIR = "mov.b32 %r9, 0; DATA st.release.gpu.global.v2.b32 [%d0+16], {%r9, %r8};"
WIDE = "mov.b64 %d4, {%r8, %r8}; DATA st.release.gpu.global.b64 [%d0+16], %d4;"
SECOND = ACQUIRE.replace("[%d0]", "[%d0+20]")
"""A flag at +20, the second of two words; WIDE writes 64 bits at once."""

RIGHT = {
    "fences": (FENCED, BEHIND),
    "fence-sc": (FENCED.replace("acq_rel", "sc"), BEHIND.replace("acq_rel", "sc")),
    "wider-fences": (FENCED.replace("acq_rel.gpu", "acq_rel.sys"), BEHIND),
    "one-sided-fences": (FENCED.replace("acq_rel", "release"),
                         BEHIND.replace("acq_rel", "acquire")),
    "membar-volatile": ("DATA membar.gl;" + VOLATILE, AGAIN + "membar.gl;"),
    "release-acquire": (RELEASE, ACQUIRE),
    "release-fence": (RELEASE, BEHIND),
    "fence-acquire": (FENCED, ACQUIRE),
    "atom-fence": ("DATA fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%d0], 1;",
                   ATOM + "fence.acq_rel.gpu;"),
    "red-release": ("DATA red.release.gpu.global.add.u32 [%d0], 1;", ACQUIRE),
    "atom-acq-rel": ("DATA atom.acq_rel.gpu.global.add.u32 %r9, [%d0], 1;",
                     ATOM.replace("relaxed", "acquire")),
    "release-then-relaxed": (RELEASE + FLAG, ACQUIRE),
    "element-of-a-vector": (PAIR, SECOND),
    "vector-of-a-vector": (
        PAIR, SECOND.replace("b32 %r10, [%d0+20]", "v2.b32 {%r9, %r10}, [%d0+16]")),
    "mmio-release": ("DATA st.async.mmio.release.sys.global.b32 [%d0], %r8;", ACQUIRE),
}  # fmt: skip
WRONG = {
    "no-fence": ("DATA" + FLAG, "SPIN"),
    "no-fence-of-the-writer": ("DATA" + FLAG, BEHIND),
    "no-fence-of-the-reader": (FENCED, "SPIN"),
    "cta-fence-of-the-writer": (FENCED.replace("acq_rel.gpu", "acq_rel.cta"), BEHIND),
    "cta-fence-of-the-reader": (FENCED, "SPIN fence.acq_rel.cta;"),
    "cluster-fences": (FENCED.replace("acq_rel.gpu", "acq_rel.cluster"),
                       "SPIN fence.acq_rel.cluster;"),
    "fence-too-early": ("fence.acq_rel.gpu; DATA" + FLAG, BEHIND),
    "fence-before-the-poll": (FENCED, "fence.acq_rel.gpu; SPIN"),
    "acquire-fence-of-the-writer": (FENCED.replace("acq_rel", "acquire"), BEHIND),
    "release-fence-of-the-reader": (FENCED, BEHIND.replace("acq_rel", "release")),
    "volatile": ("DATA" + VOLATILE, AGAIN),
    "relaxed-atomics": ("DATA red.relaxed.gpu.global.add.u32 [%d0], 1;", ATOM),
    "atomics-without-qualifiers": ("DATA red.global.add.u32 [%d0], 1;",
                                   ATOM.replace(".relaxed.gpu", "")),
    "acquire-of-a-relaxed-flag": ("DATA" + FLAG, ACQUIRE),
    "relaxed-poll-of-a-release": (RELEASE, "SPIN"),
    "half-of-a-wider-flag": (WIDE, ACQUIRE.replace("[%d0]", "[%d0+16]")),
    "red-observes-nothing": (
        RELEASE, "red.relaxed.gpu.global.add.u32 [%d0], 1; fence.acq_rel.gpu;"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_message_passing_with_its_edges(name: str, assemble: Any) -> None:
    for seed in SEEDS:
        report, out = run(passed(*RIGHT[name]), seed)
        assert report.ok and not report.findings and out[2] == 1, (seed, report)
    if "mmio" not in name:
        assemble(passed(*RIGHT[name]))


@pytest.mark.parametrize("name", WRONG)
def test_message_passing_without_an_edge(name: str) -> None:
    for seed in SEEDS:
        report, _ = run(passed(*WRONG[name]), seed)
        assert "race" in codes(report), (seed, report)


def test_a_fence_of_the_cluster_serves_its_ctas_and_no_others() -> None:
    writer, reader = WRONG["cluster-fences"]
    for seed in SEEDS:
        report, out = run(passed(writer, reader), seed, cluster=2)
        assert report.ok and not report.findings and out[2] == 1, (seed, report)


def last_block(before: str, behind: str, reset: str = "") -> str:
    """Each CTA stores a part and draws a ticket; the last one sums the parts."""
    return entry(
        "mov.u32 %r7, %ctaid.x; mul.wide.u32 %d1, %r7, 4; add.s64 %d1, %d1, %d0;\n"
        "st.global.b32 [%d1+8], %r7;\n"
        f"{before} atom.global.add.u32 %r8, [%d0], 1; {behind}\n"
        "setp.ne.u32 %p0, %r8, 3; @%p0 bra C;\n"
        "ld.global.b32 %r9, [%d0+8]; ld.global.b32 %r10, [%d0+12]; add.u32 %r9, %r9, %r10;\n"
        "ld.global.b32 %r10, [%d0+16]; add.u32 %r9, %r9, %r10;\n"
        "ld.global.b32 %r10, [%d0+20]; add.u32 %r9, %r9, %r10; st.global.b32 [%d0+4], %r9;\n"
        f"{reset}\nC:"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_last_block(seed: int | None) -> None:
    """The ticket carries the fences of all CTAs before: atomics extend a release (8.9.2)."""
    fence = "membar.gl;"
    reset = "mov.b32 %r11, 0; st.global.b32 [%d0], %r11;"
    report, out = run(last_block(fence, fence, reset), seed, grid=4)
    assert report.ok and not report.findings and out[1] == 6 and out[0] == 0, report
    for before, behind in (("", ""), (fence, ""), ("", fence), ("membar.cta;", "membar.cta;")):
        report, _ = run(last_block(before, behind), seed, grid=4)
        assert "race" in codes(report), (before, behind, report)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_observed_counter_may_be_reset(seed: int | None) -> None:
    """A relaxed read comes after the writes that it observed, fences or not (PTX ISA 8.9.5)."""
    count = "atom.global.add.u32 %r8, [%d0], 1; setp.ne.u32 %p0, %r8, {}; @%p0 bra C;\n"
    reset = "mov.b32 %r11, 9; st.global.b32 [%d0], %r11;\nC:"
    report, out = run(entry(count.format(3) + reset), seed, grid=4)
    assert report.ok and not report.findings and out[0] == 9, report
    report, _ = run(entry(count.format(2) + reset), seed, grid=4)
    assert "race" in codes(report), report


LOCK = """mov.b32 %r8, 1;
W: atom.{}.gpu.global.cas.b32 %r9, [%d0], 0, 1; setp.ne.u32 %p0, %r9, 0; @%p0 bra W;
ld.global.b32 %r10, [%d0+4]; add.u32 %r10, %r10, 1; st.global.b32 [%d0+4], %r10;
atom.{}.gpu.global.exch.b32 %r9, [%d0], 0;"""


@pytest.mark.parametrize("seed", SEEDS)
def test_spin_lock(seed: int | None) -> None:
    report, out = run(entry(LOCK.format("acquire", "release")), seed, grid=3)
    assert report.ok and not report.findings and out[1] == 3, report
    for orders in (("relaxed", "relaxed"), ("relaxed", "release"), ("acquire", "relaxed")):
        report, _ = run(entry(LOCK.format(*orders)), seed, grid=3)
        assert "race" in codes(report), (orders, report)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failed_cas_releases_nothing(seed: int | None) -> None:
    """CTA 0 holds the flag up and fails to change it; what it did before is not handed on."""
    text = (
        "mov.u32 %r7, %ctaid.x; setp.ne.u32 %p0, %r7, 0; mov.b32 %r8, 1; @%p0 bra B;\n"
        "st.relaxed.gpu.global.b32 [%d0], %r8; st.global.b32 [%d0+4], %r8;\n"
        "atom.release.gpu.global.cas.b32 %r9, [%d0], {}, 2; bra C;\n"
        "B: W: ld.acquire.gpu.global.b32 %r10, [%d0]; setp.eq.u32 %p1, %r10, 0; @%p1 bra W;\n"
        "ld.global.b32 %r11, [%d0+4];\nC:"
    )
    report, _ = run(entry(text.format(3)), seed)
    assert "race" in codes(report), report
    succeeds = text.format(1).replace("%r10, 0;", "%r10, 2;").replace("setp.eq", "setp.ne")
    report, _ = run(entry(succeeds), seed)
    assert report.ok and not report.findings, report


def test_a_flag_in_the_cta() -> None:
    """Two warps: without release or acquire the flag in shared memory orders nothing."""
    text = (
        "mov.b32 %r8, 0; mov.b32 %r9, 1; st.shared.b32 [bar], %r8; bar.sync 0;\n"
        "setp.ge.u32 %p0, %r0, 32; @%p0 bra B; st.shared.b32 [sm], %r0;\n"
        "st.{}.cta.shared.b32 [bar], %r9; bra C;\n"
        "B: ld.{}.cta.shared.b32 %r10, [bar]; setp.eq.u32 %p1, %r10, 0; @%p1 bra B;\n"
        "ld.shared.b32 %r11, [sm];\nC:"
    ).replace("[sm], %r0", "[sm], %r9")
    for seed in SEEDS:
        report, _ = run(entry(text.format("release", "acquire")), seed, grid=1, block=64)
        assert report.ok, report
        for orders in (("relaxed", "acquire"), ("release", "relaxed")):
            report, _ = run(entry(text.format(*orders)), seed, grid=1, block=64)
            assert "race" in codes(report), (orders, report)
