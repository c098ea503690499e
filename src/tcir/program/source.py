"""Reads MLIR text: files, standard input, split input, locations, diagnostics."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tcir.errors import InputError
from tcir.files import read_bytes
from tcir.passmanager.remarks import remarks_to
from tcir.program.entry_function import keep_entry
from tcir.program.foreign import BYTECODE, check_dialects
from tcir.streams import read_input

if TYPE_CHECKING:
    from tcir._mlir import ir

ModuleSource: TypeAlias = "ir.Module | str | Path"

STDIN = "<stdin>"
_SEPARATOR = re.compile(r"^// -----\s*$", re.MULTILINE)
# What the bindings call text that was parsed from memory.
_MEMORY = "-"


@dataclass(frozen=True)
class Chunk:
    """A piece of a source file that is one module. text: padded with empty lines, so that line
    numbers stay those of the file
    """

    text: str
    name: str


@dataclass(frozen=True)
class Diagnostic:
    """One message of MLIR or of a pass; its severity is error, warning, remark or note."""

    severity: str
    file: str
    line: int
    column: int
    message: str
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        where = f"{place}: " if place else ""
        own = f"{where}{self.severity}: {self.message}"
        return "\n".join([own, *map(str, self.notes)])


def read_text(path: str) -> tuple[str, str]:
    """Returns the text of a file (or of standard input for "-") and its name for messages."""
    if path == "-":
        data, name = read_input(), STDIN
    else:
        data, name = read_bytes(path, pipes=True), path.encode(errors="replace").decode()
    if data.startswith(BYTECODE):
        raise InputError(
            f"{name}: expected MLIR text, got bytecode; `torch-mlir-opt FILE -o FILE.mlir` (of the "
            "wheel torch-mlir) writes its text"
        )
    try:
        return data.decode(), name
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: expected MLIR text in UTF-8, got byte {data[error.start]:#04x} "
            f"at offset {error.start}"
        ) from error


def split_chunks(text: str, name: str) -> list[Chunk]:
    """Returns the pieces between the lines ``// -----``, each padded with empty lines so that line
    numbers stay those of the file.
    """
    chunks, start = [], 0
    for match in [*_SEPARATOR.finditer(text), None]:
        end = match.start() if match else len(text)
        chunks.append(Chunk("\n" * text.count("\n", 0, start) + text[start:end], name))
        start = match.end() if match else end
    return chunks


@contextmanager
def mlir_context(*, allow_unregistered: bool = False) -> Iterator[ir.Context]:
    """Yields a fresh context with the dialect tc loaded."""
    from tcir._mlir import ir
    from tcir.dialect import tc

    with ir.Context() as context:
        context.allow_unregistered_dialects = allow_unregistered
        tc.load(context)
        yield context


@contextmanager
def any_context() -> Iterator[ir.Context]:
    """Yields the current context, or a fresh one if there is none, with the dialect tc loaded."""
    from tcir._mlir import ir
    from tcir.dialect import tc

    if (current := ir.Context.current) is None:
        with mlir_context() as context:
            yield context
    else:
        tc.load(current)
        yield current


@contextmanager
def collect_diagnostics(context: Any, name: str) -> Iterator[list[Diagnostic]]:
    """Collects diagnostics and remarks instead of printing them. name: file name for the
    diagnostics of text that is not in a file
    """
    found: list[Diagnostic] = []

    def keep(diagnostic: Any) -> bool:
        found.append(_diagnostic(diagnostic, name))
        return True

    def keep_remark(location: Any, message: str) -> None:
        file, line, column = position(location)
        found.append(Diagnostic("remark", name if file == _MEMORY else file, line, column, message))

    handler = context.attach_diagnostic_handler(keep)
    before = context.emit_error_diagnostics
    context.emit_error_diagnostics = True
    try:
        with remarks_to(keep_remark):
            yield found
    finally:
        context.emit_error_diagnostics = before
        handler.detach()


def _diagnostic(diagnostic: Any, name: str) -> Diagnostic:
    file, line, column = position(diagnostic.location)
    return Diagnostic(
        str(diagnostic.severity).rpartition(".")[2].lower(),
        name if file == _MEMORY else file,
        line,
        column,
        diagnostic.message,
        tuple(_diagnostic(note, name) for note in diagnostic.notes),
    )


def position(location: Any) -> tuple[str, int, int]:
    """Returns file, line and column of a location. For a fused location or a call site, those of
    the first location inside it.
    """
    found = re.search(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)', str(location) if location else "")
    return (found[1], int(found[2]), int(found[3])) if found else ("", 0, 0)


def parse_module(chunk: Chunk, context: Any) -> Any:
    """Parses the module of a chunk, with locations that name the file; MLIRError on malformed
    text."""
    from tcir._mlir import ir

    _check_sizes(chunk, context)
    check_dialects(chunk.text, chunk.name, context)
    text = _generic(chunk, context) if _PRETTY.search(chunk.text) else chunk.text
    module = ir.Module.parse(text, context)
    _name_locations(module, chunk.name)
    if "dense_resource<" in chunk.text:
        from tcir.program.resources import resolve_resources

        with context:
            resolve_resources(module, chunk.text)
    return module


_SHAPE = re.compile(r"\b(?:tensor|memref|vector)<((?:\d{1,19}x)+)")
_MOST_ELEMENTS = 1 << 58
"""Maximum number of elements of a type: sizes in bytes, also padded to tiles, are 64-bit
numbers."""


def _check_sizes(chunk: Chunk, context: ir.Context) -> None:
    """Emits a diagnostic for a type with more elements than memory has addresses, which MLIR
    accepts."""
    from tcir._mlir import ir

    for shape in dict.fromkeys(_SHAPE.findall(chunk.text)):
        if prod(map(int, shape[:-1].split("x"))) > _MOST_ELEMENTS:
            at = chunk.text.index(f"<{shape}")
            line, column = chunk.text.count("\n", 0, at) + 1, at - chunk.text.rfind("\n", 0, at)
            ir.Location.file(chunk.name, line, column, context).emit_error(
                f"expected types of at most 2^58 elements, got {shape[:-1]}: sizes in bytes are "
                "64-bit numbers"
            )
            raise ir.MLIRError("too large", [])


_PRETTY = re.compile(r"^\s*(?:%[^=\n]*= )?(tc\.\w+) ", re.MULTILINE)


def _generic(chunk: Chunk, context: Any) -> str:
    """Converts text in the form of ``--emit=pretty`` to MLIR's generic form; emits diagnostics for
    text that cannot be converted."""
    from tcir._mlir import ir
    from tcir.dialect.read_pretty import UnreadableError, read_pretty

    try:
        return read_pretty(chunk.text)
    except UnreadableError as error:
        place = ir.Location.file(chunk.name, error.line, 1, context)
        place.emit_error(f"form of --emit=pretty: {error}")
        raise ir.MLIRError("cannot be read", []) from None
    except ir.MLIRError as error:
        for each in error.error_diagnostics:
            _, line, column = position(each.location)
            ir.Location.file(chunk.name, line, column, context).emit_error(each.message)
        raise


def _name_locations(module: Any, name: str) -> None:
    """Replaces the file "-" in locations of text parsed from memory: the bindings accept no file
    name."""
    from tcir._mlir import ir

    if name in (_MEMORY, ""):
        return

    def visit(operation: Any) -> Any:
        location = operation.location
        if isinstance(location, ir.FileLineColLoc) and str(location.filename) == _MEMORY:
            operation.location = ir.Location.file(
                name, location.start_line, location.start_col, module.context
            )
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


def load_module(source: ModuleSource, context: ir.Context, entry: str | None = None) -> ir.Module:
    """Returns a private copy of a program given as `ir.Module`, text or path, in `context`.

    entry: name of the public function that is the program (`tcir.program.entry_function`)

    A string is a path if it has no line break and no brace. Raises `InputError` for a program that
    MLIR rejects, `NativeCrashError` for one that crashes it.
    """
    if isinstance(source, str | Path):
        text = str(source)
        if isinstance(source, Path) or not any(c in text for c in "\n{}"):
            text, name = read_text(text)
        else:
            name = "<text>"
    elif not hasattr(source, "operation"):
        raise InputError(
            "expected a program as MLIR text, a path or an ir.Module, got "
            f"{type(source).__name__}; for a PyTorch module: tcir.torch.compile(module, inputs)"
        )
    else:
        asm = source.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
        text, name = asm, ""
    return load_text(text, name, context, entry)


def load_text(text: str, name: str, context: ir.Context, entry: str | None = None) -> ir.Module:
    """Returns the module of a text, like `load_module`. name: name of the file that contained the
    text
    """
    from tcir.codegen.rehearsal import rehearse

    rehearse(text, f"reading {name or 'a module'}")
    return read_module(text, name, context, entry)


def read_module(text: str, name: str, context: ir.Context, entry: str | None = None) -> ir.Module:
    """Like `load_text`, for callers that handle a crash of native code themselves."""
    from tcir._mlir import is_mlir_error

    with collect_diagnostics(context, name) as diagnostics:
        try:
            module = parse_module(Chunk(text, name), context)
        except Exception as error:
            if not (diagnostics or is_mlir_error(error)):
                raise
            told = diagnostics or [Diagnostic("error", name, 0, 0, str(error))]
            raise InputError("\n".join(map(str, told))) from error
    if entry is not None:
        keep_entry(module, entry)
    return module


def count_ops(module: Any) -> int:
    """Number of operations in a module, the module op excluded."""
    from tcir._mlir import ir

    count = -1

    def visit(_: Any) -> Any:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return count


def bytecode_of(module: ir.Module) -> bytes:
    """Returns a module's bytecode, which includes locations."""
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    return written.getvalue()


def digest_of(bytecode: bytes) -> bytes:
    """Returns a digest of a module's bytecode."""
    return hashlib.sha256(bytecode).digest()
