"""Rejects block quantisation in linalg that divides by a scale which has not been rounded yet."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import arith, func, ir
from tcir.dialect.ops.block_scaled import ELEMENT_BITS, SCALE_TYPES
from tcir.dialect.upstream import name_of
from tcir.dialect.walk import walk
from tcir.passes.emit.diagnostics import match_failure

TRUNCATION = name_of(arith.TruncFOp)
MOVED = {"f8E4M3FN": "up to 1 part in 16", "f8E8M0FNU": "a factor of up to 2"}
"""Effect of rounding on a scale, by the type of scales."""


def check_stored_scales(function: func.FuncOp) -> None:
    """Raises a match failure if elements are divided by a scale that is rounded only when it is
    stored.

    Whoever reads the codes multiplies by the stored scale, so the division must use the stored
    scale.
    """
    truncations = [op.operation for op in walk(function) if op.operation.name == TRUNCATION]
    stored = {_source(op.operands[0]): _element(op) for op in truncations}
    for op in truncations:
        if _element(op) not in ELEMENT_BITS:
            continue
        for division in _divisions(op.operands[0], set()):
            kind = stored.get(_source(division.operands[1]), "")
            if kind in SCALE_TYPES:
                raise match_failure(
                    division.opview,
                    f"expected elements of {_element(op)} that are divided by their scale as it "
                    f"is stored, got a division by its value before arith.truncf to {kind}: the "
                    "next product multiplies by the stored scale, and the unrounded scale differs "
                    f"from it by {MOVED[kind]}, which is an error in every element of the block; "
                    "divide by arith.extf of the truncated scale, or use tc.quantise_blocks",
                )


def _element(op: ir.Operation) -> str:
    kind = op.results[0].type
    return str(kind.element_type if isinstance(kind, ir.ShapedType) else kind)


def _source(value: ir.Value) -> ir.Value:
    """Follows a number through linalg ops, from tensors to the values that their bodies yield."""
    while True:
        if isinstance(value, ir.BlockArgument):
            body = value.owner.owner.operation
            if not body.name.startswith("linalg."):
                return value
            value = body.operands[value.arg_number]
        elif value.owner.name.startswith("linalg.") and len(value.owner.regions):
            number = list(value.owner.results).index(value)
            value = list(value.owner.regions[0].blocks[0])[-1].operands[number]
        else:
            return value


def _divisions(value: ir.Value, seen: set[ir.Value]) -> Iterator[ir.Operation]:
    """The divisions that `value` is computed by, back to the last narrow numbers."""
    value = _source(value)
    if isinstance(value, ir.BlockArgument) or value in seen:
        return
    seen.add(value)
    op = value.owner
    if op.name == "arith.divf":
        yield op
    if op.name.startswith(("arith.", "math.")) and op.name != TRUNCATION:
        for operand in op.operands:
            yield from _divisions(operand, seen)
