"""The child processes of `apart`."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping

from tcir._mlir import import_bindings, ir, is_mlir_error, passmanager
from tcir.codegen.worker import receive, send
from tcir.errors import Error, InputError
from tcir.passmanager.pipeline import as_pipeline
from tcir.program.source import load_module, mlir_context
from tcir.session.entry import compile as compile_program
from tcir.session.session import Session

# The passes of torch-mlir's `fx.export_and_import` behind its importer.
_TORCH_TO_LINALG = (
    "builtin.module("
    "func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{extra-library=},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})"
)


def linalg(text: str) -> str:
    """`linalg` of a module of the dialect torch."""
    with ir.Context() as context:
        # Not from `dialects.torch`, which has a Python class for every op.
        import_bindings("_mlir_libs._torchMlir").register_dialect(context)
        context.emit_error_diagnostics = True  # a pass may report an error and go on
        module = ir.Module.parse(text)
        said: list[str] = []
        with context.attach_diagnostic_handler(lambda each: _kept(said, each)):
            try:
                passmanager.PassManager.parse(_TORCH_TO_LINALG).run(module.operation)
            except Exception as error:
                if is_mlir_error(error):
                    why = next(iter(said), str(error).splitlines()[0])
                    raise Error(f"torch-mlir has no linalg for it: {why}") from error
                raise
        return str(module)


def _kept(said: list[str], diagnostic: ir.Diagnostic) -> bool:
    """Adds what an error says."""
    if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
        said.append(diagnostic.message)
    return False


def takes(text: str, *, pipeline: str, target: str) -> None:
    """Runs the passes on a module of the dialect torch; an error of theirs says why not."""
    with mlir_context() as context:
        module = load_module(linalg(text), context)
        Session(module, as_pipeline(pipeline), target=target).run_passes()


_FUNCTIONS: dict[str, Callable[..., object]] = {
    "linalg": linalg,
    "takes": takes,
    "compile": compile_program,
}


def main() -> None:
    """Answers requests on stdin until it closes."""
    serve(_FUNCTIONS)


def serve(functions: Mapping[str, Callable[..., object]]) -> None:
    """The main function of a child of `apart` that has these functions."""
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a native library prints must not end up between the replies
    while True:
        try:
            function, text, options = receive(requests)
        except EOFError:
            return
        try:
            reply = ("done", functions[function](text, **options))
        except InputError as error:
            reply = ("refused", str(error))
        except Error as error:
            reply = ("rejected", str(error))
        except Exception:
            reply = ("internal", traceback.format_exc())
        send(replies, (True, reply))
