"""Published GEMM kernels for sm_100a as streams of events, built from the descriptions that their
authors give.

The kernels compute C = A * B of 16-bit, K-major operands with tcgen05.mma. A CTA computes tiles of
128 rows, a CTA pair tiles of 256 rows. The options of `Gemm` are the differences between the steps
of public optimisation guides.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir.machine.events import EventStream
from tcir.time.build import WarpTrack

ROWS = 128
"""Rows of A and of C in one CTA."""
ELEMENT = 2
MMA_K = 16
EPILOGUE_WARPS = 4


@dataclass(frozen=True)
class Gemm:
    """One kernel.

    n, k:         columns of C, and depth of A and B, in a stage; n is that of the whole pair
    inner:        bytes of a row of the TMA boxes; boxes: number of boxes of A, and of B, in a stage
    roles:        whether one warp loads and another issues mma; if not, one warp does both
    ahead:        without roles: number of stages that are loaded before the step that uses them
    each:         without roles: whether a step waits for its mma before the next step begins
    accumulators: 2: the epilogue of one tile overlaps the mma of the next (persistent kernels)
    columns:      columns of a tcgen05.ld in the epilogue
    store:        direct: 16 bytes per thread and column group; element: 2 bytes; tma: through
                  shared memory, the whole tile at once; tiled: like tma, in pieces of `columns`
                  columns
    """

    name: str
    n: int = 256
    k: int = 64
    stages: int = 7
    pair: bool = False
    inner: int = 128
    boxes: int = 1
    roles: bool = True
    ahead: int = 0
    each: bool = False
    accumulators: int = 1
    columns: int = 8
    store: str = "direct"

    @property
    def ctas(self) -> int:
        return 1 + self.pair

    def launch_ctas(self, m: int, n: int) -> int:
        """Number of CTAs of a launch that is not persistent."""
        return -(-m // (ROWS * self.ctas)) * -(-n // self.n) * self.ctas

    def stream(self, depth: int, tiles: int = 1) -> EventStream:
        """Returns the events of a CTA, or pair, that computes `tiles` tiles of C one after the
        other."""
        stage = (ROWS + self.n // self.ctas) * self.k * ELEMENT
        threads = 32 * (EPILOGUE_WARPS + (2 if self.accumulators > 1 else 0))
        events = EventStream(
            kernel=self.name,
            block=(threads, 1, 1),
            ctas=tuple(range(self.ctas)),
            registers=128,
            shared_bytes=stage * self.stages,
        )
        writer = _Writer(self, events, -(-depth // self.k))
        for tile in range(tiles):
            writer.tile(tile)
        return events


class _Writer:
    """Appends the events of one kernel."""

    def __init__(self, kernel: Gemm, events: EventStream, steps: int) -> None:
        self.kernel, self.steps = kernel, steps
        first = 2 if kernel.accumulators > 1 else 0
        ctas = range(kernel.ctas)
        self.loaders = [WarpTrack(events, 0, cta) for cta in ctas]
        self.issuer = WarpTrack(events, 1 if kernel.roles else 0)
        self.epilogues = [
            WarpTrack(events, first + warp, cta) for cta in ctas for warp in range(EPILOGUE_WARPS)
        ]
        self.filled: list[list[int]] = []
        self.freed: list[int] = []
        self.read: list[list[int]] = []

    def load(self) -> None:
        """Appends the loads of the next stage."""
        kernel, step = self.kernel, len(self.filled)
        filled = []
        for loader in self.loaders:
            if step >= kernel.stages:
                loader.wait(self.freed[step - kernel.stages])
            for rows in (ROWS, kernel.n // kernel.ctas):
                nbytes = rows * kernel.k * ELEMENT // kernel.boxes
                filled += [loader.load(nbytes, kernel.inner) for _ in range(kernel.boxes)]
        self.filled.append(filled)

    def multiply(self) -> None:
        """Appends the mma of the next stage."""
        kernel, step = self.kernel, len(self.freed)
        self.issuer.wait(*self.filled[step])
        mma = [
            self.issuer.mma(kernel.n, m=ROWS * kernel.ctas, group=kernel.ctas)
            for _ in range(kernel.k // MMA_K)
        ]
        self.freed.append(self.issuer.commit(*mma))

    def tile(self, tile: int) -> None:
        """Appends the main loop and epilogue of a tile."""
        kernel, end = self.kernel, (tile + 1) * self.steps
        if tile >= kernel.accumulators:
            self.issuer.wait(*self.read[tile - kernel.accumulators])
        ahead = kernel.stages - 1 if kernel.roles else kernel.ahead
        for step in range(tile * self.steps, end):
            while len(self.filled) < min(step + ahead + 1, end):
                if len(self.filled) - kernel.stages >= len(self.freed):
                    break
                self.load()
            self.multiply()
            if kernel.each:
                self.issuer.wait(self.freed[-1])
        self.read.append([self.epilogue(warp) for warp in self.epilogues])

    def epilogue(self, warp: WarpTrack) -> int:
        """Appends one warp's epilogue, from tensor memory to C."""
        kernel = self.kernel
        warp.wait(self.freed[-1])
        pieces = kernel.n // kernel.columns
        stored: list[int] = []
        for piece in range(pieces):
            loaded = warp.op("tcgen05.ld", columns=kernel.columns)
            warp.op("tcgen05.wait", [loaded])
            warp.op("alu", count=kernel.columns)
            if kernel.store == "element":
                for _ in range(kernel.columns):  # a sector of 32 bytes for each
                    warp.op("st.global", bytes=32 * 32)
            elif kernel.store == "direct":  # half of each sector in one instruction
                sector = max(32, kernel.columns * ELEMENT)
                warp.op("st.global", bytes=32 * sector)
            else:
                if kernel.store == "tiled" and piece >= 2:
                    warp.op("tcgen05.wait", [stored[piece - 2]])
                warp.op("st.shared", bytes=32 * kernel.columns * ELEMENT)
                if kernel.store == "tiled" or piece == pieces - 1:
                    warp.op("fence", kind="proxy.async")
                    width = kernel.columns if kernel.store == "tiled" else kernel.n
                    stored.append(warp.op("tma.store", bytes=32 * width * ELEMENT))
        if stored:
            warp.op("tcgen05.wait", stored[-1:])
        return warp.op("mbarrier.arrive")
