"""Rows of docs/reference/networks.md, and of files of such rows; a network with one element type
has several."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tcir.tools.dev.networks.measured import Measured
from tcir.tools.dev.networks.network import LEAST
from tcir.torch.compiled import short
from tcir.torch.lowering import without_place

FAILED = "failed"
Rows = dict[tuple[str, str], list[str]]
"""By network and type: the line of the table and, if PyTorch runs a part, a line that names it."""
_LINE = re.compile(r"\| (?P<name>[^|]+) \| (?P<kind>b?f\d+) \||- \*\*(.+)\*\* \((b?f\d+)\): ")


def measured(name: str, kind: str, found: Measured) -> list[str]:
    """The rows of a network with one element type, as lines of text."""
    worst = max(found.compared, key=lambda each: each.ratio)
    error = f"{worst.error:.1e} / {worst.own:.1e}"
    if found.failures:
        error = f"{FAILED}: {found.failures[0]}"
    cells = (
        name, kind, found.ops, found.attempts, found.kinds, found.regions, found.launches,
        f"{found.share:.1%}", f"{found.compile_seconds:.0f}", f"{found.run_seconds:.0f}",
        found.megabytes, error,
    )  # fmt: skip
    lines = [f"| {' | '.join(map(str, cells))} |"]
    if words := left(found):
        lines.append(f"- **{name}** ({kind}): {'; '.join(words)}")
    return lines


def failed(name: str, kind: str, said: str) -> list[str]:
    """The row of a network that raised an error, or whose process crashed."""
    words = (said.strip().splitlines() or ["no reason"])[0].replace("|", "/")
    return [f"| {name} | {kind} |{' |' * 9} {FAILED}: {words} |"]


def left(found: Measured) -> list[str]:
    """Texts that name the ops that were left to PyTorch, and the reasons."""
    return [
        f"{', '.join(sorted(set(ops)))}: {short(without_place(reason)).split(': %')[0]}"
        for reason, ops in found.left.items()
    ]


def read(lines: Iterable[str]) -> Rows:
    """Maps each pair of a network and an element type to its rows in a page or in a file of rows. A
    later row replaces an earlier row of the same pair."""
    rows: Rows = {}
    for line in lines:
        if found := _LINE.match(line):
            name, kind, other, other_kind = found.groups()
            if name:
                rows[name, kind] = [line]
            else:
                rows[other, other_kind].append(line)
    return rows


def merged(*files: Path) -> Rows:
    """The rows of several files; rows of a later file replace those of an earlier file."""
    rows: Rows = {}
    for file in files:
        rows |= read(file.read_text(encoding="utf-8").split("\n"))
    return rows


def failures(rows: Rows) -> list[str]:
    """Rows of networks that failed, or whose kernels compute less than the share `LEAST` of the
    contraction FLOPs."""
    return [
        lines[0] for lines in rows.values() if f" {FAILED}: " in lines[0] or share(lines[0]) < LEAST
    ]


def share(line: str) -> float:
    """Fraction of the contraction FLOPs that kernels compute, read from a row of the table."""
    return float(line.split(" | ")[7].rstrip("%")) / 100
