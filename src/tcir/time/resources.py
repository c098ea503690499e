"""The parts of an SM that operations occupy; each serves one operation at a time."""

from __future__ import annotations

from dataclasses import dataclass

SUB_PARTITIONS = 4
"""Sub-partitions of an SM: each has a scheduler, a quarter of the tensor core and of tensor
memory."""


@dataclass
class Resource:
    """A resource that serves requests in order; `busy` is the sum of its busy cycles."""

    name: str
    free: float = 0.0
    busy: float = 0.0

    def take(self, at: float, cycles: float) -> tuple[float, float]:
        """Serves a request that occupies the resource for `cycles` and was made at time `at`;
        returns when it starts and ends.
        """
        start = max(at, self.free)
        self.free = start + cycles
        self.busy += cycles
        return start, self.free


def _quarters(name: str) -> list[Resource]:
    return [Resource(f"{name} {number}") for number in range(SUB_PARTITIONS)]


class SmResources:
    """The resources of one SM. `prefix` precedes their names if several SMs are modelled.

    tensor:  the pipe of tcgen05.mma, cp and shift; wgmma has one pipe per sub-partition
    copies:  tcgen05.cp, if it does not block the tensor pipe
    shared:  shared memory, for loads and stores of threads
    l2:      transfers from L2; l2_out: transfers to L2; hbm: this SM's share of global memory
    tma:     the engine that executes bulk operations
    tmem, issue, sfu, mma_sync, wgmma: one resource per sub-partition
    """

    def __init__(self, prefix: str = "") -> None:
        self.tensor = Resource(f"{prefix}tensor pipe")
        self.copies = Resource(f"{prefix}TMEM copies")
        self.shared = Resource(f"{prefix}shared port")
        self.l2 = Resource(f"{prefix}L2 to SM")
        self.l2_out = Resource(f"{prefix}SM to L2")
        self.hbm = Resource(f"{prefix}HBM")
        self.tma = Resource(f"{prefix}TMA")
        self.tmem = _quarters(f"{prefix}TMEM port")
        self.issue = _quarters(f"{prefix}issue slot")
        self.sfu = _quarters(f"{prefix}special function")
        self.mma_sync = _quarters(f"{prefix}mma.sync")
        self.wgmma = _quarters(f"{prefix}tensor pipe")

    def limits(self, cycles: float) -> dict[str, float]:
        """Returns the share of `cycles` in which each resource was busy. For a resource that each
        sub-partition has, the share is that of the busiest sub-partition.
        """
        single = (self.tensor, self.copies, self.shared, self.l2, self.l2_out, self.hbm, self.tma)
        busy = {resource.name: resource.busy for resource in single}
        for four in (self.tmem, self.issue, self.sfu, self.mma_sync, self.wgmma):
            name = four[0].name.removesuffix(" 0")
            busy[name] = max(busy.get(name, 0.0), *(resource.busy for resource in four))
        return {name: value / cycles for name, value in busy.items() if value and cycles}
