"""Counters of the simulated machine; a counter is in bytes unless its name says otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

COUNTED: dict[str, dict[str, tuple[str, str]]] = {
    "Instructions": {
        "instructions": ("warp inst", "executed instructions of warps, polling included"),
        "simt_products": ("product", "multiplications of fma, dp4a and dp2a, by lane"),
        "fragment_numbers": (
            "number",
            "numbers that bodies compute on fragments, at the tile level",
        ),
        "barriers": ("arrival", "arrivals of warps at bar.sync, bar.red and bar.arrive"),
    },
    "Memory through threads": {
        "global_load": ("byte", "read from global memory by ld and atomics, summed over lanes"),
        "global_store": ("byte", "written to global memory by st and atomics, summed over lanes"),
        "shared_load": ("byte", "read from shared memory by ld, ldmatrix, atomics; all lanes"),
        "shared_store": ("byte", "written to shared memory by st, stmatrix, atomics; all lanes"),
        "bank_accesses": ("warp inst", "accesses to shared memory whose conflicts are counted"),
        "bank_conflicts": ("pass", "passes of such an access beyond the first of each phase"),
    },
    "TMA and bulk copies": {
        "tma_loads": ("operation", "copies to shared memory"),
        "tma_stores": ("operation", "copies and reductions to global memory"),
        "tma_prefetches": ("operation", "prefetches into L2"),
        "global_to_shared": ("byte", "written into shared memory by copies, zero fill included"),
        "global_to_shared_read": ("byte", "read from global memory by these copies"),
        "shared_to_global": ("byte", "written to global memory by copies and reductions"),
    },
    "Tensor core": {
        "mma": ("operation", "tcgen05.mma and mma.sync"),
        "mma_untimed": ("operation", "mma that tensor_cycles does not include (.ws)"),
        "products": ("product", "multiplications of all mma, padding included"),
        "tensor_cycles": ("cycle", "modelled by a table of public measurements"),
        "shared_to_tensor": ("byte", "operands that tcgen05.mma reads from shared memory"),
        "shared_to_tmem": ("byte", "copied to tensor memory by tcgen05.cp"),
        "tmem_load": ("byte", "loaded by tcgen05.ld"),
        "tmem_store": ("byte", "stored by tcgen05.st"),
        "cp": ("operation", "tcgen05.cp"),
        "shift": ("operation", "tcgen05.shift"),
        "commit": ("operation", "tcgen05.commit"),
    },
}
"""By what they count: the counters' names, units and meanings. Bank conflicts are counted by
`tcir.debug.banks`, where asked for; `global_to_shared_N` is of the N-th tensor by address."""


@dataclass
class Counters:
    """Totals over all CTAs of a launch.

    global_to_shared: bytes that TMA wrote into shared memory, zero fill included
    global_to_shared_read: the part of global_to_shared that came from global memory
    global_to_shared_by_tensor: global_to_shared, by the address of the tensor
    shared_to_tmem: bytes that tcgen05.cp copied
    shared_to_tensor: bytes of operands that tcgen05.mma read from shared memory
    tensor_cycles: modelled cycles of the tensor cores, by the measured table of `time_table`; an
        mma of a CTA pair takes its cycles on each of the two tensor cores
    mma_untimed: number of mma that no public measurement covers (.ws); tensor_cycles leaves them
        out
    products: multiplications of all mma of tensor cores, padding included
    simt_products: multiplications of fma, dp4a and dp2a, per lane
    fragment_numbers: accumulator elements that bodies on fragments process, in tile programs
    """

    global_to_shared: int = 0
    global_to_shared_read: int = 0
    global_to_shared_by_tensor: Counter[int] = field(default_factory=Counter)
    shared_to_global: int = 0
    shared_to_tmem: int = 0
    shared_to_tensor: int = 0
    tensor_cycles: int = 0
    tmem_load: int = 0
    tmem_store: int = 0
    global_load: int = 0
    global_store: int = 0
    shared_load: int = 0
    shared_store: int = 0
    mma: int = 0
    mma_untimed: int = 0
    products: int = 0
    simt_products: int = 0
    cp: int = 0
    shift: int = 0
    commit: int = 0
    tma_loads: int = 0
    tma_stores: int = 0
    tma_prefetches: int = 0
    barriers: int = 0
    fragment_numbers: int = 0

    def as_dict(self) -> dict[str, int]:
        """Counters by name. ``global_to_shared_0`` belongs to the tensor with the lowest address,
        ``global_to_shared_1`` to the next one, and so on.
        """
        totals = dict(vars(self))
        by_tensor = sorted(totals.pop("global_to_shared_by_tensor").items())
        return totals | {
            f"global_to_shared_{number}": count for number, (_, count) in enumerate(by_tensor)
        }
