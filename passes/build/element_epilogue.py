"""Epilogues by element: the body of a ``tc.epilogue`` on numbers of one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.passes.build import simt
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.functions import (
    FUNCTIONS,
    NAMES,
    NO_EXPONENT,
    POWERS,
    constant_number,
    divided,
    function,
)
from tcir.passes.build.tile_kernel import Source

INSTEAD = "take pipeline gemm"
LEAST_BITS = 16
"""Narrower numbers have no registers of their own: conversions of fp8 take pairs."""


def check_by_element(source: Source, pass_name: str) -> None:
    """Rejects what follows a product where a kernel makes every result of one sum."""
    if source.quantise is not None:
        raise match_failure(
            source.quantise,
            f"expected results of one tensor in {pass_name}, got tc.quantise_blocks (no thread has "
            f"all columns of a block); {INSTEAD}, or quantise in another kernel",
        )
    if source.after is not None:
        check_elements(source.after, f"in {pass_name}", INSTEAD)


def check_elements(after: tc.EpilogueOp, where: str, instead: str) -> None:
    """Rejects an epilogue that makes an element of two columns, or has types of a byte."""
    if after.gated:
        raise match_failure(
            after,
            f"expected a result for every sum {where}, got one for two columns, as of a gated "
            f"activation; {instead}, or return the sums",
        )
    for each in list(after.body.blocks[0])[:-1]:
        check_types(each, where, instead)


def check_types(op: ir.OpView, where: str, instead: str) -> None:
    """Rejects numbers, or tensors of them, that a thread cannot hold one by one."""
    values = [*op.operation.operands, *op.operation.results]
    for kind in (getattr(v.type, "element_type", v.type) for v in values):
        if str(kind) != "i1" and kind.width < LEAST_BITS:
            raise match_failure(
                op,
                f"expected f32, f16, bf16, i16 or i32 in an epilogue {where}, got {kind} (a thread "
                f"has one number, conversions of fp8 take pairs); store f16, or {instead}",
            )


def number_at(
    after: tc.EpilogueOp,
    pointer_of: Callable[[ir.Value], ir.Value],
    at: Sequence[ir.Value],
    total: ir.Value,
) -> ir.Value:
    """The element of the result at the indices `at`, i32 values, whose sum is `total`.

    pointer_of: the address of a tensor that the function of `after` is given
    """
    block = after.body.blocks[0]
    (argument,) = block.arguments
    narrow = total.type != argument.type
    known = {argument: arith.truncf(argument.type, total) if narrow else total}
    *ops, end = block.operations
    for each in ops:
        with each.location:
            known[each.operation.results[0]] = (
                load(
                    pointer_of(each.tensor),
                    each.tensor.type,
                    [None if dim is None else at[dim] for dim in each.dims],
                )
                if isinstance(each, tc.ElementOp)
                else scalar(each, [known[operand] for operand in each.operation.operands])
            )
    return known[end.operands[0]]


def load(pointer: ir.Value, kind: ir.RankedTensorType, at: Sequence[ir.Value | None]) -> ir.Value:
    """The element of a tensor at `pointer` at the indices `at`, i32 values; None: 0."""
    return simt.load(address(pointer, kind, at), kind.element_type)


def address(
    pointer: ir.Value, kind: ir.RankedTensorType, at: Sequence[ir.Value | None]
) -> ir.Value:
    """Where the element of a tensor at `pointer` at the indices `at` is; None: 0."""
    place: ir.Value | None = None
    for number, extent in zip(at, kind.shape, strict=True):
        if extent == 1:
            continue
        index = simt.constant(0, 64) if number is None else simt.wide(number)
        place = index if place is None else simt.add(simt.mul(place, extent), index)
    place = simt.constant(0, 64) if place is None else place
    return simt.at(pointer, byte(place, kind.element_type))


def byte(place: ir.Value, element: ir.Type) -> ir.Value:
    """The offset of element `place`, an i64, in bytes; an i1 has one."""
    return simt.mul(place, max(1, tc.element_bytes(element)))


def scalar(
    op: ir.OpView, operands: Sequence[ir.Value], kinds: Sequence[ir.Type] | None = None
) -> ir.Value:
    """An op of ``arith`` or ``math`` on numbers; kinds: of its results, if not its own."""
    name = op.operation.name
    if name in FUNCTIONS or name in POWERS:
        if isinstance(operands[0].type, ir.F64Type):
            raise match_failure(
                op,
                f"expected {name} of f32 or narrower, got one of f64 (PTX ISA 9.7.3: its "
                "instruction has no such form); round with arith.truncf in front",
            )
        if name in FUNCTIONS:
            return function(name, operands[0])
        exponent = constant_number(op.operation.operands[1])
        if exponent is None:
            raise match_failure(op, NO_EXPONENT.format(name))
        return function(name, operands[0], exponent)
    if name == "math.fma":
        return simt.fma(*operands)
    if name.startswith("math."):
        raise match_failure(
            op,
            f"expected arith ops, {', '.join(NAMES)} in an epilogue, got {name}, which has no "
            "lowering; compute it in a function of its own",
        )
    if name == "arith.divf":
        return divided(*operands)
    attributes = {each: op.operation.attributes[each] for each in op.operation.attributes}
    own = [getattr(r.type, "element_type", r.type) for r in op.operation.results]
    return ir.Operation.create(name, kinds or own, operands, attributes).result
