"""The MLIR Python bindings, whatever name they are installed under.

This is the only module that knows the name (the import root). Use it as::

    from tcir._mlir import ir, passmanager, arith, func, llvm, nvvm, ext

Every name is imported on first use, so importing this module takes almost no time. The wheel
`torch-mlir` contains upstream's bindings as `torch_mlir`; upstream's own wheel calls them `mlir`.
The environment variable ``TCIR_MLIR_ROOT`` names another import root.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from functools import cache
from types import MethodType, ModuleType
from typing import TYPE_CHECKING

from tcir.errors import MissingDependencyError

ROOTS = ("torch_mlir", "mlir")

_DIALECTS = (
    "arith", "ext", "func", "memref", "scf", "tensor", "vector",
)  # fmt: skip
_MET = ("builtin", "cf", "math")
"""Other dialects that the bindings import when a program of tcir contains one of their ops."""
_MODULES = ("ir", "passmanager", "rewrite")
_OUR_DIALECTS = ("linalg", "llvm", "nvvm")
_SMALL_DIALECTS = "tcir._mlir_dialects"

if TYPE_CHECKING:
    from tcir import _bindings as arith
    from tcir import _bindings as ext
    from tcir import _bindings as func
    from tcir import _bindings as ir
    from tcir import _bindings as linalg
    from tcir import _bindings as memref
    from tcir import _bindings as passmanager
    from tcir import _bindings as rewrite
    from tcir import _bindings as scf
    from tcir import _bindings as tensor
    from tcir import _bindings as vector
    from tcir._mlir_dialects import llvm, nvvm

__all__ = [
    "arith", "ext", "func", "ir", "linalg", "llvm", "memref", "nvvm", "passmanager", "rewrite",
    "scf", "tensor", "vector",
]  # fmt: skip


@cache
def root() -> str:
    """The import root of the bindings: ``TCIR_MLIR_ROOT`` if it is set, otherwise the first of
    `ROOTS` that is installed.
    """
    names = (os.environ["TCIR_MLIR_ROOT"],) if os.environ.get("TCIR_MLIR_ROOT") else ROOTS
    for name in names:
        try:
            importlib.import_module(f"{name}.ir")
        except ModuleNotFoundError as error:
            if error.name is None or not (name + ".ir").startswith(error.name):
                raise
            continue
        # The bindings import a dialect's module when they meet its first op: ours first.
        bindings = importlib.import_module(f"{name}._mlir_libs._mlir").globals
        others = [each for each in bindings.dialect_search_modules if each != _SMALL_DIALECTS]
        bindings.dialect_search_modules = [_SMALL_DIALECTS, *others]
        return name
    raise MissingDependencyError(
        f"expected the MLIR Python bindings under one of {', '.join(names)}, got none installed; "
        "`pip install torch-mlir` installs them (checking PTX with tcir.run_ptx works without)"
    )


def import_bindings(module: str) -> ModuleType:
    """Imports a module of the bindings by its name below the root, such as
    ``dialects.linalg``."""
    return importlib.import_module(f"{root()}.{module}")


def modules() -> list[str]:
    """Names of all modules of the bindings that a compilation by tcir imports."""
    return [
        *(f"{root()}.{name}" for name in _MODULES),
        *(f"{root()}.dialects.{name}" for name in (*_DIALECTS, *_MET)),
        _SMALL_DIALECTS,
    ]


def load_without_numpy() -> None:
    """Imports the core of the bindings without numpy, unless numpy is already imported; importing
    numpy takes a third of the time.

    Without numpy, only the builders of ``F64ElementsAttr`` and similar attributes from Python lists
    are missing.
    """
    if "numpy" in sys.modules:
        return
    sys.modules["numpy"] = None  # type: ignore[assignment]  # what makes its import fail
    try:
        root()
    finally:
        del sys.modules["numpy"]


def built_once(emit: MethodType) -> object:
    """Wraps the classmethod `emit` of a dialect that is defined in Python. `emit` builds a module
    with the IRDL definitions of the dialect's types and ops; with this wrapper the module is built
    only once. For every further context the module is parsed from bytecode, because building it op
    by op would take longer than the rest of the setup.
    """

    built: dict[tuple[type, ...], bytes] = {}

    def parsed(dialect: type[ext.Dialect]) -> ir.Module:
        declared = (dialect, *dialect.types, *dialect.operations)
        if declared not in built:
            emit.__func__(dialect).operation.write_bytecode(file := io.BytesIO())
            built[declared] = file.getvalue()
        return import_bindings("ir").Module.parse(built[declared])

    return classmethod(parsed)


def is_mlir_error(error: BaseException) -> bool:
    """Whether `error` has the exception type that MLIR's bindings raise when the parser or verifier
    rejects IR.
    """
    return isinstance(error, import_bindings("ir").MLIRError)


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        module = import_bindings(name)
    elif name in _OUR_DIALECTS:
        module = importlib.import_module(f"{_SMALL_DIALECTS}.{name}")
    elif name in _DIALECTS:
        module = import_bindings(f"dialects.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = module
    return module
