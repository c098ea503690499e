"""The semantics of each instruction: one file per group of instructions, registered in
`registry.DECODERS`.
"""

from tcir.interp.ptx.isa import (  # noqa: F401  (importing registers the rules)
    async_copy,
    async_store,
    atomic,
    bit_mask,
    bits,
    bulk_copy,
    carry,
    cluster,
    compare,
    control,
    convert,
    dot_product,
    floating,
    frames,
    hints,
    integer,
    launch_control,
    logic,
    mbarrier,
    memory,
    move,
    refused,
    stack,
    surface,
    sync,
    system_calls,
    tcgen05,
    tensormap,
    texture,
    tma,
    video,
    vote,
)
from tcir.interp.ptx.isa.mma import mma_sync, warp_matrix, wmma  # noqa: F401
from tcir.interp.ptx.isa.warpgroup import registers, wgmma  # noqa: F401
