"""Modules whose arguments have become constants, as an importer writes weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tcir._mlir import arith, func, ir
from tcir.program.source import mlir_context

Array = np.ndarray[Any, Any]


def with_constants(text: str, values: Mapping[int, Array], resources: bool = False) -> str:
    """The one function of `text` with constants in the place of arguments, by number.

    resources: their bytes are ``dialect_resources`` of the module
    """
    with mlir_context() as context, ir.Location.unknown(context):
        module = ir.Module.parse(text, context)
        (function,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        block = function.entry_block
        with ir.InsertionPoint.at_block_begin(block):
            for number, array in values.items():
                argument = block.arguments[number]
                bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
                value = ir.DenseElementsAttr.get(bits, type=argument.type)
                argument.replace_all_uses_with(arith.ConstantOp(argument.type, value).result)
        for number in sorted(values, reverse=True):
            block.erase_argument(number)
        kinds = [each.type for each in block.arguments]
        kind = ir.FunctionType.get(kinds, function.type.results)
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        made = str(module)
    return _with_resources(made) if resources else made


def _with_resources(text: str) -> str:
    """Dense constants written in hexadecimal are resources; the first four bytes: an alignment."""
    found: list[str] = []

    def name(match: re.Match[str]) -> str:
        found.append(f'w{len(found)}: "0x10000000{match[1]}"')
        return f"dense_resource<w{len(found) - 1}>"

    body = re.sub(r'dense<"0x([0-9A-F]+)">', name, text)
    assert found, "constants of a few elements are not written in hexadecimal"
    return f"{body}\n{{-# dialect_resources: {{ builtin: {{ {', '.join(found)} }} }} #-}}\n"
