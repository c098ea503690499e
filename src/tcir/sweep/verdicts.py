"""Formats the rows of validated modules as text, CSV and JSON, and computes the exit status."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from tcir.errors import InputError
from tcir.sweep.validation import SweepValidation
from tcir.sweep.work import SweepRow

SCHEMA = "tcir.validations/1"
_GRAVITY = (0, 2, 1, InputError.exit_code)
_WORDS = {"not legal": "refused", "failed": "failed"}


def columns(row: SweepRow) -> dict[str, str | float | int | None]:
    """Columns of the table for one module. The column of errors has the largest ratio of an error
    to its bound, over all states.
    """
    passes = json.loads(row.report)["passes"] if row.report else []
    ratios = [each["max_error_over_bound"] for each in passes]
    known = [ratio for ratio in ratios if ratio is not None]
    seconds = sum(each["pass_seconds"] + each["execute_seconds"] for each in passes)
    return {
        "file": row.combination,
        "verdict": row.verdict or _WORDS.get(row.status, ""),
        "error_over_bound": max(known, default=None),
        "findings": sum(len(each["findings"]) for each in passes) if passes else None,
        "seconds": round(seconds, 2) if passes else None,
        "message": row.message,
    }


def text(rows: Sequence[SweepRow]) -> str:
    """Formats one line for each module, in order, and then the first line of the error message of
    each module that failed.
    """
    head = ("file", "verdict", "error/bound", "findings", "seconds")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if n < 2 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]
    lines += [_why(row) for row in rows if row.message]
    held = sum(row.verdict == "held" for row in rows)
    return "\n".join([*lines, f"{held} of {len(rows)} held"])


def _cells(row: SweepRow) -> tuple[str, ...]:
    file, verdict, ratio, findings, seconds, _ = columns(row).values()
    return (
        " ".join(str(file).splitlines()),
        str(verdict),
        "-" if ratio is None else format(ratio, ".3g"),
        "-" if findings is None else str(findings),
        "-" if seconds is None else format(seconds, ".1f"),
    )


def _why(row: SweepRow) -> str:
    first = row.message.partition("\n")[0]
    return first if first.startswith(row.combination) else f"{row.combination}: {first}"


def as_csv(rows: Sequence[SweepRow]) -> bytes:
    """CSV with one line for each module."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(columns(SweepRow(""))), lineterminator="\n")
    writer.writeheader()
    writer.writerows(columns(row) for row in rows)
    return file.getvalue().encode(errors="replace")  # of a file's name that is not text


def as_json(validation: SweepValidation, target: str, rows: Sequence[SweepRow]) -> bytes:
    """JSON of the table, with the report of each module in the form of `tc-opt
    --validate-each`."""
    settings = validation.settings
    whole = {
        "schema": SCHEMA,
        "pipeline": str(validation.pipeline),
        "target": target,
        "seed": settings.seed,
        "inputs": settings.inputs,
        "orders": settings.orders,
        "modules": [{**columns(row), "report": json.loads(row.report or "null")} for row in rows],
    }
    return (json.dumps(whole, indent=2) + "\n").encode()


def status(rows: Sequence[SweepRow]) -> int:
    """Returns the most severe exit status of the modules, as tc-opt does for the modules of one
    file (`tc-opt --split-input-file`).
    """
    return max((_status(row) for row in rows), key=_GRAVITY.index)


def _status(row: SweepRow) -> int:
    if row.status == "not legal":
        return InputError.exit_code
    return {"held": 0, "different": 1}.get(row.verdict, 2)
