"""Schedules of the GEMV tilings: their options, and the rule by which one is chosen."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.ops.block_scaled import BLOCK_BYTES
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.scaled_shape import ScaledShape, Stage
from tcir.passes.gemv.ranges import SMS, Ranges

WIDEST = 128
"""Bytes of a row of a stage: the widest swizzle span."""
SCHEDULES = ("auto", "single", "split-k", "stream-k")

FAIR = 1.05
"""Ratio of largest to mean share of an SM that the default accepts at once."""

SUM_BYTES = 4
"""Bytes of an f32."""

MOST_SPLITS = 8
"""Parts per tile considered by default: each costs a partial result of 128 rows."""

MOST_SEGMENTS = 16
"""The most segments per CTA: each has its own accumulator in tensor memory."""


@dataclass(frozen=True)
class GemvSchedule:
    """The schedule of one GEMV kernel: the contents of a stage, and the ranges of stages of the
    CTAs."""

    name: str
    stage: Stage
    ranges: Ranges

    @property
    def traffic(self) -> float:
        """Bytes that the busiest SM loads times the number of SMs, plus the partial results that
        are written and read."""
        stage = TMEM_LANES * self.stage.row_bytes + BLOCK_BYTES * self.stage.scale_blocks
        parts = 0 if self.ranges.whole else self.ranges.segments
        partial = TMEM_LANES * SUM_BYTES * self.stage.shape.n
        return self.ranges.balance() * self.ranges.total * stage + 2 * parts * partial


def row_bytes(shape: ScaledShape) -> list[int]:
    """Possible widths of a stage's rows in bytes, widest first: swizzle spans that hold whole sets
    of 4 scales."""
    if shape.a.padded or shape.b.padded:
        return [128]  # TMA pads 128 elements at a time, which are 128 bytes
    return [width for width in (128, 64, 32) if Stage(shape, width).scales % 4 == 0]


def k_tiles(shape: ScaledShape) -> dict[int, int]:
    """Possible numbers of K elements of a stage, each with the width of its rows in bytes."""
    return {Stage(shape, width).k: width for width in row_bytes(shape)}


def single(shape: ScaledShape, width: int = WIDEST) -> GemvSchedule:
    """The schedule with one CTA per tile, in stages with rows of `width` bytes."""
    stage = Stage(shape, width)
    tiles = ceil_div(shape.m, TMEM_LANES) * shape.batch
    return GemvSchedule("single", stage, Ranges(tiles, stage.per_tile, tiles))


def split(shape: ScaledShape, parts: int, width: int = WIDEST) -> GemvSchedule:
    """The schedule with `parts` CTAs per tile."""
    one = single(shape, width)
    ranges = one.ranges
    return GemvSchedule(
        "split-k", one.stage, Ranges(ranges.tiles, ranges.units, ranges.tiles * parts)
    )


def stream(shape: ScaledShape, width: int) -> GemvSchedule:
    """The schedule with one CTA per SM, or with fewer CTAs if a CTA would get less than two
    stages."""
    stage, tiles = Stage(shape, width), single(shape).ranges.tiles
    ctas = max(1, min(SMS, tiles * stage.per_tile // 2))
    return GemvSchedule("stream-k", stage, Ranges(tiles, stage.per_tile, ctas))


def choose(
    op: ir.OpView, shape: ScaledShape, schedule: str, splits: int, k_tile: int = 0
) -> GemvSchedule:
    """The schedule selected by the options; `k_tile`: elements of K of a stage, 0 chooses.

    A schedule is called even if the largest number of stages of an SM is at most 1.05 times the
    mean over all SMs. ``auto`` takes `single` if there are fewer than two stages per SM, or if
    `single` is even. Otherwise it compares `split-k` in 2 to 8 parts, and `stream-k`, with the
    widest stage. Among the even schedules it takes the one with the least traffic; if no schedule
    is even, it takes the most even one.
    """
    if schedule not in SCHEDULES:
        raise match_failure(
            op,
            f"expected schedule to be one of {', '.join(SCHEDULES)}, got {schedule}; leave it out",
        )
    given = _width(op, shape, k_tile)
    width = given or WIDEST
    one = single(shape, width)
    most = one.ranges.units
    if splits and (schedule != "split-k" or not 1 <= splits <= most):
        raise match_failure(
            op,
            f"splits must be in [1, {most}] with schedule=split-k, got {splits} with "
            f"schedule={schedule} (a tile has {most} stages, and each part needs one); smallest "
            "accepted: splits=1",
        )
    if splits:
        return split(shape, splits, width)
    parts = [split(shape, p, width) for p in range(2, min(MOST_SPLITS, most) + 1)]
    streams = [stream(shape, each) for each in ([given] if given else row_bytes(shape))]
    streams = [s for s in streams if s.ranges.valid and s.ranges.per_cta <= MOST_SEGMENTS]
    few = one.ranges.total < 2 * SMS
    candidates = {
        "auto": [one] if few else [one, *parts, *streams],
        "single": [one],
        "split-k": parts or [one],
        "stream-k": streams,
    }[schedule]
    if not candidates:
        raise match_failure(
            op,
            "expected at least two stages for each tile and each CTA, and at most "
            f"{MOST_SEGMENTS} tiles for each CTA, with schedule=stream-k, got {one.ranges.tiles} "
            f"tiles of {most} stages (each tile keeps its own columns of tensor memory until it "
            "is stored); take schedule=single",
        )
    fair = [candidate for candidate in candidates if candidate.ranges.balance() <= FAIR]
    if not fair:
        return min(candidates, key=lambda c: c.ranges.balance())
    widest = next((each for each in fair if each.name == "stream-k"), None)
    cut = [each for each in fair if each.name == "split-k" or each is widest]
    return one if one in fair else min(cut, key=lambda each: each.traffic)


def _width(op: ir.OpView, shape: ScaledShape, k_tile: int) -> int:
    """Bytes of a row of a stage of `k_tile` elements of K; 0: the schedule chooses."""
    legal = k_tiles(shape)
    if k_tile and k_tile not in legal:
        known = ", ".join(map(str, sorted(legal)))
        raise match_failure(
            op,
            f"expected k-tile to be one of {known}, got {k_tile} (a stage's rows are a swizzle "
            f"span of 32, 64 or 128 bytes, here of {shape.a.bits}-bit elements, with whole sets of "
            f"4 scales); take k-tile={max(legal)}, or 0 to choose",
        )
    return legal.get(k_tile, 0)
