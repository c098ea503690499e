"""Turns a failed execution into the verdict of a line of the report. Any exception counts as a
failure of the pass.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tcir.errors import Error, IncompleteError
from tcir.interp import Outcome
from tcir.validation.report import Line


def guarded(line: Line, run: Callable[[], Outcome]) -> Outcome | None:
    """Runs an execution. An illegal or unsupported operation becomes the verdict of the line.

    Returns None if there are no results to compare.
    """
    try:
        outcome = run()
    except Exception as error:
        _note(line, getattr(error, "findings", []))  # what was found before it ended
        site = getattr(error, "site", None)
        where = "" if site is None or str(site) in str(error) else f" at {site}"
        if _is_not_modelled(error):
            line.verdict, line.incomplete = "incomplete", [f"{error}{where}"]
            return None
        if not _is_program_error(error):
            raise
        line.verdict = "different"
        line.compared = f"illegal use of the machine: {error}{where}"
        return None
    line.level = outcome.level
    line.counters = dict(outcome.counters)
    _note(line, outcome.findings)
    if outcome.incomplete:
        line.verdict, line.incomplete = "incomplete", list(outcome.incomplete)
        return None
    if outcome.errors:
        line.verdict = "different"
        line.compared = f"{rules_of(outcome.level)}, {len(outcome.errors)} error(s) of the program"
        return None
    return outcome


@contextmanager
def blamed_on_the_pass(line: Line) -> Iterator[None]:
    """Turns every exception that an execution after a pass raises into that pass's verdict.

    The program before the pass was executed without an exception, so the pass's result is at fault.
    An exception of a type that tcir does not define may be a bug in the interpreter, and is
    reported as a possible bug.
    """
    try:
        yield
    except IncompleteError as error:
        line.verdict, line.incomplete = "incomplete", [str(error)]
    except MemoryError as error:
        line.verdict, line.incomplete = "incomplete", [f"out of memory: {error}"]
    except Error as error:
        line.verdict = "different"
        line.compared = f"the pass left a program that has no meaning: {error}"
    except Exception as error:
        if os.environ.get("TCIR_TRACEBACK"):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        line.verdict = "different"
        line.compared = (
            "the interpreter failed on what the pass left (TCIR_TRACEBACK=1 shows where)"
        )
        what = f"{type(error).__name__}: {error}, at {frame.filename}:{frame.lineno}"
        line.findings.append({"severity": "error", "code": "interpreter-failed", "text": what})


def _note(line: Line, findings: Iterable[Any]) -> None:
    """Adds hazards to a line, which keeps those of other completion orders."""
    for f in findings:
        finding = {"severity": f.severity, "code": f.code, "text": _words(f)}
        if finding not in line.findings:
            line.findings.append(finding)


def _is_not_modelled(error: Exception) -> bool:
    """Whether `error` means a missing rule: the program may be legal."""
    from tcir.machine.errors import NotModelled

    return isinstance(error, NotModelled | IncompleteError)


def _is_program_error(error: Exception) -> bool:
    """Whether the machine raised `error` because the program is wrong."""
    from tcir.machine import MachineError
    from tcir.machine.refusal import Refusal
    from tcir.run import LaunchError, PtxSyntaxError

    return isinstance(error, MachineError | Refusal | LaunchError | PtxSyntaxError)


def _words(finding: Any) -> str:
    """Both operations of a finding or its undefined read, the missing edge, and the CTA."""
    place = "" if finding.kind else finding.place
    parts = [str(p) for p in (finding.first, finding.second, place, finding.missing) if p]
    cta = "" if finding.cta is None else f" (CTA {finding.cta})"
    return "; ".join(parts) + cta


def rules_of(level: str) -> str:
    """Describes in words by which rules a level is executed."""
    return {"none": "no launch", "tensor": "tensor rules"}.get(level, f"machine, {level} level")
