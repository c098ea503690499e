"""Prints line coverage by folder from the JSON report of coverage.py; the last step of `make
coverage`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def table(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> str:
    """A table with a line for each folder with Python files (including files that were never
    executed), and a total. A line has the number of lines of code, the number of executed lines,
    and their share in per cent."""
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, found in report["files"].items():
        path = Path(name)
        room = path.relative_to(ROOT) if path.is_absolute() else path
        lines = rooms[str(room.parent)]
        lines[0] += found["summary"]["num_statements"]
        lines[1] += found["summary"]["covered_lines"]
    total = [sum(each) for each in zip(*rooms.values(), strict=True)]
    width = max(map(len, rooms))
    rows = [*sorted(rooms.items()), ("total", total)]
    return "\n".join(
        f"{room:{width}} {code:6} {ran:6} {100 * ran / max(code, 1):5.1f}"
        for room, (code, ran) in rows
    )


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text())))
