"""What tc-opt does: reads, runs passes, executes after each, emits, reports.

The work is done in a child process (see `tcir.opt.containment`), so that a crash in native code
becomes an error that names the pass.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcir.errors import Error, InputError, PassError
from tcir.opt.arguments import chosen_pipeline, parse_arguments
from tcir.opt.containment import Notes, Step, run_contained, write_atomic
from tcir.opt.listing import listing, load_plugin
from tcir.opt.printing import IrPrinter, Progress, timing, with_source
from tcir.passmanager.pipeline import Pass, Pipeline
from tcir.program.source import (
    Chunk,
    Diagnostic,
    collect_diagnostics,
    mlir_context,
    parse_module,
    position,
    read_text,
    split_chunks,
)
from tcir.validation.report import HEADER, Report

# The gravest of several chunks' exit codes counts.
_GRAVITY = (0, 2, 1, 3, 4)


def main(words: Sequence[str]) -> int:
    """Runs tc-opt with the given command line; returns the exit status."""
    try:
        arguments = parse_arguments(words)
    except Error as error:
        return _say_error(error)
    return run_contained(
        lambda notes: _run(arguments, notes), arguments.mlir_pass_pipeline_crash_reproducer
    )


def _run(arguments: Namespace, notes: Notes) -> int:
    try:
        for plugin in arguments.load_pass_plugin:
            load_plugin(plugin)
        text = listing(arguments)
        if text is not None:
            print(text)
            return 0
        return _Run(arguments, notes).run()
    except Error as error:
        return _say_error(error)
    except Exception as error:
        if os.environ.get("TCIR_TRACEBACK"):
            raise
        print(f"error: {_internal(error)}", file=sys.stderr)
        return 4


def _internal(error: Exception) -> str:
    return f"internal: {type(error).__name__}: {error} (TCIR_TRACEBACK=1 shows where)"


def _say_error(error: Error) -> int:
    print(f"error: {error}", file=sys.stderr)
    return error.exit_code


class _Run:
    """One invocation on one input."""

    def __init__(self, arguments: Namespace, notes: Notes) -> None:
        self.arguments = arguments
        self.notes = notes
        self.printer = IrPrinter(arguments)
        self.reports: list[Report] = []
        self.report: Report | None = None
        self.step: Step | None = None
        self.saved = ""

    def run(self) -> int:
        arguments = self.arguments
        _check_writable(arguments)
        text, name = read_text(arguments.input)
        self.pipeline = chosen_pipeline(arguments, text)
        self.printer.check(self.pipeline)
        if arguments.emit in ("llvm", "ptx", "cubin", "sass"):
            from tcir import codegen

            codegen.start()
        chunks = split_chunks(text, name) if arguments.split_input_file else [Chunk(text, name)]
        statuses, results = [], []
        for chunk in chunks:
            status, result = self._chunk(chunk)
            statuses.append(status)
            if result is not None:
                results.append(result)
        status = max(statuses, key=_GRAVITY.index)
        if arguments.validate_each:
            self._save_report(arguments.validate_each)
        if results and (len(results) == len(chunks) or arguments.split_input_file):
            _emit(arguments.output, b"// -----\n".join(results))
        return status

    def _save_report(self, path: str) -> None:
        import json

        texts = [report.as_dict() for report in self.reports]
        whole = texts[0] if len(texts) == 1 else {"schema": "tcir.reports/1", "reports": texts}
        write_atomic(path, (json.dumps(whole, indent=2) + "\n").encode())

    def _chunk(self, chunk: Chunk) -> tuple[int, bytes | None]:
        """Exit code and result (None when it failed) of one module."""
        arguments = self.arguments
        result: bytes | None = None
        self.report = self.step = None
        with (
            mlir_context(allow_unregistered=arguments.allow_unregistered_dialect) as context,
            collect_diagnostics(context, chunk.name) as diagnostics,
        ):
            try:
                status, result = self._process(chunk, context)
            except Exception as error:
                status = self._explain(error, chunk, diagnostics)
        if arguments.verify_diagnostics:
            from tcir.opt.expected import compare_diagnostics

            diagnostics = compare_diagnostics(chunk.text, chunk.name, diagnostics)
            status = 1 if diagnostics else (0 if status == 3 else status)
        for diagnostic in diagnostics:
            print(with_source(diagnostic, chunk), file=sys.stderr)
        if self.saved:
            print(self.saved, file=sys.stderr)
            self.saved = ""
        return status, result

    def _explain(self, error: Exception, chunk: Chunk, diagnostics: list[Diagnostic]) -> int:
        """Adds what an exception says to `diagnostics`, marks the report, returns the status."""
        told = any(d.severity == "error" for d in diagnostics)
        status = error.exit_code if isinstance(error, Error) else 4
        if isinstance(error, PassError):
            diagnostics.append(
                Diagnostic("note", "", 0, 0, f"in pass '{error.pass_name}'")
                if told
                else _from_pass_error(error, chunk)
            )
        elif isinstance(error, Error):
            diagnostics.append(Diagnostic("error", "", 0, 0, str(error)))
        elif type(error).__name__ == "MLIRError":
            status = 3
            if not told:
                diagnostics.append(Diagnostic("error", chunk.name, 0, 0, str(error)))
        else:
            if os.environ.get("TCIR_TRACEBACK"):
                raise error
            during = f" in '{self.step.name}'" if self.step is not None else ""
            diagnostics.append(Diagnostic("error", "", 0, 0, f"{_internal(error)}{during}"))
        if self.report is not None:
            errors = [d.message for d in diagnostics if d.severity == "error"]
            self.report.error, self.report.error_code = "\n".join(errors), status
        return status

    def _process(self, chunk: Chunk, context: Any) -> tuple[int, bytes]:
        from tcir.session.runner import run_pipeline
        from tcir.session.stages import set_target

        arguments = self.arguments
        module = parse_module(chunk, context)
        set_target(module, arguments.target)
        report = Report(pipeline=str(self.pipeline), target=arguments.target)
        self.report = report
        self.reports.append(report)
        validator = None
        if arguments.validate_each is not None:
            from tcir.validation.validator import Settings, Validator

            validator = Validator(
                Settings(arguments.seed, arguments.inputs, arguments.orders, arguments.numerics)
            )
            print(HEADER, file=sys.stderr, flush=True)
        progress = Progress(validator is not None)

        def before(index: int, item: Pass, state: Any) -> None:
            progress.start(item.name)
            rest = Pipeline(self.pipeline.passes[index - 1 :])
            self._note(item.name, state, chunk, str(rest))
            self.printer.before(item, state)

        def after(index: int, item: Pass, state: Any) -> None:
            self.printer.after(index, item, state)

        try:
            progress.start("(input)")
            with self._reproducer_of_failures():
                run_pipeline(
                    module,
                    self.pipeline,
                    report,
                    validator,
                    on_line=progress.line,
                    before=before,
                    after=after,
                    verify_each=arguments.verify_each in ("true", "1"),
                )
            return self._finish(module, chunk, report, validator, progress)
        finally:
            progress.clear()
            if arguments.mlir_timing:
                print(timing(report), file=sys.stderr)

    def _finish(
        self, module: Any, chunk: Chunk, report: Report, validator: Any, progress: Progress
    ) -> tuple[int, bytes]:
        emit = self.arguments.emit
        try:
            if emit in ("mlir", "pretty"):
                result = self._text(module, emit)
            else:
                from tcir.session.stages import generate

                def before(name: str) -> None:
                    progress.start(name)
                    self._note(name, module, chunk, "builtin.module()")

                code = generate(
                    module, report, validator, upto=emit, on_line=progress.line, before=before
                )
                data = getattr(code, emit)
                result = data if isinstance(data, bytes) else data.encode()
        finally:
            progress.clear()
            if validator is not None:
                print("\n".join([*report.code_lines(), report.summary()]), file=sys.stderr)
        return report.exit_code, result

    def _note(self, name: str, module: Any, chunk: Chunk, pipeline: str) -> None:
        text = str(module.operation.get_asm(enable_debug_info=True))
        self.step = Step(name, text, pipeline, chunk.name)
        self.notes.write(self.step)

    @contextmanager
    def _reproducer_of_failures(self) -> Any:
        """Saves a reproducer of a pass that raised, when the flag asks for one."""
        try:
            yield
        except Exception as error:
            path = self.arguments.mlir_pass_pipeline_crash_reproducer
            if path and self.step is not None and not isinstance(error, OSError):
                write_atomic(path, self.step.reproducer().encode())
                self.saved = (
                    f"note: the program before '{self.step.name}' was saved: "
                    f"tc-opt --run-reproducer {path}"
                )
            raise

    def _text(self, module: Any, emit: str) -> bytes:
        if emit == "pretty":
            from tcir.dialect.pretty import pretty

            return pretty(module).encode()
        return self.printer.text(module).encode()


def _from_pass_error(error: PassError, chunk: Chunk) -> Diagnostic:
    file, line, column = position(error.location)
    file = chunk.name if file in ("", "-") else file
    name = error.pass_name
    notes = (Diagnostic("note", "", 0, 0, f"in pass '{name}'"),) if name else ()
    return Diagnostic("error", file, line, column, error.message, notes)


def _check_writable(arguments: Namespace) -> None:
    """Refuses a place for results that cannot be written, before any work is done."""
    for path in (arguments.output, arguments.validate_each):
        if not path or path == "-":
            continue
        target = Path(path)
        if target.is_dir():
            raise InputError(f"cannot write '{path}': it is a directory")
        if not target.parent.is_dir():
            raise InputError(f"cannot write '{path}': there is no directory '{target.parent}'")
        place = target if target.exists() else target.parent
        if not os.access(place, os.W_OK):
            raise InputError(f"cannot write '{path}': permission denied")
    if arguments.emit == "cubin" and arguments.output == "-" and sys.stdout.isatty():
        raise InputError("a cubin is binary: name a file with -o")


def _emit(path: str, data: bytes) -> None:
    if path != "-":
        write_atomic(path, data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
