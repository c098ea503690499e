"""The MLIR Python bindings, under whichever import root they are installed.

This is the only module that names the root. Use it as::

    from tcir._mlir import ir, passmanager, rewrite, arith, func, llvm, nvvm, ext

Every name is imported on first use, so importing this module costs nothing. The wheel `torch-mlir`
carries upstream's bindings as `torch_mlir`; upstream's own wheel calls them `mlir`. The environment
variable ``TCIR_MLIR_ROOT`` names another root.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from tcir.errors import MissingDependencyError

ROOTS = ("torch_mlir", "mlir")

_DIALECTS = (
    "affine", "arith", "bufferization", "builtin", "cf", "complex", "ext", "func", "gpu", "index",
    "irdl", "linalg", "llvm", "math", "memref", "nvgpu", "nvvm", "pdl", "quant", "scf", "shape",
    "sparse_tensor", "tensor", "tosa", "transform", "ub", "vector",
)  # fmt: skip
_MODULES = ("ir", "passmanager", "rewrite")

if TYPE_CHECKING:
    from torch_mlir import ir as ir
    from torch_mlir import passmanager as passmanager
    from torch_mlir import rewrite as rewrite
    from torch_mlir.dialects import affine as affine
    from torch_mlir.dialects import arith as arith
    from torch_mlir.dialects import bufferization as bufferization
    from torch_mlir.dialects import builtin as builtin
    from torch_mlir.dialects import cf as cf
    from torch_mlir.dialects import complex as complex
    from torch_mlir.dialects import ext as ext
    from torch_mlir.dialects import func as func
    from torch_mlir.dialects import gpu as gpu
    from torch_mlir.dialects import index as index
    from torch_mlir.dialects import irdl as irdl
    from torch_mlir.dialects import linalg as linalg
    from torch_mlir.dialects import llvm as llvm
    from torch_mlir.dialects import math as math
    from torch_mlir.dialects import memref as memref
    from torch_mlir.dialects import nvgpu as nvgpu
    from torch_mlir.dialects import nvvm as nvvm
    from torch_mlir.dialects import pdl as pdl
    from torch_mlir.dialects import quant as quant
    from torch_mlir.dialects import scf as scf
    from torch_mlir.dialects import shape as shape
    from torch_mlir.dialects import sparse_tensor as sparse_tensor
    from torch_mlir.dialects import tensor as tensor
    from torch_mlir.dialects import tosa as tosa
    from torch_mlir.dialects import transform as transform
    from torch_mlir.dialects import ub as ub
    from torch_mlir.dialects import vector as vector


def root() -> str:
    """The import root of the bindings: ``TCIR_MLIR_ROOT``, else the first of `ROOTS` installed."""
    names = (os.environ["TCIR_MLIR_ROOT"],) if os.environ.get("TCIR_MLIR_ROOT") else ROOTS
    for name in names:
        try:
            importlib.import_module(f"{name}.ir")
        except ModuleNotFoundError as error:
            if error.name is None or not (name + ".ir").startswith(error.name):
                raise
            continue
        return name
    raise MissingDependencyError(
        f"expected the MLIR Python bindings under one of {', '.join(names)}, got none installed; "
        "`pip install torch-mlir` brings them (checking PTX with tcir.run_ptx works without)"
    )


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = importlib.import_module(f"{root()}.{name}")
    elif name in _DIALECTS:
        module = importlib.import_module(f"{root()}.dialects.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = module
    return module
