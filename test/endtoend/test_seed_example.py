"""Two images of 9 x 9, a 3 x 3 filter, padding left and right: each lane's pixel at each tap.

Read off the machine while it runs the lowered program: the input holds its own pixel numbers, so
that the slab an mma multiplies says which pixel each lane has, and its mask which lanes count.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import ir
from tcir.interp import OutputSpec, executor_for
from tcir.machine import mma as machine_mma
from tcir.source import load_module, mlir_context

from .linalg_text import Conv

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
    original = machine_mma.Mma.mma_elements

    def record(agent: Any, d: int, a: Any, *rest: Any, **options: Any) -> None:
        column = a.address & 0xFFFF
        pixels = (agent.cta.tmem.words[:, column] & 0xFFFF).astype(np.uint16).view(np.float16)
        words = np.array(options["disable_lanes"], np.uint32)
        off = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
        seen.append((agent.cta.index[0], pixels.astype(int), ~off))
        original(agent, d, a, *rest, **options)

    monkeypatch.setattr(machine_mma.Mma, "mma_elements", record)
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


def lane_of(n: int, q: int) -> tuple[int, int]:
    """CTA and lane of output (n, p = 0, q): units of 30 anchors, four quarters a CTA."""
    unit, inside = divmod((n * 9 + 0) * 9 + q, VALID)
    return unit // 4, 32 * (unit % 4) + inside


def test_lanes_pixels_and_masks_are_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row h = 0 is seen by filter row r = 0, not 1: outputs q = 0..8 of image 0, 0..6 of 1."""
    table = taps_seen(monkeypatch)
    outputs = [(0, q) for q in range(9)] + [(1, q) for q in range(7)]
    windows = {0: ((-1, 7), (-1, 5)), 1: ((0, 8), (0, 6)), 2: ((1, 9), (1, 7))}
    for s, ranges in windows.items():
        got: dict[int, list[int]] = {0: [], 1: []}
        for n, q in outputs:
            cta, lane = lane_of(n, q)
            pixels, on = table[cta, 0, s]
            w = q - 1 + s
            got[n].append(w)
            assert on[lane] == (0 <= w < 9)
            if on[lane]:
                assert pixels[lane] == 1 + (n * 9 + 0) * 9 + w
        assert [(min(ws), max(ws)) for ws in got.values()] == list(ranges)


class LiteralShift:
    """``B[n] = B[n-1]`` for ascending n, then the new pixel at row 0, as the document writes it.

    The pixel that is new at row 0 after the k-th shift is what row k held when the slab was loaded.
    """

    def __init__(self) -> None:
        self.slabs: dict[int, tuple[Any, Any, int]] = {}

    def __call__(self, tmem: Any, _: Any, columns: slice) -> None:
        now = tmem.words[:, columns].copy()
        left, loaded, count = self.slabs.get(columns.start, (None, None, 0))
        if left is None or (left != now).any():
            loaded, count = now.copy(), 0
        for lane in range(1, len(now)):
            now[lane] = now[lane - 1]
        now[0] = loaded[count + 1]
        tmem.words[:, columns] = now
        self.slabs[columns.start] = (now.copy(), loaded, count + 1)


def test_the_literal_algorithm_is_different(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 3's shift smears row 0 over all rows: lane 1 is the first that is wrong."""
    users = [m for name, m in sys.modules.items()
             if name.startswith("tcir.machine.") and hasattr(m, "shift_lanes")]  # fmt: skip
    literal = LiteralShift()
    for module in users:
        monkeypatch.setattr(module, "shift_lanes", literal)
    report = tcir.validate(EXAMPLE.text(), "conv-shift-reuse", tiling="linear")
    assert not report.ok
    first = next(line for line in report.passes if line.verdict == "different")
    assert first.name == "tile-conv-shift-reuse"
    print(first.difference)
    assert literal.slabs
    assert "[0, 0, 1, 0] (CTA (0, 0, 0), lane 1," in str(first.difference)
