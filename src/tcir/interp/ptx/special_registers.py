"""Special registers (PTX ISA 10)."""

from __future__ import annotations

#: They change while a warp runs: only `mov` reads them, each time anew.
MOVING = {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}

#: They have four elements: mov.v4 reads them whole, the last is 0.
VECTORS = {
    f"%{name}"
    for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid",
                 "cluster_nctaid")
}  # fmt: skip

#: Both halves of the address of a cooperative launch's workspace, whose second word its barrier is
#: (cooperative_groups/details/driver_abi.h).
GRID_WORKSPACE = ("%envreg1", "%envreg2")

#: Prefixes of those that the driver or a profiler sets, to values that nothing documents.
NO_VALUE = ("%envreg", "%pm", "%reserved_smem_offset")
