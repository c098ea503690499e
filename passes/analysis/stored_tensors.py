"""Marks tensors between contractions, so that upstream's elementwise fusion stops at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from tcir._mlir import arith, func, ir
from tcir.dialect.upstream import RESHAPES, name_of, names
from tcir.passes.analysis.contraction import is_contraction
from tcir.passes.analysis.frozen import computed_once
from tcir.passes.analysis.moves import WIDENING, is_widening, move_of, parallel
from tcir.passes.emit.fp8 import FP8

CALL, MARK = name_of(func.CallOp), "stored"
MULTIPLIES = names(arith.MulFOp, arith.MulIOp, "linalg.mul")


class Stay(Enum):
    """Determines which layout changes before a product are not folded into it: those of computed
    tensors only, or also those of arguments."""

    COMPUTED = auto()
    ALL = auto()


def mark(function: func.FuncOp, products: Sequence[ir.OpView], stay: Mapping[int, Stay]) -> None:
    """Marks tensors that contractions read and other ops of the function compute.

    A mark is a call of an undefined function, which no pass can look into. It comes before the
    reshapes, padding and casts of a contraction, and before the transposes and broadcasts of a
    product, because fusion folds these ops into the contraction's maps and body. If no tensor core
    multiplies factors of these types (f16 and f32), the factors are marked after their cast to a
    common type (f32).

    stay: the layout changes that are not folded, by the number of the product
    """
    for op in list(function.entry_block):
        if not is_contraction(op):
            continue
        staying = stay.get(products.index(op)) if op in products else Stay.COMPUTED
        factors = multiplied(op) or list(op.operands)[:-1]
        widened = not _multiply([_in_memory(each, staying) for each in factors])
        for factor in factors:
            each = _in_memory(factor, staying, widened)
            if not isinstance(each, ir.BlockArgument) and not is_mark(each.owner):
                _mark(each)


def mark_joined(function: func.FuncOp, products: Sequence[ir.OpView]) -> None:
    """Marks the operands of elementwise ops that join several products, such as the two branches of
    a residual block. If such an op were fused with the products, it would read all their sums,
    which are wider than the rounded results."""
    made: dict[ir.Value, set[ir.Operation]] = {op.results[0]: {op.operation} for op in products}
    for op in list(function.entry_block):
        if len(op.results) != 1 or op.results[0] in made or not _is_elementwise(op):
            continue
        read = [each for each in dict.fromkeys(op.operands) if made.get(each)]
        made[op.results[0]] = set[ir.Operation]().union(*(made[each] for each in read))
        if len(read) > 1 and any(made[each] != made[read[0]] for each in read):
            for each in read:
                if not _is_marked(each):
                    _mark(each)


def mark_once(function: func.FuncOp) -> None:
    """Marks tensors that depend only on frozen arguments, so that the ops which read them do not
    compute them again."""
    for each in computed_once(function):
        if not _is_marked(each):
            _mark(each)


def _is_elementwise(op: ir.OpView) -> bool:
    """Whether each element of an op's result is computed from one element of each operand; true for
    a reshape."""
    if op.operation.name.startswith(("arith.", "math.")) or isinstance(op, RESHAPES):
        return True
    return parallel(op.results[0]) is not None


def _is_marked(tensor: ir.Value) -> bool:
    return any(is_mark(use.owner.operation) for use in tensor.uses)


def unmark(function: func.FuncOp) -> None:
    """Removes the marks."""
    for op in list(function.entry_block):
        if is_mark(op.operation):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.operation.erase()


def is_mark(op: ir.Operation) -> bool:
    """Whether an op is a mark: a call at which fusion stops."""
    return op.name == CALL and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == MARK


def multiplied(op: ir.OpView) -> list[ir.Value]:
    """Returns the factors if `op` is a sum of products that another op computed; otherwise none.

    An importer writes a matrix times a vector as two ops, a product and a sum, which fusion merges.
    Sums of f32 products stay two ops, because a tensor core would truncate the f32 factors to tf32.
    """
    factors = _multiplied(op)
    cut = any(str(_in_memory(each, None).type.element_type) == "f32" for each in factors)
    return [] if cut else factors


def _multiplied(op: ir.OpView) -> list[ir.Value]:
    inputs = list(op.operands)[:-1]
    if len(inputs) != 1 or isinstance(inputs[0], ir.BlockArgument):
        return []
    if _combined(op.regions[0].blocks[0]) not in ("arith.addf", "arith.addi"):
        return []
    before = inputs[0].owner
    if len(list(inputs[0].uses)) != 1 or is_contraction(before.opview):
        return []
    if before.name in MULTIPLIES:
        return list(before.operands)[:2]
    if before.name != "linalg.generic" or len(before.operands) != 3:
        return []
    combined = _combined(before.regions[0].blocks[0])
    return list(before.operands)[:2] if combined in MULTIPLIES else []


def _combined(block: ir.Block) -> str:
    """The op that a body yields of its elements, each perhaps widened; "" for anything else."""
    (yielded, *_) = list(block)[-1].operands
    if isinstance(yielded, ir.BlockArgument) or len(yielded.owner.operands) != 2:
        return ""
    read = [
        each.owner.operands[0]
        if not isinstance(each, ir.BlockArgument) and each.owner.name in WIDENING
        else each
        for each in yielded.owner.operands
    ]
    return yielded.owner.name if all(isinstance(v, ir.BlockArgument) for v in read) else ""


def repeat(function: func.FuncOp) -> None:
    """Copies an op that is to be folded for each of its users, because fusion skips ops with
    several users."""
    for op in reversed(list(function.entry_block)):
        if len(op.results) != 1 or not (_folds(op.results[0]) or move_of(op.results[0])):
            continue
        for use in list(op.results[0].uses)[1:]:
            with ir.InsertionPoint(op):
                use.owner.operands[use.operand_number] = op.operation.clone().results[0]


def mark_of(stored: ir.Value) -> ir.Value:
    """Builds a mark of a tensor, and returns its result."""
    attributes = {"callee": ir.FlatSymbolRefAttr.get(MARK)}
    call = ir.Operation.create(
        CALL, results=[stored.type], operands=[stored], attributes=attributes
    )
    return call.result


def _mark(stored: ir.Value) -> None:
    after = stored.owner.opview
    with ir.InsertionPoint.after(after), after.location:
        marked = mark_of(stored)
    stored.replace_all_uses_except(marked, marked.owner.operation)


def _in_memory(factor: ir.Value, stay: Stay | None, widened: bool = False) -> ir.Value:
    """The tensor that a contraction reads before what is folded into it.

    stay: moves that are not; widened: whether it is read as it was cast
    """
    found = factor
    while not isinstance(found, ir.BlockArgument) and (
        (_folds(found) or (stay is None and move_of(found) is not None))
        and not (widened and is_widening(found))
    ):
        found = found.owner.operands[0]
    if isinstance(found, ir.BlockArgument) or stay != Stay.COMPUTED:
        return found
    through = _in_memory(found, None, widened)
    return through if isinstance(through, ir.BlockArgument) else found


def _multiply(factors: Sequence[ir.Value]) -> bool:
    """Whether factors have types that a tensor core multiplies together: one, or both of f8."""
    kinds = [each.type for each in factors if isinstance(each.type, ir.ShapedType)]
    elements = {str(kind.element_type) for kind in kinds}
    return len(elements) == 1 or elements <= set(FP8)


def _folds(tensor: ir.Value) -> bool:
    """Whether the op that makes a tensor only widens, pads or reshapes."""
    op = tensor.owner
    return isinstance(op.opview, RESHAPES) or op.name == "tensor.pad" or is_widening(tensor)
