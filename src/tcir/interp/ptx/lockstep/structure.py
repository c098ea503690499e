"""Instructions whose effect is the same in all CTAs if their operands are the same."""

from __future__ import annotations

STRUCTURAL = frozenset(
    (
        "activemask", "bar.arrive", "bar.cta.arrive", "bar.cta.sync", "bar.sync", "bar.warp.sync",
        "barrier.arrive", "barrier.cta.arrive", "barrier.cta.sync", "barrier.sync",
        "cp.async.commit_group", "cp.async.mbarrier.arrive", "cp.async.wait_all",
        "cp.async.wait_group", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group",
        "createpolicy.fractional", "createpolicy.range", "createpolicy.cvt.L2",
        "elect.sync", "fence", "fence.mbarrier_init", "fence.proxy.async", "membar",
        "griddepcontrol.launch_dependents", "griddepcontrol.wait",
        "mbarrier.arrive", "mbarrier.arrive.expect_tx", "mbarrier.complete_tx",
        "mbarrier.expect_tx", "mbarrier.init", "mbarrier.inval", "mbarrier.test_wait",
        "mbarrier.try_wait", "nanosleep",
        "prefetch.tensormap", "prefetch.const.tensormap", "prefetch.param.tensormap",
        "setmaxnreg.dec.sync.aligned", "setmaxnreg.inc.sync.aligned",
        "tcgen05.alloc", "tcgen05.commit", "tcgen05.cp", "tcgen05.dealloc",
        "tcgen05.fence::after_thread_sync", "tcgen05.fence::before_thread_sync", "tcgen05.mma",
        "tcgen05.relinquish_alloc_permit", "tcgen05.shift", "tcgen05.wait::ld", "tcgen05.wait::st",
    )
)  # fmt: skip
"""Registered names. Those of the tensor core also describe their effects on the memories
(`tcir.machine.memory.effects`)."""
