"""Errors that are right: what the kernel does is a race or lacks a fence by the PTX ISA.

They do not count among the kernels without an error. Where values are right on the machine all the
same, that is since it runs one order of the many.
"""

from __future__ import annotations

#: Beside kinds of errors: the race makes values wrong on the machine, too.
WRONG_VALUES = "wrong values"
#: (source, kernel): (kinds of the error, the reason).
TRUE_FINDINGS: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("cutlass", "tutorial_01"): (
        ("missing-proxy-fence",),
        "`cooperative_copy` writes A and B with `st.shared` (generic proxy), `__syncthreads()` "
        "follows, then `tcgen05.mma` reads them (async proxy). The PTX has no "
        "`fence.proxy.async`, and the C++ of the example none either; the later tutorials load by "
        "TMA and need none.",
    ),
    ("jax", "ragged_dot_f16_pair"): (
        ("race",),
        "two CTAs multiply into the tensor memory of both, and the accumulators are used in turn. "
        "In `blackwell_ragged_dot_mgpu.py` the barrier that says an accumulator has been read, "
        "`store_done_barrier`, is a `plgpu.Barrier` of each CTA, and the warp that issues the mma "
        "waits for its own CTA's alone: from the third tile on, the mma may overwrite what the "
        "other CTA still loads. `blackwell_matmul_mgpu.py` has a `ClusterBarrier` there. With two "
        "tiles a CTA (`ragged_dot_bf16_pair`) nothing is reused and nothing found.",
    ),
    ("jax", "matmul_bf16_pair_minor_m"): (
        ("race", "deadlock", WRONG_VALUES),
        "two CTAs, and more than two tiles for a cluster. `blackwell_matmul_mgpu.py` calls "
        "`plgpu.dynamic_scheduling_loop` without `cluster_axes`, which that function asks for "
        "where a cluster has several CTAs: `cancel_used_barrier`, which says that the answer to "
        "`clusterlaunchcontrol.try_cancel` has been read, is then one of each CTA. The first CTA "
        "asks again, `.multicast::cluster::all`, while warps of the other may still read the "
        "answer before: they go different ways, results are wrong, or they wait for each other "
        "for ever. With two tiles (`matmul_bf16_pair`) no slot is used again and nothing is "
        "found.",
    ),
    ("liger", "rope_forward"): (
        ("race",),
        "in place: `_triton_rope` loads a half, stores it, and has no barrier between. Where a "
        "tile is smaller than the CTA (two heads of keys, four of queries) Triton lets two threads "
        "of different warps load the same element and one of them store it: the other's load races "
        "with that store. Its value is dropped, so results do not depend on it; PTX gives a data "
        "race no such leave. With as many key heads as query heads (`rope_equal_heads`) no element "
        "has two threads and nothing is found.",
    ),
}
