"""Output of tc-opt other than its result: IR dumps, progress, timing, diagnostics."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tcir.errors import InputError, UnknownNameError, did_you_mean
from tcir.files import write_atomic
from tcir.passmanager.pipeline import Pass, Pipeline
from tcir.passmanager.renamed import current_name
from tcir.program.source import Chunk, Diagnostic
from tcir.validation.report import Line, Report

if TYPE_CHECKING:
    from tcir._mlir import ir
    from tcir.validation.estimate import Estimate
    from tcir.validation.kinds import Kinds


class IrPrinter:
    """Implements the flags --mlir-print-*."""

    def __init__(self, arguments: Namespace) -> None:
        self.arguments = arguments
        self._before = _names(arguments.mlir_print_ir_before)
        self._after = _names(arguments.mlir_print_ir_after)
        self._last = ""  # with --mlir-print-ir-after-change: the program before the pass

    def check(self, pipeline: Pipeline) -> None:
        """Prints the pipeline if that was requested. Raises UnknownNameError if a flag names a pass
        that does not run, because its dump would never appear.
        """
        if self.arguments.dump_pass_pipeline:
            print(pipeline, file=sys.stderr)
        names = {item.name for item in pipeline}
        for name in sorted((self._before | self._after) - names):
            raise UnknownNameError(
                f"--mlir-print-ir-before/after: '{name}' is not in the pipeline"
                + did_you_mean(name, names)
            )

    def text(self, module: ir.Module) -> str:
        """Text of the module in the form that the flags select, with a newline at the end."""
        text = module.operation.get_asm(
            enable_debug_info=self.arguments.mlir_print_debuginfo,
            print_generic_op_form=self.arguments.mlir_print_op_generic,
            use_local_scope=self.arguments.mlir_print_local_scope,
            large_elements_limit=self.arguments.mlir_elide_elementsattrs_if_larger,
        )
        return str(text).rstrip("\n") + "\n"

    def before(self, item: Pass, module: ir.Module) -> None:
        if self.arguments.mlir_print_ir_after_change:
            self._last = self.text(module)
        if self.arguments.mlir_print_ir_before_all or item.name in self._before:
            self._dump("Before", item, module)

    def after(self, index: int, item: Pass, module: ir.Module) -> None:
        wanted = self.arguments.mlir_print_ir_after_all or item.name in self._after
        if wanted and self._last != self.text(module):
            self._dump("After", item, module)
        if self.arguments.mlir_print_ir_tree_dir:
            self.save(f"{index}_{item.name}.mlir", self.text(module))

    def failed(self, item: Pass, module: ir.Module) -> None:
        """Prints the IR as a failed pass left it."""
        if self.arguments.mlir_print_ir_after_failure:
            self._dump("After Failed", item, module)

    def save(self, name: str, text: str) -> None:
        """Writes a file of --mlir-print-ir-tree-dir, if requested."""
        folder = self.arguments.mlir_print_ir_tree_dir
        if not folder:
            return
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot create '{folder}': {error.strerror or error}") from error
        write_atomic(Path(folder, name), text.encode())

    def _dump(self, when: str, item: Pass, module: ir.Module) -> None:
        title = f"// -----// IR Dump {when} {item.name} ({item}) //----- //"
        print(f"{title}\n{self.text(module)}", file=sys.stderr, flush=True)


class Progress:
    """Prints the lines of the report as they are completed; on a terminal it also shows the current
    step.
    """

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

    def line(self, line: Line | Estimate | Kinds) -> None:
        self.clear()
        if self.wanted:
            print(line, file=sys.stderr, flush=True)


def _names(values: Sequence[str]) -> set[str]:
    return {current_name(name.strip())[0] for value in values for name in value.split(",")}


def timing(report: Report) -> str:
    total = sum(step.pass_seconds for step in report.steps)
    rows = [f"===  timing, seconds (total {total:.4f})  ==="]
    for step in report.steps:
        share = 100 * step.pass_seconds / total if total else 0.0
        rows.append(f"  {step.pass_seconds:8.4f} ({share:5.1f}%)  {step.name}")
    return "\n".join(rows)


def with_source(diagnostic: Diagnostic, chunk: Chunk) -> str:
    """Text of a diagnostic, followed by the source line at its location and a caret below it."""
    own, *notes = str(diagnostic).split("\n")
    lines = chunk.text.split("\n")
    if diagnostic.file == chunk.name and 1 <= diagnostic.line <= len(lines):
        source = lines[diagnostic.line - 1]
        if source.strip():
            own += f"\n{source}\n{' ' * (diagnostic.column - 1)}^"
    return "\n".join([own, *notes])
