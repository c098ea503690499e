"""Formats the rows of a sweep as text, CSV and JSON. All times are modelled, not measured."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from tcir.sweep.engine import legal, order
from tcir.sweep.work import SweepProgram, SweepRow

SCHEMA = "tcir.bench/1"


def _number(value: float | None, form: str = "") -> str:
    return "-" if value is None else format(value, form)


_COLUMNS: dict[str, Callable[[SweepRow], str]] = {
    "us": lambda row: _number(row.microseconds, ".2f"),
    "bound": lambda row: row.bound or "-",
    "MB": lambda row: _number(None if row.bytes is None else row.bytes / 1e6, ".2f"),
    "CTAs": lambda row: str(row.ctas),
    "regs": lambda row: _number(row.registers),
    "spills": lambda row: _number(row.spill_bytes),
    "smem": lambda row: _number(row.shared_bytes),
    "TMEM": lambda row: _number(row.tmem_columns),
    "SASS/mma": lambda row: _number(row.sass_per_mma, ".1f"),
    "verdict": lambda row: row.verdict or "-",
}


def text(rows: Sequence[SweepRow], most: int | None = None) -> str:
    """Formats the rows of successful combinations, the fastest first, and then the other rows with
    the first line of their error message.

    most: maximum number of rows of each of these two groups; further rows are only counted
    """
    kept = sorted((rows[number] for number in legal(rows)), key=order)
    others = [row for row in rows if row.status != "ok"]
    wide = max(len(row.combination) for row in rows)
    head = [f"{'modelled, not measured':<{wide}}", *_COLUMNS]
    cells = [[row.combination, *(show(row) for show in _COLUMNS.values())] for row in kept[:most]]
    widths = [max(len(line[n]) for line in [head, *cells]) for n in range(len(head))]
    lines = [_line(line, widths) for line in [head, *cells]] if kept else []
    lines += _rest(kept, most)
    lines += [f"{row.combination:<{wide}}  {row.status}: {_first(row)}" for row in others[:most]]
    lines += _rest(others, most)
    lines += [f"{row.combination}: {row.verdict}: {_first(row)}" for row in kept if row.message]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *others = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return "  ".join([f"{name.strip():<{widths[0]}}", *others]).rstrip()


def _rest(rows: Sequence[SweepRow], most: int | None) -> list[str]:
    count = len(rows) - (len(rows) if most is None else most)
    return [f"... and {count} more"] if count > 0 else []


def _first(row: SweepRow) -> str:
    return row.message.partition("\n")[0]


def as_csv(rows: Sequence[SweepRow]) -> bytes:
    """CSV with one line for each row, in the order of the combinations."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(SweepRow("").as_dict()), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.as_dict() for row in rows)
    return file.getvalue().encode()


def as_json(program: SweepProgram, rows: Sequence[SweepRow]) -> bytes:
    """JSON of the rows and of the program that was compiled."""
    whole = {
        "schema": SCHEMA,
        "program": program.name,
        "entry": program.entry,
        "target": program.target,
        "time": "modelled, not measured",
        "rows": [row.as_dict() for row in rows],
    }
    return (json.dumps(whole, indent=2) + "\n").encode()
