"""Main module of the child processes that `tcir.session.apart` starts."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping, Sequence

from tcir import codegen
from tcir._mlir import import_bindings, ir, is_mlir_error, modules, passmanager
from tcir.codegen.worker import end_with, receive, send
from tcir.errors import Error, InputError, InvalidIRError
from tcir.kernel import Kernel
from tcir.passes.analysis.frozen import freeze
from tcir.passmanager.pipeline import as_pipeline
from tcir.program.source import load_module, mlir_context
from tcir.session import divided
from tcir.session.entry import PACKAGES
from tcir.session.entry import compile as compile_program
from tcir.session.origins import at_its_origin, origin
from tcir.session.session import Session
from tcir.threads import import_whole

# The passes of torch-mlir's `fx.export_and_import` behind its importer.
_TORCH_TO_LINALG = (
    "builtin.module("
    "func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{extra-library=},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})"
)


def linalg(text: str) -> str:
    """Lowers a module of the dialect torch to `linalg`."""
    return str(_linalg(text))


def _linalg(text: str) -> ir.Module:
    """Lowers as `linalg` does; the module keeps the locations of the text."""
    with ir.Context() as context:
        # Not from `dialects.torch`, which has a Python class for every op.
        import_bindings("_mlir_libs._torchMlir").register_dialect(context)
        context.emit_error_diagnostics = True  # a pass may report an error and go on
        module = ir.Module.parse(text)
        said: list[tuple[str, str]] = []
        with context.attach_diagnostic_handler(lambda each: _kept(said, each)):
            try:
                passmanager.PassManager.parse(_TORCH_TO_LINALG).run(module.operation)
            except Exception as error:
                if is_mlir_error(error):
                    where, why = next(iter(said), ("", str(error).splitlines()[0]))
                    raise Error(f"{where}torch-mlir has no linalg for it: {why}") from error
                raise
        return module


def _kept(said: list[tuple[str, str]], diagnostic: ir.Diagnostic) -> bool:
    """Diagnostic handler that appends the location and the message of an error to `said`."""
    if diagnostic.severity == ir.DiagnosticSeverity.ERROR:
        said.append((origin(diagnostic.location), diagnostic.message))
    return False


def takes(text: str, *, pipeline: str, target: str) -> None:
    """Runs the passes of a pipeline on a module of the dialect torch. Raises the error of a pass
    that rejects it."""
    with mlir_context() as context:
        module = load_module(linalg(text), context)
        Session(module, as_pipeline(pipeline), target=target).run_passes()


def lower(
    text: str, *, pipeline: str, target: str, frozen: Sequence[int] = ()
) -> tuple[str, Kernel]:
    """Compiles a module of the dialect torch; returns its `linalg` program and its kernel. Errors
    have the locations of `text`.

    frozen: numbers of the arguments whose values are the same at each call
    """
    module = _linalg(text)
    if frozen:
        freeze(module, frozen)
    mlir = str(module)
    try:
        return mlir, compile_program(mlir, pipeline, target=target)
    except Error as error:
        raise at_its_origin(error, module) from error


_FUNCTIONS: dict[str, Callable[..., object]] = {
    "linalg": linalg,
    "lower": lower,
    "takes": takes,
    "compile": compile_program,
}


def main() -> None:
    """Answers requests that arrive on stdin, until stdin is closed."""
    serve(_FUNCTIONS, _prepare)


def _prepare() -> None:
    """Imports what a compilation needs, before the first request (`Compilers.start`)."""
    codegen.start()
    divided.use()
    import_whole(*PACKAGES, *modules())


def serve(
    functions: Mapping[str, Callable[..., object]], prepare: Callable[[], None] = lambda: None
) -> None:
    """Main loop of a child of `apart`: runs `prepare`, then answers requests for these
    functions."""
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a native library prints must not end up between the replies
    end_with(requests)
    prepare()
    while True:
        try:
            function, text, options = receive(requests)
        except EOFError:
            return
        try:
            reply = ("done", functions[function](text, **options))
        except InvalidIRError as error:
            reply = ("internal", (str(error), traceback.format_exc()))
        except InputError as error:
            reply = ("refused", str(error))
        except Error as error:
            reply = ("rejected", str(error))
        except Exception:
            said = traceback.format_exc()
            reply = ("internal", (said.strip().splitlines()[-1], said))
        send(replies, (True, reply))
