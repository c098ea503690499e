"""Pictures as Typst: cells, labels, marks, and strings that stay strings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcir.viz import fragments, layouts, moves, products
from tcir.viz.command import main
from tcir.viz.picture import Bar, BarRow, Cell, Chart, Grid, Key, Picture
from tcir.viz.typst import typst

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
"""A literal of Typst's code mode; what is not in one is markup or code."""
HOSTILE = '"] #read("/etc/passwd") \\ $x$ [*b*'


def words(document: str) -> list[str]:
    """The literals of a document, unescaped."""
    found = STRING.findall(document)
    return [re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], each) for each in found]


@pytest.mark.parametrize(
    "picture",
    [
        fragments.mma_view("mma.m16n8k16", "A"),
        products.product_view("mma.m16n8k16"),
        layouts.smem_view(16, 64, 2, "128B", 0),
        layouts.scale_factor_view(),
        moves.moves_view(),
    ],
    ids=lambda picture: picture.title,
)
def test_every_cell_and_label(picture: Picture) -> None:
    document = typst(picture)
    said = words(document)
    for grid in picture.grids:
        for cell in (each for row in grid.rows for each in row):
            assert set(cell.lines[:-1]) <= set(said)
            assert not cell.lines or any(each.startswith(cell.lines[-1]) for each in said)
        assert set(grid.row_labels) <= set(said)
        assert {line for label in grid.column_labels for line in label.split("\n")} <= set(said)
    cells = sum(len(row) for grid in picture.grids for row in grid.rows)
    assert document.count("table.cell(") == cells
    assert {key.text for key in picture.legend} <= set(said)
    code = STRING.sub("", document)
    assert all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}"))


def test_words_are_never_markup() -> None:
    bar = Bar(0, 1, HOSTILE, "#FFFFFF", about=HOSTILE)
    picture = Picture(
        HOSTILE, HOSTILE,
        [Grid([[Cell((HOSTILE,), mark="ring")]], [HOSTILE], [HOSTILE], HOSTILE, HOSTILE, HOSTILE,
              HOSTILE)],
        [Key("#FFFFFF", HOSTILE)], [HOSTILE],
        [Chart([BarRow(HOSTILE, [bar])], [], 0, 1, HOSTILE, HOSTILE)],
    )  # fmt: skip
    document = typst(picture)
    assert HOSTILE in words(document) and HOSTILE + "*" in words(document)
    code = STRING.sub("", document)
    assert "read(" not in code and "passwd" not in code and "$" not in code


def test_a_chart_is_an_image() -> None:
    bar = Bar(0, 5, "mma", "#FFFFFF")
    chart = Chart([BarRow("tensor core", [bar])], [], 0, 10, "cycles", "One tile")
    document = typst(Picture("t", "", [], [], charts=[chart]))
    (drawn,) = (each for each in words(document) if each.startswith("<svg"))
    assert "tensor core" in drawn and "</svg>" in drawn
    assert '#image(bytes("<svg' in document


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "moves.typ"
    assert main(["moves", "-o", str(file)]) == 0
    assert main(["moves", "--format=typst"]) == 0
    assert capsys.readouterr().out == file.read_text(encoding="utf-8")
    assert file.read_text(encoding="utf-8").startswith("#set page(")


def test_moves_are_those_of_the_dialect() -> None:
    """Every op that moves data into, in or out of tensor memory has its cell, and no other pair."""
    ops = {"tcgen05.cp": "CpOp", "tcgen05.shift": "ShiftOp", "tcgen05.ld": "TmemLdOp",
           "tcgen05.st": "TmemStOp"}  # fmt: skip
    from tcir.dialect import tc

    drawn = {move.name[0] for move in moves.MOVES if moves.TENSOR in (move.source, move.target)}
    assert drawn == set(ops) and all(hasattr(tc, name) for name in ops.values())
    pairs = {(move.source, move.target) for move in moves.MOVES}
    assert len(pairs) == len(moves.MOVES)
    assert not pairs & {(moves.GLOBAL, moves.TENSOR), (moves.TENSOR, moves.SHARED)}
