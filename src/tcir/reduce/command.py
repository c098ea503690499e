"""The command tc-reduce: selects the program and the failing command from the flags, and prints the
result.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from shlex import join, quote

from tcir.errors import InputError
from tcir.files import check_writable, write_atomic
from tcir.opt.arguments import chosen_pipeline, parse_arguments, plugin_flags
from tcir.opt.listing import load_plugin
from tcir.program.launch_file import check_place
from tcir.program.source import read_text
from tcir.reduce import mlir
from tcir.reduce.arguments import make_parser
from tcir.reduce.attempt import PATIENCE, Attempts, of_script, of_tc_opt, of_tc_run
from tcir.reduce.failure import Failure
from tcir.reduce.program import Mlir, Ptx, ReducibleProgram, reduced_mlir, reduced_ptx
from tcir.streams import write_output


def main(words: Sequence[str]) -> int:
    """Runs tc-reduce with the given command line; returns the exit status."""
    options = make_parser().parse_args(words)
    file = Path(options.file)
    if file.suffix not in (".mlir", ".ptx"):
        raise InputError(f"expected a file NAME.mlir or NAME.ptx, got '{options.file}'")
    if options.test is not None and options.flags:
        raise InputError("--test: expected no flags after the file, since COMMAND has its own")
    out = Path(options.output or file.with_suffix(f".reduced{file.suffix}"))
    check_writable(out)
    if out.suffix == ".ptx":
        check_place(out.with_suffix(".json"))
    text, _ = read_text(options.file)
    return (_reduce_mlir if file.suffix == ".mlir" else _reduce_ptx)(options, file, text, out)


def _reduce_mlir(options: Namespace, file: Path, text: str, out: Path) -> int:
    flags = "--run-reproducer"
    if options.test is not None:
        attempts, pipeline, unregistered = of_script(options.test, file.suffix), None, True
    else:
        arguments = parse_arguments([options.file, *options.flags, "--validate-each"])
        for plugin in arguments.load_pass_plugin:
            load_plugin(plugin)
        attempts, pipeline = of_tc_opt(arguments), chosen_pipeline(arguments, text)
        unregistered = arguments.allow_unregistered_dialect
        flags = f"{plugin_flags(arguments)}--validate-each --run-reproducer"
    module = mlir.canonical(text, unregistered)
    if module is None:  # tc-opt says why
        raise InputError(f"{file}: expected one module that verifies; try tc-opt {file}")
    program = Mlir(module, pipeline, unregistered)
    search = Search(attempts, program, out)
    found = reduced_mlir(program, search.fails, search.fails_exactly, search.failure.place)
    again = (
        f"{options.test} {quote(str(out))}"
        if pipeline is None
        else f"tc-opt {flags} {quote(str(out))}"
    )
    return search.end(found, again)


def _reduce_ptx(options: Namespace, file: Path, text: str, out: Path) -> int:
    program = Ptx(text)
    if options.test is not None:
        attempts, again = of_script(options.test, file.suffix), f"{options.test} {quote(str(out))}"
    else:
        attempts = of_tc_run(file, options.flags)
        again = join(["tc-run", str(out), *options.flags])
    search = Search(attempts, program, out)
    if not search.failure.place:
        raise InputError(f"expected a program that fails when it runs, got {search.failure}")
    found = reduced_ptx(program, search.fails)
    if attempts.beside is not None:
        write_atomic(out.with_suffix(".json"), attempts.beside.read_bytes())
    return search.end(found, again)


class Search:
    """Search for smaller programs that fail like the first program; the smallest found so far is in
    the file `out`.
    """

    def __init__(self, attempts: Attempts, program: ReducibleProgram, out: Path) -> None:
        self.attempts, self.out, self.first = attempts, out, program
        self.others: set[str] = set()  # that hold, or fail in another way
        start = time.monotonic()
        found = attempts.failure(program.text)
        attempts.seconds = PATIENCE * ceil(time.monotonic() - start + 1)
        if found is None:
            raise InputError("expected a program that fails, got one that passes everything")
        self.failure: Failure = found
        print(f"{found}; {_words(program)}", file=sys.stderr, flush=True)

    def fails(self, program: ReducibleProgram) -> bool:
        """Whether a program fails in the same way as the first program. If so, it is written to the
        file and reported.
        """
        return self._fails(program, exactly=False)

    def fails_exactly(self, program: ReducibleProgram) -> bool:
        """Whether a program fails with exactly the error of the smallest program so far."""
        return self._fails(program, exactly=True)

    def _fails(self, program: ReducibleProgram, exactly: bool) -> bool:
        if program.text in self.others:
            return False
        found = self.attempts.failure(program.text)
        if found is None or found != self.failure or (exactly and found.said != self.failure.said):
            self.others.add(program.text)
            return False
        self.failure = found
        write_atomic(self.out, program.text.encode())
        print(f"{self.attempts.count:>5}  {_words(program)}", file=sys.stderr, flush=True)
        return True

    def end(self, found: ReducibleProgram, again: str) -> int:
        """Writes the smallest program, and prints what became smaller; returns the exit status.

        again: command that reproduces the failure, for the message
        """
        write_atomic(self.out, found.text.encode())
        lines = [f"{self.failure}, after {self.attempts.count} attempts"]
        lines += [
            f"  {name:<12} {self.first.size[name]:>10} -> {now}" for name, now in found.size.items()
        ]
        write_output(os.fsencode("\n".join([*lines, f"again: {again}", ""])))
        return 0


def _words(program: ReducibleProgram) -> str:
    return ", ".join(f"{count} {name}" for name, count in program.size.items())
