"""Draws inputs whose values decide which elements a program reads: indices into a tensor, sizes of
groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcir.dialect import tc
from tcir.dialect.ops.attention import LENGTHS
from tcir.interp import OutputSpec
from tcir.interp.types import Array
from tcir.passes.emit.functions import constant_number
from tcir.program.group_sizes import group_sizes, sequence_ends

if TYPE_CHECKING:
    from tcir._mlir import ir

_OF_NUMBERS = ("arith.", "math.")
"""Prefixes of ops that compute one number from others."""


def numbers_of_places(spec: OutputSpec, seed: int) -> Array:
    """Draws sizes of groups, or indices: arbitrary valid numbers, among them the first and the
    last.
    """
    if spec.groups is not None:
        return group_sizes(spec, seed)
    if spec.ends is not None:
        return sequence_ends(spec.ends, spec.shape, np.random.default_rng(seed))
    assert spec.below is not None
    drawn = np.random.default_rng(seed).integers(0, spec.below, spec.shape)
    ends = drawn.reshape(-1)
    if ends.size > 1:
        ends[-1], ends[ends.size // 2] = spec.below - 1, 0
    if spec.first is not None:
        drawn[:, 0] = np.random.default_rng(seed).integers(0, spec.first, len(drawn))
        drawn[0, 0] = spec.first - 1
    return drawn.astype(spec.dtype)


def bound_of(argument: ir.Value) -> int | None:
    """Returns how many values are valid for the elements of an argument that are used as indices;
    None if they are not used as indices. Constants that the program adds to an index reduce this
    number.
    """
    bounds: dict[ir.OpOperand, list[int]] = {}
    seen: set[tuple[ir.Value, int]] = set()
    waiting = [(argument, 0)]
    while waiting:
        value, more = waiting.pop()
        if (value, more) in seen:
            continue
        seen.add((value, more))
        for use in value.uses:
            extent = _extent(use)
            if extent is not None:
                key = (use.owner.operation, use.operand_number)
                bounds.setdefault(key, []).append(extent - more)
            waiting += [(each, more + step) for each, step in _after(use)]
    found = [max(each) for each in bounds.values()]
    return max(1, min(found)) if found else None


def _extent(use: ir.OpOperand) -> int | None:
    """Returns the number of values that a use takes: the extent of the tensor dimension that it
    indexes, or numbers of keys; None if the use is neither."""
    op = use.owner.operation
    if isinstance(op.opview, tc.AttentionOp):
        counts = (
            op.opview.extents()["n"] + 1 if op.opview.page is None else op.operands[1].type.shape[0]
        )
        return int(counts) if use.operand_number == LENGTHS else None
    if op.name != "tensor.extract" or use.operand_number == 0:
        return None
    return int(op.operands[0].type.shape[use.operand_number - 1])


def _after(use: ir.OpOperand) -> list[tuple[ir.Value, int]]:
    """Returns the values that a use computes from an index, with the constant that is added to
    it."""
    op = use.owner.operation
    if op.name == "linalg.yield":
        return [(op.parent.results[use.operand_number], 0)]
    if op.name.startswith("linalg.") and len(op.regions):
        return [(op.regions[0].blocks[0].arguments[use.operand_number], 0)]
    if op.name == "tensor.extract":
        return [] if use.operand_number else [(op.results[0], 0)]
    if op.name.startswith("tensor.") and op.results:
        return [(op.results[0], 0)]
    if not op.name.startswith(_OF_NUMBERS) or str(op.results[0].type) == "i1":
        return []
    more = 0
    if op.name in ("arith.addi", "arith.subi"):
        other = constant_number(op.operands[1 - use.operand_number])
        sign = -1 if op.name == "arith.subi" else 1
        more = sign * int(other) if other is not None else 0
    return [(op.results[0], more)]
