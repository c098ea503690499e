"""docs/explanation/architecture.md names every folder of the repository, and every file it names is
there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tcir.tools.dev import walk

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
TOP = {"bench", "dialect", "docs", "examples", "passes", "peers", "pipelines", "test", "tools"}
ROOMS = sorted(
    init.parent.relative_to(ROOT)
    for top in ("dialect", "passes", "pipelines", "tools", "src/tcir")
    for init in (ROOT / top).rglob("__init__.py")
    if "atoms" not in init.parts
)


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_every_room_is_on_the_page(room: Path) -> None:
    assert f"{room.name}/" in PAGE


def test_no_folder_at_the_top_is_missing() -> None:
    there = {p.name for p in ROOT.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert TOP - {"docs"} <= there
    assert all(f"`{name}/" in PAGE for name in TOP - {"docs"})


@pytest.mark.parametrize(
    "path",
    sorted(
        set(
            re.findall(
                r"`((?:src/tcir|dialect|passes|pipelines|tools|test)/[\w/]*(?:\.py)?)`", PAGE
            )
        )
    ),
)
def test_what_the_page_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_walks_are_those_of_the_imports() -> None:
    assert walk.main(["--check"]) == 0


def test_a_walk_follows_names() -> None:
    sources = {
        "one/a.py": "from tcir.two.b import g\ndef f():\n  from tcir import four\n  four.k(g)\n",
        "two/b.py": "from tcir.three.c import h, unused\nclass g:\n    def m(self): return h\n",
        "three/c.py": "def h(): return h2\ndef h2(): ...\ndef unused(): ...\n",
        "four/__init__.py": "k = 1\n",
    }
    files = {Path(name): ast.parse(text) for name, text in sources.items()}
    found = walk.Sources(files).reached(("one/a", "f"))
    assert set(found) == {
        ("one/a", "f"),
        ("four", ""),
        ("four", "k"),
        ("two/b", "g"),
        ("three/c", "h"),
        ("three/c", "h2"),
    }
