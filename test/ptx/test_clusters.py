"""Kernels of several CTAs in a cluster, written by hand; each assembles for sm_100a."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcir.run import Uninitialized, run_ptx

from .conftest import HEADER

ORDERS = (None, 0, 1, 2, 3)

RING = (
    HEADER
    + """
.visible .entry ring(.param .u64 out)
{
 .reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
 .shared .align 16 .b32 words[32]; .shared .align 8 .b64 ready; .shared .align 4 .b32 sum;
 mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank;
 mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r1, 0;
 mov.u32 %r5, words; mov.u32 %r6, ready; mov.u32 %r7, sum;
 mov.u32 %r31, 0;
 @%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
 @%p1 st.shared.u32 [%r7], %r31;
 fence.mbarrier_init.release.cluster;
 barrier.cluster.arrive.RELEASE.aligned;
 barrier.cluster.wait.acquire.aligned;
 // the next CTA gets this one's words, and an arrival after them
 add.u32 %r8, %r2, 1; rem.u32 %r8, %r8, %r3;
 mapa.shared::cluster.u32 %r9, %r5, %r8; shl.b32 %r10, %r1, 2; add.u32 %r11, %r9, %r10;
 mad.lo.u32 %r12, %r4, 100, %r1;
 st.shared::cluster.u32 [%r11], %r12;
 mapa.shared::cluster.u32 %r13, %r6, %r8;
 FENCE
 @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];
WAIT:
 mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r6], 0;
 @!%p2 bra WAIT;
 add.u32 %r14, %r5, %r10; ld.shared::cta.u32 %r15, [%r14];
 // all add to the sum in CTA 0, through a generic address
 mov.u64 %rd1, sum; cvta.shared.u64 %rd2, %rd1; mapa.u64 %rd3, %rd2, 0;
 atom.add.acq_rel.cluster.u32 %r16, [%rd3], %r15;
 isspacep.shared::cta %p3, %rd3; isspacep.shared::cluster %p4, %rd3;
 selp.u32 %r17, 1, 0, %p3; selp.u32 %r18, 2, 0, %p4; add.u32 %r17, %r17, %r18;
 getctarank.shared::cluster.u32 %r19, %r13; shl.b32 %r19, %r19, 4; add.u32 %r17, %r17, %r19;
 getctarank.u64 %r20, %rd2; shl.b32 %r20, %r20, 8; add.u32 %r17, %r17, %r20;
 barrier.cluster.arrive;
 barrier.cluster.wait;
 ld.global.u32 %r31, [%rd1+0];
 ld.shared::cluster.u32 %r21, [sum];
 LAST
 ld.param.u64 %rd5, [out]; mad.lo.u32 %r22, %r4, 32, %r1; mul.wide.u32 %rd6, %r22, 16;
 add.s64 %rd5, %rd5, %rd6;
 st.global.v4.u32 [%rd5], {%r15, %r21, %r17, %r2};
 ret;
}
"""
).replace(" ld.global.u32 %r31, [%rd1+0];\n", "")

LAST = """ mapa.shared::cluster.u32 %r23, %r7, 0; ld.shared::cluster.u32 %r21, [%r23];
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""


def ring(relaxed: bool = True, last: str = LAST, arrive: str | None = None) -> str:
    text = RING.replace("RELEASE", "relaxed" if relaxed else "release").replace("LAST", last)
    return text.replace("FENCE", "bar.warp.sync 0xffffffff;" if arrive is None else arrive)


def launch(ptx: str, ctas: int = 8, size: int = 4, **options: Any) -> tuple[Any, np.ndarray]:
    out = np.zeros((ctas, 32, 4), np.uint32)
    report = run_ptx(ptx, grid=ctas, block=32, cluster=size, args=[Uninitialized(out)], **options)
    return report, out


@pytest.mark.parametrize("seed", ORDERS)
def test_words_go_round(seed: int | None) -> None:
    report, out = launch(ring(relaxed=False), order_seed=seed)
    assert report.ok and not report.findings, str(report)
    cta, lane = np.arange(8)[:, None], np.arange(32)
    before = cta // 4 * 4 + (cta - 1) % 4
    assert (out[..., 0] == before * 100 + lane).all()
    sums = (100 * np.arange(8).reshape(2, 4).sum(1) * 32 + 4 * lane.sum()).repeat(4)
    assert (out[..., 1] == sums[:, None]).all()
    rank = cta % 4
    assert (out[..., 2] == (rank == 0) + 2 + 16 * ((rank + 1) % 4) + 256 * rank).all()
    assert (out[..., 3] == rank).all()


def test_a_relaxed_arrival_releases_the_mbarriers_only() -> None:
    """And not the word that an ordinary store set to zero."""
    runs = [launch(ring(relaxed=True), order_seed=seed)[0] for seed in range(12)]
    found = [f for report in runs for f in report.findings]
    assert {f.code for f in found} == {"race"}
    assert all("st.shared.u32 [%r7], %r31" in f.first for f in found)


def test_without_the_last_barrier_a_peer_may_be_gone() -> None:
    last = LAST.splitlines()[0]
    found = set()
    for seed in ORDERS:
        report, _ = launch(ring(relaxed=False, last=last), order_seed=seed)
        found |= {f.code for f in report.findings} | {e.code for e in report.errors}
    assert "peer-exited" in found


def test_without_clusters_there_is_one_rank() -> None:
    report, out = launch(ring(relaxed=False), ctas=2, size=1)
    assert report.ok and not report.findings, str(report)
    assert (out[..., 0] == 100 * np.arange(2)[:, None] + np.arange(32)).all()
    assert (out[..., 3] == 0).all()


def test_they_assemble(assemble: Any, tmp_path: Path) -> None:
    for text in (ring(), ring(relaxed=False)):
        assert assemble(text)
