"""The schedules of a convolution: which of them are legal, and their modelled cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tcir._mlir import ir
from tcir.dialect.limits import SMEM_BYTES
from tcir.errors import PassError
from tcir.passes.conv.cost import SCHEDULES
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passes.conv.tile_conv_shift_reuse import TileConvShiftReuse
from tcir.passes.conv.tile_conv_smem_offset import TileConvSmemOffset
from tcir.passes.emit.cost import DEFAULT, Cost, LaunchWork, under_other_answers
from tcir.passes.emit.limits import BARRIER_BYTES, equal_widths
from tcir.time.constants import Constants

TilingPass = TileConvImplicitGemm | TileConvShiftReuse | TileConvSmemOffset


@dataclass(frozen=True)
class ConvCandidate:
    """A schedule with a tile width. It has either the modelled cost, or the reason why the schedule
    is not legal."""

    schedule: str
    work: LaunchWork | None
    reason: str = ""
    constants: Constants = DEFAULT

    @property
    def cost(self) -> Cost | None:
        """The modelled cost; None for a schedule that is not legal."""
        return Cost.of(self.work, self.constants) if self.work and not self.reason else None

    @property
    def microseconds(self) -> float:
        """The modelled time; infinite for a schedule that is not legal."""
        return self.cost.microseconds if self.cost else inf

    def __str__(self) -> str:
        return f"{self.schedule}, n-tile {self.work.n_tile if self.work else '-'}"


class ConvSchedules:
    """The schedules of `op`, a ``tc.conv2d``, with every tile width or only with `n_tile`."""

    def __init__(self, op: ir.OpView, n_tile: int = 0) -> None:
        shape = ConvShape.of(op)
        self.op = op
        self.widths = [n_tile] if n_tile else _n_tiles(shape)
        self._works = {
            name: [work for width in self.widths if (work := works(shape, width))]
            for name, works in SCHEDULES.items()
        }
        self._reasons: dict[tuple[str, int], str] = {}

    def ranked(self, constants: Constants = DEFAULT) -> list[ConvCandidate]:
        """Each schedule with its cheapest tile width, sorted by cost; illegal schedules come
        last."""
        best = (self.best(name, constants) for name in SCHEDULES)
        return sorted(best, key=lambda each: each.microseconds)

    def best(self, schedule: str, constants: Constants = DEFAULT) -> ConvCandidate:
        """Returns the candidate of `schedule` that has the cheapest tile width.

        schedule: a key of `SCHEDULES`
        """
        room = SMEM_BYTES - BARRIER_BYTES
        works = self._works[schedule]
        fitting = [work for work in works if work.stage_bytes <= room]
        if works and not fitting:
            least = min(work.stage_bytes for work in works)
            return ConvCandidate(
                schedule,
                None,
                f"a stage needs at least {least} bytes of shared memory, and there are {room}",
                constants,
            )
        work = min(fitting, key=lambda w: Cost.of(w, constants).microseconds, default=None)
        reason = self._reason(schedule, work.n_tile if work else self.widths[0])
        return ConvCandidate(schedule, work, reason, constants)

    def _reason(self, schedule: str, n_tile: int) -> str:
        """Why the tiling pass refuses; empty if it does not."""
        if (schedule, n_tile) not in self._reasons:
            reason = ""
            try:
                tiling_pass(schedule, n_tile).check(self.op)
            except PassError as error:
                reason = str(error).splitlines()[0]
            self._reasons[schedule, n_tile] = reason
        return self._reasons[schedule, n_tile]

    def choices(self) -> dict[str, ConvCandidate]:
        """The cheapest schedule for each alternative value of a constant on which sources
        disagree."""
        return under_other_answers(lambda constants: self.ranked(constants)[0])

    def disputes(self) -> str:
        """Describes which schedule is chosen under each value of a constant on which sources
        disagree."""
        chosen = str(self.ranked()[0])
        choices = {answer: str(each) for answer, each in self.choices().items()}
        lines = [
            "sources disagree on some constants of the model (docs/reference/roofline.md); the "
            "choice with each of their values:"
        ]
        lines += [f"  {answer}: {each}" for answer, each in choices.items() if each != chosen]
        same = [answer.partition(" ")[0] for answer, each in choices.items() if each == chosen]
        if same:
            lines.append(f"  {', '.join(same)}: the same choice")
        return "\n".join(lines)


def _n_tiles(shape: ConvShape) -> list[int]:
    """Widths that cut the output channels into equal tiles, each of one group."""
    k = shape.group_k
    widths = equal_widths(k)
    fitting = [width for width in widths if shape.groups == 1 or k % width == 0]
    return sorted(fitting or widths)


def tiling_pass(schedule: str, n_tile: int) -> TilingPass:
    """The tiling pass that implements `schedule`, a key of `SCHEDULES`."""
    name, _, options = schedule.rstrip("}").partition("{tiling=")
    if name == "conv-shift-reuse":
        return TileConvShiftReuse(n_tile=n_tile, tiling=options)
    if name == "conv-smem-offset":
        return TileConvSmemOffset(n_tile=n_tile)
    return TileConvImplicitGemm(n_tile=n_tile)


def table(candidates: list[ConvCandidate]) -> str:
    """The candidates as text, one per line, with modelled times."""
    return "\n".join([HEADER, *_rows(candidates)])


HEADER = (
    f"{'schedule':<32}{'n-tile':>7}{'us':>8}{'cycles':>9}{'waves':>6}{'lanes':>7}"
    f"{'MB to smem':>12}{'bound':>9}"
)


def _rows(candidates: list[ConvCandidate]) -> Iterator[str]:
    for each in candidates:
        if each.work is None:
            yield f"{each.schedule:<32}  not legal: {each.reason}"
            continue
        work, cost = each.work, Cost.of(each.work, each.constants)
        loaded = (work.activations + work.filters) / 1e6
        tail = f"  not legal: {each.reason}" if each.reason else ""
        yield (
            f"{each.schedule:<32}{work.n_tile:>7}{cost.microseconds:>8.2f}{cost.cycles:>9}"
            f"{cost.waves:>6}{work.lane_efficiency:>7.2f}{loaded:>12.2f}{cost.bound:>9}{tail}"
        )
