"""Reads constants whose bytes are at the end of an MLIR file, where importers write weights.

    %w = arith.constant dense_resource<w> : tensor<2xf32>
    {-# dialect_resources: { builtin: { w: "0x040000000000803F00000040" } } #-}

The first four bytes are the alignment. The bindings do not expose the data that follows, so it is
read from the text.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tcir.dialect.walk import nested
from tcir.errors import InputError, format_location
from tcir.interp.types import DTYPES, dense, shape_of

if TYPE_CHECKING:
    from tcir._mlir import ir

_NAME = re.compile(r'dense_resource<([^>"]+|"[^"]*")>')
_BYTES = re.compile(r'([\w.$-]+|"[^"]*"):\s*"0x([0-9A-Fa-f]*)"')
_ALIGNMENT = 4


def resolve_resources(module: ir.Module, text: str) -> None:
    """Replaces each constant ``dense_resource<…>`` of `module`, whose text is `text`, by
    ``dense<…>``.

    Raises InputError, at the constant, if its bytes are missing or their number does not fit its
    type.
    """
    found = dict(_BYTES.findall(text[text.find("{-#") :]))
    for each in nested(module.operation):
        op = each.operation
        if op.name == "arith.constant":
            value = op.attributes["value"]
            name = _NAME.match(str(value))
            if name is not None:
                op.attributes["value"] = _dense(op, name[1], value.type, found.get(name[1]))


def _dense(op: ir.Operation, name: str, kind: ir.ShapedType, digits: str | None) -> ir.Attribute:
    where = f"{format_location(op.location)}constant dense_resource<{name}>: expected"
    if digits is None:
        raise InputError(
            f"{where} its bytes in dialect_resources at the end of the file, got none (they were "
            "left out when it was printed); print it without large_resource_limit and "
            "large_elements_limit, by tc-opt without --mlir-elide-elementsattrs-if-larger"
        )
    if str(kind.element_type) not in DTYPES:
        raise InputError(f"{where} elements of {', '.join(DTYPES)}, got {kind.element_type}")
    dtype, shape = np.dtype(DTYPES[str(kind.element_type)]), shape_of(kind)
    data = bytes.fromhex(digits)[_ALIGNMENT:]
    if len(data) != prod(shape) * dtype.itemsize:
        raise InputError(
            f"{where} {prod(shape) * dtype.itemsize} bytes after the alignment ({kind}), "
            f"got {len(data)}"
        )
    return dense(np.frombuffer(data, dtype).reshape(shape), kind)
