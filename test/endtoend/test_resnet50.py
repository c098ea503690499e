"""ResNet-50's convolutions: the choice among schedules, and the stem in full size."""

from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.conv.schedules import ConvCandidate
from tcir.passes.conv.tile_conv import TileConv
from tcir.passes.emit.cost import Cost
from tcir.passes.module.split_launches import SplitLaunches
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.passmanager.remarks import remarks_to
from tcir.program.source import load_module, mlir_context, split_chunks

from .linalg_text import Conv
from .oracle import convolution, integers

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "resnet50_convs.mlir"
BENCH = runpy.run_path(str(ROOT / "bench" / "conv_schedules.py"))
CHUNKS = split_chunks(EXAMPLES.read_text(), EXAMPLES.name)
NAMES = [re.findall(r"@(\w+)\(", chunk.text)[0] for chunk in CHUNKS]
BATCHES = (1, 8, 32)
STEM = Conv(1, 224, 224, 3, 64, 7, 7, (3, 3, 3, 3), strides=(2, 2))


def chosen(text: str) -> str:
    """The schedule that tile-conv says it took."""
    said: list[str] = []
    with mlir_context() as context, remarks_to(lambda location, words: said.append(words)):
        module = load_module(text, context)
        for each in (RaiseToTc(), SplitLaunches(), ConvertToSimt(), TileConv()):
            each.apply(module)
    (line,) = (words for words in said if words.startswith("chose "))
    return line.split()[1]


LINES = (ROOT / "docs" / "reference" / "resnet50-schedules.md").read_text().splitlines()
CELLS = {line: [cell.strip() for cell in line.strip("| ").split("|")] for line in LINES}
PAGE = {(c[0], c[1]): line for line, c in CELLS.items() if c[0] in NAMES and len(c) > 10}
"""Rows of docs/reference/resnet50-schedules.md by layer and batch size."""


def test_the_page_has_all_rows() -> None:
    assert set(PAGE) == {(name, batch) for name in NAMES for batch in map(str, BATCHES)}


def test_the_file_has_all_distinct_convolutions() -> None:
    assert len(CHUNKS) == len(set(NAMES)) == 23 and NAMES[0] == "conv1"


places = pytest.mark.parametrize(
    "place",
    [pytest.param(i, id=name) for i, name in enumerate(NAMES)],
)


@cache
def layer_of(place: int, batch: int) -> Any:
    """A layer with its schedules, as bench/conv_schedules.py ranks them."""
    return BENCH["_layer"](CHUNKS[place], batch)


@places
@pytest.mark.parametrize("batch", BATCHES)
def test_no_schedule_is_chosen_that_the_model_finds_slower(place: int, batch: int) -> None:
    layer = layer_of(place, batch)
    print("\n" + "\n".join(BENCH["rows"](layer)))
    legal: list[ConvCandidate] = [each for each in layer.ranked if not each.reason]
    assert len(legal) >= 3
    times = {each.schedule: each.microseconds for each in legal}
    assert times[chosen(layer.text)] == min(times.values())


@places
@pytest.mark.parametrize("batch", BATCHES)
def test_the_row_of_the_page(place: int, batch: int) -> None:
    """docs/reference/resnet50-schedules.md has what `python bench/conv_schedules.py` prints for the
    layer."""
    layer = layer_of(place, batch)
    assert PAGE[layer.name, str(batch)] == BENCH["markdown"](layer)


@places
@pytest.mark.parametrize("batch", BATCHES)
def test_the_choice_under_another_answer_is_its_cheapest(place: int, batch: int) -> None:
    """And the page's table of answers names the layer where, and only where, it is another."""
    layer = layer_of(place, batch)
    assert len(layer.choices) >= 10
    for answer, chosen in layer.choices.items():
        times = [
            Cost.of(each.work, chosen.constants).microseconds
            for each in layer.ranked
            if each.work and not each.reason
        ]
        assert chosen.microseconds <= min(times)
        (row,) = (cells for cells in CELLS.values() if cells[0] == answer)
        assert (f"{layer.name} ({batch})" in row[2]) == (answer in layer.changed())


def test_the_table_of_answers() -> None:
    layers = [layer_of(place, batch) for place in range(len(NAMES)) for batch in BATCHES]
    table = BENCH["dispute_table"](layers).splitlines()
    start = LINES.index(table[0])
    assert LINES[start : start + len(table)] == table


@pytest.mark.timeout(900)
@pytest.mark.parametrize("pipeline", ["conv", "conv-shift-reuse", "conv-implicit-gemm"])
def test_the_stem_runs_in_full_from_ptx(pipeline: str) -> None:
    assert STEM.text().split("%x: ")[1].split(",")[0] == "tensor<1x224x224x3xf16>"
    x, w = (integers(shape, "f16", seed) for seed, shape in enumerate(STEM.shapes[:2]))
    want = convolution(STEM, x, w)
    kernel = tcir.compile(STEM.text(), pipeline)
    out = np.zeros_like(want)
    report = kernel(x, w, out)
    assert out.tobytes() == want.tobytes()
    assert not report.findings
    counted = report.counters
    # Repacking: every element of input and filter is read once and written, padded, once: to 8
    # channels of a pixel, or to 4 where a step loads a row of taps, and there with padding of rows.
    assert counted["global_load"] == 2 * (x.size + w.size)
    width, channels = (224 + 2 * 3, 4) if pipeline == "conv-implicit-gemm" else (224, 8)
    repacked = 2 * channels * (224 * width + 64 * 7 * 7)
    assert counted["global_store"] == want.nbytes + repacked


def shortcut_first(before: str) -> str:
    """The bottleneck with its shortcut in front of another line of it."""
    text = (ROOT / "examples" / "resnet50_bottleneck.mlir").read_text()
    begin, end = text.index("  %shortcut_empty"), text.index("  %y_empty_f16")
    shortcut, rest = text[begin:end], text[:begin] + text[end:]
    place = rest.index(before)
    return rest[:place] + shortcut + rest[place:]


@pytest.mark.parametrize("before", ["  %reduce_empty", "  %expand_empty", "  %y_empty_f16"])
def test_a_shortcut_anywhere_is_stored_narrow(before: str) -> None:
    """The last convolution adds it, rounded to f16: its own sums are not stored as f32."""
    table = tcir.compile(shortcut_first(before), "conv").launch_table
    assert table.total == (3975168, 1806336, 1806336, 802816)
    assert table.rows[-1].work.fused == ("mulf", "addf", "extf", "maximumf", "truncf")
    assert all("mulf" in row.work.fused for row in table.rows)


def test_a_shortcut_first_is_right_at_every_level() -> None:
    text = shortcut_first("  %reduce_empty")
    small = {"56": "12", "58": "14", "28": "6", "128": "32", "256": "64", "512": "128"}
    text = re.sub(r"(?<=[<x])\d+(?=x)", lambda size: small.get(size[0], size[0]), text)
    report = tcir.validate(text, "conv")
    assert report.ok and {line.verdict for line in report.passes} <= {
        "reference",
        "equal",
        "within bound",
    }, str(report)
