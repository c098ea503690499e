"""Changes the layout of operands: by a reshape if no element moves in memory, otherwise by
``tc.repack``."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.reshape import moves_only_units, reshape


def repacked(source: ir.Value, order: Sequence[int], innermost: int | None = None) -> ir.Value:
    """`source` with dimension ``order[d]`` as dimension d; its innermost dimension is padded with
    zeros to `innermost` elements."""
    shape = [source.type.shape[d] for d in order]
    last = shape[-1] if innermost is None else innermost
    if last == shape[-1] and moves_only_units(source.type.shape, order):
        return reshape(source, shape)
    kind = ir.RankedTensorType.get([*shape[:-1], last], source.type.element_type)
    return tc.RepackOp(source, i64s(order), kind).out


def padded(
    source: ir.Value, order: Sequence[int], low: Sequence[int], shape: Sequence[int]
) -> ir.Value:
    """Permutes the dimensions of `source` and pads them with zeros to `shape`; builds no op if that
    changes nothing.

    order: the source's dimension for each dimension of the result
    low: number of zeros before each dimension
    """
    if list(order) == sorted(order) and list(shape) == source.type.shape:
        return source
    made = tc.RepackOp(
        source, i64s(order), ir.RankedTensorType.get(shape, source.type.element_type)
    )
    if any(low):
        made.attributes["low"] = i64s(low)
    return made.out


def is_copied(value: ir.Value) -> bool:
    """Whether a separate kernel writes `value`."""
    return not isinstance(value, ir.BlockArgument) and isinstance(value.owner.opview, tc.RepackOp)
