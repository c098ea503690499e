"""MLIR's Python bindings for passes and plugins, whatever name they are installed under::

    from tcir.mlir import ir, arith, func, llvm, nvvm, rewrite

The modules are those of upstream's bindings (``llvm`` and ``nvvm`` have fewer helpers), and each is
imported on first use. The ops of a dialect have Python classes only after its module has been
imported. Therefore a plugin should import the dialect's module at the top, before it encounters
such an op.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from tcir import _mlir

if TYPE_CHECKING:
    from tcir._mlir import arith as arith
    from tcir._mlir import ext as ext
    from tcir._mlir import func as func
    from tcir._mlir import ir as ir
    from tcir._mlir import linalg as linalg
    from tcir._mlir import llvm as llvm
    from tcir._mlir import memref as memref
    from tcir._mlir import nvvm as nvvm
    from tcir._mlir import passmanager as passmanager
    from tcir._mlir import rewrite as rewrite
    from tcir._mlir import scf as scf
    from tcir._mlir import tensor as tensor
    from tcir._mlir import vector as vector

__all__ = [
    "arith", "ext", "func", "ir", "linalg", "llvm", "memref", "nvvm", "passmanager", "rewrite",
    "scf", "tensor", "vector",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "linalg":  # `_mlir.linalg` has no classes of ops
        return _mlir.import_bindings("dialects.linalg")
    return getattr(_mlir, name)
