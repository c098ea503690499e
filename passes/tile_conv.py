"""tile-conv: the cheapest legal schedule of a convolution, by the cost model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.errors import PassError
from tcir.passes.conv_cost import SCHEDULES, Cost, Work
from tcir.passes.conv_shapes import ConvShape
from tcir.passes.limits import MMA_N, MMA_N_STEP, ceil_div, round_up
from tcir.passes.refusal import refuse
from tcir.passes.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passes.tile_conv_shift_reuse import TileConvShiftReuse
from tcir.passes.tile_conv_smem_offset import TileConvSmemOffset
from tcir.passes.tile_kernel import find_sources
from tcir.pipeline import Pass, register_pass
from tcir.remarks import remark

UNSETTLED = (
    "halo=refresh is no candidate: it rests on answers about the hardware that no document "
    "settles; conv-shift-reuse{halo=refresh} asks for it"
)


@dataclass(frozen=True)
class Candidate:
    """A schedule with a tile width: what it costs, or why it is not legal."""

    schedule: str
    work: Work | None
    refusal: str = ""

    @property
    def microseconds(self) -> float:
        """The modelled time; infinite for a schedule that is not legal."""
        return Cost.of(self.work).microseconds if self.work and not self.refusal else inf


@register_pass
@dataclass(frozen=True)
class TileConv(Pass):
    """Runs the tiling pass whose program the cost model of `tcir.passes.conv_cost` finds cheapest.

    n_tile: output channels per CTA; 0 chooses that, too

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After: the program of ``tile-conv-shift-reuse``, ``tile-conv-implicit-gemm``, …, and a remark
    with the table it chose from. Schedules that rest on an entry of the assumptions (halo=refresh)
    are no candidates. Preserves what that pass preserves.
    """

    name: ClassVar[str] = "tile-conv"
    n_tile: int = 0

    def run(self, module: ir.Module) -> None:
        sources = find_sources(module, tc.Conv2dOp, self.name)
        if len(sources) != 1:
            raise refuse(module.operation, f"expected one convolution, got {len(sources)}")
        op = sources[0].op
        shape = ConvShape.of(op)
        ranked = rank(module, shape, self.n_tile)
        best = ranked[0]
        if best.work is None or best.refusal:
            raise refuse(op, "\n".join(f"{each.schedule}: {each.refusal}" for each in ranked))
        remark(op, f"chose {best.schedule} (modelled, not measured)\n{table(ranked)}\n{UNSETTLED}")
        tiling_pass(best.schedule, best.work.n_tile).run(module)


def rank(module: ir.Module, shape: ConvShape, n_tile: int = 0) -> list[Candidate]:
    """Each schedule with its cheapest tile width, cheapest first, illegal ones last."""
    ranked = []
    for schedule, work_of in SCHEDULES.items():
        works = [work_of(shape, width) for width in ([n_tile] if n_tile else n_tiles(shape.k))]
        work = min(filter(None, works), key=lambda w: Cost.of(w).microseconds, default=None)
        width = work.n_tile if work else n_tile
        ranked.append(Candidate(schedule, work, _refusal(module, schedule, width)))
    return sorted(ranked, key=lambda each: each.microseconds)


def n_tiles(k: int) -> list[int]:
    """Widths that cut `k` output channels into equal tiles."""
    most = ceil_div(k, MMA_N_STEP)
    widths = {round_up(ceil_div(k, tiles), MMA_N_STEP) for tiles in range(1, most + 1)}
    return sorted(width for width in widths if width in MMA_N)


def tiling_pass(schedule: str, n_tile: int) -> Pass:
    """The pass that builds `schedule`, a key of `SCHEDULES`."""
    name, _, options = schedule.rstrip("}").partition("{tiling=")
    if name == "conv-shift-reuse":
        return TileConvShiftReuse(n_tile=n_tile, tiling=options)
    return (TileConvSmemOffset if name == "conv-smem-offset" else TileConvImplicitGemm)(n_tile)


def _refusal(module: ir.Module, schedule: str, n_tile: int) -> str:
    """Why `schedule` does not take the module's convolution; empty when it does."""
    copy: Any = ir.Module.parse(str(module))
    try:
        tiling_pass(schedule, n_tile).run(copy)
    except PassError as error:
        return str(error).splitlines()[0]
    return ""


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
            yield f"{each.schedule:<32}  not legal: {each.refusal}"
            continue
        work, cost = each.work, Cost.of(each.work)
        loaded = (work.activations + work.filters) / 1e6
        tail = f"  not legal: {each.refusal}" if each.refusal else ""
        yield (
            f"{each.schedule:<32}{work.n_tile:>7}{cost.microseconds:>8.2f}{cost.cycles:>9}"
            f"{cost.waves:>6}{work.lane_efficiency:>7.2f}{loaded:>12.2f}{cost.bound:>9}{tail}"
        )
