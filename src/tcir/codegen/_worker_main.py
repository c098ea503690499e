"""Main module of the child process of `tcir.codegen.worker`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import IO, TYPE_CHECKING

from tcir.codegen.worker import end_with, receive, send

if TYPE_CHECKING:
    from tcir._mlir import ir


def translate(text: str) -> str:
    """Translates a module of the dialects llvm and nvvm to LLVM IR."""
    from tcir._mlir import import_bindings, ir, passmanager

    with ir.Context() as context:
        context.allow_unregistered_dialects = True  # discardable `tc.*` attributes
        module = ir.Module.parse(text)
        # Only with a scope on the function do source lines reach PTX as `.loc`. Fuller debug
        # information would add `.target …, debug`, under which ptxas ignores setmaxnreg.
        passmanager.PassManager.parse(
            "builtin.module(ensure-debug-info-scope-on-llvm-func"
            "{emission-kind=DebugDirectivesOnly})"
        ).run(module.operation)
        # From the extension module: `dialects.llvm` has a Python class for every op.
        native = import_bindings("_mlir_libs._mlirDialectsLLVM")
        result: str = native.translate_module_to_llvmir(module.operation)
    return result


def rehearse(text: str, *, passes: str) -> str:
    """Reads a module and runs `passes` on it; an error that they report is ignored."""
    from tcir._mlir import ir, is_mlir_error, passmanager

    with _rehearsal_context():
        try:
            module = ir.Module.parse(text)
            if passes:
                passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
        except Exception as error:
            if not is_mlir_error(error) and not isinstance(error, ValueError):
                raise
    return ""


@cache
def _rehearsal_context() -> ir.Context:
    """The context of all rehearsals; it is kept, because creating one costs more than reading a
    program."""
    from tcir._mlir import ir

    context = ir.Context()
    context.allow_unregistered_dialects = True  # those that Python defines
    return context


def emit_ptx(text: str, *, cpu: str, features: str) -> str:
    """Compiles LLVM IR to PTX with the NVPTX back end, without middle-end passes.

    Middle-end passes are omitted on purpose: the intrinsics of tcgen05.mma are declared as only
    writing D, so dead-store elimination may drop all but the last mma of a sum.
    """
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(
        cpu=cpu, features=features, opt=3
    )
    result: str = machine.emit_assembly(module)
    return result


def nvjitlink(text: str, *, target: str) -> tuple[bytes, str, str]:
    """Assembles PTX with nvJitLink. Returns the cubin (empty if the PTX was rejected), the log, and
    the error message if a library is missing."""
    try:
        from cuda.bindings import nvjitlink as library

        library.version()
    except (ImportError, RuntimeError) as error:  # cuda-python, or the library it loads
        return b"", "", str(error).strip().splitlines()[0]
    options = [f"-arch={target}", "-Xptxas=-v"]
    handle = library.create(len(options), options)
    try:
        data = text.encode()
        try:
            library.add_data(handle, library.InputType.PTX, data, len(data), "kernel.ptx")
            library.complete(handle)
        except library.nvJitLinkError:
            log = bytearray(library.get_error_log_size(handle))
            library.get_error_log(handle, log)
            return b"", _c_text(log), ""
        cubin = bytearray(library.get_linked_cubin_size(handle))
        library.get_linked_cubin(handle, cubin)
        log = bytearray(library.get_info_log_size(handle))
        library.get_info_log(handle, log)
        return bytes(cubin), _c_text(log), ""
    finally:
        library.destroy(handle)


def _c_text(text: bytearray) -> str:
    return text.rstrip(b"\0").decode(errors="replace")


_FUNCTIONS: dict[str, Callable[..., object]] = {
    "nvjitlink": nvjitlink,
    "rehearse": rehearse,
    "translate": translate,
    "emit_ptx": emit_ptx,
}


def main() -> None:
    """Answers requests that arrive on stdin, until stdin is closed."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a native library prints must not end up between the replies
    serve(os.fdopen(os.dup(0), "rb", buffering=0), replies)


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answers requests until there are no more."""
    import llvmlite.binding  # noqa: F401  (loaded while the passes run)

    from tcir import _mlir

    _mlir.load_without_numpy()
    end_with(requests)
    while True:
        try:
            function, text, options = receive(requests)
        except EOFError:
            return
        try:
            reply = (True, _FUNCTIONS[function](text, **options))
        except Exception as error:
            reply = (False, str(error).strip() or repr(error))
        send(replies, reply)
