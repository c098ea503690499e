"""One invocation of tc-opt on one input: reads the input, runs a session for each module, and
writes the output and the reports.
"""

from __future__ import annotations

import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from tcir._mlir import is_mlir_error
from tcir.codegen.debug_paths import parse_prefixes
from tcir.errors import Error, IncompleteError, InputError, PassError
from tcir.exit_status import explain as explain_error
from tcir.files import check_writable, write_atomic, write_json, write_together
from tcir.opt.arguments import CODE, chosen_pipeline, plugin_flags
from tcir.opt.containment import Checkpoint, Notes
from tcir.opt.printing import IrPrinter, Progress, timing, with_source
from tcir.passmanager.pipeline import Pass, Pipeline
from tcir.program.entry_function import keep_entry
from tcir.program.launch import LaunchSequence
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
from tcir.session.session import DIED, Session, Watcher
from tcir.streams import write_output
from tcir.validation.report import SMALL_NUMBERS, Line, Report
from tcir.validation.settings import Settings

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.machine.events import Recording
    from tcir.program.launch_table import LaunchOps
    from tcir.program.signature import Signature
    from tcir.session.code import Code
    from tcir.validation.estimate import Estimate
    from tcir.validation.kinds import Kinds

# The gravest of several chunks' exit codes counts.
_GRAVITY = (0, 2, 1, 3, 4)


class Invocation:
    """One command line of tc-opt applied to one input."""

    def __init__(self, arguments: Namespace, notes: Notes) -> None:
        self.arguments = arguments
        self.notes = notes
        self.printer = IrPrinter(arguments)
        self.reports: list[Report] = []
        self.recording: Recording | None = None
        self.launch: bytes | None = None

    def run(self) -> int:
        """Runs the invocation; returns the exit status."""
        arguments = self.arguments
        _check_writable(arguments)
        self.recording = _recording(arguments)
        if arguments.prove is not None:
            from tcir.prover.prove import find_prover

            find_prover()
        text, name = read_text(arguments.input)
        self.notes.write(Checkpoint("", 0, text, name))
        self.pipeline = chosen_pipeline(arguments, text)
        self.printer.check(self.pipeline)
        chunks = split_chunks(text, name) if arguments.split_input_file else [Chunk(text, name)]
        statuses, results = [], []
        for chunk in chunks:
            status, result = self._chunk(chunk)
            statuses.append(status)
            if result is not None:
                results.append(result)
        if self.recording is not None:
            _write_trace(arguments, self.recording)
        if arguments.validate_each:
            write_json(arguments.validate_each, _as_json(self.reports))
        if arguments.report and self.reports and self.reports[0].passes:
            self.reports[0].save(arguments.report)
        if results and (len(results) == len(chunks) or arguments.split_input_file):
            self._emit(b"// -----\n".join(results))
        return max(statuses, key=_GRAVITY.index)

    def _emit(self, data: bytes) -> None:
        """Writes the result and the launch file next to it; either both are written or neither."""
        path, beside = self.arguments.output, _launch_path(self.arguments)
        if path == "-":
            write_output(data)
        elif self.launch is not None:
            write_together({path: data, beside: self.launch})
        else:
            write_atomic(path, data)
            if beside and Path(beside).is_file():
                message = f"note: {beside} is unchanged and does not describe the PTX just written"
                print(message, file=sys.stderr)

    def _chunk(self, chunk: Chunk) -> tuple[int, bytes | None]:
        """Exit code and result (None on failure) of one module."""
        arguments = self.arguments
        result: bytes | None = None
        run = _ChunkRun(self, chunk)
        with (
            mlir_context(allow_unregistered=arguments.allow_unregistered_dialect) as context,
            collect_diagnostics(context, chunk.name) as diagnostics,
        ):
            try:
                status, result = run.process(context)
            except Exception as error:
                status = run.explain(error, diagnostics)
        if arguments.verify_diagnostics:
            from tcir.opt.expected import compare_diagnostics

            diagnostics = compare_diagnostics(chunk.text, chunk.name, diagnostics)
            status = 1 if diagnostics else (0 if status == 3 else status)
        for diagnostic in diagnostics:
            if "external resources for 'mlir_reproducer'" in diagnostic.message:
                continue  # a warning about the pipeline that the file carries
            print(with_source(diagnostic, chunk), file=sys.stderr)
        self.launch = run.launch
        if run.saved:
            print(run.saved, file=sys.stderr)
        return status, result


class _ChunkRun(Watcher):
    """One module of the input going through a session."""

    def __init__(self, invocation: Invocation, chunk: Chunk) -> None:
        self.arguments, self.notes = invocation.arguments, invocation.notes
        self.printer, self.pipeline = invocation.printer, invocation.pipeline
        self.reports, self.recording = invocation.reports, invocation.recording
        self.chunk = chunk
        self.progress = Progress(self.arguments.validate_each is not None)
        self.report: Report | None = None
        self.checkpoint: Checkpoint | None = None
        self.saved = ""
        self.running: tuple[Pass, ir.Module] | None = None
        self.launch: bytes | None = None
        self.signature: Signature | None = None
        self.works: dict[str, LaunchOps] = {}

    def process(self, context: ir.Context) -> tuple[int, bytes]:
        """Runs the session on the module; returns the exit status and the result."""
        arguments = self.arguments
        module = _read(arguments, self.chunk, context)
        if arguments.verify_roundtrip:
            from tcir.opt.roundtrip import verify_roundtrip

            verify_roundtrip(module)
        session = Session(
            module,
            self.pipeline,
            target=arguments.target,
            settings=_settings(arguments, self.recording),
            watcher=self,
            verify_each=arguments.verify_each in ("true", "1"),
            contained=True,
        )
        session.debug_prefix_map = parse_prefixes(arguments.debug_prefix_map)
        if arguments.report is not None:
            session.keep_states()
        self.report = session.report
        self.reports.append(session.report)
        if session.settings is not None:
            print(session.report.header, file=sys.stderr, flush=True)
        try:
            self.progress.start("(input)")
            if arguments.emit == "launches":
                from tcir.program.signature import signature_of

                self.signature = signature_of(session.module)
            caller = _caller(session.module) if _launch_path(arguments) else None
            if session.settings is not None:
                self._note("(input)", 0)
            # What a plugin's pass prints is no part of the result.
            with self._reproducer_of_failures(), redirect_stdout(sys.stderr):
                session.run_passes()
            return self._finish(session, caller)
        finally:
            self.progress.clear()
            if arguments.mlir_timing:
                print(timing(session.report), file=sys.stderr)

    def _finish(self, session: Session, caller: Signature | None) -> tuple[int, bytes]:
        emit, report, code = self.arguments.emit, session.report, None
        try:
            if emit in CODE:
                code = session.generate(emit, self.arguments.assembler)
                data = getattr(code, emit)
                held = report.exit_code == 0 or report.verdict in ("sampled", SMALL_NUMBERS)
                if caller is not None and held:
                    from tcir.program.launch_file import LaunchFile

                    launch = LaunchFile.of(caller, code.launches, report.target)
                    self.launch = launch.text().encode()
                result: bytes = data if isinstance(data, bytes) else data.encode()
            else:
                result = self._text(session.module, emit)
        finally:
            self.progress.clear()
            if session.settings is not None:
                print("\n".join(report.below()), file=sys.stderr)
        if self.arguments.prove is None or code is None:
            return report.exit_code, result
        return max(report.exit_code, self._prove(code, report), key=_GRAVITY.index), result

    def _prove(self, code: Code, report: Report) -> int:
        """Prints the prover's verdicts on the PTX; returns its exit status."""
        from tcir.prover.prove import prove_launches

        self.progress.start("sentryward")
        ctas = int(self.arguments.prove) if self.arguments.prove else None
        proofs = prove_launches(code.ptx, code.launches.launches, report, ctas)
        self.progress.clear()
        print(proofs, file=sys.stderr)
        return proofs.exit_code

    def _text(self, module: ir.Module, emit: str) -> bytes:
        if emit == "pretty":
            from tcir.dialect.pretty import pretty

            elided = self.arguments.mlir_elide_elementsattrs_if_larger
            return pretty(module, elided, named=True).encode()
        if self.signature is not None:
            from tcir.program.launch_table import launch_table

            launches = LaunchSequence.from_module(module)
            return f"{launch_table(launches, self.signature, self.works)}\n".encode()
        return self.printer.text(module).encode()

    # --- what the session tells --------------------------------------------------------------

    def before_pass(self, index: int, item: Pass, module: ir.Module) -> None:
        self.progress.start(item.name)
        self.running = (item, module)
        died = Line(index, item.name, verdict="different", compared=DIED)
        self._note(item.name, index - 1, died)
        self.printer.before(item, module)

    def after_pass(self, index: int, item: Pass, module: ir.Module, changed: bool) -> None:
        self.running = None
        self.printer.after(index, item, module)
        if self.signature is not None and changed:
            from tcir.program.launch_table import works_in

            self.works = works_in(module) or self.works

    def before_step(self, name: str, module: ir.Module) -> None:
        self.progress.start(name)
        self._note(name, len(self.pipeline))

    def estimated(self, estimate: Estimate | Kinds) -> None:
        if estimate.long:
            self.progress.line(estimate)

    def after_ptx(self, index: int, text: str) -> None:
        self.printer.save(f"{index}_llvm-to-ptx.ptx", text)

    def line(self, line: Line) -> None:
        self.progress.line(line)

    # --- failures ----------------------------------------------------------------------------

    def _note(self, name: str, done: int, died: Line | None = None) -> None:
        """Records the progress for the parent process.

        died: line of the report for this step if native code crashes in it; only if the program is
              executed after passes
        """
        report = self.report
        if died is not None and report is not None and report.validated:
            report = replace(report, passes=[*report.passes, died])
        different = report is not None and report.verdict == "different"
        broken = report.summary() if report is not None and different else ""
        failed = None
        if (self.arguments.validate_each or self.arguments.report) and report is not None:
            now = replace(report, error="", error_code=Error.exit_code)
            failed = _as_json([*self.reports[:-1], now])
        self.checkpoint = Checkpoint(name, done, self.chunk.text, self.chunk.name, broken, failed)
        self.notes.write(self.checkpoint)

    @contextmanager
    def _reproducer_of_failures(self) -> Iterator[None]:
        """Saves a reproducer for a pass that raised, and prints the IR that it left, if flags
        request it."""
        try:
            yield
        except Exception as error:
            if self.running is not None:
                self.printer.failed(*self.running)
            path = self.arguments.mlir_pass_pipeline_crash_reproducer
            if path and self.checkpoint is not None and not isinstance(error, OSError):
                save_reproducer(self.arguments, self.pipeline, self.checkpoint, path)
                self.saved = (
                    f"note: the program before '{self.checkpoint.name}' was saved: "
                    f"tc-opt {plugin_flags(self.arguments)}--run-reproducer {quote(path)}"
                )
            raise

    def explain(self, error: Exception, diagnostics: list[Diagnostic]) -> int:
        """Adds an exception's message to `diagnostics`, records it in the report, and returns the
        exit status.
        """
        reported = any(d.severity == "error" for d in diagnostics)
        status = error.exit_code if isinstance(error, Error) else 4
        if isinstance(error, PassError):
            diagnostics.append(
                Diagnostic("note", "", 0, 0, f"in pass '{error.pass_name}'")
                if reported
                else _from_pass_error(error, self.chunk)
            )
        elif isinstance(error, Error):
            diagnostics.append(Diagnostic("error", "", 0, 0, str(error)))
        elif isinstance(error, MemoryError):
            status = IncompleteError.exit_code
            diagnostics.append(Diagnostic("error", "", 0, 0, f"out of memory: {error}"))
        elif is_mlir_error(error):
            status = 3
            if not reported:
                diagnostics.append(Diagnostic("error", self.chunk.name, 0, 0, str(error)))
        else:
            if os.environ.get("TCIR_TRACEBACK"):
                traceback.print_exception(error)
            during = f" in '{self.checkpoint.name}'" if self.checkpoint is not None else ""
            text, status = explain_error(error)
            diagnostics.append(Diagnostic("error", "", 0, 0, f"{text}{during}"))
        if self.report is not None:
            errors = [d.message for d in diagnostics if d.severity == "error"]
            self.report.error, self.report.error_code = "\n".join(errors), status
            if self.report.verdict == "different":  # a pass broke the program before this
                print(self.report.summary(), file=sys.stderr)
                return self.report.exit_code
        return status


def _read(arguments: Namespace, chunk: Chunk, context: ir.Context) -> ir.Module:
    """The module of a chunk; of several public functions only the one that ``--entry`` names is
    kept."""
    module = parse_module(chunk, context)
    if arguments.entry is not None:
        keep_entry(module, arguments.entry)
    return module


def _as_json(reports: Sequence[Report]) -> dict[str, Any]:
    """JSON object of one report, or of the reports of several modules."""
    texts = [report.as_dict() for report in reports]
    return texts[0] if len(texts) == 1 else {"schema": "tcir.reports/1", "reports": texts}


def save_reproducer(
    arguments: Namespace, pipeline: Pipeline, checkpoint: Checkpoint, path: str
) -> None:
    """Saves the program at `checkpoint`; to obtain it, runs the passes before the checkpoint
    again.
    """
    chunk = Chunk(checkpoint.text, checkpoint.source)
    with (
        mlir_context(allow_unregistered=arguments.allow_unregistered_dialect) as context,
        collect_diagnostics(context, chunk.name),
    ):
        module = _read(arguments, chunk, context)
        before = Pipeline(pipeline.passes[: checkpoint.done])
        Session(
            module, before, target=arguments.target, verify_each=False, contained=True
        ).run_passes()
        program = str(module.operation.get_asm(enable_debug_info=True))
    rest = str(Pipeline(pipeline.passes[checkpoint.done :]))
    text = checkpoint.reproducer(program, rest, plugin_flags(arguments))
    write_atomic(path, text.encode())


def _settings(arguments: Namespace, recording: Recording | None) -> Settings | None:
    assumptions = None
    if arguments.assume:
        from tcir.machine.assumptions import Assumptions

        assumptions = Assumptions.parse(arguments.assume)
    if arguments.validate_each is None:
        return None
    return Settings(
        arguments.seed,
        arguments.inputs,
        arguments.orders,
        arguments.numerics,
        arguments.max_instructions,
        arguments.ordering,
        assumptions,
        arguments.jobs,
        arguments.budget,
        recording,
        strict=arguments.strict,
        kinds=arguments.kinds,
    )


def _recording(arguments: Namespace) -> Recording | None:
    """Recording for the events of a trace; None without one. Raises an error before the run if the
    trace cannot be written."""
    if arguments.trace is None:
        return None
    from tcir.machine.events import Recording
    from tcir.time.constants import target_of
    from tcir.time.trace import check_perfetto

    check_perfetto()
    target_of(arguments.target)
    return Recording()


def _write_trace(arguments: Namespace, recording: Recording) -> None:
    """Writes the trace of the launches of all modules whose PTX was executed."""
    from tcir.time.trace import trace

    if not recording.streams:
        message = f"note: --trace: {arguments.trace} is not written: no PTX was executed"
        print(message, file=sys.stderr)
        return
    write_atomic(arguments.trace, trace(recording.streams, arguments.target))


def _from_pass_error(error: PassError, chunk: Chunk) -> Diagnostic:
    file, line, column = position(error.location)
    file = chunk.name if file in ("", "-") else file
    name = error.pass_name
    notes = (Diagnostic("note", "", 0, 0, f"in pass '{name}'"),) if name else ()
    return Diagnostic("error", file, line, column, error.message, notes)


def _check_writable(arguments: Namespace) -> None:
    """Rejects an output path that cannot be written, before any work is done."""
    launch = _launch_path(arguments)
    if launch and launch == arguments.validate_each:
        raise InputError(f"--validate-each={launch}: the PTX's launch file has this name")
    for path in (
        arguments.output,
        arguments.validate_each,
        arguments.report,
        arguments.trace,
        launch,
    ):
        if not path or path == "-":
            continue
        check_writable(path)
    if launch:
        from tcir.program.launch_file import check_place

        check_place(Path(launch))
    if arguments.emit == "cubin" and arguments.output == "-" and sys.stdout.isatty():
        raise InputError("a cubin is binary: name a file with -o")


def _launch_path(arguments: Namespace) -> str:
    """Path of the launch file, next to the emitted PTX; "" if none is written."""
    path = arguments.output
    if arguments.emit != "ptx" or path == "-" or arguments.split_input_file:
        return ""
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/null, a pipe
        return ""
    return f"{path.removesuffix('.ptx')}.json"


def _caller(module: ir.Module) -> Signature | None:
    """The program's arguments; None for kernels of llvm and nvvm ops, which do not declare
    them."""
    from tcir.program.signature import signature_of  # needs numpy, as other code does not

    try:
        return signature_of(module)
    except InputError:
        return None
