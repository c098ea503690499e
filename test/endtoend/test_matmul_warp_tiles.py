"""matmul-warp with several tiles a CTA: the ring runs on from one tile to the next."""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from tcir.layout.atoms import mma_atom
from tcir.passes.warp.tiles import WarpTiles
from tcir.passes.warp.tiling import WarpTiling

from .test_matmul_warp import SMALL, Case, check
from .test_matmul_warp_breaks import Break, erase

TILES = {**SMALL, "copy": "tma", "block_k": 16, "ctas": 2}


def tiles(*sizes: Any, **how: Any) -> Case:
    return Case(*sizes, **{"options": TILES, **how})


def cases() -> list[Case]:
    """More or fewer steps than slots, equal shares or not, tails, batches, types, targets."""
    return [
        *(tiles(72, 40, k, "f16", options={**TILES, "ctas": ctas, "stages": stages})
          for k, ctas, stages in (
            (16, 1, 0), (16, 4, 0), (40, 2, 4), (48, 3, 2), (64, 2, 4), (64, 5, 3), (96, 1, 0),
            (128, 8, 6), (200, 3, 0))),
        tiles(72, 40, 40, "bf16", batch=3, options={**TILES, "ctas": 4}),
        tiles(72, 40, 72, "f16", "km", "nk", out="f16", options={**TILES, "group_m": 2}),
        tiles(40, 40, 44, "f32", "mk", "nk", options={**TILES, "block_k": 32}),
        tiles(40, 40, 80, "i8", "mk", "nk", options={**TILES, "block_k": 32}),
        tiles(40, 40, 80, "f8E4M3FN", "mk", "nk", options={**TILES, "block_k": 64}),
        tiles(40, 40, 72, "f16", target="sm_100a"), tiles(40, 40, 72, "f16", target="sm_90a"),
    ]  # fmt: skip


def test_equal_at_every_level() -> None:
    kernel = check(tiles(40, 24, 40, "f16"), "integers")
    assert kernel.launch_config.grid == (2, 1, 1)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_integers_are_equal_at_every_level(case: Case) -> None:
    kernel = check(case, "integers")
    assert kernel.launch_config.grid == (case.options["ctas"], 1, 1)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_no_hazard_under_other_orders_of_completion(stages: int) -> None:
    case = tiles(40, 40, 72, "f16", options={**TILES, "stages": stages})
    kernel = case.compile(validate=True, orders=4)
    assert kernel.report.ok, str(kernel.report)


def test_as_many_ctas_as_tiles_have_one_each() -> None:
    kernel = tiles(72, 40, 64, "f16", options={**TILES, "ctas": 9}).compile()
    assert kernel.launch_config.grid == (9, 1, 1)
    assert kernel.ptx == tiles(72, 40, 64, "f16", options={**TILES, "ctas": 0}).compile().ptx


@pytest.mark.parametrize(
    ("tiles", "asked", "columns", "by_tma", "ctas"),
    [
        (512, 0, 256, True, 128),  # four rounds of 132 SMs as of 128
        (544, 0, 256, True, 109),  # five; four of 109 leave a tile out
        (133, 0, 256, True, 67),
        (132, 0, 256, True, None),
        (100, 0, 256, True, None),
        (512, 132, 256, True, 132),
        (512, 0, 128, True, None),  # an SM has two CTAs
        (512, 0, 256, False, None),  # by cp.async
    ],
)
def test_no_more_ctas_than_the_rounds_need(
    tiles: int, asked: int, columns: int, by_tma: bool, ctas: int | None
) -> None:
    tiling = WarpTiling(128, columns, 64, 2, columns // 64, mma_atom("mma.m16n8k16.f16"))
    shared = WarpTiles(1, tiles, None).shared_out(None, tiling, asked, by_tma, "sm_90")
    assert shared.ctas == ctas


@pytest.mark.parametrize(
    ("options", "target", "words"),
    [
        ({"ctas": -1}, "sm_90", "expected ctas of at least 1, or 0 to choose, got -1"),
        ({"ctas": 2, "copy": "cp.async"}, "sm_90", "expected ctas=0 with copies=cp.async, got 2"),
        ({"ctas": 2, "copy": ""}, "sm_80", "expected ctas=0 with copies=cp.async, got 2"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(
    options: dict[str, Any], target: str, words: str
) -> None:
    with pytest.raises(tcir.PassError, match=words):
        tiles(72, 40, 64, "f16", target=target, options={**TILES, **options}).compile()


def always(op: Any) -> None:
    """A condition that holds."""
    from tcir._mlir import arith, ir

    with ir.InsertionPoint(op), op.location:
        op.operands[0] = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result


def first_tile_only(op: Any) -> None:
    """The parity as if steps of earlier tiles did not count: bit 0 of a tile's lap."""
    from tcir._mlir import arith, ir

    with ir.InsertionPoint(op), op.location:
        zero = arith.ConstantOp(ir.IndexType.get(), 0).result
        op.operands[1] = zero


ROTATED = "double-buffer-fragments"
BREAKS = {
    # The others may read the slot that the first warp fills; only threads can see it.
    "no barrier of the first warp": (
        "plan-staging",
        Break("tc.first_warp_barrier", erase),
        "convert-tc-to-nvvm",
    ),
    # Loads for a tile that the CTA does not have: they arrive when it is gone.
    "the last tile loads on": ("pipeline-tma", Break("scf.if", always), "break"),
    # The ring is in its second lap, of the first tile or of the next.
    "laps do not count": (ROTATED, Break("tc.mbarrier_wait", first_tile_only), "break"),
    # The next tile's first steps are never loaded.
    "no loads for the next tile": (ROTATED, Break("scf.if", erase), "break"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen(name: str) -> None:
    after, broken, seen = BREAKS[name]
    case = tiles(40, 24, 80, "f16", options={**TILES, "stages": 3})
    pipeline = tcir.named_pipeline("matmul-warp", **case.options).insert(broken, after=after)
    kernel = tcir.compile(case.text, pipeline, target="sm_90", validate=True, orders=3)
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    assert failure.verdict == "different"
    assert failure.name == seen, str(failure)
