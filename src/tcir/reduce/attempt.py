"""One attempt: a command runs on a program in a fork, and how it fails is read from its report."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from tcir.child import End, die_with, in_child
from tcir.exit_status import INTERRUPTED, TERMINATED, exit_status
from tcir.opt.containment import Notes
from tcir.reduce.failure import Failure, of_error, of_run, of_validation

PATIENCE = 10
"""Times what the first attempt took, and as many seconds: an attempt that takes longer hangs."""
MODULES = "modules"
"""A file with the names of our modules that an attempt imported."""


@dataclass
class Attempts:
    """How programs of one command fail.

    run:     executes the file `program`, writes the JSON report to the file `report`
    suffix:  of the program's file
    beside:  a file that the command reads next to it; None: there is none
    count:   so many attempts were made
    seconds: an attempt that takes more is ended; 0: none is
    """

    run: Callable[[Path, Path, Notes], int]
    suffix: str
    beside: Path | None = None
    count: int = 0
    seconds: int = 0

    def failure(self, text: str) -> Failure | None:
        """Failure of the program `text`; None if it holds."""
        self.count += 1
        place = Path(tempfile.mkdtemp(prefix="tc-reduce-"))  # an object would end in the fork, too
        try:
            return self._failure(text, place)
        finally:
            shutil.rmtree(place)

    def _failure(self, text: str, place: Path) -> Failure | None:
        program, report, said = (place / f"k{each}" for each in (self.suffix, ".report", ".err"))
        program.write_text(text)
        if self.beside is not None:
            program.with_suffix(".json").write_bytes(self.beside.read_bytes())
        with Notes() as notes:
            end = in_child(lambda: self._quietly(program, report, said, notes))
            checkpoint = notes.read()
        if end == End(0):
            return None
        if end.status == INTERRUPTED:  # it was told, and so were we
            raise KeyboardInterrupt
        if end.status == TERMINATED:
            raise SystemExit(TERMINATED)
        step = checkpoint.name if checkpoint is not None else ""
        if end.crash:
            return Failure(step or "native code", f"ended by {end.crash}")
        self._import(place)
        failure = _of_report(report) if report.exists() else None
        return failure or of_error(said.read_text(errors="replace"), step)

    def _quietly(self, program: Path, report: Path, said: Path, notes: Notes) -> int:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(self.seconds)
        to = os.open(said, os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(to, stream)
        status = exit_status(lambda: self.run(program, report, notes))
        names = [name for name in sys.modules if name.partition(".")[0] == "tcir"]
        (program.parent / MODULES).write_text("\n".join(names))
        return status

    def _import(self, place: Path) -> None:
        """What the attempt imported, so that the next ones need not."""
        names = place / MODULES
        for name in names.read_text().split() if names.exists() else ():
            with suppress(ImportError):  # an alias
                import_module(name)


def of_tc_opt(arguments: Namespace) -> Attempts:
    """tc-opt with these arguments, but for the pipeline: the program carries it."""
    from tcir.opt.invocation import Invocation

    def run(program: Path, report: Path, notes: Notes) -> int:
        own = Namespace(**vars(arguments))
        own.pipeline = own.pass_pipeline = None
        own.pass_flags, own.run_reproducer = [], True
        own.input, own.output, own.validate_each = str(program), os.devnull, str(report)
        return Invocation(own, notes).run()

    return Attempts(run, ".mlir")


def of_tc_run(file: Path, words: list[str]) -> Attempts:
    """tc-run with these words after the file."""
    from tcir.ptxrun.command import main

    def run(program: Path, report: Path, notes: Notes) -> int:
        return main([str(program), f"--json={report}", *words])

    beside = file.with_suffix(".json")
    return Attempts(run, ".ptx", beside if beside.exists() else None)


def of_script(command: str, suffix: str) -> Attempts:
    """A shell command that gets the program's file after its words: 1 if it is of interest."""

    def run(program: Path, report: Path, notes: Notes) -> int:
        status = subprocess.run(
            ["/bin/sh", "-c", f'{command} "$1"', "sh", str(program)],
            check=False,
            preexec_fn=partial(die_with, os.getpid()),
        ).returncode
        report.write_text(json.dumps({"interesting": status == 1}))
        return int(status == 1)

    return Attempts(run, suffix)


def _of_report(report: Path) -> Failure | None:
    found = json.loads(report.read_text())
    if "interesting" in found:
        return Failure("--test", "exit status 1")
    return of_validation(found) if "passes" in found else of_run(found)
