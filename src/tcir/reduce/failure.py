"""The way in which a program fails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HELD = ("reference", "equal", "within bound")
RUN = "the run"


@dataclass(frozen=True)
class Failure:
    """A failure of a program. Two programs fail in the same way if their failures are equal.

    place: the pass that fails; "the run" for PTX; "" if the input is rejected
    what:  the verdict and the code of its first finding; or the error message without names and
           numbers
    said:  the whole error message, which comparisons ignore
    """

    place: str
    what: str
    said: str = field(default="", compare=False)

    def __str__(self) -> str:
        said = self.said or self.what
        return f"{said} at {self.place}" if self.place else said


def of_validation(report: Mapping[str, Any]) -> Failure | None:
    """Returns the failure in a report of tc-opt ``--validate-each``; None if every pass passed."""
    for line in report["passes"]:
        if line["verdict"] not in HELD:
            return Failure(line["name"], _verdict(line))
    return None


def of_run(report: Mapping[str, Any]) -> Failure | None:
    """Returns the failure in a report of tc-run; None if the run had none."""
    if report["ok"]:
        return None
    if report["incomplete"]:
        return Failure(RUN, f"incomplete: {report['incomplete'][0]['instruction']}")
    bad = [each for each in report["findings"] if each["severity"] == "error"]
    return Failure(RUN, [*report["errors"], *bad][0]["code"])


def of_error(text: str, place: str = "") -> Failure:
    """Returns the failure for an error message, without the details in which programs with the same
    mistake differ.
    """
    first = next((line for line in text.splitlines() if "error:" in line), text)
    first = (first.partition("error:")[2] or first).strip()
    return Failure(place, _words(first), first)


def _verdict(line: Mapping[str, Any]) -> str:
    """The verdict, with the code of the first finding or the reason why the execution ended."""
    codes = [each["code"] for each in line["findings"] if each["severity"] == "error"]
    if line["difference"] is None and not codes:  # illegal use of the machine: deadlock: …
        codes = [":".join(_words(line["compared"]).split(":")[:2])]
    return f"{line['verdict']}: {codes[0]}" if codes else line["verdict"]


def _words(text: str) -> str:
    """The text without names and numbers, which differ between programs with the same mistake."""
    return " ".join(re.sub(r"'[^']*'|\"[^\"]*\"|%\w+|\d[\w.]*", "…", text).split())
