"""Checks of the GEMV tilings."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import MMA_KINDS, SWIZZLE_ATOM_ROWS, TMEM_LANES
from tcir.passes.emit.cluster import ClusterShape
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.limits import MMA_N_PAIR
from tcir.passes.emit.scaled_checks import SMALLEST_SCALED
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passmanager.remarks import remark

MOST_PAD_N = 128
"""One block of scale factors has 128 rows."""


M_TILES = (TMEM_LANES, PAIR * TMEM_LANES)
"""Rows of a tile: of one CTA, or of a pair."""


def check_pair(op: ir.OpView, pad_n: int) -> None:
    """Rejects options that CTA pairs do not support."""
    if pad_n not in MMA_N_PAIR or pad_n > MOST_PAD_N:
        raise match_failure(
            op,
            f"expected pad-n to be a multiple of 32 up to {MOST_PAD_N} with m-tile={M_TILES[1]}, "
            f"got {pad_n} (each CTA of a pair has half of B's rows, {MMA_N_PAIR.source}); take "
            "pad-n=32",
        )


def check_cluster(op: ir.OpView, pad_n: int, cluster: ClusterShape) -> None:
    """Rejects a number of columns of which the CTAs of a cluster cannot load equal parts."""
    if pad_n % (multiple := cluster.multiple(SWIZZLE_ATOM_ROWS)):
        raise match_failure(
            op,
            f"expected pad-n to be a multiple of {multiple} with cluster={cluster}, got {pad_n}: "
            f"{cluster.m} CTAs load a part of B's columns each, whole swizzle patterns of "
            f"{SWIZZLE_ATOM_ROWS}; take pad-n={multiple}",
        )


def check_pad_n(op: ir.OpView, shape: ScaledShape, pad_n: int) -> None:
    """Rejects a value of `pad_n` that the tensor core does not have as N, or that is less than the
    number of columns.

    Emits a remark if the value depends on an assumption about the hardware.
    """
    legal = MMA_KINDS[shape.step.kind].n[1]
    if pad_n not in legal or (pad_n != 8 and pad_n % 16) or pad_n > MOST_PAD_N:
        raise match_failure(
            op,
            f"expected pad-n of 8 or a multiple of 16 up to {MOST_PAD_N}, got {pad_n} (N of a "
            f"block-scaled mma with M = 128, {legal.source}); smallest accepted: pad-n=8",
        )
    if shape.n > MOST_PAD_N:
        raise match_failure(
            op,
            f"expected at most {MOST_PAD_N} columns of B, got {shape.n} (a block of scale factors "
            f"has {MOST_PAD_N} rows, one for each column); multiply B in parts, or take pipeline "
            "gemv-simt",
            SMALLEST_SCALED,
        )
    if shape.n > pad_n:
        raise match_failure(
            op,
            f"expected at most pad-n = {pad_n} columns of B, got {shape.n}; take "
            f"pad-n={-(-shape.n // 16) * 16}",
        )
    if pad_n > 32 and shape.b.layout == "row_major":
        raise match_failure(
            op,
            f"expected pad-n of at most 32 with row-major scales of B, got {pad_n}: 32 rows share "
            f"a column of tensor memory; take pad-n={-(-shape.n // 16) * 16}, or store them in "
            'blocks (b_scale_layout = "blocked_128x4")',
        )
    if pad_n % 16:
        remark(
            op,
            f"pad-n={pad_n} relies on the assumption scaled_n8, that an mma of kind "
            f"{shape.step.kind} with M = 128 may have an N that is no multiple of 16, which was "
            "not seen on hardware; pad-n=16 does not need it",
        )
