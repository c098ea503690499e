"""Arguments of functions on tensors."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import func, ir


def drop_arguments(function: func.FuncOp, positions: Sequence[int]) -> None:
    """Removes unused arguments from block, type and attributes."""
    block = function.entry_block
    keep = [i for i in range(len(block.arguments)) if i not in positions]
    kind = ir.FunctionType.get([block.arguments[i].type for i in keep], function.type.results)
    for position in sorted(positions, reverse=True):
        block.erase_argument(position)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    if "arg_attrs" in function.attributes:
        old = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([old[i] for i in keep])
