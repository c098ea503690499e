"""The command line of the commands that generate a page in docs/: it writes the page, or reports
that the page is stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def write_or_check(
    target: Path, document: Callable[[], str], tool: str, argv: Sequence[str] | None = None
) -> int:
    """Writes ``document()`` to the page, or with ``--check`` only compares the two; returns 1 if
    the page is stale.

    tool: the module to run, which messages name
    """
    parser = argparse.ArgumentParser(prog=f"python -m {tool}", description=f"Writes {target.name}.")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args(argv)
    text = document()
    if not options.check:
        target.write_text(text, encoding="utf-8")
        return 0
    stale = not target.exists() or target.read_text(encoding="utf-8") != text
    if stale:
        print(f"{target} is stale: run python -m {tool}", file=sys.stderr)
    return int(stale)
