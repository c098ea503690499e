"""Writes docs/results/first-hour.md: what README and the tutorials tell a new user to paste, with
times.

    cd test && PYTHONPATH=. python -m first_hour CLONE

CLONE is a clean clone: what is installed goes into its .venv, as README says.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pasted import BLOCKS, NEEDS, ROOT, Block, environment, follow, run

TARGET = ROOT / "docs" / "results" / "first-hour.md"
PAGES = (
    "README.md", "docs/tutorials/first-kernel.md", "docs/tutorials/first-pass.md",
    "docs/tutorials/debugging.md", "docs/reference/tc-reduce.md", "docs/how-to/triton.md",
    "docs/how-to/cute.md", "docs/how-to/cuda.md", "docs/how-to/pytorch.md",
    "docs/how-to/arrays.md", "docs/tutorials/gpu.md",
)  # fmt: skip
INSTALLATION = ("make demo", ".venv/bin/python -m pip install -q -e '.[torch,triton,cute]'")
_VERDICT = re.compile(r"(held|ok|failed|stopped|different): |right$|.* error: |.* at the run, ")
INTRO = """\
<!-- Written by `python -m first_hour CLONE` in test/. -->

# The first hour

This page shows that every command and every block of Python in README and the tutorials works. They
were pasted, in the order of the pages, into a clean clone after `source .venv/bin/activate`;
`make test-all` pastes them again. The column *s* has wall-clock seconds on a virtual machine with
two cores and some ten other jobs; with fewer other jobs, all commands together took 6 minutes.
Three things were left out: `make test` (5 minutes on two idle cores), `tc-reduce` of a program with
a pipeline (minutes), and everything that needs a GPU.

The first command of the table installs the packages, from a package index nearby. Commands
that run compiled Python for the first time are slower, because numba compiles once what it runs,
and keeps it.

"""


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    file: str
    command: str
    seconds: float
    shown: str


def steps() -> list[Block]:
    """The blocks of `PAGES`, in order."""
    found = [block for page in PAGES for block in BLOCKS if block.file == page]
    found = [block for block in found if not block.reason or block.reason in NEEDS]
    return [block for block in found if block.runs or block.kind == "python"]


def title(block: Block, command: str = "") -> str:
    """The pasted command of a row; for Python, the line that calls tcir."""
    calls = (
        line for line in block.text.splitlines() if re.search(r"tcir\.[\w.]+\(|\"tcir\"", line)
    )
    text = command or next(calls)
    short = text if len(text) < 90 else text[:86] + " …"
    return short.strip().replace("|", "\\|")


def titles() -> list[str]:
    """Titles of all rows after the installation."""
    return [title(block, line) for block in steps() for line, _ in block.runs or [("", "")]]


def outcome(output: str) -> str:
    """The line with the verdict, or the last one; without times."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line for line in lines if _VERDICT.match(line)] or lines[-1:] or [""]
    line = re.sub(r" in \d+\.\d+ s\b", "", told[0])
    return (line if len(line) < 100 else line[:96] + " …").replace("|", "\\|")


def rows(clone: Path) -> Iterator[Row]:
    """Runs all, one after the other."""
    variables = environment(clone / ".venv" / "bin")
    variables.pop("PYTHONPATH", None)
    for command in INSTALLATION:
        start = time.monotonic()
        status, output = run(clone, command, variables)
        assert status == 0, output
        yield Row("README.md", command, time.monotonic() - start, "")
    for block in steps():
        for command in block.runs or [("", "")]:
            one = Block(block.file, block.line, block.kind, _text(block, *command))
            start = time.monotonic()
            (output,) = follow(one, clone, variables)
            seconds = time.monotonic() - start
            yield Row(block.file, title(block, command[0]), seconds, outcome(output))


def _text(block: Block, command: str, shown: str) -> str:
    return f"$ {command}\n{shown}" if command else block.text


def page(found: list[Row]) -> str:
    """The table."""
    lines = ["| page | pasted | s | outcome |", "|---|---|---|---|"]
    before = ""
    for row in found:
        name = row.file.removeprefix("docs/")
        link = name if name == "README.md" else f"[{Path(name).stem}](../{name})"
        shown = f"`{row.shown}`" if row.shown else ""
        pasted = f"`{row.command}`"
        lines.append(
            f"| {'' if row.file == before else link} | {pasted} | {row.seconds:.0f} | {shown} |"
        )
        before = row.file
    minutes = sum(row.seconds for row in found) / 60
    return INTRO + "\n".join(lines) + f"\n\nAll commands together took {minutes:.0f} minutes.\n"


def main() -> int:
    """Runs, and writes the page."""
    found = []
    for row in rows(Path(sys.argv[1]).resolve()):
        print(f"{row.seconds:6.1f} s  {row.command}  {row.shown}", flush=True)
        found.append(row)
    TARGET.write_text(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
