"""Errors that are right: what the kernel does is a race or lacks a fence by the PTX ISA.

They do not count among the kernels without an error. Where values are right on the machine all the
same, the reason is that it runs one order of many.
"""

from __future__ import annotations

#: Beside kinds of errors: the race makes values wrong on the machine, too.
WRONG_VALUES = "wrong values"
#: (source, kernel): (kinds of the error, the reason).
TRUE_FINDINGS: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("cutlass", "tutorial_01"): (
        ("missing-proxy-fence",),
        "`cooperative_copy` writes A and B with `st.shared` through the generic proxy, "
        "`__syncthreads()` follows, and then `tcgen05.mma` reads A and B through the async proxy. "
        "Neither the PTX nor the C++ of the example has a `fence.proxy.async`. The later "
        "tutorials need no fence, because they load by TMA.",
    ),
    **{
        ("cutlass", name): (
            ("race",),
            "softmax warps store the maxima of rows to tensor memory by `tcgen05.st` and arrive "
            "at the mbarrier on which the correction warps wait before they load the maxima. No "
            "`tcgen05.wait::st` is executed before this arrival "
            "(`sm100_fmha_fwd_mainloop_tma_warpspecialized.hpp:599`; [found](../found.md)).",
        )
        for name in ("77_fmha_64", "77_fmha_128")
    },
    ("jax", "ragged_dot_f16_pair"): (
        ("race",),
        "each mma of a pair of CTAs writes the tensor memory of both CTAs, which has two "
        "accumulators that are used alternately. In `blackwell_ragged_dot_mgpu.py` the barrier "
        "`store_done_barrier`, which says that an accumulator has been read, is a `plgpu.Barrier` "
        "of each CTA, and the warp that issues the mma waits only for the barrier of its own CTA. "
        "From the third tile on, the mma may overwrite an accumulator that the other CTA is still "
        "loading. `blackwell_matmul_mgpu.py` has a `ClusterBarrier` in this place. With two tiles "
        "per CTA (`ragged_dot_bf16_pair`) no accumulator is reused, and nothing is found.",
    ),
    ("jax", "matmul_bf16_pair_minor_m"): (
        ("race", "deadlock", WRONG_VALUES),
        "the kernel runs with clusters of two CTAs and more than two tiles per cluster. "
        "`blackwell_matmul_mgpu.py` calls `plgpu.dynamic_scheduling_loop` without the argument "
        "`cluster_axes`, which that function requires if a cluster has several CTAs. The barrier "
        "`cancel_used_barrier`, which says that the answer to `clusterlaunchcontrol.try_cancel` "
        "has been read, is then a barrier of each CTA. The first CTA sends its next request "
        "(`.multicast::cluster::all`) while warps of the second CTA may still be reading the "
        "previous answer. The CTAs then compute different tiles, so results are wrong, or they "
        "wait for each other for ever. With two tiles (`matmul_bf16_pair`) no slot is used twice, "
        "and nothing is found.",
    ),
    ("liger", "group_norm"): (
        ("race",),
        "`_group_norm_forward_kernel` sums squares (`ops/group_norm.py:70`). Triton computes a "
        "lane's own square as part of an `fma`, which does not round it; the square of the other "
        "lane was rounded before the shuffle. The two lanes of a pair therefore have sums that "
        "differ in the last bit, and all lanes store their sums to one word of shared memory "
        "([found](../found.md)).",
    ),
    **{
        ("fla", name): (
            ("race",),
            f"`fla/ops/{where}` sums products, one per thread, in the same way as Liger-Kernel's "
            "`group_norm`: the lanes of a warp store sums to one word, and these sums differ in "
            "the last bit. With `TRITON_DEFAULT_FP_FUSION=0` they are equal "
            "([found](../found.md)).",
        )
        for name, where in (
            ("recurrent_delta_rule", "delta_rule/fused_recurrent.py:90"),
            ("chunk_delta_rule", "utils/solve_tril.py:258"),
        )
    },
    ("conch", "int8_gemm_ragged"): (
        ("out-of-bounds",),
        "`conch/kernels/quantization/gemm.py:344` loads a tile of B without a mask; only the "
        "store of C has a mask. If the number of columns is not a multiple of the tile, the load "
        "reads past the end of B ([found](../found.md)).",
    ),
    **{
        ("flashinfer", name): (
            ("undefined-read", WRONG_VALUES),
            "if the caller passes no C, `sm_constraint_gemm.py` computes `alpha * A B + beta * C` "
            "with beta = 0, although nothing has written C. The result is NaN where the memory of "
            "C contains a NaN ([found](../found.md)).",
        )
        for name in ("gemm", "gemm_persistent")
    },
    **{
        ("flag_gems", name): (
            ("missing-proxy-fence",),
            "Triton 3.6 emits no `fence.proxy.async` between the `cp.async` copies that fill the "
            "stages of a loop and the `tcgen05.mma` that reads them. Triton 3.9 emits this fence "
            "([found](../found.md)).",
        )
        for name in ("mm", "attention")
    },
}
