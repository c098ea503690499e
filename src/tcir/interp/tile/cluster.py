"""Rules of clusters and CTA pairs."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute, meet


@execute(tc.CtaRankOp)
def cta_rank(compiler: Compiler, op: tc.CtaRankOp) -> Step:
    return compiler.assigns(op, lambda frame: frame.cta.rank_in_cluster)


@execute(tc.ClusterBarrierOp)
def cluster_barrier(compiler: Compiler, op: tc.ClusterBarrierOp) -> Step:
    site = compiler.site(op)

    def barrier(frame: Frame) -> Blocking:
        yield from meet(frame, site)

    return barrier
