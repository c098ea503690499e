"""Writes docs/reference/verdicts.md: what `--validate-each` says of each program of examples/ and
of test/endtoend/layers/.

    python test/verdicts.py [-j PROCESSES]
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import tcir

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "reference" / "verdicts.md"
FOLDERS = ("examples", "test/endtoend/layers")

INTRO = """# Verdicts by program

The table has the last line of the report (every pass executed, and the PTX) for the programs of
`examples/` and of `test/endtoend/layers/`, which are layers as PyTorch's importer writes them. An
example is compiled with the options that its first comment names, and a layer by the pipeline
`layers`. A file with several programs has a row for each.
[tc-opt.md](tc-opt.md#what-the-verdict-covers) explains the words. `python test/verdicts.py` writes
this page.

"""
_PIPELINE = re.compile(r"--pipeline=('[^']*'|\S+)")
_TARGET = re.compile(r"--target[ =](\w+)")


@dataclass(frozen=True)
class Verdict:
    """Verdict on one program of a file: its number, the options, the last line of its report."""

    file: str
    number: int
    options: str
    words: str


def programs() -> list[Path]:
    """The files, in order."""
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.mlir"))]


def options_of(text: str) -> str:
    """The pipeline, and the target if the head names one."""
    head = "\n".join(line for line in text.splitlines() if line.startswith("//"))
    pipeline, target = _PIPELINE.search(head), _TARGET.search(head)
    words = f"--pipeline={pipeline[1]}" if pipeline else "--pipeline=layers"
    return words + (f" --target={target[1]}" if target else "")


def parts(path: Path) -> list[str]:
    """The programs of a file."""
    return re.split(r"^// -----$", path.read_text(), flags=re.M)


def verdict(program: tuple[Path, int]) -> Verdict:
    """Executes a program of a file after every pass, down to PTX."""
    path, number = program
    options = options_of(path.read_text())
    words = dict(word.removeprefix("--").split("=", 1) for word in shlex.split(options))
    try:
        said = tcir.compile(parts(path)[number - 1], **words, validate=True).report.summary()
    except tcir.Error as error:
        said = f"refused: {str(error).splitlines()[0]}"
    return Verdict(str(path.relative_to(ROOT)), number, options, said)


def every(files: list[Path], processes: int) -> Iterator[Verdict]:
    """Yields the verdicts on all programs of files, as they end."""
    programs = [(path, n) for path in files for n, _ in enumerate(parts(path), 1)]
    with get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(verdict, programs)


def page(found: list[Verdict]) -> str:
    """The table."""
    lines = ["| program | options | verdict |", "|---|---|---|"]
    several = {each.file for each in found if each.number > 1}
    for each in sorted(found, key=lambda each: (each.file, each.number)):
        name = each.file + (f", {each.number}" if each.file in several else "")
        options = each.options.replace("|", "\\|")
        lines.append(f"| {name} | `{options}` | {each.words} |")
    held = sum(each.words.startswith("held") for each in found)
    return INTRO + "\n".join(lines) + f"\n\n{held} of {len(found)} held.\n"


def main() -> int:
    """Runs all and writes the page."""
    parser = argparse.ArgumentParser(description="Write docs/reference/verdicts.md.")
    parser.add_argument("files", nargs="*", type=Path, help="files (all)")
    parser.add_argument("-j", type=int, default=2, dest="processes", help="processes (2)")
    parser.add_argument("-o", type=Path, default=TARGET, dest="target", help=f"page ({TARGET})")
    arguments = parser.parse_args()
    found = []
    files = [path.resolve() for path in arguments.files] or programs()
    for each in every(files, arguments.processes):
        print(f"{each.file}, {each.number}: {each.words}", flush=True)
        found.append(each)
        arguments.target.write_text(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
