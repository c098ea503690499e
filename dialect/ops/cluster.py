"""Clusters and CTA pairs.

``cta_group = 2`` on a tcgen05 op makes it act on a pair: two CTAs of a cluster whose ranks differ
in bit 0 only. In a kernel without ``tc.async`` the op takes effect once both CTAs have reached it.
Once the kernel has ``tc.async``, an op with ``leader`` is executed by the CTA of even rank only,
which is the pair's leader.
"""

from tcir._mlir import ext, ir
from tcir.dialect.operation import Op


class CtaRankOp(Op, name="cta_rank", pure=True):
    """The number of the CTA in its cluster, where x counts fastest (``%cluster_ctarank``, PTX ISA
    10.18)."""

    example = """
    func.func @example() {
      %rank = "tc.cta_rank"() : () -> index
      return
    }
    """

    rank: ext.Result[ir.IndexType] = ext.result(default_factory=ir.IndexType.get)


class ClusterBarrierOp(Op, name="cluster_barrier", issued_by="cta"):
    """``barrier.cluster.arrive`` and ``.wait``: a barrier of all threads of the cluster (PTX ISA
    9.7.13.4)."""

    example = """
    func.func @example() {
      "tc.cluster_barrier"() : () -> ()
      return
    }
    """
