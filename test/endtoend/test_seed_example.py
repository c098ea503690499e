"""Two images of 9 x 9, a 3 x 3 filter, padding left and right: each lane's pixel at each tap.

Read off the machine while it runs the lowered program: the input holds its own pixel numbers, so
that the slab an mma multiplies says which pixel each lane has, and its mask which lanes count.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.interp import OutputSpec, executor_for
from tcir.machine.tensor_core import mma as machine_mma
from tcir.program.source import load_module, mlir_context
from tcir.validation.report import Line
from tcir.validation.settings import Settings
from tcir.validation.validator import begin
from tcir.viz.conv_schedule import read_schedule

from . import literal_algorithm as literal
from .linalg_text import Conv

FILE = Path(__file__).resolve().parents[2] / "examples" / "conv_9x9_two_images.mlir"
EXAMPLE = Conv(2, 9, 9, 16, 16, 3, 3, (0, 0, 1, 1))
VALID = 30
"""Lanes of a quarter with outputs: 32 less the two that two shifts leave stale."""


def numbered() -> np.ndarray[Any, Any]:
    """Pixel (n, h, w) holds its number, counted from 1, in channel 0."""
    x = np.zeros(EXAMPLE.shapes[0], np.float16)
    x[..., 0] = np.arange(1, 1 + 2 * 9 * 9).reshape(2, 9, 9)
    return x


def taps_seen(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, int, int], tuple[Any, Any]]:
    """(CTA, r, s) -> pixel number and mask of each lane, of the program of tiling linear."""
    seen: list[tuple[int, Any, Any]] = []
    original = machine_mma.Mma.mma

    def record(agent: Any, d: int, a: Any, b: Any, i: Any, options: Any, *, site: Any) -> None:
        column = a.address & 0xFFFF
        pixels = (agent.cta.tmem.words[:, column] & 0xFFFF).astype(np.uint16).view(np.float16)
        words = np.array(options.disable_lanes, np.uint32)
        off = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
        seen.append((agent.cta.index[0], pixels.astype(int), ~off))
        original(agent, d, a, b, i, options, site=site)

    monkeypatch.setattr(machine_mma.Mma, "mma", record)
    with mlir_context() as context:
        module = load_module(EXAMPLE.text(), context)
        tcir.Pipeline(["raise-to-tc", "tile-conv-shift-reuse{tiling=linear}"]).run(module)
        function = next(op for op in module.body.operations if "tc.kernel" in op.attributes)
        name = ir.StringAttr(function.attributes["sym_name"]).value
        w = np.ones(EXAMPLE.shapes[1], np.float16)
        outputs = [OutputSpec(EXAMPLE.shapes[2], np.dtype(np.float32))]
        outcome = executor_for("tile")(module, name, [numbered(), w], outputs)
    assert not outcome.incomplete and not outcome.findings
    table = {}
    for cta in {cta for cta, _, _ in seen}:
        mine = [(pixels, on) for c, pixels, on in seen if c == cta]
        assert len(mine) == 9
        table.update({(cta, t // 3, t % 3): mine[t] for t in range(9)})
    return table


def lane_of(n: int, h: int, q: int) -> tuple[int, int]:
    """CTA and lane of the output at row h of the input: units of 30 anchors, four a CTA."""
    unit, inside = divmod((n * 9 + h) * 9 + q, VALID)
    return unit // 4, 32 * (unit % 4) + inside


def test_lanes_pixels_and_masks_are_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row h = 0 is seen by filter row r = 0, not 1: outputs q = 0..8 of image 0, 0..6 of 1."""
    table = taps_seen(monkeypatch)
    outputs = [(0, q) for q in range(9)] + [(1, q) for q in range(7)]
    windows = {0: ((-1, 7), (-1, 5)), 1: ((0, 8), (0, 6)), 2: ((1, 9), (1, 7))}
    for s, ranges in windows.items():
        got: dict[int, list[int]] = {0: [], 1: []}
        for n, q in outputs:
            cta, lane = lane_of(n, 0, q)
            pixels, on = table[cta, 0, s]
            w = q - 1 + s
            got[n].append(w)
            assert on[lane] == (0 <= w < 9)
            if on[lane]:
                assert pixels[lane] == 1 + (n * 9 + 0) * 9 + w
        assert [(min(ws), max(ws)) for ws in got.values()] == list(ranges)


def test_every_anchor_at_every_tap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row h of an image and place q are lane `lane_of`; at tap (r, s) it has (h + r, q + s - 1).

    A lane counts where that pixel is in the image. Rows h = 7 and 8 have no output (P = 7): their
    lanes are computed like the others, within the image, and not stored.
    """
    table = taps_seen(monkeypatch)
    for n, h, q, r, s in product(range(2), range(9), range(9), range(3), range(3)):
        cta, lane = lane_of(n, h, q)
        pixels, on = table[cta, r, s]
        inside = h + r < 9 and 0 <= q + s - 1 < 9
        assert on[lane] == inside, (n, h, q, r, s)
        if inside:
            assert pixels[lane] == numbered()[n, h + r, q + s - 1, 0], (n, h, q, r, s)


def test_the_drawn_table_is_what_the_machine_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tc-viz conv` reads pixels and masks off the text of the program, the machine off its run."""
    table = taps_seen(monkeypatch)
    with mlir_context() as context:
        module = load_module(FILE.read_text(), context)
        tcir.Pipeline(["raise-to-tc", "tile-conv-shift-reuse{tiling=linear}"]).run(module)
        drawn = {
            (cta, tap.row, tap.column): tap
            for cta in range(2)
            for tap in read_schedule(module, (cta, 0, 0)).taps
        }
    assert drawn.keys() == table.keys()
    for at, tap in drawn.items():
        pixels, on = table[at]
        assert list(tap.enabled) == list(on)
        for lane, held in enumerate(tap.lanes):
            assert held.pixel is not None
            w, h, n = held.pixel.coordinates
            number = 0 if held.pixel.outside else numbered()[n, h, w, 0]
            assert pixels[lane] == number, (at, lane)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_literal_algorithm_is_different(corrected: bool) -> None:
    """Algorithm 3's shift smears row 0 over all rows: row 1 of B, output q = 1, is the first that
    is wrong. The same program with the shift turned round is right."""
    assert literal.EXAMPLE.shapes == replace(EXAMPLE, c=8, k=32).shapes
    with mlir_context() as context:
        validation = begin(load_module(literal.EXAMPLE.text(), context), Settings(seed=7))
        start = validation.input
    assert start.verdict == "reference"
    line = validation.check_ptx(
        literal.program(corrected), literal.LAUNCHES, Line(0, "algorithm 3")
    )[0]
    print(line)
    assert not line.findings
    if corrected:
        assert line.verdict == "equal", str(line)
        return
    assert line.verdict == "different"
    assert "[0, 0, 1, 0]" in str(line.difference)
