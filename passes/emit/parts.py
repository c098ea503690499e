"""Products whose K is divided into parts; each part has a result of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tcir._mlir import ir
from tcir.errors import InputError
from tcir.passes.emit.builders import i64
from tcir.passes.emit.limits import ceil_div
from tcir.passmanager.remarks import remark


def check_number(parts: int) -> None:
    """Rejects a negative value of the option `split-k`."""
    if parts < 0:
        raise InputError(
            f"expected split-k of at least 1, or 0 to choose, got {parts}; take split-k=1"
        )


def product_in_parts(
    op: ir.OpView,
    steps: tuple[int, int],
    k: int,
    what: str,
    operands: Sequence[ir.Value] | None = None,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> ir.Value:
    """Adds before `op`, a product on tensors, a copy of the product whose sums are in parts;
    returns the result of the copy.

    steps: number of steps of the whole main loop, and number of steps of a part
    k: elements of K per step
    what: name of the divided dimension, for a remark
    operands, attributes: replacements for the operands and attributes of `op`
    """
    of_all, each = steps
    out, parts = op.out.type, ceil_div(of_all, each)
    element = out.element_type if str(out.element_type) == "i32" else ir.F32Type.get()
    made = ir.Operation.create(
        op.operation.name,
        [ir.RankedTensorType.get([parts, *out.shape], element)],
        list(operands or op.operands),
        {name: op.attributes[name] for name in op.attributes}
        | {**(attributes or {}), "k_part": i64(each * k)},
    )
    remark(
        made.opview,
        f"{what} in {parts} parts of {each} steps each: {parts} times the tiles, and a workspace "
        f"of {4 * parts * prod(out.shape)} bytes, written and read once",
    )
    return made.result
