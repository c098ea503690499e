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
    **{
        ("cutlass", name): (
            ("race",),
            "softmax warps store row maxima by `tcgen05.st` and arrive at the mbarrier of the "
            "correction warps, which load them, without `tcgen05.wait::st` "
            "(`sm100_fmha_fwd_mainloop_tma_warpspecialized.hpp:599`; [found](../found.md)).",
        )
        for name in ("77_fmha_64", "77_fmha_128")
    },
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
    ("liger", "group_norm"): (
        ("race",),
        "`_group_norm_forward_kernel` sums squares (`ops/group_norm.py:70`). Triton contracts the "
        "lane's own square into an `fma`, the other lane's arrives rounded by the shuffle: lanes "
        "of a pair have sums that differ in the last bit, and all of them store theirs to one word "
        "of shared memory ([found](../found.md)).",
    ),
    **{
        ("fla", name): (
            ("race",),
            f"`fla/ops/{where}` sums products, one a thread, as Liger-Kernel's `group_norm` does: "
            "lanes of a warp store sums to one word that differ in the last bit. With "
            "`TRITON_DEFAULT_FP_FUSION=0` they are equal ([found](../found.md)).",
        )
        for name, where in (
            ("recurrent_delta_rule", "delta_rule/fused_recurrent.py:90"),
            ("chunk_delta_rule", "utils/solve_tril.py:258"),
        )
    },
    ("conch", "int8_gemm_ragged"): (
        ("out-of-bounds",),
        "`conch/kernels/quantization/gemm.py:344` loads a tile of B without a mask. Where the "
        "number of columns is no multiple of the tile, the load goes past the end of B; only the "
        "store of C is masked ([found](../found.md)).",
    ),
    **{
        ("flashinfer", name): (
            ("undefined-read", WRONG_VALUES),
            "without C, `sm_constraint_gemm.py` computes `alpha * A B + beta * C` with beta = 0, "
            "where nothing has written C: NaN if its memory holds one ([found](../found.md)).",
        )
        for name in ("gemm", "gemm_persistent")
    },
    **{
        ("flag_gems", name): (
            ("missing-proxy-fence",),
            "Triton 3.6 emits no `fence.proxy.async` between the `cp.async` that fill the stages "
            "of a loop and the `tcgen05.mma` that read them; Triton 3.9 does "
            "([found](../found.md)).",
        )
        for name in ("mm", "attention")
    },
}
