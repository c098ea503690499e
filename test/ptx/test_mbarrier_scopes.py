"""Arrivals at the mbarrier of another CTA: who their scope, and that of the wait, includes.

PTX ISA 9.7.13.15.13, 9.7.13.15.16: .cta by default. What the H200 does:
docs/explanation/hazards.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from tcir import run_ptx

SCOPED = ".release.cluster", ".acquire.cluster"
UNSCOPED = [("", ""), (".release.cta", ".acquire.cta"), (".release.cluster", ""),
            ("", ".acquire.cluster")]  # fmt: skip

KERNEL = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<2>; .reg .b32 %k;
  .shared .align 4 .b32 word; .shared .align 8 .b64 full;
  ld.param.u64 %d0, [out]; mov.u32 %k, %cluster_ctarank; mov.u32 %r1, word; mov.u32 %r2, full;
  mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
  st.shared.u32 [%r1], 3; mov.u32 %r3, 5;
  xor.b32 %r0, %k, 1;
  mapa.shared::cluster.u32 %r4, %r1, %r0; mapa.shared::cluster.u32 %r5, %r2, %r0;
  barrier.cluster.arrive; barrier.cluster.wait;
  setp.eq.u32 %p1, %k, 1; @%p1 bra WAIT;
  FIRST
  mbarrier.arrive{ARRIVE}.shared::cluster.b64 _, [%r5];
  bra DONE;
WAIT: mbarrier.try_wait.parity{WAIT}.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
  SECOND
DONE: barrier.cluster.arrive; barrier.cluster.wait; ret;
}
"""
ONE_CTA = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k()
{
  .reg .pred %p<3>; .reg .b32 %r<3>;
  .shared .align 4 .b32 word; .shared .align 8 .b64 full;
  mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32;
  @%p0 mbarrier.init.shared::cta.b64 [full], 1;
  bar.sync 0; @!%p1 bra WAIT; @!%p0 bra DONE;
  st.shared.u32 [word], %r0; FENCE
  mbarrier.arrive.relaxed.SCOPE.shared::cta.b64 _, [full];
  bra DONE;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; @!%p2 bra WAIT;
  ld.shared.u32 %r2, [word];
DONE: ret;
}
"""
# What CTA 0 does before its arrival, and CTA 1 behind its wait. Own: in its own SM.
OWN = {
    "read, then overwritten": ("ld.shared.u32 %r6, [%r1];", "st.shared::cluster.u32 [%r4], %r3;"),
    "stored and fenced, then read": (
        "st.shared.u32 [%r1], %r3; fence.proxy.async.shared::cta;",
        "ld.shared::cluster.u32 %r6, [%r4];",
    ),
}
OTHERS = {
    "stored, then read": ("st.shared.u32 [%r1], %r3;", "ld.shared::cluster.u32 %r6, [%r4];"),
    "copied, then read": (
        "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.wait_all;",
        "ld.shared::cluster.u32 %r6, [%r4];",
    ),
    "pushed": ("st.shared::cluster.u32 [%r4], %r3;", "ld.shared.u32 %r6, [%r1];"),
    "pulled": ("ld.shared::cluster.u32 %r6, [%r4];", "st.shared.u32 [%r1], %r3;"),
    "global": ("st.global.u32 [%d0], %r3;", "ld.global.u32 %r6, [%d0];"),
    "global, overwritten": ("ld.global.u32 %r6, [%d0];", "st.global.u32 [%d0], %r3;"),
}


def found(
    work: tuple[str, str], scopes: tuple[str, str] = SCOPED, profile: str = "silicon", seed: int = 0
) -> list[tuple[str, str]]:
    """Severity and kind of each finding."""
    text = KERNEL.replace("{ARRIVE}", scopes[0]).replace("{WAIT}", scopes[1])
    text = text.replace("FIRST", work[0]).replace("SECOND", work[1])
    report = run_ptx(
        text, grid=2, cluster=2, block=1, args=[np.zeros(1, np.uint32)], ordering=profile,
        order_seed=seed,
    )  # fmt: skip
    assert not report.incomplete and not report.errors, str(report)
    return [(f.severity, f.code) for f in report.findings]


@pytest.mark.parametrize("name", [*OWN, *OTHERS])
def test_scopes_of_both_include_the_other_cta(name: str) -> None:
    work = {**OWN, **OTHERS}[name]
    for profile in ("silicon", "isa"):
        for seed in range(3):
            assert found(work, SCOPED, profile, seed) == []


@pytest.mark.parametrize("name", OWN)
def test_what_stayed_on_the_sm_that_signals_is_a_warning(name: str) -> None:
    """Shipping kernels give slots back with arrivals of the default scope, and hand over what they
    stored and fenced for the async proxy (DeepGEMM's scale factors)."""
    for scopes in UNSCOPED:
        assert found(OWN[name], scopes) == [("warning", "mbarrier-scope")]
        assert found(OWN[name], scopes, "isa") == [("error", "mbarrier-scope")]


@pytest.mark.parametrize("name", OTHERS)
def test_other_memory_is_a_race(name: str) -> None:
    """Global memory, the shared memory of another CTA, and what a thread stored in its own: pairs
    read older bytes there (NVIDIA/cutlass#3324, #3643; Dao-AILab/quack#63)."""
    for scopes in UNSCOPED:
        for profile in ("silicon", "isa"):
            assert ("error", "race") in found(OTHERS[name], scopes, profile)


@pytest.mark.parametrize(
    "work", [OTHERS["stored, then read"], OTHERS["pushed"]], ids=["own", "peer"]
)
def test_fences_of_relaxed_ones_have_to_include_the_other_cta(work: tuple[str, str]) -> None:
    first, second = work
    relaxed, to, of = ".relaxed.cluster", "fence.acq_rel.cluster; ", "fence.acq_rel.cta; "
    for fence, clean in ((to, True), (of, False), ("", False)):
        arrival = found((f"{first} {fence}", second), (relaxed, ".acquire.cluster"))
        wait = found((first, fence + second), (".release.cluster", relaxed))
        assert (arrival == []) is (wait == []) is clean
    assert found((f"{first} {to}", second), (relaxed, "")) != []
    assert found((f"{first} {to}", to + second), (".relaxed.cta", ".relaxed.cluster")) != []


def test_relaxed_ones_in_one_cta_need_a_fence_of_the_cta() -> None:
    """Whatever scope the arrival names: the threads are in one CTA."""
    for fence, kinds in (("fence.acq_rel.cta;", []), ("", ["race"])):
        for scope in ("cta", "cluster"):
            text = ONE_CTA.replace("FENCE", fence).replace("SCOPE", scope)
            report = run_ptx(text, grid=1, block=64, args=[])
            assert [f.code for f in report.findings] == kinds, str(report)


TENSOR_MEMORY = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k() .reqntid 32
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b32 %k;
  .shared .align 4 .b32 base; .shared .align 8 .b64 done;
  mov.u32 %k, %cluster_ctarank; mov.u32 %r2, done;
  barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [base], 32;
  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
  elect.sync _|%p0, -1; @%p0 mbarrier.init.shared::cta.b64 [%r2], 32;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ld.shared.b32 %r1, [base];
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%k}; tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r1]; tcgen05.wait::ld.sync.aligned;
  tcgen05.fence::before_thread_sync;
  xor.b32 %r5, %k, 1; mapa.shared::cluster.u32 %r5, %r2, %r5;
  mbarrier.arriveARRIVE.shared::cluster.b64 _, [%r5];
WAIT: mbarrier.try_wait.parityWAIT.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
  tcgen05.fence::after_thread_sync;
  tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
}
"""


def test_tensor_memory_of_another_cta() -> None:
    """Each CTA of a pair says that it is through with its columns, and both are freed."""
    relaxed = ".relaxed.cluster", ".relaxed.cluster"
    for scopes in (SCOPED, relaxed, ("", ""), (".relaxed.cta", ".relaxed.cta")):
        text = TENSOR_MEMORY.replace("ARRIVE", scopes[0])
        text = text.replace("parityWAIT", f"parity{scopes[1]}")
        kinds = ["mbarrier-scope"] if "cluster" not in scopes[0] else []
        for profile, severity in (("silicon", "warning"), ("isa", "error")):
            report = run_ptx(text, grid=2, cluster=2, block=32, args=[], ordering=profile)
            assert not report.incomplete and not report.errors, str(report)
            assert {(f.severity, f.code) for f in report.findings} == {(severity, k) for k in kinds}


@pytest.mark.parametrize("scopes", [SCOPED, ("", "")])
def test_an_arrival_that_was_seen_is_over(scopes: tuple[str, str]) -> None:
    """Whatever the scopes: the CTA may end, and the mbarrier be invalidated."""
    text = KERNEL.replace("{ARRIVE}", scopes[0]).replace("{WAIT}", scopes[1])
    text = text.replace("FIRST", "").replace("SECOND", "mbarrier.inval.shared::cta.b64 [%r2];")
    text = text.replace("DONE: barrier.cluster.arrive; barrier.cluster.wait;", "DONE:")
    report = run_ptx(text, grid=2, cluster=2, block=1, args=[np.zeros(1, np.uint32)])
    assert report.ok and not report.findings, str(report)
    early = text.replace("@%p1 bra WAIT;", "@%p1 bra DONE;")
    assert early != text
    report = run_ptx(early, grid=2, cluster=2, block=1, args=[np.zeros(1, np.uint32)])
    assert "peer-exited" in str(report) and not report.ok, str(report)


BYTES = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in)
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d0; .reg .b32 %k;
  .shared .align 16 .b32 box[4]; .shared .align 4 .b32 word; .shared .align 8 .b64 full;
  ld.param.u64 %d0, [in]; mov.u32 %k, %cluster_ctarank;
  mov.u32 %r1, word; mov.u32 %r2, full; mov.u32 %r3, box;
  mapa.shared::cluster.u32 %r4, %r1, 1; mapa.shared::cluster.u32 %r5, %r2, 1;
  mapa.shared::cluster.u32 %r6, %r3, 1;
  mbarrier.init.shared::cta.b64 [%r2], COUNT; fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive; barrier.cluster.wait;
  setp.eq.u32 %p1, %k, 1; @%p1 bra GET;
  st.shared::cluster.u32 [%r4], 5;
  ARRIVE
  SEND
  bra DONE;
GET: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
  ld.shared.u32 %r7, [%r1]; ld.shared.u32 %r8, [%r3];
DONE: barrier.cluster.arrive; barrier.cluster.wait; ret;
}
"""
ASYNC = {
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r6], "
    "{%r1, %r1, %r1, %r1}, [%r5];",
    "bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%d0], 16, "
    "[%r5];",
}


@pytest.mark.parametrize("send", ASYNC)
def test_bytes_of_an_operation_announce_themselves_only(send: str) -> None:
    """PTX ISA 8.9.1.1: not what its issuer did before."""
    text = BYTES.replace("SEND", ASYNC[send])
    arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];"
    for count, arrival, codes in (("1", "", ["race"]), ("2", arrive, [])):
        ptx = text.replace("COUNT", count).replace("ARRIVE", arrival)
        for seed in (None, 1, 2):
            args = [np.zeros(4, np.uint32)]
            report = run_ptx(ptx, grid=2, cluster=2, block=1, args=args, order_seed=seed)
            assert not report.incomplete and not report.errors, str(report)
            assert [f.code for f in report.findings] == codes, str(report)
