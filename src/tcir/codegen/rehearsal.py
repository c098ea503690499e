"""Runs native code that a user's program might crash in a child process, before this process runs
it.

Upstream's parser, verifiers and passes are not safe for every text. For example, the verifier of
``llvm.extractvalue`` and ``llvm.insertvalue`` compares the low 32 bits of a position with the
number of fields, and then reads the field at the full 64-bit position
(``getInsertExtractValueElementType`` in LLVMDialect.cpp). Position 2^40 of a struct is therefore a
segmentation fault.
"""

from __future__ import annotations

from tcir.codegen.worker import WORKER

_WAY_OUT = (
    "MLIR crashes on that text: a smaller or less deeply nested one may work; report it to LLVM "
    "with that file"
)


def rehearse(text: str, step: str, passes: str = "") -> None:
    """Makes the child read the module `text` and run the pipeline `passes` on it.

    Raises `NativeCrashError` if that crashes the child; the message begins with `step`. A text that
    MLIR rejects raises no error here: MLIR will also reject it in this process, with the right
    locations. Dialects defined in Python are not loaded in the child; their ops are opaque.
    """
    WORKER.call("rehearse", text, ".mlir", step=step, way_out=_WAY_OUT, passes=passes)
