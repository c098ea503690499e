"""The modelled cost of a convolution under each schedule (`tcir.passes.emit.cost`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcir.dialect.limits import LANE_MASK_BYTES, MMA_K_BYTES, SMEM_TILE_ALIGNMENT, TMEM_LANES
from tcir.passes.conv.im2col import gathered
from tcir.passes.conv.offset_plan import CORE_COLUMN_BYTES, best_plan
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.shift_classes import ShiftClasses
from tcir.passes.conv.tile_conv_shift_reuse import TILINGS
from tcir.passes.emit.cost import SECTOR_BYTES, LaunchWork
from tcir.passes.emit.limits import ceil_div, round_up


def shift_reuse(tiling: str) -> Callable[[ConvShape, int], LaunchWork]:
    """Cost of ``conv-shift-reuse``, which loads an A tile of 128 lanes for each filter row and tap
    class."""

    def work(shape: ConvShape, n_tile: int) -> LaunchWork:
        classes = ShiftClasses.of(shape)
        tiles = TILINGS[tiling](shape, classes).ctas
        clears = tiling == "linear"
        stage = len(classes.taps), shape.s
        work = _work(shape, n_tile, tiles, stage, shape.r, a_in_tmem=True, clears=clears)
        masks = LANE_MASK_BYTES * shape.r * shape.s if clears else 0
        return replace(work, stage_bytes=work.stage_bytes + masks)

    return work


def implicit_gemm(shape: ConvShape, n_tile: int) -> LaunchWork:
    """Cost of ``conv-implicit-gemm``, which loads 128 output pixels again for every tap or filter
    row."""
    tiles, loaded = ceil_div(_pixels(shape), TMEM_LANES), gathered(shape)
    work = _work(loaded, n_tile, tiles, (1, 1), loaded.r * loaded.s, a_in_tmem=False)
    return replace(work, unique_bytes=_unique_bytes(shape))


def smem_offset(shape: ConvShape, n_tile: int) -> LaunchWork | None:
    """Cost of ``conv-smem-offset``, which loads one tile per filter or filter row; each tap starts
    at its own pixel of the tile."""
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


SCHEDULES: dict[str, Callable[[ConvShape, int], LaunchWork | None]] = {
    "conv-implicit-gemm": implicit_gemm,
    "conv-smem-offset": smem_offset,
    **{f"conv-shift-reuse{{tiling={name}}}": shift_reuse(name) for name in TILINGS},
}
"""The cost functions by the name of the pipeline that builds the schedule; they return None without
a legal tile. The simpler schedules come first, and win ties. halo=refresh is missing: an automatic
choice must not depend on an open question about the hardware."""


def _work(
    shape: ConvShape,
    n_tile: int,
    tiles: int,
    stage: tuple[int, int],
    stages: int,
    *,
    a_in_tmem: bool,
    clears: bool = False,
) -> LaunchWork:
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
    return LaunchWork(
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
        unique_bytes=_unique_bytes(shape),
        stage_bytes=a_tiles * _placed(TMEM_LANES * kc * bytes_)
        + filters * _placed(shape.filter_bytes(n_tile, kc)),
        zeroed=ctas * n_tile if clears else 0,
    )


def _unique_bytes(shape: ConvShape) -> int:
    """Bytes of both operands, of the output, and of the epilogue's operands, each counted once."""
    image = shape.n * shape.h * shape.w * shape.pixel_bytes
    filters = shape.r * shape.s * shape.c * shape.k * shape.element_bytes
    return image + filters + shape.stored_bytes + shape.epilogue_reads


def _placed(nbytes: int) -> int:
    return round_up(nbytes, SMEM_TILE_ALIGNMENT)


def _pixels(shape: ConvShape) -> int:
    return shape.n * shape.p * shape.q
