"""CTAs that share an SM, and so tensor memory: `run_ptx(..., ctas_per_sm=…)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import Assumptions
from tcir.run import LaunchError, RunReport, run_ptx

from .conftest import HEADER

COLLECTIVE = "cta_group::GROUP.sync.aligned"
GIVE_UP = f" tcgen05.relinquish_alloc_permit.{COLLECTIVE};\n"
FREE = f" tcgen05.dealloc.{COLLECTIVE}.b32 %r2, COLUMNS;\n"
#: All CTAs have columns at the same time, or nobody goes on.
MEET = """ @%p1 atom.add.acq_rel.gpu.global.u32 %r5, [%d1], 1;
M: ld.acquire.gpu.global.u32 %r5, [%d1]; setp.lt.u32 %p2, %r5, CTAS; @%p2 bra M;
"""
PAIR = " barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"


def kernel(columns: int, between: str, end: str = GIVE_UP + FREE, group: int = 1) -> str:
    """A warp that allocates, writes its CTA's number into its first column and reads it back."""
    text = f"""{HEADER.replace("8.8", "9.4")}.visible .entry k(.param .u64 out, .param .u64 met)
{{{PAIR.replace("arrive", "arrive.relaxed") if group == 2 else ""}
 .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>; .shared .align 4 .b32 base;
 ld.param.u64 %d0, [out]; ld.param.u64 %d1, [met]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
 setp.eq.u32 %p1, %r0, 0;
 tcgen05.alloc.{COLLECTIVE}.shared::cta.b32 [base], COLUMNS;
 ld.shared.b32 %r2, [base];
 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {{%r1}};
 tcgen05.wait::st.sync.aligned;
{between}
 tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r3}}, [%r2];
 tcgen05.wait::ld.sync.aligned;
 mad.lo.u32 %r4, %r1, 32, %r0; mul.wide.u32 %d2, %r4, 8; add.s64 %d2, %d0, %d2;
 st.global.v2.b32 [%d2], {{%r2, %r3}};
{end}
 ret;
}}
"""
    return text.replace("GROUP", str(group)).replace("COLUMNS", str(columns))


def run(text: str, ctas: int = 2, per_sm: int = 2, **more: Any) -> tuple[RunReport, np.ndarray]:
    out, met = np.zeros((ctas, 32, 2), np.uint32), np.zeros(1, np.uint32)
    report = run_ptx(
        text.replace("CTAS", str(ctas)),
        grid=ctas,
        block=32,
        args=[out, met],
        ctas_per_sm=per_sm,
        **more,
    )
    return report, out


@pytest.mark.parametrize(("columns", "ctas"), [(256, 2), (128, 4), (32, 3)])
@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_columns_of_several_ctas(columns: int, ctas: int, seed: Any, assemble: Any) -> None:
    text = kernel(columns, MEET)
    report, out = run(text, ctas, ctas, order_seed=seed)
    assert report.ok and not report.findings, str(report)
    assert (out[..., 1] == np.arange(ctas)[:, None]).all()
    bases = out[:, 0, 0]
    assert len(set(bases)) == ctas and (bases % columns == 0).all()
    if seed is None:
        assert bases.tolist() == [columns * n for n in range(ctas)]
        assemble(text.replace("CTAS", "2"))


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_alloc_waits_for_the_columns_of_another_cta(seed: Any) -> None:
    report, out = run(kernel(512, ""), 6, 3, order_seed=seed)
    assert report.ok and not report.findings, str(report)
    assert (out[..., 0] == 0).all() and (out[..., 1] == np.arange(6)[:, None]).all()


AGAIN = f" tcgen05.alloc.{COLLECTIVE}.shared::cta.b32 [base], COLUMNS;\n"


def test_more_than_there_is() -> None:
    """Each has half of the columns and waits for the other half; alone on its SM it gets them."""
    more = MEET + AGAIN + " ld.shared.b32 %r6, [base];\n" + FREE.replace("%r2", "%r6")
    report, _ = run(kernel(256, more))
    message = str(report.errors[0])
    assert [e.code for e in report.errors] == ["deadlock"]
    assert "CTA (0, 0, 0): no agent can go on" in message and "CTA (1, 0, 0): no agent" in message
    assert "256 free columns of tensor memory" in message
    assert "it has 0..255; CTA (1, 0, 0) has 256..511" in message
    assert "CTA (0, 0, 0) has 0..255; it has 256..511" in message
    assert run(kernel(256, more.replace(MEET, "")), per_sm=1)[0].ok


def test_a_leak_keeps_the_next_cta_out() -> None:
    report, _ = run(kernel(512, "", GIVE_UP))
    assert [e.code for e in report.errors] == ["deadlock"]
    assert "CTA (0, 0, 0) has 0..511" in str(report.errors[0])
    assert "tensor-memory-leak" in {f.code for f in report.errors[0].findings}
    report, _ = run(kernel(512, "", GIVE_UP), per_sm=1)
    assert report.errors == [] and {f.code for f in report.findings} == {"tensor-memory-leak"}


def test_columns_of_another_cta_are_not_to_be_touched() -> None:
    report, _ = run(kernel(256, MEET + " xor.b32 %r2, %r2, 256;"))
    assert [e.code for e in report.errors] == ["tensor-memory-columns"]


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("permit", ["shared", "owned"])
def test_the_right_to_allocate(permit: str, early: bool) -> None:
    text = kernel(256, GIVE_UP + MEET, FREE) if early else kernel(256, MEET)
    assumed = Assumptions(alloc_permit=permit)
    report, _ = run(text, assumptions=assumed, max_instructions=5000)
    stuck = permit == "owned" and not early  # the first polls while the second waits
    assert [e.code for e in report.errors] == ["instruction-budget"] * stuck, str(report)


def exclusive(text: str) -> str:
    return text.replace("tcgen05.alloc.", "tcgen05.alloc.exclusive.").replace(
        "tcgen05.dealloc.", "tcgen05.dealloc.exclusive."
    )


@pytest.mark.parametrize("columns", [32, 96, 480, 512])
def test_an_exclusive_allocation(columns: int, assemble: Any) -> None:
    text = exclusive(kernel(columns, ""))
    report, out = run(text, 4)
    assert report.ok and not report.findings and (out[..., 1].T == np.arange(4)).all()
    assemble(text)
    report, _ = run(exclusive(kernel(columns, MEET)), max_instructions=5000)
    assert [e.code for e in report.errors] == ["instruction-budget"]


def test_an_exclusive_allocation_keeps_the_others_out(assemble: Any) -> None:
    """CTA 0 has one; CTA 1 gets columns of the usual kind after it only."""
    text = kernel(64, "BETWEEN")
    for word in ("alloc", "dealloc"):
        line = next(x for x in text.splitlines() if f" tcgen05.{word}." in x)
        first = line.replace(f"{word}.", f"{word}.exclusive.").replace(" tcgen", " @%p3 tcgen")
        text = text.replace(line, first + "\n" + line.replace(" tcgen", " @!%p3 tcgen"))
    text = text.replace(" setp.eq.u32 %p1,", " setp.eq.u32 %p3, %r1, 0; setp.eq.u32 %p1,")
    report, out = run(text.replace("BETWEEN", ""))
    assert report.ok and not report.findings and (out[..., 0] == 0).all(), str(report)
    report, _ = run(text.replace("BETWEEN", MEET), max_instructions=5000)
    assert [e.code for e in report.errors] == ["instruction-budget"]
    assemble(text.replace("BETWEEN", ""))


@pytest.mark.parametrize("group", [1, 2])
def test_exclusive_or_not_in_both_places(group: int) -> None:
    text = kernel(96, "", (PAIR if group == 2 else "") + GIVE_UP + FREE, group)
    more: dict[str, Any] = {"cluster": group, "per_sm": 1}
    assert run(exclusive(text), **more)[0].ok
    for wrong, code in (
        (text, "tensor-memory-columns"),
        (exclusive(text).replace("dealloc.exclusive", "dealloc"), "tensor-memory-dealloc"),
        (exclusive(text).replace("96", "48"), "tensor-memory-columns"),
    ):
        assert [e.code for e in run(wrong, **more)[0].errors] == [code]


@pytest.mark.parametrize("columns", [256, 512])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_pairs_that_share_sms(columns: int, seed: Any) -> None:
    """Two pairs on two SMs: the columns are the same ones in both CTAs of a pair."""
    text = kernel(columns, "", PAIR + GIVE_UP + FREE, group=2)
    report, out = run(text, 4, cluster=2, order_seed=seed)
    assert report.ok and not report.findings, str(report)
    assert (out[..., 1] == np.arange(4)[:, None]).all()
    assert (out[::2, :, 0] == out[1::2, :, 0]).all()


@pytest.mark.parametrize(
    ("per_sm", "more", "limit"),
    [
        (0, {}, "32"),
        (33, {}, "32"),
        (3, {"block": 1024}, "2048"),
        (2, {"dynamic_smem": 120_000}, "shared memory"),
    ],
)
def test_what_an_sm_has_no_room_for(per_sm: int, more: dict[str, Any], limit: str) -> None:
    args = [np.zeros(64, np.uint32), np.zeros(1, np.uint32)]
    sizes = {"grid": 1, "block": 32, **more}
    with pytest.raises(LaunchError, match=f"ctas_per_sm.*{limit}"):
        run_ptx(kernel(32, ""), args=args, ctas_per_sm=per_sm, **sizes)
