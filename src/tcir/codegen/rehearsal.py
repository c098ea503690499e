"""Native code that a program from outside may crash runs in the child process first.

Upstream's parser, verifiers and passes are not safe for every text. The verifier of
``llvm.extractvalue`` and ``llvm.insertvalue``, for one, compares the low 32 bits of a position with
the number of fields and then reads the field at all 64 (``getInsertExtractValueElementType`` in
LLVMDialect.cpp): position 2^40 of a struct is a segmentation fault.
"""

from __future__ import annotations

from tcir.codegen.worker import WORKER

_WAY_OUT = (
    "MLIR dies of that text: a smaller or less deeply nested one may do; report it to LLVM with "
    "that file"
)


def rehearse(text: str, step: str, passes: str = "") -> None:
    """Has the child read the module `text` and run the pipeline `passes` on it.

    Raises `NativeCrashError` if that ends the child; the message begins with `step`. What MLIR
    refuses is no error here: it refuses the same in this process, with the right locations.
    Dialects defined in Python are not loaded in the child, their ops are opaque.
    """
    WORKER.call("rehearse", text, ".mlir", step=step, way_out=_WAY_OUT, passes=passes)
