"""linalg without its DSL: the bindings' module takes longer to import than all other dialects.

Ops are plain `ir.OpView`s, read by operands, attributes and regions. Any other name of the
bindings' module, such as ``linalg.MatmulOp``, imports it, and ops met from then on are of its
classes.
"""

from __future__ import annotations

from typing import Any

from tcir._mlir import import_bindings

get_indexing_maps = import_bindings("_mlir_libs._mlirDialectsLinalg").get_indexing_maps


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_bindings("dialects.linalg"), name)
