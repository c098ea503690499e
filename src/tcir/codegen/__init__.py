"""Code generation: NVVM to LLVM IR to PTX to cubin to SASS.

Names are imported on first use: the assembler needs neither the MLIR bindings nor LLVM.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcir.codegen.cubin import Cubin as Cubin
    from tcir.codegen.cubin import assemble as assemble
    from tcir.codegen.llvm_ir import translate as translate
    from tcir.codegen.ptx import emit_ptx as emit_ptx
    from tcir.codegen.sass import disassemble as disassemble
    from tcir.codegen.sass import sass_counts as sass_counts

_EXPORTS = {
    "Cubin": "cubin",
    "assemble": "cubin",
    "disassemble": "sass",
    "emit_ptx": "ptx",
    "sass_counts": "sass",
    "translate": "llvm_ir",
}

__all__ = ["start", *_EXPORTS]


def start(*, fork: bool = False) -> None:
    """Starts to load the native code generators in the background.

    fork: whether to load them in a fork of this process, which inherits the libraries that are
        already loaded; allowed only if the command has started no threads and has loaded no
        libraries that start threads
    """
    from tcir.codegen.worker import WORKER

    WORKER.start(fork=fork)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tcir.codegen.{_EXPORTS[name]}"), name)
