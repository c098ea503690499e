"""What the machine counts. Bytes unless the name says otherwise."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Counters:
    """Totals over all CTAs.

    global_to_shared: bytes that TMA wrote into shared memory, zero fill included;
    global_to_shared_read: those of them that came from global memory.
    shared_to_tmem: tcgen05.cp. shared_to_tensor: operand bytes tcgen05.mma read from shared memory.
    tensor_cycles: cycles of the tensor core by the measured table of `time_table` (modelled).
    """

    global_to_shared: int = 0
    global_to_shared_read: int = 0
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
    cp: int = 0
    shift: int = 0
    commit: int = 0
    tma_loads: int = 0
    tma_stores: int = 0
    barriers: int = 0

    def as_dict(self) -> dict[str, int]:
        """By name."""
        return asdict(self)
