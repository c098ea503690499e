"""setmaxnreg: the registers of a CTA, moved between warpgroups (PTX ISA 9.7.19.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.codegen import assemble
from tcir.errors import Error, LaunchError
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.register_counts import allocated, at_entry
from tcir.run import RunReport, run_ptx

KERNEL = Path(__file__).resolve().parents[1] / "hopper" / "setmaxnreg.ptx"
GIVE = "setmaxnreg.dec.sync.aligned.u32 {};"
TAKE = "setmaxnreg.inc.sync.aligned.u32 {};"


def kernel(*bodies: str, directives: str = ".maxntid 384\n.maxnreg 168") -> str:
    """Each body is a warpgroup's; then all threads write a word."""
    branches = "".join(f"setp.eq.u32 %p0, %r1, {n}; @%p0 bra W{n};\n" for n in range(len(bodies)))
    parts = "".join(f"W{n}: {body} bra END;\n" for n, body in enumerate(bodies))
    return f""".version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{directives}
{{
 .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
 mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 7; shr.u32 %r2, %r0, 5; and.b32 %r2, %r2, 3;
 {branches} bra END;
{parts}
END:
 ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r0;
 ret;
}}
"""


def run(text: str, warpgroups: int = 3, **options: Any) -> RunReport:
    out = np.zeros(128 * warpgroups, np.uint32)
    report = run_ptx(text, grid=1, block=128 * warpgroups, args=[out], hazards="report", **options)
    assert not report.ok or (out == np.arange(len(out))).all()
    return report


def codes(report: RunReport) -> set[str]:
    """Kinds of all findings."""
    return {finding.code for finding in report.findings}


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts", [(40, 232, 232), (24, 240, 240), (168, 168, 168), (64, 216, 216)]
)
def test_shares_of_504(counts: tuple[int, ...]) -> None:
    """As the best kernels have them: 3 * 168."""
    bodies = [(GIVE if n <= 168 else TAKE).format(n) for n in counts]
    for seed in (None, 1, 2):
        report = run(kernel(*bodies), order_seed=seed)
        assert report.ok and not report.findings, str(report)


@pytest.mark.parametrize("counts", [(40, 240, 232), (48, 232, 232), (24, 240, 248)])
def test_more_than_504_wait_forever(counts: tuple[int, ...]) -> None:
    bodies = [(GIVE if n <= 168 else TAKE).format(n) for n in counts]
    report = run(kernel(*bodies))
    assert not report.ok and "in the CTA's pool" in str(report), str(report)


def test_what_is_taken_first_waits_for_what_is_given() -> None:
    """A barrier that the giver reaches only behind the taker's inc."""
    meet = "bar.sync 1, 256;"
    late = [f"{meet} {GIVE.format(40)}", f"{TAKE.format(232)} {meet}", TAKE.format(200)]
    report = run(kernel(*late))
    assert not report.ok and "barrier 1" in str(report) and "in the CTA's pool" in str(report)
    early = [f"{GIVE.format(40)} {meet}", f"{TAKE.format(232)} {meet}", TAKE.format(200)]
    assert run(kernel(*early)).ok


def test_given_back_and_taken_again() -> None:
    """A warpgroup gives what it took, behind a barrier of its own."""
    meet = "bar.sync {}, 128;"
    again = f"{TAKE.format(232)} {meet.format(2)} {GIVE.format(168)} bar.arrive 3, 256;"
    other = f"bar.sync 3, 256; {TAKE.format(232)}"
    assert run(kernel(GIVE.format(104), again, other)).ok
    report = run(kernel(GIVE.format(104), again.replace(GIVE.format(168), ""), other))
    assert not report.ok and "in the CTA's pool" in str(report)


def test_the_kernel_that_an_h200_ran() -> None:
    """There the inc ended within 32 ns of the dec, 101 µs after it began
    (docs/explanation/hopper.md)."""
    text = KERNEL.read_text().replace("200000", "20")
    report = run_ptx(text, grid=1, block=256, args=[np.zeros(6, np.uint64)], hazards="report")
    assert report.ok and not report.findings, str(report)
    text = text.replace(GIVE.format(48), "")
    report = run_ptx(text, grid=1, block=256, args=[np.zeros(6, np.uint64)], hazards="report")
    assert not report.ok and "80 more registers per thread, with 0 in the CTA's pool" in str(report)


# --- wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        (GIVE.format(176), "register-count"),
        (GIVE.format(168), None),
        (GIVE.format(40) + " bar.sync 1, 128; " + TAKE.format(32), "register-count"),
        (GIVE.format(40) + " bar.sync 1, 128; " + TAKE.format(40), None),
        (GIVE.format(40) + TAKE.format(48), "register-order"),
        (GIVE.format(40) + " bar.sync 1, 128; " + TAKE.format(48), None),
        (GIVE.format(40) + " bar.warp.sync -1; " + TAKE.format(48), "register-order"),
    ],
)
def test_undefined_uses(body: str, finding: str | None) -> None:
    """By the other warpgroups there is an inc to 240, so that all 168 are there at entry."""
    report = run(kernel(body, f"bra END; {TAKE.format(240)}"))
    assert codes(report) == ({finding} if finding else set()), str(report)
    assert report.ok == (finding is None)


def test_a_second_one_for_nothing() -> None:
    """Triton's workers take and give in a loop, between partitions that want as many."""
    body = GIVE.format(40) + TAKE.format(40)
    report = run(kernel(body))
    assert report.ok and codes(report) == {"register-order"}, str(report)
    assert not run(kernel(body), ordering="isa").ok
    apart = run(kernel(GIVE.format(40) + " bar.sync 1, 128; " + TAKE.format(40)), ordering="isa")
    assert apart.ok and not apart.findings


@pytest.mark.parametrize(
    "other",
    ["mov.u32 %r3, 0;", GIVE.format(48), TAKE.format(176)],
)
def test_all_warps_of_a_group_do_the_same(other: str) -> None:
    apart = f"setp.eq.u32 %p1, %r2, 3; @%p1 bra OTHER; {GIVE.format(40)} bra END; OTHER: {other}"
    report = run(kernel(apart))
    assert report.ok and codes(report) == {"register-warpgroup"}, str(report)
    assert not run(kernel(apart), ordering="isa").ok
    same = apart.replace(other, GIVE.format(40))
    for ordering in ("silicon", "isa"):
        assert not run(kernel(same), ordering=ordering).findings


@pytest.mark.parametrize(
    ("directives", "known"),
    [
        ("", False),
        (".maxntid 384", False),
        (".reqntid 384", False),
        (".maxnreg 168", True),
        (".maxntid 384\n.minnctapersm 1", True),
        (".reqntid 384\n.minnctapersm 1", True),
    ],
)
def test_without_a_register_count_at_entry(directives: str, known: bool) -> None:
    """ptxas ignores the instruction then (C7508)."""
    text = kernel(GIVE.format(40), TAKE.format(232), TAKE.format(232), directives=directives)
    report = run(text)
    assert report.ok and codes(report) == (set() if known else {"register-cap"}), str(report)
    if known:
        assert assemble(text, target="sm_90a").data
    else:
        with pytest.raises(Error, match=r"ptxas dropped something: .*setmaxnreg"):
            assemble(text, target="sm_90a")


# --- at entry ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directives", "inc", "registers"),
    [
        (".maxntid 256\n.minnctapersm 1", 208, 208),
        (".maxntid 256\n.minnctapersm 1", 0, 255),
        (".maxntid 384\n.minnctapersm 1", 240, 168),
        (".maxntid 512\n.minnctapersm 1", 208, 128),
        (".maxntid 1024\n.minnctapersm 1", 208, 64),
        (".maxntid 256\n.minnctapersm 2", 208, 128),
        (".maxntid 256\n.maxnreg 100", 208, 100),
        (".maxntid 384\n.maxnreg 168", 160, 160),
        (".maxntid 384\n.maxnreg 168", 0, 168),
        (".maxntid 384\n.minnctapersm 1\n.maxnreg 160", 208, 160),
    ],
)
def test_registers_at_entry(directives: str, inc: int, registers: int) -> None:
    """What ptxas 13.5 says of the cubins of these kernels."""
    body = TAKE.format(inc) if inc else GIVE.format(40)
    function = parse(kernel(body, directives=directives)).functions["k"]
    assert at_entry(function) == registers
    assert allocated(function) == -(-registers // 8) * 8


def test_an_sm_has_65536() -> None:
    text = kernel(GIVE.format(40), TAKE.format(232), directives=".maxnreg 168")
    assert run(text).ok
    with pytest.raises(LaunchError, match="at most 384 threads of 168 registers"):
        run(text, warpgroups=4)


def test_in_a_function_it_is_the_kernels() -> None:
    text = kernel("call give;", TAKE.format(232), TAKE.format(232))
    text = text.replace(".visible", f".func give()\n{{\n {GIVE.format(40)}\n ret;\n}}\n.visible", 1)
    report = run(text)
    assert report.ok and not report.findings, str(report)
    assert not run(text.replace("call give;", "")).ok
