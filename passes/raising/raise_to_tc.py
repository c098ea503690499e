"""raise-to-tc: raises a linalg contraction to ``tc.conv2d``, ``tc.matmul`` or
``tc.block_scaled_matmul``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.attributes import is_fill_only
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.contraction import (
    Conv,
    Matmul,
    body_problem,
    is_contraction,
    maps_problem,
    recognise,
    set_unsigned,
)
from tcir.passes.analysis.einsum import Einsum
from tcir.passes.analysis.scaled_contraction import is_scaled_contraction
from tcir.passes.analysis.wrappers import (
    Padding,
    check_rest,
    find_tail,
    fold_pads,
    zero_accumulator_ops,
)
from tcir.passes.emit.diagnostics import SMALLEST_CONV, SMALLEST_MATMUL, match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import drop_arguments
from tcir.passes.raising.raise_block_scaled import check_shapes, functions_to_raise, raise_scaled
from tcir.passes.raising.raise_conv import raise_conv
from tcir.passes.raising.raise_einsum import raise_einsum
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark


@register_pass
@dataclass(frozen=True)
class RaiseToTc(Pass):
    """Raises the contraction of every function; folds in padding, zero fill and rounding.

    Before::

        %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] { … yield 0.0 }
        %i = linalg.fill ins(0.0) outs(%init)
        %y = linalg.conv_2d_nhwc_hwcf {strides, dilations} ins(%p, %w) outs(%i)
        %z = linalg.generic … arith.truncf …            // optional

    After (`%init` is no longer an argument)::

        %z = "tc.conv2d"(%x, %w) {strides, dilations, pads = [1, 1, 1, 1], filter = "hwcf"}

    The pass recognises a contraction by its indexing maps and body, in any order of the loops. A
    product over other loops than those of a matrix product (with a vector, or with several
    dimensions of rows) becomes a product of reshaped operands::

        %v = linalg.matvec ins(%a, %x) outs(%i)

        %x1 = tensor.expand_shape %x … into tensor<1x64xf16>
        %y = "tc.matmul"(%a, %x1) {a_layout = "mk", b_layout = "nk"} : … -> tensor<40x1xf32>
        %v = tensor.collapse_shape %y … into tensor<40xf32>

    An operand whose dimensions no reshape or tensor map can bring into the required order, such as
    an image with channels first, is copied by ``tc.repack``, which a remark reports. A block-scaled
    contraction is raised as by raise-block-scaled, and a function that holds that op already, or a
    ``tc.attention`` or its gradients, is left alone. Preserves the value of every element, up to
    the order of the f32 sums; sums start from +0.
    """

    name: ClassVar[str] = "raise-to-tc"

    def run(self, module: ir.Module) -> None:
        for function in functions_to_raise(module, "contraction", SMALLEST_CONV):
            _raise_function(function, target_of(module))


def _raise_function(function: func.FuncOp, target: str) -> None:
    ops = list(function.entry_block)
    if any(isinstance(op, _RAISED) for op in ops):
        return
    if any(is_scaled_contraction(op) for op in ops):
        raise_scaled(function)
        return
    contractions = [op for op in ops if is_contraction(op)]
    if len(contractions) != 1:
        raise match_failure(
            contractions[1] if contractions else function,
            f"expected exactly one contraction in a function, got {len(contractions)} "
            "(a kernel computes one); put each into a function of its own",
            SMALLEST_CONV,
        )
    (op,) = contractions
    found = recognise(op)
    if found is None:
        raise match_failure(op, maps_problem(op), SMALLEST_CONV)
    smallest = SMALLEST_CONV if isinstance(found, Conv) else SMALLEST_MATMUL
    check_shapes(op, smallest, "tensor maps, tiles and grid", " (a tensor map has no size 0)")
    problem = body_problem(op)
    if problem:
        raise match_failure(op, problem, smallest)
    tail = find_tail(op, smallest)
    pads = [fold_pads(op, number, smallest) for number in (0, 1)]
    reads = [
        e for op in tail.kept if isinstance(op.opview, tc.EpilogueOp) for e in op.opview.elements
    ]
    sources = [*(each.source for each in pads), *(each.tensor for each in reads)]
    views = [view for each in sources for view in _views(op, each, smallest)]
    used = [op.operation, *zero_accumulator_ops(op, smallest), *tail.ops, *tail.kept, *views]
    used += [pad for each in pads for pad in each.ops]
    check_rest(ops, used, tail.returned, _EXPECTED, smallest)
    if str(op.operands[0].type.element_type) == "f32":
        remark(op, TF32)
    with ir.InsertionPoint(op), op.location:
        if isinstance(found, Einsum):
            raise_einsum(op, found, [_plain(op, each, smallest) for each in pads], tail)
        elif isinstance(found, Conv):
            raise_conv(op, found, pads, tail, target, smallest)
        else:
            result = _matmul(op, found, pads, tail.result.type, smallest)
            tail.result.replace_all_uses_with(result)
    unread = [a.arg_number for a in function.arguments if is_fill_only(a)]
    for dead in reversed(ops[:-1]):
        if not any(list(each.uses) for each in dead.results):
            dead.operation.erase()
    drop_arguments(function, unread)


def _views(op: ir.OpView, source: ir.Value, smallest: str) -> list[ir.Operation]:
    """The reshapes of an argument that `source` is."""
    found: list[ir.Operation] = []
    while not isinstance(source, ir.BlockArgument):
        if not isinstance(source.owner.opview, RESHAPES):
            raise match_failure(
                op,
                "expected function arguments as inputs (TMA reads them from global memory), got "
                f"the result of {source.owner.name}; make it an argument",
                smallest,
            )
        found.append(source.owner)
        source = source.owner.operands[0]
    return found


TF32 = (
    "f32 is multiplied as tf32: the low 13 bits of each factor are ignored; with the pipeline's "
    "option tf32=false CUDA cores multiply f32"
)
_RAISED = tc.BlockScaledMatmulOp | tc.GroupedMatmulOp | tc.AttentionOp | tc.AttentionBackwardOp
"""Ops of which a function has been raised, or was written."""
_EXPECTED = "a zero tensor.pad, a zero linalg.fill, one contraction and a rounding of its result"


def _matmul(
    op: ir.OpView, matmul: Matmul, pads: list[Padding], out: ir.RankedTensorType, smallest: str
) -> ir.Value:
    (a, a_layout), (b, b_layout) = (
        _k_last(_plain(op, pads[number], smallest), layout)
        for number, layout in ((matmul.a, matmul.a_layout), (matmul.b, matmul.b_layout))
    )
    layouts = [ir.StringAttr.get(layout) for layout in (a_layout, b_layout)]
    made = tc.MatmulOp(a, b, *layouts, out)
    set_unsigned(made, op, matmul.a, matmul.b)
    return made.out


def _k_last(operand: ir.Value, layout: str) -> tuple[ir.Value, str]:
    """One row or column has K last, whichever way it is written."""
    *batch, k, rows = operand.type.shape
    if layout[0] != "k" or rows != 1:
        return operand, layout
    return reshape(operand, [*batch, rows, k]), layout[::-1]


def _plain(op: ir.OpView, operand: Padding, smallest: str) -> ir.Value:
    """An operand of a matrix product."""
    if operand.ops:
        raise match_failure(
            op,
            "expected a matrix product without tensor.pad (sizes need not be multiples of the "
            "tile: TMA fills with zeros), got one; drop it, or pad before this function",
            smallest,
        )
    return operand.source
