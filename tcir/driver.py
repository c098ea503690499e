"""What tc-opt does: reads, runs passes, executes after each, emits, reports.

The work is done in a child process (see `tcir.containment`), so that a crash in native code becomes
an error that names the pass.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcir.arguments import chosen_pipeline, parse_arguments
from tcir.containment import Notes, Step, run_contained, write_atomic
from tcir.errors import Error, InputError, PassError, UnknownNameError, did_you_mean
from tcir.pipeline import Pass, Pipeline, registered_passes, registered_pipelines
from tcir.report import HEADER, Line, Report
from tcir.source import (
    Chunk,
    Diagnostic,
    collect_diagnostics,
    mlir_context,
    parse_module,
    position,
    read_text,
    split_chunks,
)

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
            _load_plugin(plugin)
        listing = _listing(arguments)
        if listing is not None:
            print(listing)
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
        self.printer = _IrPrinter(arguments)
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
            from tcir.expected import compare_diagnostics

            diagnostics = compare_diagnostics(chunk.text, chunk.name, diagnostics)
            status = 1 if diagnostics else (0 if status == 3 else status)
        for diagnostic in diagnostics:
            print(_with_source(diagnostic, chunk), file=sys.stderr)
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
        from tcir.runner import run_pipeline

        arguments = self.arguments
        module = parse_module(chunk, context)
        report = Report(pipeline=str(self.pipeline), target=arguments.target)
        self.report = report
        self.reports.append(report)
        validator = None
        if arguments.validate_each is not None:
            from tcir.validation import Settings, Validator

            validator = Validator(
                Settings(arguments.seed, arguments.inputs, arguments.orders, arguments.numerics)
            )
            print(HEADER, file=sys.stderr, flush=True)
        progress = _Progress(validator is not None)

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
                print(_timing(report), file=sys.stderr)

    def _finish(
        self, module: Any, chunk: Chunk, report: Report, validator: Any, progress: _Progress
    ) -> tuple[int, bytes]:
        emit = self.arguments.emit
        try:
            if emit in ("mlir", "pretty"):
                result = self._text(module, emit)
            else:
                from tcir.stages import generate

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


class _IrPrinter:
    """The flags --mlir-print-*."""

    def __init__(self, arguments: Namespace) -> None:
        self.arguments = arguments
        self._before = _names(arguments.mlir_print_ir_before)
        self._after = _names(arguments.mlir_print_ir_after)

    def check(self, pipeline: Pipeline) -> None:
        """Refuses names of passes that do not run: their dump would silently never come."""
        names = {item.name for item in pipeline}
        for name in sorted((self._before | self._after) - names):
            raise UnknownNameError(
                f"--mlir-print-ir-before/after: '{name}' is not in the pipeline"
                + did_you_mean(name, names)
            )

    def text(self, module: Any) -> str:
        """The module as the flags want it printed, with a line break at its end."""
        text = module.operation.get_asm(
            enable_debug_info=self.arguments.mlir_print_debuginfo,
            print_generic_op_form=self.arguments.mlir_print_op_generic,
        )
        return str(text).rstrip("\n") + "\n"

    def before(self, item: Pass, module: Any) -> None:
        if self.arguments.mlir_print_ir_before_all or item.name in self._before:
            self._dump("Before", item, module)

    def after(self, index: int, item: Pass, module: Any) -> None:
        if self.arguments.mlir_print_ir_after_all or item.name in self._after:
            self._dump("After", item, module)
        folder = self.arguments.mlir_print_ir_tree_dir
        if folder:
            try:
                Path(folder).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make '{folder}': {error.strerror or error}") from error
            path = Path(folder, f"{index}_{item.name}.mlir")
            write_atomic(path, self.text(module).encode())

    def _dump(self, when: str, item: Pass, module: Any) -> None:
        title = f"// -----// IR Dump {when} {item.name} ({item}) //----- //"
        print(f"{title}\n{self.text(module)}", file=sys.stderr, flush=True)


class _Progress:
    """Lines of the report as they are known; on a terminal also what is being done."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self._shown = False

    def start(self, name: str) -> None:
        if self.wanted and sys.stderr.isatty():
            self.clear()
            print(f"     {name} …", end="", file=sys.stderr, flush=True)
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False

    def line(self, line: Line) -> None:
        self.clear()
        if self.wanted:
            print(line, file=sys.stderr, flush=True)


def _names(values: Sequence[str]) -> set[str]:
    return {name.strip() for value in values for name in value.split(",")}


def _timing(report: Report) -> str:
    total = sum(line.pass_seconds for line in report.passes)
    rows = [f"===  timing, seconds (total {total:.4f})  ==="]
    for line in report.passes:
        share = 100 * line.pass_seconds / total if total else 0.0
        rows.append(f"  {line.pass_seconds:8.4f} ({share:5.1f}%)  {line.name}")
    return "\n".join(rows)


def _from_pass_error(error: PassError, chunk: Chunk) -> Diagnostic:
    file, line, column = position(error.location)
    file = chunk.name if file in ("", "-") else file
    name = error.pass_name
    notes = (Diagnostic("note", "", 0, 0, f"in pass '{name}'"),) if name else ()
    return Diagnostic("error", file, line, column, error.message, notes)


def _with_source(diagnostic: Diagnostic, chunk: Chunk) -> str:
    """The diagnostic, with the line it points at and a caret below."""
    own, *notes = str(diagnostic).split("\n")
    lines = chunk.text.split("\n")
    if diagnostic.file == chunk.name and 1 <= diagnostic.line <= len(lines):
        source = lines[diagnostic.line - 1]
        if source.strip():
            own += f"\n{source}\n{' ' * (diagnostic.column - 1)}^"
    return "\n".join([own, *notes])


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


def _load_plugin(plugin: str) -> None:
    """Imports a Python file or a module; it registers what it brings."""
    try:
        if not plugin.endswith(".py"):
            importlib.import_module(plugin)
            return
        spec = importlib.util.spec_from_file_location(f"tcir_plugin_{Path(plugin).stem}", plugin)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except Error:
        raise
    except Exception as error:
        raise InputError(
            f"cannot load the plugin '{plugin}': {type(error).__name__}: {error}"
        ) from error


def _listing(arguments: Namespace) -> str | None:
    """What --list-passes, --list-pipelines, --show-dialects print; None without them."""
    if arguments.list_passes:
        from tcir.options import describe_options

        rows = []
        for name, cls in registered_passes().items():
            words = (cls.__doc__ or "").strip().split("\n\n")[0].split()
            rows.append(f"--{name}\n    {' '.join(words)}")
            options = describe_options(cls)
            rows += [f"    options  {options}"] if options else []
        return "\n".join(rows)
    if arguments.list_pipelines:
        return "\n".join(p.describe() for p in registered_pipelines().values())
    if arguments.show_dialects:
        return "Available Dialects: " + ", ".join(_dialects())
    return None


def _dialects() -> list[str]:
    import pkgutil

    from tcir import _mlir

    folder = importlib.import_module(f"{_mlir.root()}.dialects").__path__
    candidates = {m.name for m in pkgutil.iter_modules(folder) if not m.name.startswith("_")}
    candidates |= {"acc", "async", "omp", "tc"}
    found = []
    with mlir_context() as context:
        context.load_all_available_dialects()
        found = [name for name in candidates if context.is_dialect_loaded(name)]
    return sorted(found)
