"""Containment of crashes in native libraries: the work runs in a child process.

Before each pass the child records its name; if a signal kills the child, the parent names the pass,
and another child reruns the passes before it to save the program as a reproducer.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from tcir.child import End, in_child
from tcir.errors import InputError
from tcir.exit_status import limit
from tcir.files import write_atomic, write_json

_DEEP = 1000
"""Depth of nested brackets for which a stack of 8 MiB is certainly large enough."""


@dataclass(frozen=True)
class Checkpoint:
    """The progress of the child process.

    name:   the current pass or step; "" while the child reads the text
    done:   number of completed passes
    text:   the module before the first pass
    source: the file of `text`
    broken: summary of the report if a pass changed the result; otherwise ""
    report: the JSON report that is valid if this step fails; the reason is added later
    """

    name: str
    done: int
    text: str
    source: str
    broken: str = ""
    report: dict[str, Any] | None = None

    def reproducer(self, program: str, pipeline: str, flags: str) -> str:
        """MLIR text that ``tc-opt --run-reproducer`` runs again, as does the flag of mlir-opt.

        program:  the program before the pass
        pipeline: the passes still to run
        flags:    further flags that tc-opt needs, for plugins
        """
        return (
            f"// Stopped in '{self.name}', from {self.source}.\n"
            f"// Again: tc-opt {flags}--run-reproducer FILE\n"
            f"{carrying(program, pipeline)}"
        )


def carrying(program: str, pipeline: str) -> str:
    """The text of a program together with its pipeline, in the form of `Checkpoint.reproducer`."""
    pipeline = pipeline.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f"{program.rstrip()}\n\n"
        "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f'      pipeline: "{pipeline}",\n'
        "      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n"
    )


class Notes:
    """The child's record of its current step; the parent reads it if the child crashes."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as this)

    def __enter__(self) -> Notes:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, checkpoint: Checkpoint) -> None:
        """Replaces the record."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(vars(checkpoint)).encode())
        self._file.flush()

    def read(self) -> Checkpoint | None:
        """The last record; None if there is no record or the crash truncated it."""
        self._file.seek(0)
        try:
            return Checkpoint(**json.loads(self._file.read()))
        except ValueError:
            return None


def run_contained(
    work: Callable[[Notes], int],
    save: Callable[[Checkpoint, str], int],
    reproducer: str | None,
    reports: Mapping[str, str | None] | None = None,
    flags: str = "",
) -> int:
    """Runs `work` in a child and returns its exit status; 4 if a signal killed it, or 1 if a pass
    had changed the result before.

    save:       writes the program before the crash to a file, also in a child, and returns an exit
                status
    reproducer: the file that `save` writes; None: a new file among the system's temporary files
    reports:    files for the report, which names the pass, by format: json, html
    flags:      further flags that the reproducer's command needs, for plugins
    """
    with Notes() as notes:
        end = in_child(lambda: work(notes))
        if not end.crash:
            return end.status
        checkpoint = notes.read()
    if checkpoint is None or not checkpoint.name:
        why = nested_too_deeply(checkpoint.text) if checkpoint is not None else ""
        place = f"{checkpoint.source}: " if checkpoint is not None and why else ""
        print(
            f"{place}error: ended by {end.crash} before the first pass{why}{limit()}",
            file=sys.stderr,
        )
        return InputError.exit_code if why else 4
    why = f"'{checkpoint.name}' was ended by {end.crash} in native code{limit()}"
    print(f"{checkpoint.source}: error: {why}", file=sys.stderr)
    if checkpoint.report is not None:
        for form, path in (reports or {}).items():
            if path:
                _save_report(form, path, checkpoint.report, why)
    print(f"note: {_saved(checkpoint, save, reproducer, flags)}", file=sys.stderr)
    if checkpoint.broken:
        print(checkpoint.broken, file=sys.stderr)
        return 1
    return 4


def nested_too_deeply(text: str) -> str:
    """Sentence for an error: MLIR's parser, which recurses for each bracket, has too little stack
    for the nesting of `text`; "" if the stack suffices."""
    deepest = depth = 0
    for sign in re.findall(r"[][(){}<>]", re.sub(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->', "", text)):
        depth += 1 if sign in "[({<" else -1
        deepest = max(deepest, depth)
    if deepest <= _DEEP:
        return ""
    return (
        f": brackets are nested {deepest} deep, and MLIR's parser needs stack for each; nest less, "
        "or raise the limit (ulimit -s)"
    )


def _saved(
    checkpoint: Checkpoint, save: Callable[[Checkpoint, str], int], path: str | None, flags: str
) -> str:
    """Saves the program before the crash; returns the text of the message about it."""
    named = path is not None
    if path is None:
        handle, path = tempfile.mkstemp(prefix="tc-opt-crash-", suffix=".mlir")
        os.close(handle)
    if in_child(lambda: save(checkpoint, path)) == End(0):
        return f"the program before it was saved: tc-opt {flags}--run-reproducer {quote(path)}"
    if not named:
        os.unlink(path)
    return "the program before it could not be saved"


def _save_report(form: str, path: str, whole: dict[str, Any], why: str) -> None:
    """Writes the report of a run whose last step failed, of its last module if it has several."""
    whole.get("reports", [whole])[-1]["error"] = why
    try:
        if form == "json":
            write_json(path, whole)
        elif whole["passes"]:
            from tcir.viz.report import report_html

            write_atomic(path, report_html(whole, {}).encode())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
