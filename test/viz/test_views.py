"""Views: what each cell says against definitions, readable colours, refusals in pairs."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from tcir.layout import SWIZZLES, LayoutError, mma_atom
from tcir.viz import fragments, layouts, products
from tcir.viz.command import main
from tcir.viz.palette import OKABE_ITO, contrast, ink_on, thread, viridis
from tcir.viz.picture import BLANK, Picture
from tcir.viz.svg import html, svg
from tcir.viz.text import text

VIEWS = {
    "layout": lambda: layouts.layout_view(layouts.parse_layout("((2,4),8):((1,16),2)")),
    "fragment A": lambda: fragments.mma_view("mma.m16n8k16", "A"),
    "fragment B": lambda: fragments.mma_view("mma.m16n8k8.tf32", "B"),
    "fragment C": lambda: fragments.mma_view("mma.m16n8k32", "C"),
    "fragment tiled": lambda: fragments.mma_view("mma.m16n8k16", "B", (2, 2, 1), (32, 32, 16)),
    "quad pair": lambda: fragments.mma_view("mma.m8n8k4.f32.tn", "C"),
    "quad pairs": lambda: fragments.mma_view("mma.m8n8k4.f32.tn", "A", (2, 2, 1)),
    "A B to C": lambda: products.product_view("mma.m16n8k8.tf32"),
    "A B to C of quad pairs": lambda: products.product_view("mma.m8n8k4.f16.nt"),
    "copy": lambda: products.copy_view("ldmatrix.x4", "mma.m16n8k16", "A", (2, 1, 1)),
    "copy of results": lambda: products.copy_view(
        "stmatrix.x2", "mma.m16n8k16", "C", tile=(16, 16, 16)
    ),
    "ldmatrix": lambda: fragments.fragment_view("ldmatrix.x4.trans", "A"),
    "stmatrix": lambda: fragments.fragment_view("stmatrix.x2", "A"),
    "smem": lambda: layouts.smem_view(16, 64, 2, "128B", 3),
    "scale factors": layouts.scale_factor_view,
    "ld": lambda: fragments.ld_view("16x256b.x1"),
    "ld of windows": lambda: fragments.ld_view("16x32bx2.x2", 5),
}


@pytest.fixture(params=VIEWS)
def view(request: pytest.FixtureRequest) -> Picture:
    return VIEWS[request.param]()


def test_every_form_holds_every_cell(view: Picture) -> None:
    cells = [c for grid in view.grids for row in grid.rows for c in row if c is not BLANK]
    root = ET.fromstring(svg(view))
    drawn = root.findall(".//{http://www.w3.org/2000/svg}g[@class='cell']")
    assert len(drawn) == len(cells)
    for element, cell in zip(drawn, cells):
        words = [t.text or "" for t in element.findall("{http://www.w3.org/2000/svg}text")]
        assert words == list(cell.lines)
    plain = text(view)
    assert "\x1b" not in plain and "\x1b[" in text(view, colour=True)
    for grid in view.grids:
        for row in grid.rows:
            assert all(" ".join(cell.lines) in plain for cell in row)
    assert svg(view) in html(view)
    assert "http" not in svg(view).replace("http://www.w3.org/2000/svg", "")


def test_text_is_readable_on_every_cell(view: Picture) -> None:
    for grid in view.grids:
        for row in grid.rows:
            for cell in (c for c in row if c is not BLANK):
                assert contrast(ink_on(cell.fill), cell.fill) >= 4.5  # WCAG 2.1, level AA


def test_colours() -> None:
    assert len({thread(t) for t in range(32)}) == 32
    assert len(set(OKABE_ITO)) == 8
    assert (viridis(0), viridis(1), viridis(-3), viridis(9)) == (
        "#440154",
        "#FDE725",
        "#440154",
        "#FDE725",
    )
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


def test_layout_cells() -> None:
    grid = VIEWS["layout"]().grids[0]
    assert [[int(c.lines[0]) for c in row] for row in grid.rows] == [
        [i % 2 + 16 * (i // 2) + 2 * j for j in range(8)] for i in range(8)
    ]


@pytest.mark.parametrize(("name", "operand"), [
    ("mma.m16n8k16", "A"), ("mma.m16n8k16", "B"), ("mma.m16n8k16", "C"), ("mma.m16n8k8.tf32", "A"),
    ("mma.m16n8k32", "B"), ("mma.m16n8k4", "A"),
])  # fmt: skip
def test_fragment_cells(name: str, operand: str) -> None:
    layout, (outer, inner), bits = mma_atom(name).operand(operand)
    rows = fragments.mma_view(name, operand).grids[0].rows
    assert len(rows) * len(rows[0]) == outer * inner
    for t in range(32):
        for v in range(layout[1].size):
            index = layout(t, v)
            x, y = index % outer, index // outer
            cell = rows[y][x] if operand == "B" else rows[x][y]
            half = {32: "", 16: "lh"[v % 2], 8: f".{v % 4}"}[bits]
            assert cell.lines == (f"T{t}", f"r{v * bits // 32}{half}")
            assert cell.fill == thread(t)


@pytest.mark.parametrize("name", ["mma.m16n8k4", "mma.m16n8k16", "mma.m16n8k32"])
def test_a_product_puts_a_left_of_c_and_b_above_it(name: str) -> None:
    """Row and column of the picture: (k + m, k + n) for C, (k, k + n) for B, (k + m, k) for A."""
    atom = mma_atom(name)
    _, _, k = atom.shape
    (grid,) = products.product_view(name).grids
    seen = 0
    for operand, (down, right) in {"A": (k, 0), "B": (0, k), "C": (k, k)}.items():
        layout, (outer, _), bits = atom.operand(operand)
        for t in range(32):
            for v in range(layout[1].size):
                x, y = layout(t, v) % outer, layout(t, v) // outer
                row, column = (y, x) if operand == "B" else (x, y)
                cell = grid.rows[down + row][right + column]
                part = {32: "", 16: "lh"[v % 2], 8: f".{v % 4}"}[bits]
                assert cell.lines == (f"T{t}", f"r{v * bits // 32}{part}")
                seen += 1
    blanks = [cell for row in grid.rows for cell in row if cell is BLANK]
    assert all(cell is BLANK for row in grid.rows[:k] for cell in row[:k])
    assert len(blanks) == k * k
    assert seen + len(blanks) == sum(map(len, grid.rows))


def test_ldmatrix_reads_rows_and_writes_the_fragment() -> None:
    """x4 for A of m16n8k16: T0-15 name rows 0 to 15 of columns 0 to 7, T16-31 those of 8 to 15."""
    view = products.copy_view("ldmatrix.x4", "mma.m16n8k16", "A")
    reads, writes = view.grids
    assert (reads.title, writes.title) == ("reads memory", "writes registers")
    for m in range(16):
        for k in range(16):
            assert reads.rows[m][k].lines == (f"T{m + 16 * (k // 8)}", f"v{k % 8}")
    assert writes.rows == fragments.mma_view("mma.m16n8k16", "A").grids[0].rows
    assert view.table[1] == " 0: 0, 1, 2, 3, 4, 5, 6, 7"
    assert view.table[34] == " 0: 0, 1, 128, 129, 8, 9, 136, 137"


def test_shared_elements_name_all_threads() -> None:
    cell = VIEWS["fragment tiled"]().grids[0].rows[0][0]
    assert cell.lines[0] == "T0+1"
    assert "thread 0, register r0l; thread 32, register r0l" in cell.about


@pytest.mark.parametrize("swizzle", ["NONE", "32B", "64B", "128B"])
def test_smem_cells(swizzle: str) -> None:
    grid = layouts.smem_view(16, 64, 2, swizzle, 3).grids[-1]
    for row in range(16):
        for unit in range(8):
            address = SWIZZLES[swizzle](128 * row + 16 * unit)
            cell = grid.rows[address // 128][address % 128 // 16]
            assert cell.lines == (f"r{row} u{unit}",)
            assert (cell.mark == "ring") == (unit == 3 and row < 8)
    passes = {"NONE": 8, "32B": 4, "64B": 2, "128B": 1}[swizzle]
    assert f"{passes} pass" in grid.caption


def test_scale_factor_cells() -> None:
    rows = layouts.scale_factor_view().grids[0].rows
    for r in range(128):
        for s in range(4):
            assert rows[r % 32][r // 32 * 4 + s].lines == (f"r{r} s{s}",)


def test_command_writes_by_suffix(tmp_path: Path) -> None:
    for suffix, start in (
        ("svg", "<svg"),
        ("html", "<!doctype"),
        ("typ", "#set"),
        ("txt", "Block of"),
    ):
        file = tmp_path / f"a.{suffix}"
        assert main(["scale-factors", "-o", str(file)]) == 0
        assert file.read_text(encoding="utf-8").startswith(start)


GOOD = ["layout (4,8):(8,1)", "fragment mma.m16n8k8.f16", "smem --rows 8 --columns 8 --swizzle 32B",
        "ld 32x32b.x64", "fragment ldmatrix.x1.trans", "layout 12", "mma mma.m8n8k4.f32.tn",
        "mma mma.m16n8k16 --atoms 2,2,1 --tile 32,32,16",
        "copy ldmatrix.x2 mma.m16n8k8.tf32 --operand B",
        "copy ldmatrix.x2.trans mma.m16n8k16 --operand B"]  # fmt: skip
BAD = {
    "layout (4,8": "expected shape:stride such as (4,8):(8,1), got (4,8",
    "layout (4,8):(8,x)": "expected shape:stride",
    "layout (4,8.5)": "expected ints",
    "layout (4,8):8": "expected strides nested like shape",
    "layout (128,64)": "at most 4096 elements to draw, got 8192",
    "fragment mma.m16n8k8": "expected one of mma.m16n8k8.tf32, mma.m16n8k8.f16",
    "fragment ldmatrix.x3": "got ldmatrix.x3",
    "fragment mma.m16n8k16 --tile 24,8,16": "M: expected a tile of a multiple of 16",
    "mma mma.m16n8": "mma.m16n8k32.b8, got mma.m16n8",
    "copy ldmatrix.x3 mma.m16n8k16": "got ldmatrix.x3",
    "copy ldmatrix.x4 mma.m16n8k16 --operand B": "moves 8 values of 32 threads at once",
    "copy ldmatrix.x1.trans mma.m16n8k8.tf32": "cannot move 32-bit elements",
    "copy copy.b16 mma.m16n8k16 --tile 512,8,16": "at most 4096 elements to draw, got (512, 16)",
    "smem --rows 7": "expected 8 to 64 rows",
    "smem --swizzle 96B": "expected a swizzle of",
    "smem --unit 8": "expected a unit from 0 to 7, got 8",
    "ld 16x256b": "expected SHAPE.xNUM such as 16x256b.x1",
    "ld 16x256b.x64": "expected .x1 to .x32",
    "ld 32x32b.x128": "at most 64 columns to draw, got 128",
    "tmem nowhere.mlir": "cannot read 'nowhere.mlir'",
    "report nowhere.json": "cannot read 'nowhere.json'",
    "fragment mma.m16n8k16 --values x.npy": "cannot read 'x.npy'",
}


@pytest.mark.parametrize("line", GOOD)
def test_accepted(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("line", BAD)
def test_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 3
    captured = capsys.readouterr()
    assert BAD[line] in captured.err and captured.err.startswith("error: ")
    assert captured.out == ""


def test_values_must_fit(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=re.escape("shape (16, 8) for B, got (8, 16)")):
        fragments.mma_view("mma.m16n8k16", "B", values=np.zeros((8, 16)))


def test_pictures_need_neither_the_machine_nor_mlir() -> None:
    code = """
import pkgutil, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("tcir.machine", "tcir.interp", "tcir.dialect", "torch_mlir", "mlir")):
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocked())
import importlib, tcir.viz
for found in pkgutil.walk_packages(tcir.viz.__path__, "tcir.viz."):
    importlib.import_module(found.name)
from tcir.viz.command import main
sys.exit(main(["fragment", "mma.m16n8k16"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "T31 r3h" in done.stdout
