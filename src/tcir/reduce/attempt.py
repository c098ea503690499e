"""One attempt: runs a command on a program in a fork of this process; the command's report shows
how the program fails.
"""

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
"""An attempt hangs if it takes longer than this many times the first attempt, plus as many
seconds."""
MODULES = "modules"
"""Name of a file with the names of tcir's modules that an attempt imported."""


@dataclass
class Attempts:
    """Runs programs with one command and determines how they fail.

    run:     executes the file `program` and writes the JSON report to the file `report`
    suffix:  suffix of the program's file
    beside:  a file that the command reads next to the program; None: there is no such file
    count:   number of attempts made so far
    seconds: time limit, after which an attempt is killed; 0: no limit
    """

    run: Callable[[Path, Path, Notes], int]
    suffix: str
    beside: Path | None = None
    count: int = 0
    seconds: int = 0

    def failure(self, text: str) -> Failure | None:
        """Returns the failure of the program `text`; None if it does not fail."""
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
        """Imports the modules that the attempt imported, so that later attempts inherit them."""
        names = place / MODULES
        for name in names.read_text().split() if names.exists() else ():
            with suppress(ImportError):  # an alias
                import_module(name)


def of_tc_opt(arguments: Namespace) -> Attempts:
    """Returns the attempts that run tc-opt with these arguments. The pipeline is not among them,
    because the program contains it.
    """
    from tcir.opt.invocation import Invocation

    def run(program: Path, report: Path, notes: Notes) -> int:
        own = Namespace(**vars(arguments))
        own.pipeline = own.pass_pipeline = None
        own.pass_flags, own.run_reproducer = [], True
        own.input, own.output, own.validate_each = str(program), os.devnull, str(report)
        return Invocation(own, notes).run()

    return Attempts(run, ".mlir")


def of_tc_run(file: Path, words: list[str]) -> Attempts:
    """Returns the attempts that run tc-run with these arguments after the file."""
    from tcir.ptxrun.command import main

    def run(program: Path, report: Path, notes: Notes) -> int:
        return main([str(program), f"--json={report}", *words])

    beside = file.with_suffix(".json")
    return Attempts(run, ".ptx", beside if beside.exists() else None)


def of_script(command: str, suffix: str) -> Attempts:
    """Returns the attempts that run a shell command with the program's file as its last argument.
    Exit status 1 means that the program still shows the wanted failure.
    """

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
