"""Cost of a launch: counted work, and cycles modelled from it.

`LaunchWork` is exact: it has the numbers of instructions and bytes of one launch, computed from the
shapes alone. Tests compare it with the counts of the simulated machine. `Cost` is a model, and
nothing in it was measured on a B200. Its constants are those of `tcir.time.constants`, which names
a source for each. Its rules are:

- the tensor core takes the cycles of the public table (`mma_cycles`) for each mma;
- ``tcgen05.cp`` holds up the tensor core while it moves its bytes, as it does on a Thor; each
  ``.ashift`` occupies it for the cycles given by a model of tensor memory's banks;
- shared memory serves operands, ``tcgen05.cp`` and TMA writes from one port;
- an SM receives its bytes from L2 in sectors of 32 bytes, so boxes whose rows are 16 bytes cost
  twice their size;
- an SM stores results at the rate of TMA stores, the only public figure for stores;
- every CTA pays its latency and its epilogue, and SMs run their CTAs one after the other;
- the whole launch takes at least its unique bytes divided by the bandwidth of HBM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TypeVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import MMA_K_BYTES, TMEM_LANES
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tensor_functions import tensor_bytes
from tcir.passes.emit.tile_kernel import quantiser_of
from tcir.target import DEFAULT_TARGET, SMEM_BYTES_PER_CYCLE
from tcir.time.constants import CONSTANTS, Constants, alternatives

T = TypeVar("T")

DEFAULT = Constants(DEFAULT_TARGET.name)
"""The constants with their default answers."""
PRICED = (
    "clock", "cp-blocks-mma", "cp-rate", "cta-latency", "hbm", "l2-port", "l2-port-large",
    "ld-column", "sector", "shared-port", "shift", "st-column", "tma-store-cycles-per-kb",
    "tma-store-latency",
)  # fmt: skip
"""Constants that `LaunchWork` and `Cost` read from the table."""
SECTOR_BYTES = int(DEFAULT["sector"])


def mma_cycles(n: int, *, a_in_tmem: bool) -> int:
    """Cycles between the issue of two mma with M = 128 by one CTA (source:
    microbench-blackwell)."""
    loaded = MMA_K_BYTES * (n + (0 if a_in_tmem else TMEM_LANES))
    return max(n // 2, ceil_div(loaded, SMEM_BYTES_PER_CYCLE))


@dataclass(frozen=True)
class LaunchWork:
    """Numbers of instructions and bytes of one launch, summed over all CTAs.

    lanes: lanes of D computed; outputs: lanes that are stored (for one output channel)
    activations, filters: bytes that TMA writes to shared memory; to_tmem: bytes of tcgen05.cp
    stored: bytes of the output; epilogue_reads: bytes of the epilogue's other operands
    zeroed: columns of D cleared by tcgen05.st
    stage_bytes: the least shared memory of a CTA: the operands of one stage
    sectors: bytes that L2 sends per byte of activations
    """

    ctas: int
    n_tile: int
    lanes: int
    outputs: int
    mma: int
    a_in_tmem: bool
    activations: int
    filters: int
    to_tmem: int
    stored: int
    epilogue_reads: int
    unique_bytes: int
    stage_bytes: int
    zeroed: int = 0
    sectors: int = 1

    @property
    def lane_efficiency(self) -> float:
        """Fraction of the computed lanes whose results are stored."""
        return self.outputs / self.lanes

    @property
    def shifts(self) -> int:
        """Number of mma with ``.ashift``: all mma that use a copied A tile except the last one."""
        return self.mma - self.to_tmem // (TMEM_LANES * MMA_K_BYTES) if self.a_in_tmem else 0

    @property
    def to_tensor(self) -> int:
        """Bytes of operands that the tensor cores read from shared memory."""
        return self.mma * MMA_K_BYTES * (self.n_tile + (0 if self.a_in_tmem else TMEM_LANES))

    @property
    def tensor_cycles(self) -> int:
        """Cycles of all mma, executed without gaps."""
        return self.mma * mma_cycles(self.n_tile, a_in_tmem=self.a_in_tmem)


@dataclass(frozen=True)
class Cost:
    """Modelled cycles of the parts of one CTA, the number of waves, and the launch time in
    microseconds.

    tensor: cycles of the tensor core: mma, shifts, and the copies to tensor memory that delay it
    copies: cycles of all copies to tensor memory
    """

    tensor: int
    copies: int
    shared: int
    l2: int
    epilogue: int
    latency: int
    waves: int
    hbm_us: float
    clock_ghz: float

    @staticmethod
    def of(work: LaunchWork, constants: Constants = DEFAULT) -> Cost:
        """Applies the cost model to `work`."""
        c, each = constants, work.ctas
        loaded = work.activations + work.filters
        port = work.to_tensor + work.to_tmem + loaded
        from_l2 = work.activations * work.sectors + work.filters
        copies = work.to_tmem / c["cp-rate"]
        pipe = work.tensor_cycles + copies * c["cp-blocks-mma"] + work.shifts * c["shift"]
        l2_port = c.l2_port(work.stage_bytes)
        read = work.epilogue_reads / each / l2_port
        written = c["tma-store-latency"] + c["tma-store-cycles-per-kb"] * work.stored / each / 1024
        columns = work.n_tile * c["ld-column"] + work.zeroed / each * c["st-column"]
        return Cost(
            tensor=ceil(pipe / each),
            copies=ceil(copies / each),
            shared=ceil(port / each / c["shared-port"]),
            l2=ceil(from_l2 / each / l2_port),
            epilogue=ceil(columns + read + written),
            latency=ceil(c["cta-latency"]),
            waves=ceil_div(each, DEFAULT_TARGET.sms),
            hbm_us=work.unique_bytes / c["hbm"] / 1000,
            clock_ghz=c["clock"],
        )

    @property
    def cta_cycles(self) -> int:
        """Modelled cycles of one CTA from start to end."""
        main = max(self.tensor, self.copies, self.shared, self.l2)
        return main + self.epilogue + self.latency

    @property
    def cycles(self) -> int:
        """Modelled cycles of the SM that executes the most CTAs."""
        return self.waves * self.cta_cycles

    @property
    def microseconds(self) -> float:
        """Modelled (not measured) time of the launch in microseconds."""
        return max(self.cycles / (self.clock_ghz * 1000), self.hbm_us)

    @property
    def bound(self) -> str:
        """Name of the part that limits the launch time."""
        if self.hbm_us > self.cycles / (self.clock_ghz * 1000):
            return "hbm"
        parts = {"tensor": self.tensor, "copies": self.copies, "shared": self.shared, "l2": self.l2}
        name = max(parts, key=lambda key: parts[key])
        return name if parts[name] > self.epilogue + self.latency else "latency"


def epilogue_bytes(sums: ir.Value) -> tuple[int, int]:
    """Bytes that the epilogue of a product stores and reads."""
    after = [use.owner.opview for use in sums.uses if isinstance(use.owner.opview, tc.EpilogueOp)]
    stored = [op.out.type for op in after] or [sums.type]
    if quantise := quantiser_of(sums):
        stored = [each.type for each in quantise.operation.results]
    read = [each.tensor.type for op in after for each in op.elements]
    return sum(map(tensor_bytes, stored)), sum(map(tensor_bytes, read))


def launch_behind(nbytes: int, constants: Constants = DEFAULT) -> float:
    """Modelled microseconds of a launch that only moves `nbytes` bytes and follows another
    launch."""
    start = constants["kernel-start"] / constants["clock"] / 1000
    return constants["launch"] + start + nbytes / constants["hbm"] / 1000


def under_other_answers(choose: Callable[[Constants], T]) -> dict[str, T]:
    """Results of `choose` under each alternative value of the constants on which sources
    disagree."""
    return {
        f"{name}={answer} ({each[name]:g} {CONSTANTS[name].unit})": choose(each)
        for each in alternatives(DEFAULT.target)
        for name, answer in each.choices.items()
        if name in PRICED
    }
