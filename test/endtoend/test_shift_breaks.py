"""Breaks of the schedules of conv-shift-reuse: each is caught at the pass that has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.passes.conv.shift_classes import ShiftClasses
from tcir.passes.nvvm import halo as nvvm_halo
from tcir.passmanager.pipeline import as_pipeline

from .breaking import Broken, pick, walk
from .linalg_text import Conv

PADDED = Conv(1, 5, 33, 8, 16, 3, 3, (1, 1, 1, 1))
IMAGES = Conv(2, 5, 17, 8, 16, 3, 3, (1, 1, 1, 1))
STRIDED = Conv(1, 5, 33, 8, 16, 2, 4, (0, 1, 1, 1), strides=(1, 2))
TILE, BARRIERS, NVVM = "tile-conv-shift-reuse", "place-barriers", "convert-tc-to-nvvm"


@dataclass(frozen=True)
class Break:
    """A damage: to the program after `after`, or to the compiler; and the pass that is to blame."""

    case: Conv
    blamed: str
    options: dict[str, str]
    edit: Callable[[Any], None] | None = None
    after: str = TILE
    patch: Callable[[pytest.MonkeyPatch], None] | None = None


def swap_classes(patch: pytest.MonkeyPatch) -> None:
    """Taps 1, 3 of the slab of taps 0, 2, and the other way round."""
    right = ShiftClasses.of
    patch.setattr(
        ShiftClasses,
        "of",
        staticmethod(lambda *a: replace(right(*a), taps=right(*a).taps[::-1])),
    )


def mask_columns_only(module: Any) -> None:
    """The mask forgets rows: in the loop over taps, ``h inside & w inside`` becomes the latter."""
    (write,) = walk(module, "tc.write_lane_mask")
    both = write.operands[3].owner
    assert both.name == "arith.andi"
    write.operands[3] = both.operands[1]


def touching_quarters(patch: pytest.MonkeyPatch) -> None:
    """Units start 32 anchors apart though only 30 lanes of each are good."""
    patch.setattr(ShiftClasses, "valid", property(lambda _: 32))


def no_zeros(module: Any) -> None:
    pick(module, "tc.tmem_st").erase()


def share_the_slab(module: Any) -> None:
    """A second accumulator multiplies the slab between two shifts, as another K_out tile would."""
    d = pick(module, "tc.tmem_tile")
    with ir.InsertionPoint.after(d), d.location:
        other = tc.TmemTileOp(d.results[0].type).tile
    for mma in list(walk(module, "tc.mma")):
        with ir.InsertionPoint(mma), mma.location:
            extra = mma.clone()
        extra.operands[0] = other
        extra.attributes["ashift"] = ir.BoolAttr.get(False)


def one_lane_off(patch: pytest.MonkeyPatch) -> None:
    right = nvvm_halo._at_lane
    patch.setattr(nvvm_halo, "_at_lane", lambda c, a, lane: right(c, a, lane - 1))


def next_offset(module: Any) -> None:
    """The im2col offset along the width of the first quarter's slab is one too large."""
    load = pick(module, "tc.tma_load")
    with ir.InsertionPoint(load), load.location:
        one = arith.constant(ir.IndexType.get(), 1)
        load.operands[5] = arith.addi(load.operands[5], one)


BREAKS = {
    "class order swapped": Break(STRIDED, TILE, {}, patch=swap_classes),
    "mask on columns only": Break(IMAGES, TILE, {"tiling": "linear"}, mask_columns_only),
    "quarters do not overlap": Break(PADDED, TILE, {"tiling": "linear"}, patch=touching_quarters),
    "D without zeros": Break(PADDED, TILE, {"tiling": "linear"}, no_zeros),
    "slab shared by two accumulators": Break(PADDED, BARRIERS, {}, share_the_slab),
    "refresh one lane off": Break(PADDED, NVVM, {"halo": "refresh"}, patch=one_lane_off),
    "im2col offset one too large": Break(PADDED, TILE, {"tiling": "packed"}, next_offset),
}


@pytest.mark.parametrize("name", BREAKS)
def test_break_is_caught_where_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BREAKS[name]
    if broken.patch:
        broken.patch(monkeypatch)
    steps = [
        Broken(step, broken.edit)
        if broken.edit and getattr(step, "name", "") == broken.after
        else step
        for step in as_pipeline("conv-shift-reuse", **broken.options).passes
    ]
    report = tcir.validate(broken.case.text(), steps)
    wrong = [line for line in report.passes if line.verdict == "different"]
    assert not report.ok
    print(f"{name}: {wrong[0].name}: {wrong[0].compared} {wrong[0].difference or ''}")
    assert wrong[0].name == broken.blamed, str(report)
