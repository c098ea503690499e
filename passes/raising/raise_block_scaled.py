"""raise-block-scaled: raises a linalg contraction of block-scaled operands to
``tc.block_scaled_matmul``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, linalg, tensor
from tcir.dialect import rules, tc
from tcir.dialect.attributes import defining, is_fill_only
from tcir.dialect.ops.block_scaled import scales_shape
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.scaled_contraction import (
    Mismatch,
    ScaledMatmul,
    is_scaled_contraction,
    recognise,
    types_problem,
)
from tcir.passes.analysis.wrappers import check_rest, find_tail, zero_accumulator_ops
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import SMALLEST_BLOCK_SCALED, is_op, match_failure
from tcir.passes.emit.gpu_module import is_converted
from tcir.passes.emit.tensor_functions import drop_arguments, is_simt
from tcir.passmanager.pipeline import Pass, register_pass

SMALLEST = SMALLEST_BLOCK_SCALED
BLOCKED = "blocked_128x4"


@register_pass
@dataclass(frozen=True)
class RaiseBlockScaled(Pass):
    """Raises the contraction of every function, with zero fill, global scales and rounding.

    Before::

        %i = linalg.fill ins(%zero) outs(%init)
        %y = linalg.generic {maps (m, k), (m, k floordiv 16), (k), (k floordiv 16) -> (m)}
               ins(%a, %sa, %b, %sb) outs(%i) { sum + extf(a) * extf(sa) * extf(b) * extf(sb) }
        %z = linalg.generic ins(%y, %ga, %gb) { y * ga * gb }     // optional; or in the sum
        %r = linalg.generic ins(%z) { arith.truncf }              // optional

    After::

        %r = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga, %gb) {block = 16, …}

    The pass recognises a contraction by its indexing maps and body. The second operand may be a
    matrix or a vector, with or without a batch; factors and loops may have any order. k may be one
    loop, or two loops over blocks and within a block (the operands are then collapsed). Scales may
    be row-major or in the 128x4 layout, whose map may be written in any form. Elements may be the
    result of a ``tc.pack_codes``, which stays. A function that already contains the op is left
    alone. Preserves the value of every element, up to the order and rounding of the f32 sums, as
    long as no scale is negative. Block scales become unsigned (the sign bit of f8E4M3FN is ignored
    from here on), and a negative global scale would change the sign of a sum that is zero.
    """

    name: ClassVar[str] = "raise-block-scaled"

    def run(self, module: ir.Module) -> None:
        for function in functions_to_raise(module, "block-scaled contraction", SMALLEST):
            if not any(isinstance(op, tc.BlockScaledMatmulOp) for op in function.entry_block):
                raise_scaled(function)


def functions_to_raise(module: ir.Module, what: str, smallest: str) -> Iterator[func.FuncOp]:
    """The functions of a module that may contain `what`, each of which has one block; an empty list
    if the module is converted already. Raises a match failure with the `smallest` accepted example
    if the module has no such function."""
    if is_converted(module):
        return
    functions = list(module.body.operations)
    if not functions:
        raise match_failure(
            module.operation, f"expected a func.func with one {what}, got an empty module", smallest
        )
    for op in functions:
        if not isinstance(op, func.FuncOp) or op.is_external:
            without = " without one" if isinstance(op, func.FuncOp) else ""
            raise match_failure(
                op,
                f"expected only func.func with a body, got {op.operation.name}{without}",
                smallest,
            )
        if is_simt(op):
            continue
        if len(op.regions[0].blocks) != 1:
            raise match_failure(op, "expected a function of one block, got branches", smallest)
        yield op


def raise_scaled(function: func.FuncOp) -> None:
    """Raises the block-scaled contraction of `function` to its op; a match failure if the function
    has none."""
    ops = list(function.entry_block)
    found = [op for op in ops if is_scaled_contraction(op)]
    if len(found) != 1:
        raise match_failure(
            found[1] if found else function,
            "expected exactly one contraction of block-scaled operands (elements and scales of two "
            f"operands multiplied and summed) in a function, got {len(found)}",
            SMALLEST,
        )
    (op,) = found
    check_shapes(op, SMALLEST)
    try:
        scaled = recognise(op)
    except Mismatch as why:
        raise match_failure(op, str(why), SMALLEST) from None
    if problem := types_problem(op, scaled):
        raise match_failure(op, problem, SMALLEST)
    packings = [o.operation for o in ops if isinstance(o, tc.PackCodesOp)]
    used = [op.operation, *zero_accumulator_ops(op, SMALLEST), *packings]
    factors = [op.operation.operands[n] for n in scaled.globals]
    last = op
    while (more := _scaling(last)) is not None:
        last, extra = more
        factors += extra
        used.append(last.operation)
    if len(factors) > 2:
        raise match_failure(
            last, f"expected two global scales at most, got {len(factors)}", SMALLEST
        )
    tail = find_tail(last, SMALLEST)
    used += tail.ops
    kept = [*packings, *tail.kept]
    check_rest(ops, [*used, *kept], tail.returned, _EXPECTED, SMALLEST)
    with ir.InsertionPoint(op), op.location:
        result = _build(op, scaled, factors, tail.result.type)
    unread = [a.arg_number for a in function.arguments if is_fill_only(a)]
    tail.result.replace_all_uses_with(result)
    for dead in reversed(ops[:-1]):
        if dead.operation not in kept:
            dead.operation.erase()
    drop_arguments(function, unread)


_EXPECTED = (
    "a zero linalg.fill, one block-scaled contraction, its global scales, a rounding and "
    "tc.pack_codes"
)


def check_shapes(
    op: ir.OpView, smallest: str, fixed: str = "tiles and grid", why: str = ""
) -> None:
    """Raises a match failure for an operand that is not a tensor of static, positive sizes.

    fixed: what these sizes determine, for the error message
    why: why no size may be 0
    """
    for operand in op.operation.operands:
        kind = operand.type
        if not isinstance(kind, ir.RankedTensorType):
            raise match_failure(op, f"expected tensor operands, got {kind}", smallest)
        if not kind.has_static_shape:
            raise match_failure(
                op,
                f"expected static shapes, got {kind} ({fixed} are fixed when the kernel is "
                "compiled); specialise the function to its sizes",
                smallest,
            )
        if 0 in kind.shape:
            raise match_failure(
                op, f"expected sizes of at least 1, got {kind}{why}; run fold-empty first", smallest
            )


def _scaling(op: ir.OpView) -> tuple[ir.OpView, list[ir.Value]] | None:
    """The one user of `op` and its factors, if it multiplies every element by tensor<f32>s."""
    uses = list(op.operation.results[0].uses)
    if len(uses) != 1 or uses[0].owner.name != "linalg.generic":
        return None
    user = uses[0].owner.opview
    block = user.regions[0].blocks[0]
    maps = [value(m) for m in linalg.get_indexing_maps(user.operation)]
    *inputs, _ = range(len(maps))
    rank = user.results[0].type.rank
    scalars = [n for n in inputs if str(user.operands[n].type) == "tensor<f32>"]
    whole = [n for n in inputs if n not in scalars]
    identity = ir.AffineMap.get_identity(rank)
    (yielded,) = list(block)[-1].operands
    fits = (
        len(whole) == 1
        and scalars
        and user.operands[whole[0]] == op.operation.results[0]
        and maps[whole[0]] == maps[-1] == identity
        and sorted(_product(yielded, block)) == inputs
        and is_op(user.operands[len(inputs)], "tensor.empty")
    )
    return (user, [user.operands[n] for n in scalars]) if fits else None


def _product(number: ir.Value, block: ir.Block) -> list[int]:
    """Numbers of the block arguments whose product `number` is; -1 for anything else."""
    if isinstance(number, ir.BlockArgument):
        return [number.arg_number if number.owner == block else -1]
    if number.owner.name != "arith.mulf":
        return [-1]
    return [n for operand in number.owner.operands for n in _product(operand, block)]


def _build(op: ir.OpView, found: ScaledMatmul, factors: list[ir.Value], out: ir.Type) -> ir.Value:
    operands = op.operation.operands
    values = [operands[n] for side in (found.a, found.b) for n in (side.elements, side.scales)]
    for given in (*values, *factors):
        packing = defining(given, tc.PackCodesOp)
        if not isinstance(packing.codes if packing else given, ir.BlockArgument):
            raise match_failure(
                op,
                "expected function arguments as inputs (they are read from global memory), or "
                f"tc.pack_codes of one, got the result of {given.owner.name}; make it an argument",
                SMALLEST,
            )
    if found.split:
        values[0], values[2] = _joined(values[0]), _joined(values[2])
    layouts = []
    for place, side in ((1, found.a), (3, found.b)):
        blocked = side.scales in found.blocked
        layouts.append(ir.StringAttr.get(BLOCKED if blocked else "row_major"))
        if blocked:
            *rows, k = values[place - 1].type.shape
            vector = len(rows) + 1 < values[0].type.rank
            shape = scales_shape([*rows, *([1] if vector else []), k], found.block, BLOCKED)
            values[place] = _in_blocks(op, values[place], shape)
    a_global, b_global = [*factors, None, None][:2]
    made = tc.BlockScaledMatmulOp(*values, a_global, b_global, i64(found.block), *layouts, out)
    problem = rules.broken_rule(made)
    if problem:
        raise match_failure(op, problem, SMALLEST)
    return made.out


def _in_blocks(op: ir.OpView, scales: ir.Value, shape: list[int]) -> ir.Value:
    """Scales in the 128x4 layout, in the shape that the op takes."""
    from tcir.passes.analysis.blocked_scales import groups  # needs numpy, which few programs do

    found = groups(scales.type.shape, shape)
    if found is None:
        raise match_failure(
            op,
            f"expected scales in blocks of {shape}, or with one of these dimensions split "
            f"into several, got {scales.type}; reshape the argument",
            SMALLEST,
        )
    if len(found) == scales.type.rank:
        return scales
    kind = ir.RankedTensorType.get(shape, scales.type.element_type)
    return tensor.CollapseShapeOp(kind, scales, found).result


def _joined(operand: ir.Value) -> ir.Value:
    """The operand with its last two dimensions, block and k within the block, as one."""
    *rows, blocks, block = operand.type.shape
    groups = [[n] for n in range(len(rows))] + [[len(rows), len(rows) + 1]]
    kind = ir.RankedTensorType.get([*rows, blocks * block], operand.type.element_type)
    return tensor.CollapseShapeOp(kind, operand, groups).result
