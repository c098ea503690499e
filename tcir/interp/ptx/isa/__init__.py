"""What each instruction means: one file per instruction group, found through `decode.RULES`."""

from tcir.interp.ptx.isa import (  # noqa: F401  (importing registers the rules)
    async_copy,
    atomic,
    bits,
    bulk_copy,
    compare,
    control,
    convert,
    floating,
    hints,
    integer,
    logic,
    mbarrier,
    memory,
    move,
    sync,
    tcgen05,
    tcgen05_block_scale,
    tma,
    vote,
    warp_matrix,
)
