"""Views of kernels: the pixel on each lane against the convolution's definition; the TMEM map."""

from __future__ import annotations

import re
from functools import cache, partial

import pytest

from tcir.errors import InputError
from tcir.passmanager.pipeline import Pipeline
from tcir.program.source import load_module, mlir_context
from tcir.viz.accesses import accesses_view
from tcir.viz.conv_schedule import QUARTER, read_schedule
from tcir.viz.conv_steps import conv_view
from tcir.viz.pictures import CONVOLUTION
from tcir.viz.svg import svg
from tcir.viz.text import text
from tcir.viz.tmem_map import tmem_view
from tcir.viz.traversal import Map

TILE = "raise-to-tc,tile-conv-shift-reuse"
PLANNED = f"{TILE},multi-buffer,place-barriers,plan-memory"


def outputs(
    h: int, w: int, r: int, s: int, pad: tuple[int, int], stride: int, dilation: int
) -> tuple[int, int]:
    """P and Q."""
    return (
        (h + 2 * pad[0] - dilation * (r - 1) - 1) // stride + 1,
        (w + 2 * pad[1] - dilation * (s - 1) - 1) // stride + 1,
    )


def conv(
    n: int,
    h: int,
    w: int,
    k: int,
    r: int,
    s: int,
    pad: tuple[int, int],
    filter: str,
    stride: int = 1,
    dilation: int = 1,
) -> str:
    p, q = outputs(h, w, r, s, pad, stride, dilation)
    weights = {"hwcf": f"{r}x{s}x16x{k}", "fhwc": f"{k}x{r}x{s}x16"}[filter]
    types = f"tensor<{n}x{h}x{w}x16xf16>, tensor<{weights}xf16>"
    result = f"tensor<{n}x{p}x{q}x{k}xf32>"
    return f"""
func.func @f(%x: tensor<{n}x{h}x{w}x16xf16>, %w: tensor<{weights}xf16>) -> {result} {{
  %y = "tc.conv2d"(%x, %w) {{strides = array<i64: {stride}, {stride}>,
    dilations = array<i64: {dilation}, {dilation}>,
    pads = array<i64: {pad[0]}, {pad[0]}, {pad[1]}, {pad[1]}>, filter = "{filter}"}}
    : ({types}) -> {result}
  return %y : {result}
}}
"""


@cache
def lowered(source: str, passes: str) -> str:
    with mlir_context() as context:
        module = load_module(source, context)
        Pipeline([f"builtin.module({passes})"]).run(module)
        return str(module)


def with_module(source: str, use):
    with mlir_context() as context:
        return use(load_module(source, context))


CASES = [
    (2, 9, 9, 16, 3, 3, (0, 1), "hwcf"),
    (1, 20, 56, 16, 3, 3, (1, 1), "hwcf"),
    (1, 12, 40, 16, 5, 5, (2, 2), "fhwc"),
    (3, 7, 33, 16, 3, 1, (0, 0), "fhwc"),
    (1, 12, 40, 16, 3, 3, (1, 1), "hwcf", 2),
    (1, 21, 80, 16, 2, 5, (0, 2), "fhwc", 3),
    (1, 12, 40, 16, 3, 3, (2, 2), "hwcf", 1, 2),
]
LINEAR = [
    (2, 9, 9, 16, 3, 3, (0, 1), "hwcf"),
    (3, 7, 8, 16, 3, 3, (1, 1), "fhwc"),
    (2, 12, 11, 16, 5, 5, (2, 2), "hwcf"),
    (1, 14, 14, 16, 3, 3, (1, 1), "hwcf", 2),
]
"""Cases of tiling=linear, small maps."""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cta", [0, 1])
def test_stored_lanes_hold_the_pixels_of_their_outputs(case, cta: int) -> None:
    _, h, w, _, r, s, pad, _, stride, dilation = (*case, 1, 1)[:10]
    program = lowered(conv(*case), "tile-conv-shift-reuse")
    schedule = with_module(program, lambda m: read_schedule(m, (cta, 0, 0)))
    taps = {(tap.row, tap.column) for tap in schedule.taps}
    assert taps == {(i, j) for i in range(r) for j in range(s)}
    stored = [lane for lane, place in enumerate(schedule.stores) if place is not None]
    assert stored
    for tap in schedule.taps:
        for lane in stored:
            image, p, q = schedule.stores[lane]
            held = tap.lanes[lane]
            want = (
                stride * q + dilation * tap.column - pad[1],
                stride * p + dilation * tap.row - pad[0],
                image,
            )
            assert not held.stale and held.pixel.coordinates == want
            inside = 0 <= want[0] < w and 0 <= want[1] < h
            assert held.pixel.outside == (not inside) and all(tap.enabled)
        # Taps a stride apart share a copy, which was shifted once between each two: so many lanes
        # at the end of a quarter are stale.
        stale = {lane for lane in range(128) if tap.lanes[lane].stale}
        assert stale == {x for x in range(128) if x % QUARTER >= QUARTER - tap.column // stride}


@pytest.mark.parametrize("case", LINEAR)
def test_linear_lanes_hold_their_pixel_or_are_disabled(case) -> None:
    """A stored lane multiplies at tap (r, s) exactly if its pixel is in the image, and has it."""
    _, h, w, _, r, s, pad, _, stride = (*case, 1)[:9]
    program = lowered(conv(*case), "tile-conv-shift-reuse{tiling=linear}")
    schedule = with_module(program, read_schedule)
    assert {(tap.row, tap.column) for tap in schedule.taps} == {
        (i, j) for i in range(r) for j in range(s)
    }
    disabled = 0
    for tap in schedule.taps:
        for lane, place in enumerate(schedule.stores):
            if place is None:
                continue
            image, p, q = place
            want = (stride * q + tap.column - pad[1], stride * p + tap.row - pad[0], image)
            inside = 0 <= want[0] < w and 0 <= want[1] < h
            assert tap.enabled[lane] == inside
            disabled += not inside
            if inside:
                held = tap.lanes[lane]
                assert held.pixel.coordinates == want
                assert not held.stale and not held.pixel.outside
    assert disabled


@pytest.mark.parametrize(
    ("case", "tiling"), [(c, "rows") for c in CASES] + [(c, "linear") for c in LINEAR]
)
def test_all_ctas_store_every_output_once(case, tiling: str) -> None:
    n, h, w, _, r, s, pad, _, stride, dilation = (*case, 1, 1)[:10]
    p, q = outputs(h, w, r, s, pad, stride, dilation)
    program = lowered(conv(*case), f"tile-conv-shift-reuse{{tiling={tiling}}}")
    ctas = int(re.search(r"tc.grid = array<i64: (\d+)", program)[1])
    seen = []
    with mlir_context() as context:
        module = load_module(program, context)
        for cta in range(ctas):
            seen += [x for x in read_schedule(module, (cta, 0, 0)).stores if x is not None]
    assert sorted(seen) == [(a, b, c) for a in range(n) for b in range(p) for c in range(q)]


@pytest.mark.parametrize("tiling", ["rows", "linear"])
def test_an_epilogue_moves_no_lane(tiling: str) -> None:
    """It computes on the rows of the lanes, and reads other tensors: the schedule is the same."""
    plain = conv(*LINEAR[0])
    kind = re.search(r"-> (tensor<.*>) {", plain)[1]
    epilogue = f"""
      %z = "tc.epilogue"(%y) ({{
      ^bb0(%sum: f32):
        %e = "tc.element"(%r) {{map = affine_map<(n, p, q, k) -> (n, p, q, k)>}} : ({kind}) -> f32
        %t = arith.addf %e, %sum : f32
        "tc.yield"(%t) : (f32) -> ()
      }}) : ({kind}) -> {kind}
      return %z"""
    fused = plain.replace("f16>) ->", f"f16>, %r: {kind}) ->", 1).replace("return %y", epilogue)
    programs = [
        lowered(text, f"tile-conv-shift-reuse{{tiling={tiling}}}") for text in (plain, fused)
    ]
    alone, behind = (with_module(program, read_schedule) for program in programs)
    assert "tc.load_rows" in programs[1] and any(alone.stores)
    assert (behind.stores, behind.taps) == (alone.stores, alone.taps)


def test_the_picture_marks_stale_outside_and_masked_lanes() -> None:
    program = lowered(CONVOLUTION.read_text(), TILE)
    picture = with_module(program, conv_view)
    first = picture.grids[0]
    marks = [[cell.mark for cell in row] for row in first.rows]
    assert marks[0] == ["cross"] + [""] * 31  # w = -1
    assert marks[1] == [""] * 31 + ["hatch"]
    assert marks[2] == [""] * 30 + ["hatch"] * 2
    assert marks[3] == [""] * 30 + ["hatch"] * 2  # not stored
    assert [c.lines[0] for c in first.rows[2]][:30] == [str(w) for w in range(1, 31)]
    assert "WRONG" not in text(picture)
    assert "112 of 128 lanes are stored" in text(picture)


OTHERS = {
    "packed": "tiling=packed",
    "refresh": "halo=refresh",
    "shift": "halo=refresh shift=shift",
    "shift all": "halo=refresh shift=shift shift_quarters=all",
    "packed refresh": "tiling=packed halo=refresh",
    "w128": "tiling=packed halo=refresh halo_load=w128",
    "w128 shift": "tiling=packed halo=refresh halo_load=w128 shift=shift",
}
"""Tilings and halos other than rows and linear with masked lanes."""


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("case", CASES[:7:2])
def test_packed_lanes_and_refreshed_halos(case, name: str) -> None:
    """In every CTA a stored lane has its pixel at each tap, and every output is stored once. Only
    without a refresh are lanes stale; with one the lanes 31 get the pixel that comes next."""
    n, h, w, _, r, s, pad, _, stride, dilation = (*case, 1, 1)[:10]
    p, q = outputs(h, w, r, s, pad, stride, dilation)
    program = lowered(conv(*case), f"tile-conv-shift-reuse{{{OTHERS[name]}}}")
    ctas = int(re.search(r"tc.grid = array<i64: (\d+)", program)[1])
    refreshed, seen, of_halo = "refresh" in OTHERS[name], [], 0
    with mlir_context() as context:
        module = load_module(program, context)
        schedules = [read_schedule(module, (cta, 0, 0)) for cta in range(ctas)]
    for schedule in schedules:
        assert {(t.row, t.column) for t in schedule.taps} == {
            (i, j) for i in range(r) for j in range(s)
        }
        stored = [lane for lane, place in enumerate(schedule.stores) if place is not None]
        seen += [schedule.stores[lane] for lane in stored]
        for tap in schedule.taps:
            by = "tcgen05.shift" if "shift=shift" in OTHERS[name] else ".ashift"
            assert tap.shift in ("", by) and bool(tap.refresh) == (refreshed and tap.shift != "")
            assert not refreshed or not any(lane.stale for lane in tap.lanes)
            for lane in stored:
                image, y, x = schedule.stores[lane]
                held = tap.lanes[lane]
                want = (
                    stride * x + dilation * tap.column - pad[1],
                    stride * y + dilation * tap.row - pad[0],
                    image,
                )
                assert not held.stale and held.pixel.coordinates == want
                assert held.pixel.outside != (0 <= want[0] < w and 0 <= want[1] < h)
                of_halo += held.halo
    assert sorted(seen) == [(a, b, c) for a in range(n) for b in range(p) for c in range(q)]
    assert not of_halo or refreshed


@pytest.mark.parametrize("name", OTHERS)
def test_pictures_of_packed_lanes_and_refreshed_halos(name: str) -> None:
    """56 columns, two quarters a row: with a refresh lane 31 holds the pixel of the halo."""
    program = lowered(conv(*CASES[1]), f"tile-conv-shift-reuse{{{OTHERS[name]}}}")
    picture = with_module(program, conv_view)
    refreshed = "refresh" in OTHERS[name]
    assert ("lanes 31, 63, 95, 127 get one of the halo" in picture.about) == refreshed
    assert any("halo" in key.text for key in picture.legend) == refreshed
    assert any("stale" in key.text for key in picture.legend) == (not refreshed)
    assert ("tcgen05.shift moves" in picture.about) == ("shift=shift" in OTHERS[name])
    shown = text(picture)
    assert "WRONG" not in shown and svg(picture).startswith("<svg")
    line = picture.table[1 + 31].split()
    whole = next(row.split() for row in picture.table[1:] if int(row.split()[0]) == 31)
    assert line == whole
    if refreshed:  # output q = 31 reads columns 30, 31, 32: the last comes twice from the halo
        n, y, x = map(int, line[1].split("."))
        assert line[2:] == [f"{n}.{y}.{x - 1 + tap}" for tap in range(3)]
        cells = [cell.about for row in picture.grids[0].rows[:3] for cell in row[30:]]
        assert ["halo" in about for about in cells] == [False, False, False, True, True, True]


@pytest.mark.parametrize("name", ["refresh", "packed refresh", "w128"])
def test_a_wrong_row_of_the_halo_is_seen(name: str) -> None:
    """The check above fails where a refresh takes another row."""
    program = lowered(conv(*CASES[1]), f"tile-conv-shift-reuse{{{OTHERS[name]}}}")
    first, second = dict.fromkeys(re.findall(r"(?<=[{ ])row = \d+ : i64, slice", program))
    wrong = program.replace(second, first)
    right, other = (with_module(each, read_schedule) for each in (program, wrong))
    assert right.stores == other.stores and right.taps != other.taps


def test_an_im2col_traversal() -> None:
    """PTX ISA 5.5.4: a box of 7 pixels of an image of 4 x 3 with a border, from its last column
    on, by strides of 2 along W; the filter tap moves each by (1, 2)."""
    walked = Map("im2col", (8, 4, 3, 2), (8, 7), (1, 2, 1, 1), (-1, -1, 0, -1), (4, 3, 2))
    found = [pixel.coordinates for pixel in walked.pixels([3, 0, 0], [1, 2])]
    assert found == [(4, 2, 0), (0, 3, 0), (2, 3, 0), (4, 3, 0), (0, 1, 1), (2, 1, 1), (4, 1, 1)]
    outside = [pixel.outside for pixel in walked.pixels([3, 0, 0], [1, 2])]
    assert outside == [True, True, True, True, False, False, True]


EXAMPLE = CONVOLUTION.parent / "conv_9x9_two_images.mlir"


def test_the_table_of_lanes_and_masks() -> None:
    """docs/explanation/convolution.md shows the start; here all of it, of every filter row and CTA,
    by words.

    Anchor a of the flattened images is on lane a mod 30 of a quarter; tap s reads pixel a - 1 + s
    of filter row r, 9 r further on.
    """
    program = lowered(EXAMPLE.read_text(), "raise-to-tc,tile-conv-shift-reuse{tiling=linear}")
    pixels = [f"{n}.{h}.{w}" for n in range(2) for h in range(9) for w in range(9)]
    for cta, row in ((cta, row) for cta in range(2) for row in range(3)):
        view = with_module(program, partial(conv_view, cta=(cta, 0, 0), filter_row=row))
        assert view.table[0].split() == ["lane", "output", "s=0", "s=1", "s=2"]
        assert len(view.table) == 129
        for lane, line in enumerate(view.table[1:]):
            quarter, place = 4 * cta + lane // 32, lane % 32
            anchor = 30 * quarter + place
            n, h, w = anchor // 81, anchor // 9 % 9, anchor % 9
            stored = place < 30 and n < 2 and h < 7
            words = [str(lane), f"{n}.{h}.{w}" if stored else "none"]
            for s in range(3):
                stale = place + s > 31  # lane 31 has kept what it held before the first shift
                at = anchor + 9 * row - 1 + min(s, 31 - place)
                held = pixels[at] if 0 <= at < 162 else "zero"
                held += " stale" if stale else ""
                on = 0 <= h + row < 9 and 0 <= w - 1 + s < 9
                words += [held if on else f"- ({held})"]
            assert re.split("  +", line.strip()) == words
    shown = text(view)
    assert "n.h.w where a quarter has several rows" in shown
    assert "*  disabled output lane" in shown


def test_masks_that_nothing_wrote_are_named() -> None:
    program = lowered(EXAMPLE.read_text(), "raise-to-tc,tile-conv-shift-reuse{tiling=linear}")
    for_the_first, writes = re.subn(r'("tc\.write_lane_mask"\(%\d+), %arg4', r"\1, %c0", program)
    assert writes
    with pytest.raises(InputError, match="reads mask 1, which not every warp has written"):
        with_module(for_the_first, conv_view)


def test_a_schedule_that_stores_stale_lanes_is_seen() -> None:
    program = lowered(CONVOLUTION.read_text(), TILE).replace("rows = 30", "rows = 31")
    shown = text(with_module(program, conv_view))
    assert "WRONG: stored although stale: lanes [30]" in shown


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: CONVOLUTION.read_text(), "expected a kernel"),
        (lambda: lowered(CONVOLUTION.read_text(), PLANNED), "not part of a sequential tile"),
        (
            lambda: lowered(CONVOLUTION.read_text(), "raise-to-tc,tile-conv-implicit-gemm"),
            "expected",
        ),
    ],
)
def test_other_programs_are_refused(program, message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_module(program(), conv_view)


def test_another_filter_row() -> None:
    program = lowered(CONVOLUTION.read_text(), TILE)
    assert "h=-1" in text(with_module(program, lambda m: conv_view(m, filter_row=0)))
    with pytest.raises(InputError, match=r"expected a filter row of \[0, 1, 2\], got 3"):
        with_module(program, lambda m: conv_view(m, filter_row=3))


@pytest.mark.parametrize("passes", [PLANNED, f"{PLANNED},assign-roles"])
def test_tmem_map(passes: str) -> None:
    """D in columns 0 to 63; A in a ring of two slots of 32 columns, used in turn."""
    picture = with_module(lowered(CONVOLUTION.read_text(), passes), tmem_view)
    (grid,) = picture.grids
    uses = {
        label.removeprefix("mma ").removeprefix("epilogue: "): "".join(
            f"{'/'.join(cell.lines) or '.':3}" for cell in row
        )
        for label, row in zip(grid.row_labels, grid.rows)
    }
    d, none = "RW " * 8, ".  "
    for i in range(3):
        slot = none * 4 * (i % 2), none * 4 * (1 - i % 2)
        key = next(k for k in uses if f"i={i}: cp" in k)
        assert uses[key] == none * 8 + slot[0] + "W  " * 4 + slot[1]
        key = next(k for k in uses if f"i={i}: mma" in k)
        assert uses[key] == d + slot[0] + "RW " * 4 + slot[1]
    reads = [row for label, row in uses.items() if label.startswith("ld columns")]
    assert reads == [none * 2 * i + "R  " * 2 + none * (14 - 2 * i) for i in range(4)]


@pytest.mark.parametrize(
    "tile",
    ["tile-conv-shift-reuse{tiling=packed}", "tile-conv-smem-offset", "tile-conv-implicit-gemm"],
)
def test_tmem_map_of_other_schedules(tile: str) -> None:
    """D is read once; beyond its 16 columns only tiling=packed uses any: three slots of A."""
    program = lowered(conv(*CASES[0]), f"{tile},multi-buffer,place-barriers,plan-memory")
    picture = with_module(program, tmem_view)
    (grid,) = picture.grids
    touched = {
        column for row in grid.rows for column, cell in zip(grid.column_labels, row) if cell.lines
    }
    copies = any("cp" in label for label in grid.row_labels)
    assert copies == ("packed" in tile)
    assert touched == ({"0", "8", "16", "24", "32"} if copies else {"0", "8"})
    reads = [label for label in grid.row_labels if "ld columns" in label]
    assert [label.split(" x")[0] for label in reads] == ["ld columns 0 to 15"]


def uses(picture) -> dict[str, set[int]]:
    """By step and R or W: the first columns of the cells that have it."""
    (grid,) = picture.grids
    found: dict[str, set[int]] = {}
    for label, row in zip(grid.row_labels, grid.rows):
        for column, cell in zip(grid.column_labels, row):
            for kind in "".join(cell.lines):
                found.setdefault(f"{label.partition(' x')[0]} {kind}", set()).add(int(column))
    return found


def test_tmem_map_of_linear_tiling() -> None:
    """D has the 16 columns from 0 on and is set to zero; A three slots of 8 behind it."""
    passes = "tile-conv-shift-reuse{tiling=linear},multi-buffer,place-barriers,plan-memory"
    found = uses(with_module(lowered(conv(*CASES[0]), passes), tmem_view))
    assert found.pop("st columns 0 to 15 W") == found.pop("ld columns 0 to 15 R") == {0, 8}
    assert found == {
        f"i={i}: {op} {kind}": slot if op == "cp" else slot | {0, 8}
        for i, slot in enumerate(({16}, {24}, {32}))
        for op, kind in (("cp", "W"), ("mma", "R"), ("mma", "W"))
    }


@pytest.mark.parametrize("name", ["refresh", "shift", "packed refresh", "w128 shift"])
def test_tmem_map_of_refreshed_halos(name: str) -> None:
    """A slot of A has 64 channels, the 32 columns behind D's 16; all of them are refreshed."""
    passes = f"tile-conv-shift-reuse{{{OTHERS[name]}}},multi-buffer,place-barriers,plan-memory"
    found = uses(with_module(lowered(conv(*CASES[0]), passes), tmem_view))
    for i, first in enumerate((16, 48, 80)):
        slot = set(range(first, first + 32, 8))
        assert found[f"i={i}: cp W"] == found[f"i={i}: refresh W"] == slot
        assert found[f"i={i}: mma R"] == {0, 8} | slot
        assert found[f"i={i}: mma W"] == ({0, 8} if "shift" in name else {0, 8} | slot)
        shifts = [found.get(f"i={i}: shift {kind}") for kind in "RW"]
        assert shifts == ([slot] * 2 if "shift" in name else [None] * 2)


GEMV = CONVOLUTION.parent / "nvfp4_gemv_7168x2048x4.mlir"


def test_tmem_map_of_a_gemv() -> None:
    """Two slots of D of 16 columns, then eight of 8 for the scales of A (4 a step, two steps of 64
    in a slot) and eight for those of B: 2048 / 128 = 16 slots in all are taken in turn."""
    passes = (
        "raise-block-scaled,reorder-scales{in-place=b},repack-gemm,split-launches,"
        "convert-to-simt,tile-gemv-padded-n,multi-buffer,"
        "place-barriers,plan-memory"
    )
    picture = with_module(lowered(GEMV.read_text(), passes), tmem_view)
    found = uses(picture)
    scales = set(range(32, 160, 8))
    for i, d in enumerate(({0, 8}, {16, 24})):
        assert found[f"i={i}: cp scales W"] == scales
        assert found[f"i={i}: mma R"] == scales | d and found[f"i={i}: mma W"] == d
    assert found["ld columns 0 to 1 R"] == {0, 16}
    (grid,) = picture.grids
    steps = {
        label.split(" x")[0]: int(label.split(" x")[1])
        for label in grid.row_labels
        if " x" in label
    }
    assert steps["i=0: mma"] == 2048 // 64 and steps["i=0: cp scales"] == 16 * 3
    assert picture.table == [
        "128x16 f32, 2 slots: columns 0 to 31",
        "128x32 i8, 8 slots: columns 32 to 95",
        "128x32 i8, 8 slots: columns 96 to 159",
    ]


SIMT = "raise-block-scaled,split-launches,convert-to-simt{rows=4}"


@pytest.mark.parametrize(
    ("cta", "warp"),
    [((3, 0, 2), 1), ((0, 0, 0), 0), ((447, 0, 3), 3)],
)
def test_accesses_of_a_gemv_on_cuda_cores(cta: tuple[int, int, int], warp: int) -> None:
    """Four products of 7168 x 2048, NVFP4: rows of A have 1024 bytes and 128 scales. A warp has
    four rows; a lane takes 16 bytes of each, which have two scales, and 512 bytes on the next."""
    program = lowered(GEMV.read_text(), SIMT)
    picture = with_module(program, partial(accesses_view, cta=cta, warp=warp))
    (grid,) = picture.grids
    x, _, z = cta
    rows = [7168 * z + 4 * (4 * x + warp) + n for n in range(4)]
    want = []
    for i in (0, 1):
        for argument, first in [(2, z), *((0, row) for row in rows)]:
            want.append(f"load arg {argument} +{1024 * first + 512 * i}")
            want.append(f"load arg {argument + 1} +{128 * first + 64 * i}")
    assert grid.row_labels == [*want, f"store arg 4 +{4 * rows[0]}"]
    for label, row in zip(grid.row_labels[:-1], grid.rows):
        size = 16 if label[9] in "02" else 2
        assert [cell.lines for cell in row] == [(str(size * lane),) for lane in range(32)]
    stored = [cell.lines[0] for cell in grid.rows[-1]]
    assert stored == ["0", "4", "8", "12", *["-"] * 28]
    assert picture.table[0] == (
        f"load of 16 bytes, argument 2: from byte {1024 * z}, 16 a lane; lanes 0 to 31; "
        "4 lines of 128"
    )
    assert picture.table[-1].endswith("4 a lane; lanes 0 to 3; 1 line of 128")
    assert picture.table[2] in text(picture) and svg(picture).startswith("<svg")


def test_accesses_of_other_programs_are_refused() -> None:
    with pytest.raises(InputError, match="expected a kernel of threads"):
        with_module(lowered(CONVOLUTION.read_text(), TILE), accesses_view)
    with pytest.raises(InputError, match=r"expected a warp of 0\.\.3, got 4"):
        with_module(lowered(GEMV.read_text(), SIMT), partial(accesses_view, warp=4))


def test_tmem_map_needs_a_plan() -> None:
    with pytest.raises(InputError, match="run plan-memory first"):
        with_module(lowered(CONVOLUTION.read_text(), TILE), tmem_view)
