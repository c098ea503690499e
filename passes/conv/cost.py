"""The cost of a convolution under each schedule: counted work, and cycles modelled from it.

`Work` is exact: instructions and bytes of one launch, from the shapes alone; a test compares it
with the counts of the simulated machine. `Cost` is a model; nothing here was measured on a B200.
Its numbers are those of `tcir.time.constants`, which names a source for each; its rules:

- the tensor core takes the cycles of the public table (`mma_cycles`) for each mma;
- ``tcgen05.cp`` holds up the tensor core while it moves its bytes, as it does on a Thor; each
  ``.ashift`` takes it the cycles that a model of tensor memory's banks gives;
- shared memory serves operands, ``tcgen05.cp`` and TMA writes from one port;
- an SM receives its bytes from L2 in sectors of 32 bytes, so boxes whose rows are 16 bytes cost
  twice their size;
- an SM stores results as slowly as TMA does, the only public figure of a store;
- every CTA pays its latency and its epilogue, and SMs run their CTAs one after the other;
- the whole launch takes at least its unique bytes divided by the bandwidth of HBM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from tcir.dialect.limits import LANE_MASK_BYTES, MMA_K_BYTES, SMEM_TILE_ALIGNMENT, TMEM_LANES
from tcir.passes.build.limits import ceil_div, round_up
from tcir.passes.conv.offset_plan import CORE_COLUMN_BYTES, best_plan
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.shift_classes import ShiftClasses
from tcir.passes.conv.tile_conv_shift_reuse import TILINGS
from tcir.target import DEFAULT_TARGET, SMEM_BYTES_PER_CYCLE
from tcir.time.constants import Constants

DEFAULT = Constants(DEFAULT_TARGET.name)
"""The constants with their default answers."""
PRICED = (
    "clock", "cp-blocks-mma", "cp-rate", "cta-latency", "hbm", "l2-port", "ld-column", "sector",
    "shared-port", "shift", "st-column", "tma-store-cycles-per-kb", "tma-store-latency",
)  # fmt: skip
"""What `Work` and `Cost` read of the table."""
SECTOR_BYTES = int(DEFAULT["sector"])


def mma_cycles(n: int, *, a_in_tmem: bool) -> int:
    """Issue interval of one mma with M = 128, one CTA (microbench-blackwell)."""
    loaded = MMA_K_BYTES * (n + (0 if a_in_tmem else TMEM_LANES))
    return max(n // 2, ceil_div(loaded, SMEM_BYTES_PER_CYCLE))


@dataclass(frozen=True)
class Work:
    """Instructions and bytes of one launch, all CTAs together.

    lanes: lanes of D computed; outputs: those of them that are stored (for one output channel)
    activations, filters: bytes TMA writes to shared memory; to_tmem: bytes of tcgen05.cp
    stored: bytes of the output; epilogue_reads: of what the epilogue reads beside the sums
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
        """Stored outputs per computed lane."""
        return self.outputs / self.lanes

    @property
    def shifts(self) -> int:
        """mma with ``.ashift``: all that use a copied A tile, but the last."""
        return self.mma - self.to_tmem // (TMEM_LANES * MMA_K_BYTES) if self.a_in_tmem else 0

    @property
    def to_tensor(self) -> int:
        """Operand bytes the tensor cores read from shared memory."""
        return self.mma * MMA_K_BYTES * (self.n_tile + (0 if self.a_in_tmem else TMEM_LANES))

    @property
    def tensor_cycles(self) -> int:
        """Cycles of all mma, back to back."""
        return self.mma * mma_cycles(self.n_tile, a_in_tmem=self.a_in_tmem)


@dataclass(frozen=True)
class Cost:
    """Modelled cycles of the parts of one CTA, waves, and the launch time in microseconds.

    tensor: of the tensor pipe: mma, shifts, and the copies to tensor memory that hold it up
    copies: of all these copies
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
    def of(work: Work, constants: Constants = DEFAULT) -> Cost:
        """The model applied to `work`."""
        c, each = constants, work.ctas
        loaded = work.activations + work.filters
        port = work.to_tensor + work.to_tmem + loaded
        from_l2 = work.activations * work.sectors + work.filters
        copies = work.to_tmem / c["cp-rate"]
        pipe = work.tensor_cycles + copies * c["cp-blocks-mma"] + work.shifts * c["shift"]
        read = work.epilogue_reads / each / c["l2-port"]
        written = c["tma-store-latency"] + c["tma-store-cycles-per-kb"] * work.stored / each / 1024
        columns = work.n_tile * c["ld-column"] + work.zeroed / each * c["st-column"]
        return Cost(
            tensor=ceil(pipe / each),
            copies=ceil(copies / each),
            shared=ceil(port / each / c["shared-port"]),
            l2=ceil(from_l2 / each / c["l2-port"]),
            epilogue=ceil(columns + read + written),
            latency=ceil(c["cta-latency"]),
            waves=ceil_div(each, DEFAULT_TARGET.sms),
            hbm_us=work.unique_bytes / c["hbm"] / 1000,
            clock_ghz=c["clock"],
        )

    @property
    def cta_cycles(self) -> int:
        """Cycles of one CTA from start to end."""
        main = max(self.tensor, self.copies, self.shared, self.l2)
        return main + self.epilogue + self.latency

    @property
    def cycles(self) -> int:
        """Cycles of the SM with the most CTAs."""
        return self.waves * self.cta_cycles

    @property
    def microseconds(self) -> float:
        """Modelled time of the launch, not measured."""
        return max(self.cycles / (self.clock_ghz * 1000), self.hbm_us)

    @property
    def bound(self) -> str:
        """The bottleneck of the launch."""
        if self.hbm_us > self.cycles / (self.clock_ghz * 1000):
            return "hbm"
        parts = {
            "tensor": self.tensor, "copies": self.copies, "shared": self.shared, "l2": self.l2
        }  # fmt: skip
        name = max(parts, key=lambda key: parts[key])
        return name if parts[name] > self.epilogue + self.latency else "latency"


def shift_reuse(tiling: str) -> Callable[[ConvShape, int], Work]:
    """``conv-shift-reuse``: an A tile of 128 lanes per filter row and tap class."""

    def work(shape: ConvShape, n_tile: int) -> Work:
        classes = ShiftClasses.of(shape)
        tiles = TILINGS[tiling](shape, classes).ctas
        clears = tiling == "linear"
        stage = len(classes.taps), shape.s
        work = _work(shape, n_tile, tiles, stage, shape.r, a_in_tmem=True, clears=clears)
        masks = LANE_MASK_BYTES * shape.r * shape.s if clears else 0
        return replace(work, stage_bytes=work.stage_bytes + masks)

    return work


def implicit_gemm(shape: ConvShape, n_tile: int) -> Work:
    """``conv-implicit-gemm``: 128 output pixels, loaded again for every tap."""
    tiles = ceil_div(_pixels(shape), TMEM_LANES)
    return _work(shape, n_tile, tiles, (1, 1), shape.r * shape.s, a_in_tmem=False)


def smem_offset(shape: ConvShape, n_tile: int) -> Work | None:
    """``conv-smem-offset``: one tile per filter or filter row; each tap starts at its own pixel."""
    plan = best_plan(shape, n_tile)
    if plan is None:
        return None
    work = _work(shape, n_tile, plan.ctas, (0, 0), 0, a_in_tmem=False)
    return replace(
        work,
        activations=work.ctas * plan.steps * plan.activation_bytes,
        stage_bytes=plan.stage_bytes(n_tile),
        sectors=SECTOR_BYTES // CORE_COLUMN_BYTES,
    )


SCHEDULES: dict[str, Callable[[ConvShape, int], Work | None]] = {
    "conv-implicit-gemm": implicit_gemm,
    "conv-smem-offset": smem_offset,
    **{f"conv-shift-reuse{{tiling={name}}}": shift_reuse(name) for name in TILINGS},
}
"""By the pipeline that builds the schedule; None if it has no legal tile. Of two that cost the
same, the first is chosen: the simpler one. halo=refresh is not among them: an automatic choice
must not depend on an open question about the hardware."""


def _work(
    shape: ConvShape,
    n_tile: int,
    tiles: int,
    stage: tuple[int, int],
    stages: int,
    *,
    a_in_tmem: bool,
    clears: bool = False,
) -> Work:
    """Work of `tiles` of 128 lanes, each `stages` times for all channels.

    stage: A tiles of 128 pixels, and taps whose filters are loaded, per stage
    """
    bytes_ = shape.element_bytes
    kc = shape.kc
    channels = round_up(shape.c, kc)
    columns = ceil_div(shape.k, n_tile)
    ctas = tiles * columns
    a_tiles, filters = stage
    activations = ctas * stages * a_tiles * TMEM_LANES * channels * bytes_
    pixels = _pixels(shape)
    taps = shape.r * shape.s
    image = shape.n * shape.h * shape.w * shape.channels * bytes_
    return Work(
        ctas=ctas,
        n_tile=n_tile,
        lanes=tiles * TMEM_LANES,
        outputs=pixels,
        mma=ctas * taps * channels * bytes_ // MMA_K_BYTES,
        a_in_tmem=a_in_tmem,
        activations=activations,
        filters=ctas * taps * (channels // kc) * shape.filter_bytes(n_tile, kc),
        to_tmem=activations if a_in_tmem else 0,
        stored=shape.stored_bytes,
        epilogue_reads=shape.epilogue_reads,
        unique_bytes=image
        + taps * shape.c * shape.k * bytes_
        + shape.stored_bytes
        + shape.epilogue_reads,
        stage_bytes=a_tiles * _placed(TMEM_LANES * kc * bytes_)
        + filters * _placed(shape.filter_bytes(n_tile, kc)),
        zeroed=ctas * n_tile if clears else 0,
    )


def _placed(nbytes: int) -> int:
    return round_up(nbytes, SMEM_TILE_ALIGNMENT)


def _pixels(shape: ConvShape) -> int:
    return shape.n * shape.p * shape.q
