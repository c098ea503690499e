"""raise-quantise: raises block quantisation in plain linalg to ``tc.quantise_blocks``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, tensor
from tcir.dialect import rules, tc
from tcir.dialect.ops.block_scaled import SCALE_TYPES, scales_shape
from tcir.dialect.ops.quantise import BLOCK_FORMATS, ROUNDINGS, QuantisedFormat
from tcir.dialect.upstream import names
from tcir.passes.analysis.element_graph import COLUMN, NotRaised
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passes.raising.quantise.pattern import (
    LOCAL,
    Maximum,
    Values,
    elements_of,
    outputs_of,
    values_of,
)
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

MOVES = names("linalg.transpose", tensor.CollapseShapeOp, tensor.ExpandShapeOp, tensor.PadOp)
"""Ops that may bring row-major scales to blocks of 128 x 4."""
PREFIX = "not raised to tc.quantise_blocks: "


@register_pass
@dataclass(frozen=True)
class RaiseQuantise(Pass):
    """Raises block quantisation written with ``linalg``, ``arith`` and ``math`` ops.

    Before::

        %y = tensor.expand_shape %x [[0], [1, 2]]               // blocks of 16 or 32 columns
        %amax = linalg.generic ins(%y) { maximumf of absf }     // over a block
        %scales = … arith.divf %amax, 6.0 … arith.truncf to f8E4M3FN
        %q = … arith.divf %y, extf(%scales) … arith.truncf to f4E2M1FN
        %codes = tensor.collapse_shape %q [[0], [1, 2]]
        return %codes, %scales

    After::

        %q:2 = "tc.quantise_blocks"(%x)
        return %q#0, %q#1

    The ops in between are not compared with known forms. Instead, the rules of the interpreter's
    tensor level compute scale and element on intervals of the largest magnitude and of the values,
    and these intervals are halved until each gives a single code. So the pass raises exactly the
    programs that give the codes of ``tc.quantise_blocks`` for every f32, including zeros of both
    signs, infinities and NaN (`quantise.proof`). Scales are row-major, or brought to blocks of 128
    x 4. A remark states what was raised. If a maximum over magnitudes was not raised, the program
    stays as it is, and the remark states the reason, with the first number for which a code
    differs. Preserves every bit.
    """

    name: ClassVar[str] = "raise-quantise"

    def run(self, module: ir.Module) -> None:
        for function in functions_with_body(module):
            if len(function.regions[0].blocks) == 1 and _narrows(function):
                _raise_all(function)


def _narrows(function: func.FuncOp) -> bool:
    """Whether tensors of block scales and of narrow elements are made."""
    results = [r.type for op in function.entry_block for r in op.operation.results]
    kinds = {str(t.element_type) for t in results if isinstance(t, ir.RankedTensorType)}
    return bool(kinds & set(SCALE_TYPES)) and bool(kinds & {codes for codes, _ in BLOCK_FORMATS})


def _raise_all(function: func.FuncOp) -> None:
    for op in list(function.entry_block):
        if (maximum := Maximum.of(op)) is None:
            continue
        try:
            made = _raise(maximum)
        except NotRaised as why:
            remark(why.op.opview, PREFIX + why.words)
            continue
        for dead in reversed(list(function.entry_block)):
            used = any(list(each.uses) for each in dead.operation.results)
            if dead.operation.name.startswith(LOCAL) and not used:
                dead.operation.erase()
        remark(made, _summary(made))
        return


def _raise(maximum: Maximum) -> tc.QuantiseBlocksOp:
    from tcir.passes.raising.quantise import proof  # needs numpy, which few programs do

    values = values_of(maximum)
    codes, scales = outputs_of(maximum, values)
    form = _format(maximum, codes, scales)
    shape = list(values.tensor.type.shape)
    moves = _moves(scales, scales_shape(shape, form.block, "row_major"))
    row_major = moves[0].operands[0] if moves else scales
    elements, rows = elements_of(maximum, values), tuple(range(len(shape) - 1))
    proof.check_start(maximum.op, elements.start(maximum.op.operands[1]))
    scale, element = elements.of(row_major, (*rows, len(rows))), elements.of(codes, (*rows, COLUMN))
    form = proof.proven((codes, element), (row_major, scale), form)
    if moves:
        proof.check_blocked(row_major, scales, moves)
    return _build(values, codes, scales, form)


def _format(maximum: Maximum, codes: ir.Value, scales: ir.Value) -> QuantisedFormat:
    pair = str(codes.type.element_type), str(scales.type.element_type)
    _, block = maximum.blocks
    if maximum.combiner.name == "arith.maxnumf":
        raise NotRaised(
            maximum.combiner,
            "expected arith.maximumf, got arith.maxnumf: it leaves out NaN, and the scale of a "
            "block with a NaN is NaN",
        )
    form = BLOCK_FORMATS.get(pair)
    if form is None or form.block != block:
        formats = ", ".join(f"{c} with {s} ({f.block})" for (c, s), f in BLOCK_FORMATS.items())
        raise NotRaised(
            maximum.op,
            f"expected elements with scales (and columns of a block) of {formats}, got {pair[0]} "
            f"with {pair[1]} ({block}): tcgen05.mma.block_scale multiplies no others",
        )
    return form


def _moves(scales: ir.Value, shape: list[int]) -> list[ir.Operation]:
    """The ops, first to last, that bring row-major scales of this shape to blocks."""
    found: list[ir.Operation] = []
    tensor = scales
    while list(tensor.type.shape) != shape:
        if isinstance(tensor, ir.BlockArgument) or tensor.owner.name not in MOVES:
            raise NotRaised(
                scales.owner.operation,
                f"expected scales of {shape}, or these moved into blocks of 128 x 4 by "
                f"{', '.join(sorted(MOVES))}, got {scales.type}",
            )
        found.insert(0, tensor.owner.operation)
        tensor = tensor.owner.operands[0]
    return found


def _build(
    values: Values, codes: ir.Value, scales: ir.Value, form: QuantisedFormat
) -> tc.QuantiseBlocksOp:
    block = list(codes.owner.operation.block)
    last = max(block.index(each.owner.opview) for each in (codes, scales))
    with ir.InsertionPoint(block[last + 1]), codes.owner.location:
        made = tc.QuantiseBlocksOp(
            values.tensor, codes=codes.type, scales=scales.type, norm=values.norm
        )
        if form.rounding != ROUNDINGS[0]:
            made.attributes["scale_rounding"] = ir.StringAttr.get(form.rounding)
    if problem := rules.broken_rule(made):
        made.operation.erase()
        raise NotRaised(codes.owner.operation, problem)
    codes.replace_all_uses_with(made.codes)
    scales.replace_all_uses_with(made.scales)
    return made


def _summary(op: tc.QuantiseBlocksOp) -> str:
    form, norm = op.format, "" if op.norm is None else ", times norm"
    up = ", rounded up where an element would saturate" if form.rounding == "rceil" else ""
    layout = "row-major" if op.row_major else "in blocks of 128 x 4"
    return (
        f"raised to tc.quantise_blocks: {form.name}{norm}, blocks of {form.block} "
        f"{op.codes.type.element_type}, scales {op.scales.type.element_type}{up}, {layout}; every "
        "f32 gives the same codes"
    )
