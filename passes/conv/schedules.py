"""The schedules of a convolution: which are legal, and their modelled cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tcir._mlir import ir
from tcir.dialect.limits import SMEM_BYTES
from tcir.errors import PassError
from tcir.passes.build.limits import BARRIER_BYTES, MMA_N, MMA_N_STEP, ceil_div, round_up
from tcir.passes.conv.cost import SCHEDULES, Cost, Work
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passes.conv.tile_conv_shift_reuse import TileConvShiftReuse
from tcir.passes.conv.tile_conv_smem_offset import TileConvSmemOffset

TilingPass = TileConvImplicitGemm | TileConvShiftReuse | TileConvSmemOffset


@dataclass(frozen=True)
class Candidate:
    """A schedule with a tile width: its cost, or why it is not legal."""

    schedule: str
    work: Work | None
    reason: str = ""

    @property
    def microseconds(self) -> float:
        """The modelled time; infinite for a schedule that is not legal."""
        return Cost.of(self.work).microseconds if self.work and not self.reason else inf


def rank(op: ir.OpView, n_tile: int = 0) -> list[Candidate]:
    """Each schedule of `op`, a ``tc.conv2d``, with its cheapest tile width: cheapest first, illegal
    ones last."""
    shape = ConvShape.of(op)
    widths = [n_tile] if n_tile else _n_tiles(shape)
    return sorted((_best(op, shape, name, widths) for name in SCHEDULES),
                  key=lambda each: each.microseconds)  # fmt: skip


def candidate(op: ir.OpView, schedule: str, n_tile: int) -> Candidate:
    """One schedule, a key of `SCHEDULES`, with one width."""
    return _best(op, ConvShape.of(op), schedule, [n_tile])


def _best(op: ir.OpView, shape: ConvShape, schedule: str, widths: list[int]) -> Candidate:
    room = SMEM_BYTES - BARRIER_BYTES
    works = [work for width in widths if (work := SCHEDULES[schedule](shape, width))]
    fitting = [work for work in works if work.stage_bytes <= room]
    if works and not fitting:
        least = min(work.stage_bytes for work in works)
        return Candidate(
            schedule, None, f"expected at most {room} bytes of shared memory a stage, got {least}"
        )
    work = min(fitting, key=lambda w: Cost.of(w).microseconds, default=None)
    try:
        tiling_pass(schedule, work.n_tile if work else widths[0]).check(op)
    except PassError as error:
        return Candidate(schedule, work, str(error).splitlines()[0])
    return Candidate(schedule, work)


def _n_tiles(shape: ConvShape) -> list[int]:
    """Widths that cut the output channels into equal tiles, each of one group."""
    k = shape.group_k
    most = ceil_div(k, MMA_N_STEP)
    widths = {round_up(ceil_div(k, tiles), MMA_N_STEP) for tiles in range(1, most + 1)}
    fitting = {width for width in widths if shape.groups == 1 or k % width == 0}
    return sorted(width for width in fitting or widths if width in MMA_N)


def tiling_pass(schedule: str, n_tile: int) -> TilingPass:
    """The pass that builds `schedule`, a key of `SCHEDULES`."""
    name, _, options = schedule.rstrip("}").partition("{tiling=")
    if name == "conv-shift-reuse":
        return TileConvShiftReuse(n_tile=n_tile, tiling=options)
    return (TileConvSmemOffset if name == "conv-smem-offset" else TileConvImplicitGemm)(n_tile)


def table(candidates: list[Candidate]) -> str:
    """The candidates as text, one a line; times are modelled."""
    return "\n".join([HEADER, *_rows(candidates)])


HEADER = (
    f"{'schedule':<32}{'n-tile':>7}{'us':>8}{'cycles':>9}{'waves':>6}{'lanes':>7}"
    f"{'MB to smem':>12}{'bound':>9}"
)


def _rows(candidates: list[Candidate]) -> Iterator[str]:
    for each in candidates:
        if each.work is None:
            yield f"{each.schedule:<32}  not legal: {each.reason}"
            continue
        work, cost = each.work, Cost.of(each.work)
        loaded = (work.activations + work.filters) / 1e6
        tail = f"  not legal: {each.reason}" if each.reason else ""
        yield (
            f"{each.schedule:<32}{work.n_tile:>7}{cost.microseconds:>8.2f}{cost.cycles:>9}"
            f"{cost.waves:>6}{work.lane_efficiency:>7.2f}{loaded:>12.2f}{cost.bound:>9}{tail}"
        )
