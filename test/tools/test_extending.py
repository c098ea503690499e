"""docs/how-to/extending.md, followed literally: its files are written, its commands run and
compared."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "extending.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+) ?([\w.]*)\n(.*?)^```$", re.M | re.S)
TOOLS = ("tc_opt", "tc_run", "tc_viz")


def steps() -> list[tuple[str, str]]:
    """Files to write, as (name, text), and commands, as ("", console text), in the page's order."""
    found = []
    for language, name, text in FENCE.findall(PAGE):
        if name or language == "console":
            found.append((name, text))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, and commands that run this tree."""
    made = tmp_path_factory.mktemp("extending")
    (made / "examples").symlink_to(ROOT / "examples")
    (made / "bin").mkdir()
    commands = {tool.replace("_", "-"): f"-m tcir.tools.{tool}" for tool in TOOLS} | {"python": ""}
    for name, module in commands.items():
        script = made / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        script.chmod(0o755)
    return made


def run(folder: Path, command: str, expected: list[str]) -> None:
    """The expected lines come in this order, ``…`` standing for anything."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        text=True,
        capture_output=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": source},
    )
    printed = [" ".join(line.split()) for line in (done.stdout + done.stderr).splitlines()]
    assert (done.returncode == 0) == (not any("error:" in line for line in expected)), printed
    rest = iter(printed)
    for line in expected:
        pattern = " ".join(line.split()).replace("[", "[[]").replace("…", "*")
        assert any(fnmatch.fnmatchcase(each, pattern) for each in rest), (line, printed)


def test_page(folder: Path) -> None:
    commands = 0
    for name, text in steps():
        if name:
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write(text)
            continue
        for block in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, *expected = block.rstrip().splitlines()
            run(folder, command, [line for line in expected if line.strip() != "…"])
            commands += 1
    assert commands >= 6


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:src|dialect|passes|pipelines|test)/[\w/.]+)`", PAGE)))
)
def test_what_the_page_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_walk_finds_the_op_in_at_most_four_files() -> None:
    walk = PAGE.split("## A walk")[1].split("\n## ")[0]
    rows = [row for row in walk.splitlines() if row.startswith("| ") and "`" in row]
    assert len(rows) <= 4
    for row in rows:
        path, hints = row.split("|")[2:4]
        text = (ROOT / path.strip().strip("`")).read_text(encoding="utf-8")
        for hint in re.findall(r"`([^`]+)`", hints):
            assert hint.removesuffix(", …)") in text, (path, hint)
