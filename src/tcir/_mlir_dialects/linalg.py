"""The linalg dialect without its DSL, because the bindings' module takes longer to import than all
other dialects together.

Ops are plain `ir.OpView`s, which are read by name, operands, attributes and regions. Access to a
function that builds an op, such as ``linalg.fill``, imports the bindings' module. This module does
not define the op classes, because an op that was read before that import would not be an instance
of its class. Plugins get the bindings' module from `tcir.mlir`.
"""

from __future__ import annotations

from typing import Any

from tcir._mlir import import_bindings

get_indexing_maps = import_bindings("_mlir_libs._mlirDialectsLinalg").get_indexing_maps


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name[0].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_bindings("dialects.linalg"), name)
