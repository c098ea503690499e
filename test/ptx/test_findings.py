"""Findings of PTX programs name both instructions with their lines, and the source where known."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tcir.machine.findings import Findings
from tcir.run import RunReport, run_ptx

from .test_tcgen05 import LOAD, WAIT_FULL, gemm, launch, operands

WAIT_DONE = (
    "WAIT_DONE: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], 0; @!%p4 bra WAIT_DONE;"
)
AFTER = " tcgen05.fence::after_thread_sync;\n"


@dataclass(frozen=True)
class Fault:
    """`old` becomes `new`; then `kind` is about instructions that begin with these."""

    kind: str
    old: str
    new: str
    first: str
    second: str
    words: str


FAULTS = [
    Fault("race", WAIT_FULL, "", LOAD, "tcgen05.mma", "wait on the mbarrier that the TMA load"),
    Fault("race", WAIT_DONE, "", "tcgen05.mma", "tcgen05.ld", "tcgen05.commit after the mma"),
    Fault("race", " tcgen05.wait::ld.sync.aligned;", "", "tcgen05.ld", "tcgen05.dealloc",
          "tcgen05.wait::ld"),
    Fault("missing-fence-after", WAIT_DONE + "\n" + AFTER, WAIT_DONE + "\n", "tcgen05.mma",
          "tcgen05.ld", "tcgen05.fence::after_thread_sync"),
    Fault("tensor-memory-leak", "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128;", "",
          "128 columns", "the end of the kernel", "tcgen05.dealloc"),
    Fault("never-awaited", WAIT_FULL, "", LOAD, "the end of the kernel", "a wait for its bytes"),
    Fault("undefined-read", '%rd11, %r9, %p5', "%rd11, %r9, 1", "tcgen05.mma", "accumulator",
          "nothing wrote"),
    Fault("undefined-register", "setp.ne.u32 %p5, %r10, 0;", "", "tcgen05.mma", "%p5",
          "nothing wrote the register"),
]  # fmt: skip


def faulty(fault: Fault, seed: int | None) -> tuple[str, RunReport]:
    assert fault.old in gemm(), fault.old
    text = gemm().replace(fault.old, fault.new, 1)
    _, _, maps, out = operands(64, exact=True)
    return text, launch(text, maps, out, 24576, order_seed=seed, ordering="isa")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.kind}-{f.second}".replace(" ", "_"))
def test_lines_of_both_operations(fault: Fault) -> None:
    for seed in (None, 1):
        text, report = faulty(fault, seed)
        mine = [f for f in report.findings if f.code == fault.kind and fault.words in f.missing]
        pairs = [(f.first, f.second) for f in mine]
        if any(_about(text, a, fault.first) and _about(text, b, fault.second) for a, b in pairs):
            return
    raise AssertionError(str(report))


def _about(text: str, shown: str, wanted: str) -> bool:
    """Whether it is the line of that instruction of the text, or these words of no instruction."""
    found = re.match(r"line (\d+): ", shown)
    if found is None:
        return wanted in shown
    return wanted in text.splitlines()[int(found[1]) - 1] and wanted in shown


def test_the_source_line_where_the_ptx_tells_it() -> None:
    text = gemm().replace(WAIT_FULL, ".loc 1 77 3\n", 1)
    text = text.replace(".address_size 64\n", '.address_size 64\n.file 1 "kernel.mlir"\n', 1)
    _, _, maps, out = operands(64, exact=True)
    report = launch(text, maps, out, 24576)
    races = [f for f in report.findings if f.code == "race" and "tcgen05.mma" in f.second]
    assert races and all("(kernel.mlir:77)" in f.second for f in races), str(report)


def test_registers_before_the_wait() -> None:
    """The value is the right one all the same."""
    a, b, maps, out = operands(64, exact=True)
    wait = " tcgen05.wait::ld.sync.aligned;"
    store = next(line for line in gemm().splitlines() if "st.global" in line)
    early = gemm().replace(wait, "", 1).replace(store, f"{store}\n{wait}", 1)
    report = launch(early, maps, out, 24576)
    assert (out == a.astype(np.float32) @ b.astype(np.float32).T).all()
    found = [f for f in report.findings if f.code == "registers-before-wait"]
    assert [f.severity for f in found] == ["warning"] and report.ok, str(report)
    assert "tcgen05.ld" in found[0].first and "st.global" in found[0].second
    assert launch(gemm(), maps, out, 24576).findings == []


RACES = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k()
{
  .reg .b32 %r<4>; .reg .pred %p1; .shared .align 4 .b8 words[12];
  mov.u32 %r1, words; mov.u32 %r2, %tid.x; setp.ge.u32 %p1, %r2, 32;
  st.shared.b32 [%r1], %r2;
  st.shared.b32 [%r1+4], %r2;
  st.shared.b32 [%r1+8], %r2;
  ret;
}
"""


def test_findings_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_ptx(RACES, grid=1, block=64)
    assert len(whole.findings) == 3 * 2  # between lanes of a warp, and between warps
    assert "further findings" not in str(whole)
    monkeypatch.setattr(Findings, "LIMIT", 2)
    short = run_ptx(RACES, grid=1, block=64)
    assert short.findings == [
        replace(f, count=n.count) for f, n in zip(whole.findings[:2], short.findings, strict=True)
    ]
    assert short.unnamed == sum(f.count for f in whole.findings) - sum(
        f.count for f in short.findings
    )
    assert f"… {short.unnamed} events of further findings" in str(short)
